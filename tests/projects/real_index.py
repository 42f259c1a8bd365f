#!/usr/bin/python3
"""real_index.py [--as UID] [--only NAME...] BUILD - a project of the real package index on the real base, as a newcomer would go through it.

psycopg2 comes as a source archive and is compiled in a box; Pillow and lxml come as wheels that bring their libraries. The first run of a
pair resolves, the second has its lock and has to come to the same image. What was packed is run by others: podman, and crun without it.
Prints `ok NAME`, `not ok NAME: why`, `skip NAME: why`, and last "N passed, N failed, N skipped".
"""

import copy
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
sys.dont_write_bytecode = True
import leaks  # noqa: E402
import real as shared  # noqa: E402
from cases import TESTS, Problem, Skip, built, check, chosen, parser, publish, start_again, tell, test, verdict_of  # noqa: E402

LIMIT_S = 1800
MANIFEST = """[project]
name = "shop"
version = "0.1.0"
requires-python = ">=3.11"
dependencies = ["psycopg2", "Pillow", "lxml", "pytest"]

[tool.px]
"""
APP = """import io, sys
import psycopg2
from lxml import etree
from PIL import Image

picture = io.BytesIO()
Image.new("RGB", (8, 8), "red").save(picture, "JPEG")
print("libpq", psycopg2.__libpq_version__ // 10000, "jpeg", picture.getvalue()[:2].hex(), etree.tostring(etree.fromstring("<a><b/></a>")).decode())
sys.exit(int(sys.argv[1]) if sys.argv[1:] else 0)
"""
SAID = "libpq 15 jpeg ffd8 <a><b/></a>\n"
TEST = """import subprocess, sys


def test_app():
    assert "jpeg ffd8" in subprocess.run([sys.executable, "app.py"], capture_output=True, text=True, check=True).stdout
"""
# In a mount namespace of its own: crun wants no second tree of control groups beside the first, and what podman writes outside of the
# directories it is given goes with it.
ALONE = """umount /sys/fs/cgroup/unified 2>/dev/null
mkdir -p /var/lib/containers
mount -t tmpfs none /run && mount -t tmpfs none /var/lib/containers || exit 1
exec "$@"
"""


class Shop:
    """The project and its PX_HOME; the tests go through it in their order."""

    def __init__(self, programs, top):
        self.px, self.top, self.dir = str(programs / "px"), Path(top), Path(top) / "shop"
        self.home, self.shared = os.environ["PX_TEST_HOME"], shared.place(top)
        self.image, self.why = None, None

    def environment(self, **more):
        return {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(self.top), "TMPDIR": str(self.top), "PX_HOME": str(self.home),
                "LANG": "C.UTF-8"} | shared.environment() | more

    def command(self, *words, status=0, **more):
        done = subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S, check=False,
                              cwd=self.dir, env=self.environment(**more), text=True)
        if status is not None:
            check(done.returncode == status, f"{' '.join(map(str, words))[:120]}: exit {done.returncode}: {(done.stdout + done.stderr)[-800:]}")
        return done

    def run(self, *words, **more):
        return self.command(self.px, *words, **more)

    def ask(self, *words, **more):
        return json.loads(self.run("--json", *words, **more).stdout)

    def need(self):
        """What the first test made; without it the others have nothing to look at."""
        if not (self.dir / ".px/state.json").exists():
            raise Skip("the project is not synced")

    def packed(self):
        self.need()
        if not self.image:
            raise Skip("the project is not packed")
        return self.image


def index_is_there(shop):
    """By pip itself, with this machine's settings."""
    if shop.command("python3", "-m", "pip", "--version", status=None).returncode != 0:
        raise Skip("there is no pip for /usr/bin/python3 here")
    done = shop.command("python3", "-m", "pip", "download", "--quiet", "--no-deps", "--dest", shop.top / "probe", "iniconfig", status=None)
    if done.returncode != 0:
        raise Skip(f"the package index cannot be reached: {done.stderr.strip().splitlines()[-1:]}")


@test
def synced_from_the_index(shop):
    if not shop.home:
        raise Skip((shop.shared / "why").read_text())
    shop.dir.mkdir()
    index_is_there(shop)
    shop.run("init")
    (shop.dir / "pyproject.toml").write_text(MANIFEST)
    (shop.dir / "app.py").write_text(APP)
    (shop.dir / "tests").mkdir()
    (shop.dir / "tests/test_app.py").write_text(TEST)
    kept = shop.shared / "px.lock"
    if kept.exists():
        shutil.copyfile(kept, shop.dir / "px.lock")
        shop.run("sync", "--frozen")
    else:
        shop.run("sync")
        shutil.copyfile(shop.dir / "px.lock", kept)
    status = shop.ask("status")
    check(status["project"]["state"] == "Consistent", f"{status}")
    check('filename = "psycopg2-' in (shop.dir / "px.lock").read_text(), "psycopg2 is not in the lock")
    (source,) = [line for line in (shop.dir / "px.lock").read_text().splitlines() if line.startswith('filename = "psycopg2-')]
    check(source.endswith('.tar.gz"'), f"psycopg2 did not come as a source archive: {source}")


@test
def explained_with_reasons(shop):
    shop.need()
    answer = shop.ask("sandbox", "explain")
    check(answer["capabilities"] == ["postgres"], f"{answer['capabilities']}")
    reasons = {(row["capability"], row["source"], row["detail"], row.get("set_aside")) for row in answer["reasons"]}
    aside = "its wheel brings the libraries"
    for row in (("postgres", "static map", "psycopg2", None), ("postgres", "cas", "psycopg2: libpq.so.5", None),
                ("imagecodecs", "static map", "pillow", aside), ("xml", "static map", "lxml", aside)):
        check(row in reasons, f"{row} is not in {reasons}")
    said = shop.run("sandbox", "explain").stdout
    check("elf: psycopg2 -> libpq.so.5 (cas)\n" in said and f"lock: lxml (static map); {aside}\n" in said, said)


@test
def run_in_its_sandbox(shop):
    shop.need()
    check(shop.run("run", "--sandbox", "app.py").stdout == SAID, "what it prints")
    again = shop.ask("run", "--sandbox", "app.py", "7", status=7)["details"]
    check(again["code"] == 7 and again["stdout"] == SAID and again["sandbox"]["capabilities"] == ["postgres"], f"{again}")
    said = shop.run("test", "--sandbox").stdout
    check("1 passed" in said and "rootdir: /app" in said, said)


@test
def a_library_that_is_missing(shop):
    shop.need()
    shop.run("sandbox", "remove", "postgres")
    done = shop.run("run", "--sandbox", "app.py", status=1)
    check("libpq.so.5" in done.stderr and "PX902" in done.stderr and "px sandbox add postgres" in done.stderr, done.stderr)
    shop.run("sandbox", "add", "postgres")
    check(shop.run("run", "--sandbox", "app.py").stdout == SAID, "with it again")
    (shop.dir / "pyproject.toml").write_text(MANIFEST)


@test
def sources_with_backends_of_their_own(shop):
    """mysqlclient has no wheel for Linux, and its setup.py asks for the library before there is a lock; idna is built from its source, by flit."""
    shop.need()
    other = copy.copy(shop)
    other.dir = shop.top / "sources"
    if (shop.shared / "digest").exists():
        return                  # the first of the pair has done it; sources.py is run by both
    other.dir.mkdir()
    (other.dir / "pyproject.toml").write_text('[project]\nname = "sources"\nrequires-python = ">=3.11"\ndependencies = ["mysqlclient", "idna"]\n[tool.px]\n')
    other.run("sync", PIP_NO_BINARY="idna")
    lock = (other.dir / "px.lock").read_text()
    for text in ('filename = "mysqlclient-', 'requires = ["flit_core', 'name = "flit-core"', 'name = "setuptools"'):
        check(text in lock, f"{text!r} is not in {lock}")
    said = other.run("run", "--sandbox", "python", "-c", "import MySQLdb, idna; print(MySQLdb.get_client_info()[0], idna.encode('\u00e4.de').decode())").stdout
    check(said.strip().endswith("xn--4ca.de"), said)


def uv_from_the_index(shop):
    """The directory of a uv that nobody else has."""
    place = shop.top / "uv"
    done = shop.command("python3", "-m", "pip", "install", "--quiet", "--no-deps", "--target", place, "uv", status=None)
    if done.returncode != 0 or not os.access(place / "bin/uv", os.X_OK):
        raise Skip(f"the index has no uv for this machine: {done.stderr.strip().splitlines()[-1:]}")
    return place / "bin"


@test
def resolved_by_uv(shop):
    """platformdirs is built by hatchling, tomlkit by poetry-core. What uv and pip say when they fail is told, kept, and shown by -v."""
    shop.need()
    if (shop.shared / "digest").exists():
        return                  # as above
    settings = {"uv": {"PATH": f"{uv_from_the_index(shop)}:/usr/sbin:/usr/bin:/sbin:/bin"}, "pip": {}}
    other = copy.copy(shop)
    other.dir = shop.top / "resolved"
    other.dir.mkdir()
    manifest = ('[project]\nname = "resolved"\nrequires-python = ">=3.11"\ndependencies = [%s]\n[tool.px]\n[tool.px.sandbox.capabilities]\n'
                'postgres = true\n[tool.uv.pip]\nno-binary = ["platformdirs", "tomlkit"]\n')     # on the root that psycopg2 was built on
    (other.dir / "pyproject.toml").write_text(manifest % '"requests", "platformdirs", "tomlkit"')
    details = other.ask("sync", **settings["uv"])["details"]
    check(details["resolver"] == "uv", f"{details}")
    lock = (other.dir / "px.lock").read_text()
    for text in ('name = "hatchling"', 'name = "poetry-core"', 'name = "requests"'):
        check(text in lock, f"{text!r} is not in {lock}")
    files = [line for line in lock.splitlines() if line.startswith(('filename = "platformdirs-', 'filename = "tomlkit-'))]
    check(len(files) >= 2 and all(line.endswith('.tar.gz"') for line in files), f"they did not come as source archives: {files}")
    said = other.run("run", "python", "-c", "import requests, platformdirs, tomlkit; print(tomlkit.parse('a = 1')['a'])", **settings["uv"]).stdout
    check(said == "1\n", said)
    (other.dir / "pyproject.toml").write_text(manifest % '"requests==2.31.0", "urllib3<1.20"')
    for tool, more in settings.items():
        failed = other.ask("sync", status=1, **more)["details"]
        check((failed["code"], failed["resolver"], failed["log"]) == ("PX120", tool, ".px/logs/sync.log"), f"{failed}")
        check("urllib3<1.20" in " ".join(failed["why"]) and "requests" in " ".join(failed["why"]), f"{tool}: {failed['why']}")
        shown = other.run("-v", "sync", status=1, **more).stderr
        log = (other.dir / ".px/logs/sync.log").read_text()
        check("urllib3<1.20" in log and log in shown, f"{tool}: {log}\n{shown}")


@test
def ast_grep_in_an_action(shop):
    """A requirement of a project is a tool of its tasks: sg of the index rewrites a file of a workspace."""
    shop.need()
    tools = copy.copy(shop)
    tools.dir = shop.top / "tools"
    tools.dir.mkdir()
    (tools.dir / "pyproject.toml").write_text('[project]\nname = "tools"\nversion = "1"\nrequires-python = ">=3.11"\n'
                                              'dependencies = ["ast-grep-cli"]\n\n[tool.px]\n')
    (tools.dir / "own.yaml").write_text("project: .\n")
    tools.run("sync")
    tools.run("task", "prepare", "--config", "own.yaml", "t", "--text", "a.py=print(1)\n")
    rewrite = ("run", "--pattern", "print($A)", "--rewrite", "log($A)", "--lang", "python", "--update-all", "a.py")
    for name in ("sg", "ast-grep"):
        answer = tools.ask("task", "apply", "--config", "own.yaml", "--discard", "t", "--", name, *rewrite)
        check(answer["changed_files"] == ["a.py"] and "+log(1)\n" in answer["diff"], f"{name}: {answer}")


@test
def packed_the_same_by_everyone(shop):
    shop.need()
    git = ("git", "-c", "user.name=px", "-c", "user.email=px@example.invalid")
    shop.command("git", "init", "--quiet")
    shop.command("git", "add", "--all")
    shop.command(*git, "commit", "--quiet", "--message", "shop")
    first = not (shop.shared / "digest").exists()
    answer = shop.ask("pack", "image", "--out", shop.top / "image.tar", *["--check-repro"] * first)["details"]
    check(answer["checked"] is first and answer["capabilities"] == ["postgres"], f"{answer}")
    check(any(row.startswith("libpq5=") for row in answer["system_deps"]), f"{answer['system_deps']}")
    if first:
        (shop.shared / "digest").write_text(answer["image_digest"])
    check((shop.shared / "digest").read_text() == answer["image_digest"], "another user, another PX_HOME, another image")
    shop.image = shop.top / "image.tar"


def alone(shop, *words, why):
    """Where nothing of it stays; Skip where there can be no such place."""
    if os.getuid() != 0:
        raise Skip("an ordinary user without subordinate ids cannot run containers of others")
    if not shutil.which(words[0]):
        raise Skip(f"{words[0]} is not installed")
    shop.packed()
    probe = shop.command("unshare", "--mount", "sh", "-c", ALONE, "sh", "true", status=None)
    if probe.returncode != 0:
        raise Skip(f"there is no mount namespace to be had: {probe.stderr.strip()[-120:]}")
    return shop.command("unshare", "--mount", "sh", "-c", ALONE, "sh", *words, status=why, PATH=os.environ["PATH"])


@test
def run_by_podman(shop):
    place = shop.top / "podman"
    (shop.top / "policy.json").write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
    podman = ["podman", "--root", place / "root", "--runroot", "/run/podman", "--tmpdir", "/run/podman-tmp", "--cgroup-manager", "cgroupfs",
              "--events-backend", "none"]
    limits = ["--ulimit", "nofile=512:512", "--ulimit", "nproc=4096:4096"]         # its own may be more than this machine grants
    why = []
    for driver in ("overlay", "vfs"):
        load = alone(shop, *podman, "--storage-driver", driver, "load", "--quiet", "--signature-policy", shop.top / "policy.json",
                     "--input", shop.packed(), why=None)
        if load.returncode != 0:
            why.append(load.stderr.strip()[-120:])
            continue
        check("px.local/shop:0.1.0" in load.stdout, load.stdout)
        for runtime, groups in (("crun", "disabled"), ("runc", "enabled")):
            run = [*podman, "--storage-driver", driver, "--runtime", runtime, "run", "--rm", "--network", "none", "--cgroups", groups, *limits]
            probe = alone(shop, *run, "px.local/shop:0.1.0", "/bin/true", why=None)
            if probe.returncode != 0:
                why.append(probe.stderr.strip()[-120:])
                continue
            check(alone(shop, *run, "px.local/shop:0.1.0", why=0).stdout == SAID, "its own command")
            check(alone(shop, *run, "px.local/shop:0.1.0", "python", "app.py", "5", why=5).stdout == SAID, "a command of ours")
            return
    raise Skip("podman runs nothing here: " + "; ".join(why))


@test
def run_by_crun(shop):
    if not shutil.which("umoci"):
        raise Skip("umoci is not installed")
    shop.packed()
    if os.getuid() == 0:
        shop.run("pack", "image", "--out", shop.top / "layout")
        shop.command("umoci", "unpack", "--image", f"{shop.top / 'layout'}:px.local/shop:0.1.0", shop.top / "bundle")
        path = shop.top / "bundle/config.json"
        config = json.loads(path.read_text())
        config["process"]["terminal"] = False
        config["process"]["rlimits"] = []
        config["linux"].pop("resources", None)
        config["mounts"] = [mount for mount in config["mounts"] if mount["type"] != "cgroup"]
        path.write_text(json.dumps(config))
    crun = ["crun", "--root", shop.top / "crun", "--cgroup-manager", "disabled", "run", "--bundle", shop.top / "bundle", f"px-real-{os.getpid()}"]
    done = alone(shop, *crun, why=None)
    if "cgroup" in done.stderr:
        raise Skip(f"crun runs nothing here: {done.stderr.strip()[-120:]}")
    check((done.returncode, done.stdout) == (0, SAID), f"exit {done.returncode}: {done.stdout} {done.stderr[-300:]}")


# ---- running --------------------------------------------------------------------------------------------------------


def run_all(options):
    leaks.become_subreaper()
    shop = Shop(options.build, options.build / "work")
    return tell((f.__name__, *verdict_of(f, shop)) for f in chosen(TESTS, options.only))


def bring_home(px, top, uid):
    """The shared PX_HOME for who shares it, and its base alone for another user; or a word why there is none."""
    place = shared.place(top)
    try:
        home, base = shared.home(px, top)
        if uid:
            mine = top / "work/home"
            away = shutil.ignore_patterns(*set(os.listdir(home / "store/trees")) - {base["tree"]}, "images", "envs")
            shutil.copytree(home, mine, symlinks=True, ignore=away)
            subprocess.run(["chown", "-R", f"{uid}:{uid}", str(mine)], check=True)
            home = mine
    except Skip as why:
        (place / "why").write_text(str(why))
        return ""
    place.chmod(0o777)          # below a directory that goes with the run
    return str(home)


def main():
    options = parser("build").parse_args()
    if options.published:
        return run_all(options)
    programs = built(options.build, "px-main", "px-layer", "px-fetch", "px-git", "px-net")
    top = publish("projects-real", programs, [HERE / "real_index.py", HERE.parent / "leaks.py", HERE.parent / "real.py"], options.uid)
    try:
        home = bring_home(str(top / "px"), top, options.uid)
    except Problem as why:
        print(f"not ok base: {why}\n0 passed, 1 failed, 0 skipped")
        subprocess.run(["rm", "-rf", "--", str(top)], check=False)
        return 1
    return start_again(top, "projects/real_index.py", options, environment={**os.environ, "PX_TEST_REAL": str(shared.place(top)), "PX_TEST_HOME": home})


if __name__ == "__main__":
    sys.exit(main())
