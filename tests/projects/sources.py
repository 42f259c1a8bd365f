#!/usr/bin/python3
"""sources.py [--as UID] [--only NAME...] BUILD - source archives in projects: what their builds get, and what they do not.

Everything runs on the tiny distribution with this machine's Python (python_base.py); the archives are built by a small backend (PEP 517) that is
made here as a wheel, so that neither a compiler nor a network is needed. Prints `ok NAME`, `not ok NAME: why`, `skip NAME: why`, and last
"N passed, N failed, N skipped".
"""

import hashlib
import io
import json
import socket
import subprocess
import sys
import tarfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "envs"), str(HERE.parent / "bases"), str(HERE.parent)]
sys.dont_write_bytecode = True
import leaks  # noqa: E402
from cases import TESTS, Skip, built, check, chosen, parser, publish, start_again, tell, test, verdict_of  # noqa: E402
from projects import Project, World, equal  # noqa: E402
from wheels import Wheel  # noqa: E402  (of envs/)

TESTS.clear()           # those of projects.py are run there

# A backend: what [tool.tinyback] of the archive says is asked for and looked at, and written down in the module that comes out.
BACKEND = b"""
import base64, hashlib, importlib, json, os, socket, sys, tomllib, zipfile

def settings():
    with open("pyproject.toml", "rb") as file:
        return tomllib.load(file).get("tool", {}).get("tinyback", {})

def get_requires_for_build_wheel(config_settings=None):
    return settings().get("more", [])

def reached(place):
    try:
        socket.create_connection(place, 5).close()
        return True
    except OSError:
        return False

def look(said):
    for header in said.get("headers", []):
        if not os.path.exists("/usr/include/postgresql/" + header) or said.get("lost"):
            print(f"x.c:1:10: fatal error: {header}: No such file or directory")
            raise SystemExit(1)
    versions = {name: importlib.import_module(name).version for name in said.get("uses", [])}
    return {"backend": VERSION, "versions": versions, "outside": [path for path in said.get("outside", []) if os.path.exists(path)],
            "reached": [place for place in said.get("places", []) if reached(tuple(place))],
            "debian": any("dist-packages" in path for path in sys.path), "python": sys.executable,
            "header": open("/usr/include/postgresql/libpq-fe.h").read() if said.get("headers") else None}

def metadata(name, version, requires=()):
    return f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n" + "".join(f"Requires-Dist: {r}\\n" for r in requires)

def prepare_metadata_for_build_wheel(directory, config_settings=None):
    said = settings()
    info = f"{said['name']}-{said['version']}.dist-info"
    os.mkdir(os.path.join(directory, info))
    with open(os.path.join(directory, info, "METADATA"), "w") as file:
        file.write(metadata(said["name"], said["version"]))
    return info

def build_wheel(directory, config_settings=None, metadata_directory=None):
    said = settings()
    name, version = said["name"], said["version"]
    info = f"{name}-{version}.dist-info/"
    files = {f"{name}.py": f"version = {version!r}\\nfacts = {look(said)!r}\\n", info + "METADATA": metadata(name, version),
             info + "WHEEL": "Wheel-Version: 1.0\\nGenerator: tinyback\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"}
    record = ""
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(text.encode())}\\n"
    files[info + "RECORD"] = record + info + "RECORD,,\\n"
    file_name = f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(directory, file_name), "w") as archive:
        for path, text in files.items():
            archive.writestr(zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0)), text)
    return file_name
"""


def tinyback(version):
    return Wheel("tinyback", version, {"tinyback.py": BACKEND.replace(b"VERSION", repr(version).encode())})


TINYBACK = tinyback("1.0")


OWN = b"""
def own():
    if not os.path.exists("back.py"):
        return {}
    with open("back.py") as file:
        return {"back_of.py": file.read()}
"""
TREE_BACK = BACKEND.replace(b"VERSION", b"'of the archive'")


def helper(version):
    return Wheel("helper", version, {"helper.py": f"version = {version!r}\n".encode()})


class Source:
    """NAME-VERSION.tar.gz, built by tinyback or by what `system` says."""

    def __init__(self, name, version="1.0", requires=("tinyback",), system='build-backend = "tinyback"', files=None, table=True, **said):
        self.name, self.version, self.file = name, version, f"{name}-{version}.tar.gz"
        lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in {"name": name, "version": version, **said}.items())
        text = f"[build-system]\nrequires = {json.dumps(list(requires))}\n{system}\n" * table + f"[tool.tinyback]\n{lines}"
        self.files = {"pyproject.toml": text.encode(), "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(), **(files or {})}

    def bytes(self):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w:gz", compresslevel=1) as archive:
            for path, data in self.files.items():
                info = tarfile.TarInfo(f"{self.name}-{self.version}/{path}")
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
        data = out.getvalue()
        return data[:4] + b"\0\0\0\0" + data[8:]        # gzip writes the time

    def write(self, folder):
        (folder / self.file).write_bytes(self.bytes())

    def sha256(self):
        return hashlib.sha256(self.bytes()).hexdigest()


class Builds(Project):
    """Its lock is a pylock.toml that names the archives; what their builds need is in the directory of wheels."""

    def sources(self, *sources, tools=(TINYBACK,), sandbox=""):
        super().write(sandbox=sandbox)
        (self.dir / "requirements.txt").unlink()
        for item in (*sources, *tools):
            item.write(self.wheels)
        path = self.dir / "pyproject.toml"
        path.write_text(path.read_text().replace("dependencies = []", f"dependencies = {json.dumps([source.name for source in sources])}"))
        (self.dir / "pylock.toml").write_text('lock-version = "1.0"\ncreated-by = "a test"\n' + "".join(
            f'[[packages]]\nname = "{s.name}"\nversion = "{s.version}"\n'
            f'sdist = {{ name = "{s.file}", path = "../{self.wheels.name}/{s.file}", hashes = {{ sha256 = "{s.sha256()}" }} }}\n' for s in sources))
        return self

    def state(self):
        answer = json.loads(self.run("--json", "status", status=None).stdout)
        return answer["project"]["state"], answer["env"]["reason"]

    def facts(self, name):
        """What the build of that package saw."""
        env = Path(json.loads((self.dir / ".px/state.json").read_text())["current_env"]["site_packages"])
        for line in (env / "px.pth").read_text().splitlines():
            if (Path(line) / f"{name}.py").exists():
                found = {}
                exec((Path(line) / f"{name}.py").read_text(), found)  # noqa: S102
                return found["facts"]
        raise AssertionError(f"{name} is not in the environment")


def builds(w, *sources, **more):
    if subprocess.run(["/usr/bin/python3", "-I", "-m", "pip", "--version"], capture_output=True, check=False).returncode:
        raise Skip("pip is not installed (python3-pip)")
    if not w.first:
        w.based()
    return Builds(w, w.top / f"sources{next(w.number)}" / "demo", w.first).sources(*sources, **more)


# ---- capabilities ---------------------------------------------------------------------------------------------------


@test
def builds_get_the_capabilities_of_the_project(w):
    project = builds(w, Source("rare", headers=["libpq-fe.h"]))
    details = project.refused("PX903", "sync")
    equal((details["reason"], details["capability"], details["missing"]), ("sdist_build_failed", "postgres", "libpq-fe.h"), f"{details}")
    check(details["fix"][0] == "Its build misses libpq-fe.h, which the capability 'postgres' brings." and
          "px sandbox add postgres" in details["fix"][1], f"{details['fix']}")
    project.run("sandbox", "add", "postgres")
    project.run("sync")
    equal((project.facts("rare")["header"], project.state()), ("of libpq-dev\n", ("Consistent", None)), "with it")
    project.run("sandbox", "remove", "postgres")
    equal(project.state(), ("NeedsEnv", "env_outdated"), "built with a capability that is gone")
    project.refused("PX903", "sync")
    project.run("sandbox", "add", "postgres")
    equal(project.state(), ("Consistent", None), "and that is there again")
    project.sources(Source("rare", "2.0", headers=["libpq-fe.h"], lost=True), sandbox="[tool.px.sandbox.capabilities]\npostgres = true\n")
    fix = " ".join(project.refused("PX903", "sync")["fix"])
    check("px sandbox add" not in fix and "capability" not in fix, f"a circle: {fix}")


@test
def builds_get_what_the_lock_asks_for(w):
    """psycopg2 in the lock stands for postgres; what else is built gets it as well, and a package by its own name whatever the manifest says."""
    project = builds(w, Source("psycopg2", headers=["libpq-fe.h"]), Source("rare", headers=["libpq-fe.h"]))
    project.run("sync")
    equal((project.facts("psycopg2")["header"], project.facts("rare")["header"]), ("of libpq-dev\n",) * 2, "both")
    alone = builds(w, Source("psycopg2", headers=["libpq-fe.h"]), sandbox="auto = false\n")
    alone.run("sync")


@test
def headers_in_the_sandbox(w):
    project = builds(w)
    project.run("sync")
    ask = ("run", "--sandbox", "sh", "-c", "pg_config")
    advice = json.loads(project.run("--json", *ask, status=127).stdout)["details"]["recommendation"]
    equal((advice["code"], advice["missing"], advice["command"]), ("PX902", "pg_config", "px sandbox add postgres headers"), f"{advice}")
    said = project.run("run", "--sandbox", "--auto-add", "sh", "-c", "pg_config").stdout
    check("15.6" in said, said)
    project.run("sandbox", "add", "postgres")
    advice = json.loads(project.run("--json", *ask, status=127).stdout)["details"]["recommendation"]
    equal((advice["capability"], advice["command"]), ("headers", "px sandbox add headers"), f"{advice}")
    project.run("sandbox", "add", "headers")
    equal(project.run(*ask).stdout, "15.6\n", "with it")
    equal(project.run("run", "--sandbox", "cat", "/usr/include/postgresql/libpq-fe.h").stdout, "of libpq-dev\n", "the header")


# ---- backends -------------------------------------------------------------------------------------------------------


@test
def a_build_has_what_it_asks_for_and_nothing_else(w):
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = list(server.getsockname())
        source = Source("thing", requires=["tinyback >= 1", "helper<2"], uses=["helper"], more=["extra"], places=[place, ["10.0.2.2", place[1]]],
                        outside=[str(w.top), "/home", "/px/other"])
        extra = Wheel("extra", "3.0", {"extra.py": b"version = '3.0'\n"})
        project = builds(w, source, tools=(TINYBACK, helper("1.5"), helper("2.0"), extra))
        answer = project.ask("sync")["details"]
    facts = project.facts("thing")
    equal(facts["versions"], {"helper": "1.5"}, "what it asked for")
    equal((facts["outside"], facts["reached"], facts["debian"]), (["/home"] if "/home" in facts["outside"] else [], [], False), f"{facts}")
    check(facts["python"].startswith("/px/env/bin/"), f"{facts}")
    record = json.loads((project.home / "sandbox/envs" / answer["profile_oid"] / "manifest.json").read_text())
    (package,) = record["packages"]
    equal(sorted(f"{tool['name']} {tool['version']}" for tool in package["tools"]["packages"]), ["extra 3.0", "helper 1.5", "tinyback 1.0"], "the record")


@test
def backends_in_the_archive_and_of_archives(w):
    """A backend that the archive brings; and one that is itself built from its source."""
    own = Source("own", requires=(), system='build-backend = "inside.back"\nbackend-path = ["tools"]',
                 files={"tools/inside/__init__.py": b"", "tools/inside/back.py": TREE_BACK})
    back = Source("sourceback", requires=(), system='build-backend = "back"\nbackend-path = ["."]',
                  files={"back.py": TREE_BACK.replace(b'f"{name}.py": f"version', b'**own(), f"{name}.py": f"version') + OWN})
    second = Source("second", requires=["sourceback"], system='build-backend = "back_of"')
    project = builds(w, own, second, tools=(back,))
    project.run("sync")
    check(not project.facts("own")["debian"] and not project.facts("second")["debian"], "an environment of its own")


@test
def builds_that_cannot_be_equipped(w):
    rows = ((Source("a", requires=["nosuch-backend>=7"]), "nosuch-backend", "what its build needs cannot be found"),
            (Source("b", requires=["--index-url=http://127.0.0.1:1/simple"]), "no name with a range", "cannot build b"),
            (Source("c", requires=["x @ file:///etc/passwd"]), "no name with a range", "cannot build c"),
            (Source("d", requires=["tinyback\n-r /etc/passwd"]), "no name with a range", "cannot build d"),
            (Source("e", requires=["maturin>=1,<2"], system='build-backend = "maturin"'), "Rust", "it needs Rust"),
            (Source("f", requires=["tinyback"], system='build-backend = "nosuch"'), "No module named 'nosuch'", "cannot build f"),
            (Source("g", requires=["g"]), "", "cannot build g"),
            (Source("h", files={"pyproject.toml": b"[build-system\n"}), "pyproject.toml", "cannot build h"))
    project = builds(w)
    for source, why, message in rows:
        project.sources(source)
        answer = json.loads(project.run("--json", "sync", status=1).stdout)
        details = answer["details"]
        equal((details["code"], details["reason"]), ("PX903", "sdist_build_failed"), f"{source.name}: {answer}")
        check(message in answer["message"] and why in " ".join(details["why"]), f"{source.name}: {answer}")
        check(details["fix"], f"{source.name}: no fix")


# ---- the lock --------------------------------------------------------------------------------------------------------


@test
def the_lock_says_what_builds_are_given(w):
    """A newer backend in the index is not used; somebody else with the same lock gets the same."""
    project = builds(w, Source("locked", more=["helper"]), tools=(TINYBACK, helper("7.7")))
    other, third = w.based(), w.based()
    (project.dir / "pylock.toml").unlink()
    first = project.ask("sync")["details"]
    lock = (project.dir / "px.lock").read_text()
    for text in ('[[build]]\nrequires = ["tinyback"]\n', '[[build]]\nrequires = ["helper", "tinyback"]\n', 'specifier = "helper==7.7"\n',
                 f'filename = "{TINYBACK.file}"\nsha256 = "{TINYBACK.sha256()}"\n'):
        check(text in lock, f"{text!r} is not in {lock}")
    equal(project.facts("locked")["backend"], "1.0", "the backend")
    tinyback("2.0").write(project.wheels)
    helper("8.0").write(project.wheels)
    subprocess.run(["rm", "-rf", "--", str(project.dir / ".px")], check=True)
    for home in (project.home, other):
        again = project.ask("sync", "--frozen", PX_HOME=str(home))["details"]
        equal((again["profile_oid"], project.facts("locked")["backend"]), (first["profile_oid"], "1.0"), f"with the lock, in {home.name}")
    (project.dir / "px.lock").unlink()
    renewed = project.ask("sync")["details"]
    equal(project.facts("locked")["backend"], "2.0", "with a new lock")
    check(renewed["lock_id"] != first["lock_id"] and renewed["profile_oid"] != first["profile_oid"], "another lock, another environment")
    (project.dir / "px.lock").write_text(lock)
    equal(project.state()[0], "NeedsEnv", "with the first lock again")
    equal(project.ask("sync")["details"]["profile_oid"], first["profile_oid"], "what it gives")
    (project.wheels / helper("7.7").file).write_bytes(helper("7.7.1").bytes())
    subprocess.run(["rm", "-rf", "--", str(project.dir / ".px")], check=True)
    details = project.refused("PX800", "sync", PX_HOME=str(third))
    check("sha256" in " ".join(details["why"]), f"{details}")


@test
def built_once_more_it_is_the_same(w):
    project = builds(w, Source("again", requires=["tinyback", "helper"], uses=["helper"]), tools=(TINYBACK, helper("1.0")))
    project.run("sync")
    (project.dir / "app.py").write_text("import again\n")
    helper("3.0").write(project.wheels)
    answer = project.ask("pack", "image", "--check-repro", "--out", str(project.dir.parent / "image.tar"))["details"]
    equal(answer["checked"], True, "checked")


# ---- running --------------------------------------------------------------------------------------------------------


def run_all(options):
    leaks.become_subreaper()
    world = World(options.build, options.build / "work")
    return tell((f.__name__, *verdict_of(f, world)) for f in chosen(TESTS, options.only))


def main():
    options = parser("build").parse_args()
    if options.published:
        return run_all(options)
    scripts = [*(HERE / name for name in ("sources.py", "projects.py", "python_base.py", "elf.py")), HERE.parent / "bases/debs.py",
               HERE.parent / "envs/wheels.py", HERE.parent / "leaks.py"]
    top = publish("sources", built(options.build, "px-main", "px-layer", "px-fetch", "px-git", "px-net"), scripts, options.uid)
    return start_again(top, "projects/sources.py", options)


if __name__ == "__main__":
    sys.exit(main())
