#!/usr/bin/python3
"""projects_run.py [--as UID] [--only NAME...] PX - px run and px test, on this machine and in the sandbox of a project.

The base is the tiny distribution of bases/debs.py with this machine's Python, built once; packages are wheels made here, pinned in a
requirements.txt, so that nobody resolves and nothing is fetched. PX and what lies beside it are copied to where any user can reach them.
Prints `ok NAME`, `not ok NAME: why`, `skip NAME: why`, and last "N passed, N failed, N skipped".
"""

import importlib.util
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "envs"), str(HERE / "bases"), str(HERE)]
sys.dont_write_bytecode = True
import debs  # noqa: E402
import leaks  # noqa: E402
from cases import TESTS, WITHOUT_REASON, Problem, Skip, check, chosen, parser, publish, start_again, tell, test, verdict_of  # noqa: E402
from wheels import Wheel  # noqa: E402  (of envs/)

LIMIT_S = 600
HOST, BOX = (), ("--sandbox",)
PROGRAMS = ("px", "px-main", "px-layer", "px-fetch", "px-git", "px-net")
SHOW = "import json, os, sys\nprint(json.dumps({'argv': sys.argv, 'cwd': os.getcwd(), 'exe': sys.executable, 'env': dict(os.environ)}))\n"


def equal(got, expected, what):
    check(got == expected, f"{what}: {got!r} and not {expected!r}")


def until(condition, why):
    end = time.monotonic() + LIMIT_S
    while not condition():
        check(time.monotonic() < end, why)
        time.sleep(0.02)


def tree(directory):
    """Every file and link below a directory with its bytes and its time."""
    found = {}
    for path in sorted(directory.rglob("*")):
        name = str(path.relative_to(directory))
        found[name] = os.readlink(path) if path.is_symlink() else (path.read_bytes(), path.stat().st_mtime_ns) if path.is_file() else None
    return found


class Shared:
    """One PX_HOME with the base, for all tests."""

    def __init__(self, programs, top):
        self.px, self.programs, self.top = str(programs / "px"), programs, Path(top)
        self.home = self.top / "home"
        self.archive, self.ready, self.why = None, False, ""

    def base(self):
        if self.why:
            raise Skip(self.why)
        if self.ready:
            return
        self.archive = debs.tiny_with_python(self.top / "mirror")
        if not self.archive:
            self.why = "the base is made of a Debian 12 host's own programs, with its python3.11"
            raise Skip(self.why)
        done = subprocess.run([self.px, "sandbox", "base", "build"], env=self.variables(), capture_output=True, text=True, timeout=LIMIT_S,
                              check=False, stdin=subprocess.DEVNULL)
        check(done.returncode == 0, f"the base cannot be built: {done.stderr[-600:]}")
        self.ready = True

    def variables(self):
        mirror = self.archive.address if self.archive else ""
        (self.top / "user").mkdir(exist_ok=True)
        return {"PX_HOME": str(self.home), "HOME": str(self.top / "user"), "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TMPDIR": str(self.top),
                "PX_APT_MIRROR": mirror, "PX_APT_SECURITY_MIRROR": mirror}


class World:
    """A project with a directory of wheels."""

    def __init__(self, shared, top):
        self.shared, self.px, self.top = shared, shared.px, Path(top)
        self.dir, self.wheels = self.top / "de:mo, \u00fc", self.top / "wheels"         # any name will do
        self.dir.mkdir()
        self.wheels.mkdir()
        self.home = shared.home
        if not os.access(debs.PYTHON, os.X_OK):
            raise Skip(f"there is no {debs.PYTHON} here")

    def variables(self, **more):
        return {**self.shared.variables(), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.wheels), **more}

    def run(self, *words, cwd=None, status=None, **more):
        given = {key: more.pop(key) for key in ("input",) if key in more}
        if not given:
            given["stdin"] = subprocess.DEVNULL
        done = subprocess.run([self.px, *words], cwd=cwd or self.dir, env=self.variables(**more), capture_output=True, timeout=LIMIT_S,
                              check=False, text=True, errors="replace", **given)
        if status is not None:
            equal(done.returncode, status, f"exit status of {words}: {done.stdout[-300:]} {done.stderr[-600:]}")
        return done

    def out(self, *words, **more):
        return self.run(*words, status=0, **more).stdout

    def ask(self, *words, status=0, **more):
        done = self.run("--json", *words, status=status, **more)
        answer = json.loads(done.stdout)
        check(set(answer) == {"status", "message", "details"}, f"the envelope of {words}: {sorted(answer)}")
        check(answer["message"].startswith(f"px {words[0]}: "), f"the message of {words}: {answer['message']}")
        return answer

    def refused(self, *words, code, reason=None, status=1, **more):
        answer = self.ask(*words, status=status, **more)
        equal((answer["status"], answer["details"]["code"]), ("user-error", code), f"{words}: {answer}")
        check(not reason or answer["details"]["reason"] == reason, f"reason of {words}: {answer}")
        check((answer["details"]["why"] or code in WITHOUT_REASON) and answer["details"]["fix"] and answer["details"]["reason"], f"{words}: no why, fix or reason")
        return answer

    def manifest(self, wheels=(), more="", directory=None, name="demo"):
        listed = ", ".join(json.dumps(wheel.name) for wheel in wheels)
        ((directory or self.dir) / "pyproject.toml").write_text(
            f'[project]\nname = "{name}"\nversion = "1.0"\nrequires-python = ">=3.11"\ndependencies = [{listed}]\n\n[tool.px]\n{more}')

    def project(self, *wheels, more="", sandbox=True):
        """A project that is in step with its lock and its environment."""
        if sandbox:
            self.shared.base()
        self.manifest(wheels, more)
        for wheel in wheels:
            wheel.write(self.wheels)
        if wheels:
            (self.dir / "requirements.txt").write_text("".join(f"{w.name}=={w.version} --hash=sha256:{w.sha256()}\n" for w in wheels))
        self.run("sync", status=0)
        (self.dir / "show.py").write_text(SHOW)
        return self

    def shows(self, *words, **more):
        return json.loads(self.out("run", *words, **more))


def tool():
    return Wheel("demo-tool", "1.2", {"demo_tool.py": b"import sys\n\ndef main():\n    print('tool', *sys.argv[1:])\n    return 3\n"},
                 scripts={"demo": "demo_tool:main"})


def fake_pytest():
    return Wheel("pytest", "9.0", {"pytest.py": b"import sys\n\ndef main():\n    print('pytest', sys.path[0], *sys.argv[1:])\n    return 0\n\n"
                                                b"if __name__ == '__main__':\n    sys.exit(main())\n"}, scripts={"pytest": "pytest:main"})


# ---- targets ---------------------------------------------------------------------------------------------------------


@test
def targets_in_their_order(w):
    w.project(tool(), sandbox=False)
    w.shared.base()
    (w.dir / "sub dir").mkdir()
    (w.dir / "sub dir/deep.py").write_text("import sys; print('deep', sys.argv)\n")
    (w.dir / "greet").write_text("#!/bin/sh\necho \"greet $1\"\n")
    (w.dir / "greet").chmod(0o755)
    (w.dir / "script").write_text("#!/usr/bin/env python3\nprint('by its first line')\n")
    (w.dir / "data.txt").write_text("data\n")
    (w.dir / "demo.py").write_text("print('the file')\n")
    for where in (HOST, BOX):
        equal(w.out("run", *where, "demo.py"), "the file\n", "a file")
        equal(w.out("run", *where, "sub dir/deep.py", "x"), "deep ['sub dir/deep.py', 'x']\n", "a file below")
        equal(w.out("run", *where, "deep.py", cwd=w.dir / "sub dir"), "deep ['deep.py']\n", "a file from where one stands")
        equal(w.out("run", *where, "demo.py", cwd=w.dir / "sub dir"), "the file\n", "a file of the root, from below")
        equal(w.out("run", *where, str(w.dir / "demo.py")), "the file\n", "a file by its whole path")
        equal(w.out("run", *where, "greet", "a  b"), "greet a  b\n", "an executable file")
        equal(w.out("run", *where, "script"), "by its first line\n", "a script that nobody made executable")
        w.refused("run", *where, "data.txt", code="PX030", status=126)
        for name in ("python", "python3", "python3.11", "py", "py3"):
            equal(w.out("run", *where, name, "-c", "import demo_tool; print(demo_tool.__name__)"), "demo_tool\n", name)
        w.refused("run", *where, "python3.9", code="PX031", status=127)
        done = w.run("run", *where, "demo", "a b", status=3)
        equal(done.stdout, "tool a b\n", "a script of a package")
        equal(w.out("run", *where, "sh", "-c", "echo program"), "program\n", "a program")
        equal(w.out("run", *where, "/bin/sh", "-c", "echo path"), "path\n", "a program by its path")
        w.refused("run", *where, "nowhere-to-be-found", code="PX031", status=127)
        w.refused("run", *where, "../elsewhere.py", code="PX031", status=127)
        for target in ("https://example.org/x.py", "gh:someone/thing", "git+ssh://x/y", "app.pxapp"):
            w.refused("run", *where, target, code="PX003")
    (w.dir / "demo").write_text("#!/bin/sh\necho the file wins\n")
    (w.dir / "demo").chmod(0o755)
    for where in (HOST, BOX):
        equal(w.out("run", *where, "demo"), "the file wins\n", "a file and a script of one name")


@test
def arguments_arrive_as_they_were(w):
    w.project()
    words = ["a b", "line\nline", "", "--json", "--sandbox", "-v", "ü", "$(x)", "'\"\\", "*"]
    for where in (HOST, BOX):
        equal(w.shows(*where, "show.py", *words)["argv"], ["show.py", *words], "arguments")
        equal(w.shows(*where, "--", "show.py", "--", "-x")["argv"], ["show.py", "--", "-x"], "after --")
    inside = w.shows(*BOX, "show.py", str(w.dir / "a.txt"), str(w.dir), str(w.dir) + "-not", "x" + str(w.dir))["argv"][1:]
    equal(inside, ["/app/a.txt", "/app", str(w.dir) + "-not", "x" + str(w.dir)], "paths of the project")


@test
def the_working_directory(w):
    w.project()
    deep = w.dir / "a/b c"
    deep.mkdir(parents=True)
    equal(w.shows(*HOST, "show.py", cwd=deep)["cwd"], str(deep), "on the host")
    equal(w.shows(*BOX, "../../show.py", cwd=deep)["cwd"], "/app/a/b c", "in the box")
    equal(w.shows(*BOX, "-w", "/tmp", "/app/show.py")["cwd"], "/tmp", "elsewhere, by -w")


@test
def input_reaches_it(w):
    w.project()
    for where in (HOST, BOX):
        equal(w.out("run", *where, "python", "-c", "import sys; print(sys.stdin.read()[::-1])", input="abc"), "cba\n", "standard input")
        equal(w.run("run", *where, "python", "-c", "import sys; print('e', file=sys.stderr); print('o')", status=0).stderr, "e\n", "standard error")


# ---- what it has -----------------------------------------------------------------------------------------------------


@test
def variables_on_the_host(w):
    w.project(more='[tool.px.env]\nMODE = "of the project"\n', sandbox=False)
    seen = w.shows(*HOST, "show.py", SECRET="kept", PYTHONPATH="/nowhere", PYTHONHOME="/nowhere", MODE="of the caller")
    env, path = seen["env"], json.loads((w.dir / ".px/state.json").read_text())["current_env"]["env_path"]
    equal((env["SECRET"], env["MODE"], env["PX_PROJECT_ROOT"], env["VIRTUAL_ENV"]), ("kept", "of the project", str(w.dir), path), "variables")
    check(env["PATH"].startswith(f"{path}/bin:") and "PYTHONHOME" not in env and "PYTHONPATH" not in env, f"{env}")
    check(seen["exe"].startswith(path + "/bin/python"), seen["exe"])
    check("PX_SANDBOX" not in env, "it is not in a sandbox")


@test
def variables_in_the_box(w):
    w.project(more='[tool.px.env]\nMODE = "of the project"\n')
    seen = w.shows(*BOX, "-e", "MINE=1", "-e", "PX_PYTHON=mine", "show.py", SECRET="hidden", VIRTUAL_ENV="/home/me/venv", PYTHONPATH="/home/me",
                   TZ="Asia/Tokyo", NO_COLOR="1")
    env = seen["env"]
    check(str(w.top) not in json.dumps(seen) and "hidden" not in json.dumps(seen) and "/home/me" not in json.dumps(seen), f"the host leaks: {seen}")
    equal((env["MODE"], env["PX_SANDBOX"], env["PX_PROJECT_ROOT"], env["VIRTUAL_ENV"], env["HOME"]),
          ("of the project", "1", "/app", "/px/env", "/home/sandbox"), "variables")
    equal((env["MINE"], env["PX_PYTHON"].rpartition("/")[2], env["TZ"], env["NO_COLOR"]), ("1", "python3.11", "Asia/Tokyo", "1"), "passed on")
    check(env["PATH"].startswith("/px/env/bin:") and seen["exe"].startswith("/px/env/bin/python"), f"{seen['exe']}")
    details = w.ask("run", *BOX, "python", "-c", "import os; print(os.environ['PX_SANDBOX_ID'], end='')")["details"]
    equal(details["stdout"], details["sandbox"]["sbx_id"], "PX_SANDBOX_ID")


@test
def the_box_is_a_box(w):
    w.project()
    code = """
import os, socket
def tried(what, act):
    try: act(); print(what, 'worked')
    except OSError as e: print(what, 'failed')
tried('px', lambda: open('/px/env/x', 'w'))
tried('app', lambda: open('/app/made-inside', 'w'))
tried('usr', lambda: open('/usr/made', 'w'))
tried('host', lambda: os.listdir(%r))
tried('net', lambda: socket.create_connection(('127.0.0.1', %d), 5))
print('uid', os.getuid(), os.path.exists('/app/show.py'), sorted(x for x in os.listdir('/sys')))
"""
    with socket.create_server(("127.0.0.1", 0)) as server:      # of this machine, which a project reaches only if it is told to
        said = w.out("run", *BOX, "python", "-c", code % (str(w.top), server.getsockname()[1]))
    equal(said, "px failed\napp worked\nusr worked\nhost failed\nnet failed\nuid 1000 True []\n", "what a program may")
    made = w.dir / "made-inside"
    equal((made.exists(), made.stat().st_uid), (True, os.getuid()), "what it wrote is the caller's")
    equal(w.out("run", *BOX, "sh", "-c", "ls /usr/made 2>/dev/null || echo gone"), "gone\n", "what was written beside the project")
    done = w.run("run", *BOX, "--timeout", "1s", "sleep", "1000")
    equal(done.returncode, 124, f"a timeout: {done.stderr}")
    details = w.ask("run", *BOX, "--timeout", "1s", "sleep", "1000", status=124)["details"]
    equal((details["code"], details["reason"]), (124, "timeout"), "the same as JSON")
    w.out("run", *BOX, "-v", f"{w.wheels}:/wheels:ro", "sh", "-c", "ls -d /wheels")
    equal(w.out("run", *BOX, "--net", "loopback", "python", "-c", "import socket; s = socket.create_server(('127.0.0.1', 0)); print('listens')"),
          "listens\n", "--net loopback")


@test
def a_working_tree_that_cannot_be_written(w):
    w.project()
    code = "import os\ntry: open('/app/x', 'w'); print('written')\nexcept OSError as e: print(e.strerror, os.getcwd(), os.path.exists('show.py'))\n"
    refused = "Read-only file system /app True\n"
    equal(w.out("run", *BOX, "--read-only", "python", "-c", code), refused, "--read-only")
    inner = w.dir / "inner"
    inner.mkdir()
    said = w.out("run", *BOX, "--read-only", "-v", f"{w.wheels}:/app/inner:rw", "sh", "-c", "echo > /app/inner/y && echo > /tmp/z && pwd", cwd=inner)
    equal((said, (w.wheels / "y").exists()), ("/app/inner\n", True), "a place that the caller names")
    w.manifest(more='[tool.px.sandbox]\nworking-tree = "read-only"\n')
    equal(w.out("run", *BOX, "python", "-c", code), refused, "the project says so")
    w.manifest(more='[tool.px.sandbox]\nworking-tree = "read-write"\n')
    equal(w.out("run", *BOX, "--read-only", "python", "-c", code), refused, "nobody can widen it")
    equal(w.out("run", *BOX, "python", "-c", code), "written\n", "as ever")
    w.manifest(more='[tool.px.sandbox]\nworking-tree = "ro"\n')
    done = w.run("run", *BOX, "python", "-c", code, status=1)
    check("PX102" in done.stderr and 'working-tree = "read-only"' in done.stderr, done.stderr)


@test
def what_the_caller_says_stands(w):
    """-e is stronger than [tool.px.env], also for the environment's Python; so is PYTHONPATH, by either."""
    w.project(more='[tool.px.env]\nMODE = "of the project"\nPYTHONPATH = "lib"\n')
    for name in ("lib", "more"):
        (w.dir / name).mkdir()
        (w.dir / name / f"found_in_{name}.py").write_text("")
    for where in (HOST, BOX):
        equal(w.out("run", *where, "python", "-c", "import found_in_lib, os; print(os.environ['MODE'])"), "of the project\n", "of the project")
    seen = w.shows(*BOX, "-e", "MODE=mine", "-e", "PYTHONPATH=/app/more", "show.py")["env"]
    equal((seen["MODE"], seen["PYTHONPATH"]), ("mine", "/app/more"), "-e")
    w.out("run", *BOX, "-e", "PYTHONPATH=/app/more", "python", "-c", "import found_in_more")


# ---- the project's own package ---------------------------------------------------------------------------------------

OWN = """import sys
from importlib.metadata import entry_points, version

def main():
    print("own", __file__, version("demo"), [e.value for e in entry_points(group="demo.plugins")], *sys.argv[1:])
    return 5
"""
SAID = '[project.scripts]\nmycli = "demo:main"\n[project.entry-points."demo.plugins"]\none = "demo:main"\n'
BUILD = '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'


def put(directory, files):
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@test
def the_own_package(w):
    """src layout: modules, python -m, a script, its metadata; from anywhere in the project, here and in the sandbox."""
    put(w.dir, {"src/demo/__init__.py": OWN, "src/demo/__main__.py": "from . import main\nmain()\n", "deep/er/x": ""})
    w.project(tool(), fake_pytest(), more=SAID + BUILD)
    for where, root in ((HOST, str(w.dir)), (BOX, "/app")):
        for cwd in (w.dir, w.dir / "deep/er"):
            line = f"own {root}/src/demo/__init__.py 1.0 ['demo:main'] a b\n"
            equal(w.run("run", *where, "mycli", "a", "b", status=5, cwd=cwd).stdout, line, "its script")
            equal(w.out("run", *where, "python", "-m", "demo", "a", "b", cwd=cwd), line, "python -m")
        equal(w.out("run", *where, "python", "-I", "-c", "import demo, demo_tool, sys; print(sys.path.count(sys.argv[1]))", f"{w.dir}/src"), "1\n", "once")
        equal(w.run("run", *where, "sh", "-c", "cd / && exec mycli z", status=5).stdout.split()[-1], "z", "by PATH")
        equal(w.run("run", *where, "demo", status=3).stdout, "tool\n", "a script of a package")
        details = w.ask("explain", "run", *where, "mycli")["details"]
        equal((details["kind"], details["sys_path"][0]), ("script", root + "/src"), "the plan")
    put(w.dir, {"src/demo/new.py": "print('new')\n"})
    equal(w.out("run", "--frozen", *BOX, "python", "-m", "demo.new"), "new\n", "an edit needs nothing to be made")


@test
def a_changed_script_is_a_changed_environment(w):
    put(w.dir, {"src/demo/__init__.py": OWN})
    w.project(more=SAID, sandbox=False)
    path = w.dir / "pyproject.toml"
    path.write_text(path.read_text().replace("mycli =", "other ="))
    w.refused("run", "--frozen", "other", code="PX201", reason="project_changed")
    equal(json.loads(w.run("--json", "status", status=1).stdout)["env"]["reason"], "project_changed", "status")
    w.run("run", "other", status=5)
    equal(w.ask("sync", "--frozen")["details"]["action"], "sync_env", "the lock stays")
    w.run("run", "--frozen", "other", status=5)
    w.refused("run", "--frozen", "mycli", code="PX031", status=127)


@test
def checkouts_share_an_environment(w):
    """It is the same for two checkouts of one project, and each finds its own files in it."""
    other = w.top / "other"
    other.mkdir()
    for directory in (w.dir, other):
        put(directory, {"src/demo/__init__.py": OWN})
        w.manifest(more=SAID, directory=directory)
        w.run("sync", cwd=directory, status=0)
        check(f"own {directory}/src/demo" in w.run("run", "mycli", cwd=directory, status=5).stdout, "its own")
    paths = {json.loads((d / ".px/state.json").read_text())["current_env"]["env_path"] for d in (w.dir, other)}
    equal(len(paths), 1, f"environments: {paths}")


@test
def no_package_no_change(w):
    """What is no package gets the environment that it always had."""
    def profile(more):
        w.manifest(more=more)
        return w.ask("sync")["details"]["profile_oid"]
    plain = profile("")
    put(w.dir, {"demo.py": "", "other/__init__.py": ""})
    equal(profile(""), plain, "with files of any name")
    check(profile(BUILD) != plain, "a package is another")


@test
def an_own_package_that_px_cannot_place(w):
    w.manifest(more=BUILD + '[tool.setuptools]\npackage-dir = {demo = "code"}\n')
    equal(len(w.ask("sync")["details"]["warnings"]), 1, "sync")
    check("px: warning: pyproject.toml:" in w.run("sync", status=0).stderr, "said to a person")
    check("'demo' is not a layout" in json.dumps(json.loads(w.run("--json", "status").stdout)["warnings"]), "status")
    for more in ('[tool.setuptools.packages.find]\nwhere = ["../else"]\n', '[project.scripts]\n"../x" = "demo:main"\n',
                 '[project.scripts]\npython = "demo:main"\n', '[project.scripts]\nx = "demo:main\\nimport os"\n'):
        w.manifest(more=more)
        for words in (("sync",), ("run", "python", "-c", "")):
            w.refused(*words, code="PX102")


@test
def members_import_each_other(w):
    w.shared.base()
    put(w.dir, {"pyproject.toml": '[tool.px.workspace]\nname = "all"\nmembers = ["app", "libs/core"]\n',
                "libs/core/pyproject.toml": '[project]\nname = "core-lib"\nversion = "2.0"\n[project.scripts]\ncore = "core.one:main"\n',
                "libs/core/src/core/one.py": "def main():\n    print('core', __file__)\n",
                "app/pyproject.toml": '[project]\nname = "app"\nversion = "1"\ndependencies = ["core-lib"]\n',
                "app/app.py": "import core.one, importlib.metadata as m\ncore.one.main()\nprint(m.version('core-lib'))\n"})
    w.run("sync", status=0)
    for where, root in ((HOST, str(w.dir)), (BOX, "/app")):
        line = f"core {root}/libs/core/src/core/one.py\n"
        equal(w.out("run", *where, "app.py", cwd=w.dir / "app"), line + "2.0\n", "a member that another one needs")
        equal(w.out("run", *where, "core", cwd=w.dir / "app"), line, "its script")


# ---- how it ends -----------------------------------------------------------------------------------------------------


@test
def P24_the_exit_status_is_its_own(w):
    w.project()
    for where in (HOST, BOX):
        for status in (0, 1, 7, 124, 125, 255):
            w.run("run", *where, "python", "-c", f"raise SystemExit({status})", status=status)
        w.run("run", *where, "sh", "-c", "kill -9 $$", status=137)
        w.run("run", *where, "sh", "-c", "kill -TERM $$", status=143)
        details = w.ask("run", *where, "sh", "-c", "kill -9 $$", status=137)["details"]
        equal((details["code"], details["reason"]), (137, "signalled"), "as JSON")
        answer = w.ask("run", *where, "sh", "-c", "echo out; echo err >&2; exit 7", status=7)
        details = answer["details"]
        equal((answer["status"], details["code"], details["stdout"], details["stderr"], details["target"]), ("user-error", 7, "out\n", "err\n", "sh"), "as JSON")
        equal("sandbox" in details, where == BOX, "details.sandbox")


def running(word):
    """Processes whose command line has this word."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and word.encode() in Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0"):
                found.append(int(entry))
        except OSError:
            continue
    return found


@test
def signals_reach_it_and_nothing_is_left(w):
    w.project()
    code = ("import signal, sys, time\n"
            "def heard(number, frame):\n    print('heard', number, flush=True); sys.exit(number)\n"
            "for n in (2, 15, 10):\n    signal.signal(n, heard)\nprint('ready', flush=True)\nwhile True:\n    time.sleep(0.05)\n")
    (w.dir / "wait.py").write_text(code)
    for count, (where, number) in enumerate((place, number) for place in (HOST, BOX) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)):
        mark = f"mark-{os.getpid()}-{count}"
        child = subprocess.Popen([w.px, "run", *where, "wait.py", mark], cwd=w.dir, env=w.variables(), stdout=subprocess.PIPE, text=True,
                                 stdin=subprocess.DEVNULL)
        equal(child.stdout.readline(), "ready\n", "its first word")
        child.send_signal(number)
        equal((child.stdout.read(), child.wait(LIMIT_S)), (f"heard {int(number)}\n", int(number)), f"after {number}")
        until(lambda mark=mark: not running(mark), "it is still there")
    for count, where in enumerate((HOST, BOX)):
        mark = f"killed-{os.getpid()}-{count}"
        child = subprocess.Popen([w.px, "run", *where, "wait.py", mark], cwd=w.dir, env=w.variables(), stdout=subprocess.PIPE, text=True,
                                 stdin=subprocess.DEVNULL)
        equal(child.stdout.readline(), "ready\n", "its first word")
        child.kill()
        child.wait(LIMIT_S)
        child.stdout.close()
        until(lambda mark=mark: not running(mark), "it outlived px")


@test
def on_a_terminal(w):
    w.project()
    spec = importlib.util.spec_from_file_location("px_pty", HERE / "cli/pty.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.DEADLINE_S = LIMIT_S
    before, here = dict(os.environ), os.getcwd()
    # In steps: Python itself may miss a signal that comes just before a long sleep.
    (w.dir / "ask.py").write_text("import os, signal, sys, time\nprint('ttys', *(os.isatty(n) for n in range(3)), flush=True)\n"
                                  "name = input('name? ')\n"
                                  "try:\n    print('hello', name, flush=True)\n    while True:\n        time.sleep(0.05)\nexcept KeyboardInterrupt:\n    print('interrupted', flush=True)\n    sys.exit(5)\n")
    try:
        os.environ.clear()
        os.environ.update(w.variables())
        os.chdir(w.dir)
        for where in (HOST, BOX):
            with module.Terminal(command=[w.px, "run", *where, "ask.py"]) as terminal:
                terminal.expect("ttys True True True\r\n")
                terminal.expect(r"name\? ")
                terminal.send("me\n")
                terminal.expect("hello me\r\n")
                terminal.send("\x03")
                terminal.expect("interrupted\r\n")
                terminal.ends_with(5)
                terminal.check_restored()
    except module.Problem as why:
        raise Problem(f"{where}: {why}") from None
    finally:
        os.chdir(here)
        os.environ.clear()
        os.environ.update(before)


# ---- states ----------------------------------------------------------------------------------------------------------


@test
def P2_an_unknown_base(w):
    w.project()
    w.manifest(more='[tool.px.sandbox]\nbase = "does-not-exist"\n')
    before = tree(w.dir)
    w.refused("run", *BOX, "show.py", code="PX900")
    equal(tree(w.dir), before, "the project")


@test
def P20_frozen_without_an_environment(w):
    w.project()
    shutil.rmtree(w.dir / ".px")
    before = tree(w.dir)
    for where in (HOST, BOX):
        w.refused("run", "--frozen", *where, "show.py", code="PX201", reason="missing_env")
        w.refused("run", *where, "show.py", code="PX201", reason="missing_env", CI="1")
        w.refused("test", "--frozen", *where, code="PX201", reason="missing_env")
    equal(tree(w.dir), before, "the project")


@test
def P21_without_an_environment(w):
    w.project(tool())
    shutil.rmtree(w.dir / ".px")
    before = tree(w.dir)
    for where in (HOST, BOX):
        details = w.ask("run", *where, "python", "-c", "import demo_tool; print('there')")["details"]
        equal(details["stdout"], "there\n", "it runs")
        if where == BOX:
            equal(sorted(details["sandbox"]), ["base", "base_os_oid", "capabilities", "image_digest", "profile_oid", "sbx_id"], "details.sandbox")
    equal(tree(w.dir), before, "the project")


@test
def P22_a_drifted_manifest(w):
    w.project(tool())
    (w.dir / "requirements.txt").rename(w.dir / "uv.lock.txt")
    before = tree(w.dir)
    for where in (HOST, BOX):
        w.refused("run", *where, "show.py", code="PX120", reason="missing_lock", CI="1")
        w.refused("run", *where, "show.py", code="PX120", reason="missing_lock")
    equal(tree(w.dir), before, "the project")
    w.manifest()
    (w.dir / "show.py").touch()
    w.run("sync", status=0)
    w.manifest(more='[tool.px.env]\nA = "b"\n')
    before = tree(w.dir)
    for where in (HOST, BOX):
        w.refused("run", *where, "show.py", code="PX120", reason="lock_drift", CI="1")
        w.refused("run", "--frozen", *where, "show.py", code="PX120", reason="lock_drift")
    equal(tree(w.dir), before, "the project")


@test
def P23_a_sandbox_that_cannot_be_built(w):
    w.project(more="[tool.px.sandbox.capabilities]\nxml = true\n")
    before = tree(w.dir)
    w.refused("run", *BOX, "show.py", code="PX903")
    equal(tree(w.dir), before, "the project")
    w.manifest(more="[tool.px.sandbox.capabilities]\nbogus = true\n")
    w.refused("run", *BOX, "show.py", code="PX901")
    equal(w.shows(*HOST, "show.py")["cwd"], str(w.dir), "on the host it does not matter")


@test
def P25_an_edit_is_seen_without_a_build(w):
    w.project()
    (w.dir / "lib.py").write_text("value = 'first'\n")
    (w.dir / "app.py").write_text("import lib\nprint(lib.value)\n")
    equal(w.out("run", *BOX, "app.py"), "first\n", "at first")
    images = sorted(os.listdir(w.home / "sandbox/images"))
    (w.dir / "lib.py").write_text("value = 'other'\n")
    done = w.run("-v", "run", *BOX, "app.py", status=0)
    equal(done.stdout, "other\n", "after the edit")
    check("image cached" in done.stderr and "started in" in done.stderr, f"timings: {done.stderr}")
    equal(sorted(os.listdir(w.home / "sandbox/images")), images, "images")


@test
def files_that_were_changed_are_never_run(w):
    """A package of the environment, on the host and in the sandbox: set aside and made again, or an error where nothing may be made."""
    w.project(Wheel("changed-here", "1", {"changed_here.py": b"print('as it was')\n"}))
    words = ("python", "-c", "import changed_here")
    for where in (HOST, BOX, BOX):
        equal(w.out("run", *where, *words), "as it was\n", "at first")
        for path in w.home.glob("store/trees/*/root/**/changed_here.py"):
            path.write_bytes(b"print('as it was')\nprint('CHANGED')\n")
        refused = w.ask("run", "--frozen", *where, *words, status=1)["details"]
        equal((refused["code"], "px sync" in " ".join(refused["fix"])), ("PX201", True), f"{where}: {refused}")
        done = w.run("run", *where, *words, status=0)
        equal(done.stdout, "as it was\n", f"{where}, after a change")
    for path in w.home.glob("store/trees/*/root/**/changed_here.py"):
        path.write_bytes(b"print('as it was')\nprint('CHANGED')\n")
    check("not what they were" in w.run("status", status=1).stdout, "px status")
    w.run("sync", status=0)
    for where in (HOST, BOX):
        equal(w.out("run", *where, *words), "as it was\n", "after px sync")


@test
def what_a_box_uses_is_not_removed(w):
    w.project(Wheel("kept-by-a-box", "1"))
    code = "import sys; print('ready', flush=True); sys.stdin.read()"
    child = subprocess.Popen([w.px, "run", *BOX, "python", "-c", code], cwd=w.dir, env=w.variables(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    equal(child.stdout.readline(), "ready\n", "its first word")
    listed = w.out("sandbox", "list")
    check(any(str(w.dir) in line and line.endswith(" (in use)") for line in listed.splitlines() if line.startswith("image")), listed)
    done = w.run("sandbox", "delete", str(w.dir), status=1)
    check("PX813" in done.stderr and "in use" in done.stderr and str(w.dir) in done.stderr, done.stderr)
    equal((child.communicate(timeout=LIMIT_S)[0], child.returncode), ("", 0), "the box")
    check("removed image" in w.out("sandbox", "delete", str(w.dir)), "afterwards it goes")


@test
def P34_nothing_of_the_project_is_written(w):
    w.project(tool(), fake_pytest())
    (w.dir / "lib.py").write_text("value = 1\n")
    (w.dir / "app.py").write_text("import lib, demo_tool\n")
    w.out("run", *BOX, "python", "-c", "")      # makes the image, with the byte code of packages
    store = sorted(str(p) for p in w.home.rglob("*.pyc"))
    before = tree(w.dir)
    for where in (HOST, BOX):
        w.out("run", *where, "app.py")
        w.out("run", *where, "python", "-c", "import lib")
        w.out("run", *where, "python", "-I", "-c", "import demo_tool")
        w.out("test", *where)
        w.out("explain", "run", *where, "app.py")
        w.run("run", *where, "python", "-c", "import lib; raise SystemExit(1)", status=1)
    equal(tree(w.dir), before, "the project")
    equal(sorted(str(p) for p in w.home.rglob("*.pyc")), store, "compiled files in the store")


BYTE_CODE = """import compiled.deep.module as m, importlib.util, json, os
data = open(m.__cached__, "rb").read()
source = open(m.__file__, "rb").read()
print(json.dumps([m.__file__, m.__cached__, int.from_bytes(data[4:8], "little"), data[8:16] == importlib.util.source_hash(source), m.name.__code__.co_filename,
                  sorted(os.listdir(os.path.dirname(m.__cached__)))]))
"""


def with_modules():
    return Wheel("compiled", "1", {"compiled/__init__.py": b"", "compiled/deep/__init__.py": b"", "compiled/deep/broken.py": b"this is no Python\n",
                                   "compiled/deep/module.py": b"def name(x):\n    return x in {None, 'a', 1.5}\n",
                                   "compiled/deep/__pycache__/module.cpython-311.pyc": b"of another time"})


@test
def packages_have_byte_code_here(w):
    """Made once for a package and this machine's Python, by two that ask at one time, for both; and made again where it was changed."""
    home = {"PX_HOME": str(w.top / "another home")}
    other = World.__new__(World)
    other.__dict__ = {**w.__dict__, "dir": w.top / "other"}
    other.dir.mkdir()
    w.project(tool(), with_modules(), sandbox=False)
    for one, wheels in ((w, (tool(), with_modules())), (other, (with_modules(),))):
        one.manifest(wheels)
        (one.dir / "requirements.txt").write_text("".join(f"{x.name}=={x.version} --hash=sha256:{x.sha256()}\n" for x in wheels))
    both = [subprocess.Popen([w.px, "sync"], cwd=one.dir, env=w.variables(**home), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True) for one in (w, other)]
    for child in both:
        said = child.communicate(timeout=LIMIT_S)[0]
        equal(child.returncode, 0, f"a sync beside another: {said}")
    found = {tuple(map(str, json.loads(one.out("run", "python", "-c", BYTE_CODE, **home)))) for one in (w, other)}
    equal(len(found), 1, f"one for both: {found}")
    source, cached, flags, same, name, names = json.loads(w.out("run", "python", "-I", "-c", BYTE_CODE, **home))
    check(source.startswith(home["PX_HOME"] + "/store/trees/") and cached.startswith(os.path.dirname(source) + "/__pycache__/"), f"{source} {cached}")
    equal((flags, same, name), (1, True, source), "an unchecked hash, and the path of its source")
    equal(names, ["__init__.cpython-311.pyc", "module.cpython-311.pyc"], "what could be compiled")
    check(w.run("run", "demo", **home).returncode == 3, "the script of a package")
    before = Path(cached).read_bytes()
    os.chmod(cached, 0o600)
    Path(cached).write_bytes(before + b"changed")
    done = w.run("run", "python", "-c", BYTE_CODE, status=0, **home)
    check("is not what px stored" in done.stderr and Path(json.loads(done.stdout)[1]).read_bytes() == before, f"what was changed: {done}")


@test
def a_stale_environment_is_made_once(w):
    """The lock is another than the one that was synced: run makes the environment, writes nothing in the project, and has it the next time."""
    home = {"PX_HOME": str(w.top / "another home")}
    w.project(tool(), sandbox=False)
    w.run("sync", status=0, **home)
    more = Wheel("more", "1", {"more.py": b"value = 'there'\n"})
    more.write(w.wheels)
    w.manifest((tool(), more))
    (w.dir / "requirements.txt").write_text("".join(f"{x.name}=={x.version} --hash=sha256:{x.sha256()}\n" for x in (tool(), more)))
    before = tree(w.dir)
    for _ in range(2):
        equal(w.out("run", "python", "-c", "import more; print(more.value)", **home), "there\n", "it runs")
        w.out("sandbox", "clean", **home)       # what has no name goes, and archives with it
        for path in w.wheels.iterdir():
            path.unlink()
    equal(tree(w.dir), before, "the project")
    check(w.run("status", **home).returncode == 1, "px status says what px sync would write")
    w.refused("run", "--frozen", "python", "-c", "", code="PX201", **home)


@test
def own_variables_are_not_the_projects(w):
    """By these a program finds its environment: [tool.px.env] does not set them, here as little as in the box; -e does."""
    w.project(more='[tool.px.env]\nMODE = "of the project"\nPATH = "/mine"\nPX_PROJECT_ROOT = "/mine"\nPX_SANDBOX_ID = "mine"\nVIRTUAL_ENV = "/mine"\n')
    here, inside = (w.shows(*where, "show.py")["env"] for where in (HOST, BOX))
    equal((here["MODE"], here["PX_PROJECT_ROOT"]), ("of the project", str(w.dir)), "on this machine")
    check(here["PATH"].startswith(here["VIRTUAL_ENV"] + "/bin:") and "/mine" not in here.values(), f"{here}")
    equal((inside["MODE"], inside["PX_PROJECT_ROOT"], inside["VIRTUAL_ENV"]), ("of the project", "/app", "/px/env"), "in the box")
    check(inside["PATH"].startswith("/px/env/bin:") and len(inside["PX_SANDBOX_ID"]) == 64, f"{inside}")
    equal(w.shows(*BOX, "-e", "VIRTUAL_ENV=/mine", "show.py")["env"]["VIRTUAL_ENV"], "/mine", "by -e")
    said = w.run("status").stdout
    for name in ("PATH", "PX_PROJECT_ROOT", "PX_SANDBOX_ID", "VIRTUAL_ENV"):
        check(f"[tool.px.env] names {name}, which px sets itself" in said, said)


@test
def P35_a_missing_library_is_named(w):
    w.project()
    load = ("python", "-c", "import ctypes; ctypes.CDLL('libpq.so.5'); print('loaded')")
    before = tree(w.dir)
    done = w.run("run", *BOX, *load, status=1)
    for word in ("PX902  libpq.so.5 is missing", "px sandbox add postgres", "[tool.px.sandbox.capabilities].postgres = true", "--auto-add"):
        check(word in done.stderr, f"{word!r} is not in {done.stderr}")
    for words, more in ((("--frozen", "--auto-add"), {}), (("--auto-add",), {"CI": "1"}), ((), {})):
        details = w.ask("run", *BOX, *words, *load, status=1, **more)["details"]
        advice = details["recommendation"]
        equal((details["code"], advice["code"], advice["capability"], advice["command"]), (1, "PX902", "postgres", "px sandbox add postgres"), f"{words}")
        check("libpq.so.5" in details["traceback"] and details["sandbox"]["capabilities"] == [], f"{details}")
    done = w.run("run", *BOX, "--auto-add", *load, status=0)
    check(done.stdout == "loaded\n" and "postgres is added for this run" in done.stderr, done.stdout + done.stderr)
    details = w.ask("run", *BOX, "--auto-add", *load)["details"]
    equal((details["stdout"], details["sandbox"]["capabilities"]), ("loaded\n", ["postgres"]), "as JSON")
    equal(tree(w.dir), before, "the project")
    w.run("run", *BOX, *load, status=1)         # it was for that run alone
    # Who fails for another reason, or has said no, is told nothing or helped with nothing.
    check("PX902" not in w.run("run", *BOX, "python", "-c", "raise SystemExit('libpq')", status=1).stderr, "a word is no library")
    check("PX902" not in w.run("run", *BOX, "sh", "-c", "echo 'OSError: libpq.so.5: cannot open shared object file' >&2").stderr, "it went well")
    w.manifest(more="[tool.px.sandbox.capabilities]\npostgres = false\n")
    done = w.run("run", *BOX, "--auto-add", *load, status=1)
    check("PX902" in done.stderr and "is added" not in done.stderr, done.stderr)
    w.manifest(more="[tool.px.sandbox.capabilities]\npostgres = true\n")
    equal(w.out("run", *BOX, *load), "loaded\n", "once it is written down")


# ---- answers ---------------------------------------------------------------------------------------------------------


@test
def captured_output_is_bounded(w):
    w.project()
    for where in (HOST, BOX):
        details = w.ask("run", *where, "python", "-c", "import sys; sys.stdout.write('a' * 900 + 'b' * 900)", PX_MAX_CAPTURE_BYTES="1000")["details"]
        equal(details["stdout"], "a" * 500 + "\n[...truncated...]\n" + "b" * 500, "a stream that is too long")
        details = w.ask("run", *where, "python", "-c", "import sys; sys.stderr.write('a' * 1000)", PX_MAX_CAPTURE_BYTES="1000")["details"]
        equal(details["stderr"], "a" * 1000, "one that just fits")
        details = w.ask("run", *where, "python", "-c", "import sys; sys.stdout.write('x' * (40 << 20))")["details"]
        check(len(details["stdout"]) == (1 << 20) + len("\n[...truncated...]\n"), f"{len(details['stdout'])} bytes")
        details = w.ask("run", *where, "python", "-c", "import os; os.write(1, b'\\xff\\x00\\x1b[1m')")["details"]
        equal(details["stdout"], "\ufffd\x00\x1b[1m", "bytes that are no text")
        w.refused("run", *where, "show.py", code="PX002", PX_MAX_CAPTURE_BYTES="many")
    details = w.ask("run", *HOST, "python", "-c", "import sys; print(repr(sys.stdin.read()))", input="not for it")["details"]
    equal(details["stdout"], "''\n", "input of a captured run")
    # A process that it left behind holds the pipe, and nobody waits for it.
    details = w.ask("run", *HOST, "sh", "-c", "sleep 30 & echo $!")["details"]
    os.kill(int(details["stdout"]), signal.SIGKILL)


@test
def words_that_are_none(w):
    w.project(sandbox=False)
    for words in (("run",), ("run", "--nosuch", "x"), ("run", "--memory", "1g", "x"), ("run", "--auto-add", "x"), ("run", "--sandbox", "--base", "host", "x"),
                  ("run", "--sandbox", "--preset", "default", "x"), ("run", "--sandbox", "--work-dir", "/", "x"), ("run", "--sandbox", "-d", "x"),
                  ("run", "--plan", "x"), ("run", "-c", "x"), ("run", "--report", "x", "y"), ("--json", "run", "--sandbox", "-i", "x"),
                  ("explain", "run")):
        done = w.run(*words)
        check(done.returncode == 2 and "PX001" in done.stdout + done.stderr, f"{words}: exit {done.returncode}: {done.stderr}")
    done = w.run("run", "show.py", cwd=w.top)
    check(done.returncode == 1 and "PX100" in done.stderr, done.stderr)


@test
def explaining_runs_nothing(w):
    w.project(tool())
    (w.dir / "loud.py").write_text("open('/app/loud', 'w'); open('loud', 'w')\n")
    before = tree(w.dir)
    details = w.ask("explain", "run", *BOX, "loud.py", "a")["details"]
    equal((details["schema_version"], details["engine"], details["argv"], details["workdir"], details["action"]),
          (1, "box", ["/px/env/bin/python", "loud.py", "a"], "/app", "noop"), "the plan")
    check(details["sys_path"][0].startswith("/px/store/pkg-builds/") and details["sandbox"]["enabled"] is True, f"{details}")
    planned = details["sandbox"]["sbx_id"]
    details = w.ask("explain", "run", "loud.py")["details"]
    equal((details["engine"], details["argv"][1:], details["sandbox"]), ("host", ["loud.py"], {"enabled": False}), "on the host")
    said = w.out("explain", "run", *BOX, "demo")
    check("command:      /px/env/bin/demo" in said and planned in said, said)
    shutil.rmtree(w.dir / ".px")
    equal(w.ask("explain", "run", "loud.py")["details"]["action"], "sync_env", "without an environment")
    w.refused("explain", "run", "--frozen", "loud.py", code="PX201")
    equal([name for name in tree(w.dir) if not name.startswith(".px")], [name for name in before if not name.startswith(".px")], "the project")
    equal(w.ask("run", *BOX, "python", "-c", "")["details"]["sandbox"]["sbx_id"], planned, "what is run is what was planned")


# ---- tests -----------------------------------------------------------------------------------------------------------


@test
def tests_of_the_project(w):
    w.project(sandbox=True)
    for where in (HOST, BOX):
        answer = w.refused("test", *where, code="PX202", reason="no_tests")
        check("pytest" in json.dumps(answer), f"{answer}")
    (w.dir / "runtests.py").write_text("import sys; print('root runner', sys.argv[1:]); sys.exit(4)\n")
    for where in (HOST, BOX):
        equal(w.run("test", *where, "a", status=4).stdout, "root runner ['a']\n", "runtests.py")
    (w.dir / "tests").mkdir()
    (w.dir / "tests/runtests.py").write_text("import sys, os; print('runner', os.path.basename(os.getcwd()), sys.argv[1:])\n")
    for where in (HOST, BOX):
        check(w.out("test", *where, "--", "-k", "x").endswith("['-k', 'x']\n"), "arguments")
        equal(w.out("test", *where, cwd=w.dir / "tests"), "runner tests []\n", "from below")
    equal(w.ask("test", *BOX)["details"]["kind"], "tests", "what ran them")


@test
def tests_by_pytest(w):
    w.project(fake_pytest())
    equal(w.out("test", "--", "-q"), f"pytest {w.dir} -q\n", "on the host")
    equal(w.out("test", *BOX, "tests/test_a.py", "-q"), "pytest /app tests/test_a.py -q\n", "in the box")


# ---- workspaces, several at once -------------------------------------------------------------------------------------


@test
def in_a_workspace(w):
    w.shared.base()
    (w.dir / "pyproject.toml").write_text('[tool.px.workspace]\nname = "all"\nmembers = ["one", "two"]\n')
    for name in ("one", "two"):
        (w.dir / name).mkdir()
        w.manifest(directory=w.dir / name, name=name)
    (w.dir / "one/app.py").write_text(SHOW)
    (w.dir / "one/runtests.py").write_text("print('of one')\n")
    w.run("sync", status=0)
    equal(w.shows(*BOX, "app.py", cwd=w.dir / "one")["cwd"], "/app/one", "in the box")
    equal(w.shows(*HOST, "one/app.py", cwd=w.dir / "two")["cwd"], str(w.dir / "two"), "a file of another member")
    for where in (HOST, BOX):
        equal(w.out("test", *where, cwd=w.dir / "one"), "of one\n", "tests of a member")


@test
def many_at_once(w):
    w.project(Wheel("many-at-once", "1"))
    done = []
    threads = [threading.Thread(target=lambda n=n: done.append(w.run("run", *BOX, "python", "-c", f"import many_at_once; print({n})"))) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(sorted(d.stdout for d in done), [f"{n}\n" for n in range(6)], "answers: " + " ".join(d.stderr[-200:] for d in done))


@test
def the_environment_stays_while_it_is_used(w):
    w.project(Wheel("kept-in-use", "1"), sandbox=False)
    shutil.rmtree(w.dir / ".px")
    code = "import sys; print('ready', flush=True); sys.stdin.read(); import kept_in_use; print(kept_in_use.name)"
    child = subprocess.Popen([w.px, "run", "python", "-c", code], cwd=w.dir, env=w.variables(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    equal(child.stdout.readline(), "ready\n", "its first word")
    w.run("sandbox", "clean", status=0)
    equal((child.communicate(timeout=LIMIT_S)[0], child.returncode), ("kept-in-use\n", 0), "after everything unused was removed")


@test
def the_example_works(w):
    example = HERE.parent / "examples/project"
    shutil.copytree(example, w.dir, dirs_exist_ok=True)
    w.shared.base()
    w.run("sync", status=0)
    for where in (HOST, BOX):
        said = w.out("run", *where, "words.py", "poem.txt")
        equal(said, "   4 box\n   4 the\n   3 is\n", "what it prints")
        check("OK" in w.run("test", *where, status=0).stderr, "its tests")


def tutorial():
    """The commands of docs/project.md's first section, each with the code of the error that stands behind it."""
    text = (HERE.parent / "docs/project.md").read_text().partition("## From an empty directory to an image\n")[2].partition("\n## ")[0]
    found = []
    for line in text.splitlines():
        if line.startswith("    # PX"):
            found[-1] = (found[-1][0], line.split()[1])
        elif line.startswith("    ") and not line.strip().startswith("#"):
            found.append((line.strip(), None))
    return found


@test
def the_tutorial_works(w):
    w.shared.base()
    place = w.top / "tutorial"
    place.mkdir()
    commands = tutorial()
    check(len(commands) > 20, f"only {len(commands)} commands were found")
    if not shutil.which("git") or not shutil.which("jq"):
        raise Skip("it uses git and jq")
    (w.top / "bin").mkdir()
    (w.top / "bin/px").symlink_to(w.px)
    who = {f"GIT_{part}_{what}": "px" for part in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    for command, code in commands:
        if command.startswith("px pack") and "not part of this build" in w.run("pack").stderr:
            continue
        done = subprocess.run(["bash", "-c", f"{command}\nstatus=$?\npwd >{w.top}/where\nexit $status"], cwd=place, capture_output=True, text=True, check=False,
                              timeout=LIMIT_S, stdin=subprocess.DEVNULL, env=w.variables(PATH=f"{w.top}/bin:/usr/bin:/bin", **who))
        check((done.returncode != 0) == bool(code) and (not code or code in done.stderr), f"{command}: exit {done.returncode}: {done.stdout[-300:]} {done.stderr[-600:]}")
        place = Path((w.top / "where").read_text().strip())


# ---- what a source archive needs ---------------------------------------------------------------------------------------

# A backend in the archive, which says nothing before it has seen the header of libpq-dev.
BACKEND = b"""import os
HEADER = "/usr/include/postgresql/libpq-fe.h"

def prepare_metadata_for_build_wheel(directory, config_settings=None):
    if open("NAME").read() == "lost" or not os.path.exists(HEADER) or open(HEADER).read() != "of libpq-dev\\n":
        print("x.c:1:10: fatal error: libpq-fe.h: No such file or directory")
        raise SystemExit(1)
    name = open("NAME").read()
    info = f"{name}-1.0.dist-info"
    os.mkdir(os.path.join(directory, info))
    with open(os.path.join(directory, info, "METADATA"), "w") as file:
        file.write(f"Metadata-Version: 2.1\\nName: {name}\\nVersion: 1.0\\nRequires-Dist: demo-tool\\n")
    return info

def build_wheel(directory, config_settings=None, metadata_directory=None):
    name = open("NAME").read()
    with open("wheel", "rb") as wheel, open(os.path.join(directory, f"{name}-1.0-py3-none-any.whl"), "wb") as file:
        file.write(wheel.read())
    return f"{name}-1.0-py3-none-any.whl"
"""


def source(folder, name):
    files = {"pyproject.toml": b'[build-system]\nrequires = []\nbuild-backend = "back"\nbackend-path = ["."]\n', "back.py": BACKEND, "NAME": name.encode(),
             "wheel": Wheel(name, "1.0", metadata="Requires-Dist: demo-tool\n").bytes()}
    with tarfile.open(folder / f"{name}-1.0.tar.gz", "w:gz") as archive:
        for path, data in files.items():
            info = tarfile.TarInfo(f"{name}-1.0/{path}")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


def add_pip(archive):
    """This machine's pip and a libpq-dev as packages of the tiny distribution; the compiler by name."""
    top = Path("/usr/lib/python3/dist-packages")
    if not (top / "pip/__main__.py").exists():
        raise Skip("pip is not installed (python3-pip)")
    files = {str(path.relative_to("/")): path.read_bytes() for path in (top / "pip").rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    archive.put("python3-pip", files)
    for name in ("python3-setuptools", "python3-wheel", "python3-dev", "gcc", "g++", "libc6-dev", "make", "pkg-config"):
        archive.put(name, {})
    archive.put("libpq-dev", {"usr/include/postgresql/libpq-fe.h": b"of libpq-dev\n"})
    archive.publish()


@test
def what_a_source_needs_is_learned_on_the_base(w):
    """psycopg2 is known to need postgres; of the other one px learns it from the manifest."""
    w.shared.base()
    add_pip(w.shared.archive)
    tool().write(w.wheels)
    source(w.wheels, "psycopg2")
    source(w.wheels, "rare")
    w.manifest([Wheel("psycopg2", "1.0")])
    equal(w.ask("sync")["details"]["resolver"], "pip", "who resolved")
    lock = (w.dir / "px.lock").read_text()
    check('filename = "psycopg2-1.0.tar.gz"' in lock and 'name = "demo-tool"' in lock, lock)
    equal(w.out("run", "python", "-c", "import psycopg2; print(psycopg2.name)"), "psycopg2\n", "what was built")
    w.manifest([Wheel("rare", "1.0")])
    answer = w.refused("sync", code="PX120", reason="resolve_failed")
    check("px sandbox add postgres" in " ".join(answer["details"]["why"]), f"{answer}")
    w.run("sandbox", "add", "postgres", status=0)
    w.run("sync", status=0)
    equal(w.out("run", "python", "-c", "import rare; print(rare.name)"), "rare\n", "with the capability")
    source(w.wheels, "lost")
    w.manifest([Wheel("lost", "1.0")], more="[tool.px.sandbox.capabilities]\npostgres = true\n")
    why = " ".join(w.refused("sync", code="PX120", reason="resolve_failed")["details"]["why"])
    check("libpq-fe.h" in why and "px sandbox add" not in why, f"a circle: {why}")


# ---- actions of tasks -------------------------------------------------------------------------------------------------


SEEN = """import demo, demo_tool, json, os, sys
place = sys.argv[1]
def tried(act):
    try:
        return act() and "done"
    except OSError as error:
        return type(error).__name__
print(json.dumps({"own": demo.__file__, "tool": demo_tool.__file__, "env": dict(os.environ), "cwd": os.getcwd(), "exe": sys.executable,
                  "written": [tried(lambda: open(path, "a").write("x")) for path in (demo_tool.__file__, os.environ["VIRTUAL_ENV"] + "/new")[:2 * int(sys.argv[2])]],
                  "home": {name: sorted(os.listdir(os.path.join(place, name))) for name in ("", "envs", "store", "store/trees")}}))
open("made.txt", "w").write("made")
"""


def ast_grep():
    """As the real one is: programs, no modules."""
    said = b"#!/bin/sh\necho \"ast-grep $*\"\n"
    return Wheel("ast-grep-cli", "0.1", {f"ast_grep_cli-0.1.data/scripts/{name}": (said, 0o100755) for name in ("ast-grep", "sg")}, pure=False)


def task(w, *words, config="own.yaml", status=None, **more):
    """px task of the project's directory, as JSON."""
    named = ("--config", config) if config else ()
    done = w.run("--json", "task", words[0], *named, *words[1:], status=status, **more)
    return json.loads(done.stdout)


def trees_of(w):
    """The project's environment, and the trees of its packages with their byte code, by its record."""
    profile = json.loads((w.dir / ".px/state.json").read_text())["current_env"]["profile_oid"]
    record = json.loads((w.home / "sandbox/envs" / profile / "manifest.json").read_text())
    return profile, sorted(package.get("code") or package["tree"] for package in record["packages"])


@test
def actions_have_the_environment(w):
    """project: its packages, programs and variables, and the workspace as the project; nothing else of the store, and read-only."""
    put(w.dir, {"src/demo/__init__.py": OWN})
    w.project(tool(), fake_pytest(), ast_grep(), more=SAID + BUILD + '[tool.px.env]\nMODE = "of the project"\nOTHER = "of the project"\n', sandbox=False)
    profile, trees = trees_of(w)
    for overlay, jail in (("auto", True), ("never", True), ("auto", False)):
        put(w.dir, {"own.yaml": f"project: .\noverlay: {overlay}\nenable_jail: {str(jail).lower()}\nenv: [OTHER=mine]\n"
                                "allowed_binaries: [python, demo, mycli, pytest, sg, ast-grep]\n"})
        name = f"{overlay}-{jail}"
        task(w, "prepare", name, "--from", ".", status=0)
        answer = task(w, "apply", name, "--", "python", "-c", SEEN, str(w.home), str(int(jail)))       # without a jail they are the caller's own files
        check(answer.get("exit_code") == 0 and answer["changed_files"] == ["made.txt"], f"{name}: {str(answer)[:900]}")
        seen = json.loads(answer["stdout"])
        env = f"{w.home}/envs/{profile}"
        equal(answer["cmd"][0], f"{env}/bin/python", "its Python")
        equal(seen["own"], f"{seen['cwd']}/src/demo/__init__.py", "the project's own package is the workspace's")
        check(seen["tool"].startswith(f"{w.home}/store/trees/"), f"a package: {seen['tool']}")
        expected = {"VIRTUAL_ENV": env, "PX_PROJECT_ROOT": seen["cwd"], "MODE": "of the project", "OTHER": "mine"}
        equal({key: seen["env"].get(key) for key in expected}, expected, f"{name}: variables")
        check(seen["env"]["PATH"].startswith(f"{env}/bin:"), seen["env"]["PATH"])
        if jail:
            equal(seen["cwd"], "/workspace", "the workspace")
            equal(seen["home"], {"": ["envs", "store"], "envs": [profile], "store": ["trees"], "store/trees": trees}, "of the store")
            check("done" not in seen["written"], f"written: {seen['written']}")
        for words, code, out in ((("demo", "a"), 3, "tool a\n"), (("pytest", "-q"), 0, None), (("sg", "scan"), 0, "ast-grep scan\n"),
                                 (("ast-grep", "run"), 0, "ast-grep run\n"), (("mycli",), 5, None)):
            answer = task(w, "apply", name, "--", *words)
            check(answer.get("exit_code") == code and (out is None or answer["stdout"] == out), f"{name}, {words}: {str(answer)[:500]}")
        equal(task(w, "apply", name, "--", "demo-tool")["error"], "not_allowed", "what is in the environment must be listed as well")
    lines = [{"task": f"b{i}", "from": "auto-True", "id": i, "command": ["python", "-c", "import demo_tool; print(demo_tool.__file__)"]} for i in range(6)]
    put(w.dir, {"a.jsonl": "".join(json.dumps(line) + "\n" for line in lines)})
    put(w.dir, {"own.yaml": "project: .\n"})
    told = [json.loads(line) for line in w.out("task", "run", "--config", "own.yaml", "--jobs", "3", "--from", "a.jsonl").splitlines()]
    check(len(told) == 6 and all(one["exit_code"] == 0 and "/store/trees/" in one["stdout"] for one in told), f"run: {str(told)[:600]}")
    journal = [json.loads(line) for line in w.out("task", "log", "b0").splitlines()]
    equal(journal[-1]["cmd"][0], f"{w.home}/envs/{profile}/bin/python", "the journal")


@test
def an_action_makes_no_environment(w):
    """What is not ready is said, with what to do; nothing is built or written for it, and what needs no environment works on."""
    put(w.dir, {"own.yaml": "project: .\n"})
    w.manifest([tool()])
    tool().write(w.wheels)
    (w.dir / "requirements.txt").write_text(f"demo-tool==1.2 --hash=sha256:{tool().sha256()}\n")
    task(w, "prepare", "t", "--text", "a=1", status=0)
    before = tree(w.dir)

    def refused(code, reason, status=125):
        answer = task(w, "apply", "t", "--", "python", "-c", "", status=status)
        equal((answer["details"]["code"], answer["details"]["reason"]), (code, reason), str(answer)[:600])
        check("px sync" in answer["details"]["fix"][0] and str(w.dir) in answer["details"]["fix"][0], str(answer["details"]))
    refused("PX201", "missing_env")
    put(w.dir, {"a.jsonl": '{"task": "t", "command": ["python", "-c", ""]}\n'})
    check("PX201" in w.run("task", "run", "--config", "own.yaml", "--from", "a.jsonl", status=1).stderr, "run")
    (w.dir / "a.jsonl").unlink()
    equal(tree(w.dir), before, "something was written")
    check(not (w.dir / ".px").exists(), "the project has a state")
    w.run("sync", status=0)
    equal(task(w, "apply", "t", "--", "python", "-c", "import demo_tool")["exit_code"], 0, "once it is there")
    w.manifest([tool(), fake_pytest()])
    refused("PX120", "missing_lock")       # a requirements.txt that does not hold everything is none
    for words in (("show", "t"), ("log", "t"), ("cleanup", "t")):
        w.run("task", *words[:1], "--config", "own.yaml", *words[1:], status=0)
    (w.dir / "pyproject.toml").unlink()
    (w.dir / "requirements.txt").unlink()
    task(w, "prepare", "t", "--text", "a=1", status=0)
    equal(task(w, "apply", "t", "--", "python", "-c", "", status=125)["details"]["code"], "PX100", "no project")
    put(w.dir, {"own.yaml": "project: nowhere\n"})
    equal(task(w, "show", "t", status=1)["details"]["code"], "PX400", "no directory")


@test
def a_found_configuration_names_a_project_below(w):
    """configs/sandbox.yaml comes with a repository: the project is in it, and no workspace."""
    w.project(tool(), sandbox=False)
    put(w.dir, {"configs/sandbox.yaml": "project: .\n", "sub/configs/sandbox.yaml": "project: .\n"})
    task(w, "prepare", "t", "--from", ".", config=None, status=0)
    equal(task(w, "apply", "t", "--", "python", "-c", "import demo_tool", config=None)["exit_code"], 0, "its own")
    for line, cwd in (("..", "sub"), (f"{json.dumps(str(w.dir))}", "sub"), (".", "sub"), (".sandbox/t", ".")):
        put(w.dir / cwd, {"configs/sandbox.yaml": f"project: {line}\n"})
        for words in (("prepare", "u", "--text", "a=1"), ("apply", "u", "--", "python", "-c", "import demo_tool")):
            answer = task(w, *words, config=None, cwd=w.dir / cwd)
            if "details" in answer:
                break
        equal((answer["details"]["code"], answer["details"]["field"]), ("PX050", "project"), f"{line}: {str(answer)[:400]}")
        check("--config" in " ".join(answer["details"]["fix"]), str(answer["details"]))


@test
def actions_have_the_environment_in_a_base(w):
    """Of a base that has the same Python; another base is refused with the reason."""
    w.project(tool(), ast_grep())
    put(w.dir, {"own.yaml": "project: .\nbase: debian-12\nallowed_binaries: [python, demo, sg, cat]\n", "root/usr/nothing": "x",
                "none.yaml": "project: .\nbase: none\n"})
    task(w, "prepare", "t", "--text", "a=1", status=0)
    answer = task(w, "apply", "t", "--", "python", "-c", "import demo_tool, os; print(os.path.exists('/etc/fixture'), os.getcwd())")
    equal(answer["stdout"], "True /workspace\n", str(answer)[:500])
    equal(task(w, "apply", "t", "--", "demo", "b")["stdout"], "tool b\n", "a script")
    equal(task(w, "apply", "t", "--", "sg", "b")["stdout"], "ast-grep b\n", "a program")
    w.run("sandbox", "base", "import", "none", "root", status=0)
    answer = task(w, "apply", "t", "--", "python", "-c", "", config="none.yaml", status=125)
    equal((answer["details"]["code"], answer["details"]["reason"]), ("PX900", "python_version"), str(answer)[:500])


# ---- running them ----------------------------------------------------------------------------------------------------


def attempt(function, shared, work):
    top = tempfile.mkdtemp(prefix="w.", dir=work)
    try:
        verdict, why = verdict_of(lambda: function(World(shared, top)))
    finally:
        subprocess.run(["chmod", "-R", "u+rwX", "--", top], check=False, capture_output=True)
        subprocess.run(["rm", "-rf", "--", top], check=False)
    left = leaks.processes_left()
    if left and verdict != "not ok":
        verdict, why = "not ok", f"left {left}"
    return verdict, why


def main():
    options = parser("px").parse_args()
    if options.published:
        leaks.become_subreaper()
        shared = Shared(options.px, options.px / "work")
        return tell((f.__name__, *attempt(f, shared, options.px / "work")) for f in chosen(TESTS, options.only))
    px = options.px.resolve()
    scripts = [HERE / name for name in ("projects_run.py", "leaks.py", "bases/debs.py", "envs/wheels.py", "cli/pty.py")]
    top = publish("projects-run", [px.with_name(name) for name in PROGRAMS if px.with_name(name).exists()], scripts, options.uid)
    shutil.copytree(HERE.parent / "examples/project", top / "examples/project")
    (top / "docs").mkdir()
    shutil.copyfile(HERE.parent / "docs/project.md", top / "docs/project.md")
    return start_again(top, "projects_run.py", options)


if __name__ == "__main__":
    sys.exit(main())
