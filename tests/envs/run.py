#!/usr/bin/python3
"""envs/run.py [--as UID] [--real] [--only NAME...] BUILD - from locks to environments, and what they need of the system.

Environments are compared with what pip installs from the same wheels, run with the Python of this machine where it has the base's version,
built by several processes at once, and broken in all the ways a wheel can be. --real builds source archives on debian-12, which is
built from Debian's archive once for all parts of a run. Prints `ok NAME`, `not ok NAME: why`, `skip NAME: why`, and
last "N passed, N failed, N skipped".
"""

import functools
import hashlib
import http.server
import io
import json
import os
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
sys.dont_write_bytecode = True
import leaks  # noqa: E402
import real as shared  # noqa: E402
from cases import TESTS, Skip, built, check, chosen, parser, publish, start_again, tell, test, verdict_of  # noqa: E402
from wheels import Wheel, lock, record_hash  # noqa: E402

LIMIT_S = 300
PYTHON = "/usr/bin/python3.11"
REAL_TESTS = []


def real(function):
    REAL_TESTS.append(function)
    return function


class Site:
    """One test's own directory: a project, its wheels, a PX_HOME."""

    def __init__(self, programs, top):
        self.px, self.tool, self.top = str(programs / "px"), str(programs / "env-tool"), top
        self.home, self.project = top / "home", top / "project"
        self.wheels = self.project / "wheels"
        self.wheels.mkdir(parents=True)
        self.env = {"PATH": os.environ["PATH"], "TMPDIR": str(top), "LC_ALL": "C.UTF-8", "HOME": str(top)}

    def run(self, *words, **more):
        settings = {"env": self.env, "cwd": self.top, "capture_output": True, "text": True, "timeout": LIMIT_S, "stdin": subprocess.DEVNULL}
        return subprocess.run([str(word) for word in words], check=False, **{**settings, **more})

    def ask(self, *words, env=None):
        done = self.run(self.tool, *words, env={**self.env, **(env or {})})
        check(done.returncode in (0, 1), f"{words[0]}: status {done.returncode}, {done.stderr[-300:]}")
        return done.stdout.strip()

    def build(self, text, manifest=None, frozen=True, links=(), name="px.lock", env=None):
        (self.project / name).write_text(text)
        if manifest is not None:
            (self.project / "pyproject.toml").write_text(manifest)
        words = (self.home, self.project / name, self.project / "pyproject.toml" if manifest is not None else "-", int(frozen), *links)
        return self.ask("build", *words, env=env)

    def good(self, *words, **more):
        answer = self.build(*words, **more)
        check(answer.startswith("{"), answer)
        return json.loads(answer)

    def refused(self, code, word, *words, **more):
        answer = self.build(*words, **more)
        check(answer.startswith(code) and word in answer, f"{code} {word!r} was expected: {answer}")
        left = [name for name in os.listdir(self.home / "store/tmp")] if (self.home / "store/tmp").exists() else []
        check(not left, f"it left {left}")

    def packages(self, env):
        return {p["name"]: self.home / "store/trees" / p["tree"] / "root" for p in env["packages"]}


def demo_wheels(site):
    """One of each kind of thing that a wheel can hold."""
    first = Wheel(
        "demo-tool", "1.2",
        {
            "demo_tool/__init__.py": b"def main():\n    import sys\n    print('demo', *sys.argv[1:])\n    return 3\n",
            "demo_tool/data, with comma.txt": b"text\n",
            "demo_tool-1.2.data/scripts/helper": (b"#!python\nimport sys\nprint('helper', sys.prefix)\n", 0o100755),
            "demo_tool-1.2.data/scripts/plain": (b"#!/bin/sh\necho plain\n", 0o100755),
            "demo_tool-1.2.data/purelib/demo_more.py": b"more = 1\n",
            "demo_tool-1.2.data/data/share/demo/words.txt": b"words\n",
        },
        scripts={"demo": "demo_tool:main"},
    )
    second = Wheel("Other.Name", "0.1", {"other/__init__.py": b"import os\nvalue = os.environ.get('FROM_ENV')\n", "extra.pth": b"import sys; sys.marked = True\n"})
    for wheel in (first, second):
        wheel.write(site.wheels)
    return first, second


# ---- the environment ----


@test
def an_environment_runs(site):
    env = site.good(lock(*demo_wheels(site)), manifest='[project]\nname = "demo"\n[tool.px.env]\nFROM_ENV = "it\'s set"\n')
    path = Path(env["path"])
    check(path == site.home / "envs" / env["profile"] and path.is_dir(), f"path {path}")
    manifest = json.loads((path / "manifest.json").read_text())
    check(manifest["profile_oid"] == env["profile"] and manifest["env_vars"] == {"FROM_ENV": "it's set"}, f"{manifest}")
    check([p["name"] for p in manifest["packages"]] == ["demo-tool", "other-name"], f"{manifest['packages']}")
    paths = [line for line in (path / "lib/python3.11/site-packages/px.pth").read_text().splitlines() if not line.startswith("import ")]
    check(paths == [str(tree / "site-packages") for tree in site.packages(env).values()], f"{paths}")
    if not os.access(PYTHON, os.X_OK):
        raise Skip(f"there is no {PYTHON} here")
    code = "import demo_tool, demo_more, other, sys; print(other.value, sys.marked, sys.prefix, sys.flags.dont_write_bytecode)"
    done = site.run(path / "bin/python", "-c", code)
    check(done.stdout == f"it's set True {path} 1\n", f"{done.stdout} {done.stderr}")
    done = site.run(path / "bin/demo", "a b", "c")
    check((done.returncode, done.stdout) == (3, "demo a b c\n"), f"{done.returncode} {done.stdout} {done.stderr}")
    done = site.run(path / "bin/helper")
    check(done.stdout == f"helper {path}\n", f"{done.stdout} {done.stderr}")
    check(site.run(path / "bin/plain").stdout == "plain\n", "the shell script")
    check(site.run("sh", "-c", f"PATH={path}/bin:$PATH demo x").stdout == "demo x\n", "by PATH")
    check(not list(site.home.rglob("*.pyc")), "compiled files in the store")


@test
def the_second_time_nothing_is_built(site):
    text = lock(*demo_wheels(site))
    first = site.good(text)
    shutil.rmtree(site.wheels)
    second = site.good(text)
    check(not first["cached"] and second["cached"], f"{first['cached']} {second['cached']}")
    check({**first, "cached": 0} == {**second, "cached": 0}, "two answers for one lock")
    # The trees of packages went, their archives are there: built again, and the same.
    for tree in (*site.packages(first).values(), site.home / "store/trees" / first["tree"] / "root"):
        shutil.rmtree(tree.parent)
    check(json.loads(site.ask("check", site.home, first["profile"]))["usable"] == 0, "an environment without its trees is not usable")
    third = site.good(text)
    check({**first, "cached": 0} == {**third, "cached": 0} and not third["cached"], "built again, it is another")
    check(json.loads(site.ask("check", site.home, first["profile"]))["usable"] == 1, "it is usable again")


@test
def the_profile_is_the_same_everywhere(site):
    wheels = demo_wheels(site)
    one = site.good(lock(*wheels))
    other = Site(Path(site.tool).parent, site.top / "elsewhere")
    for wheel in wheels:
        wheel.write(other.wheels)
    two = other.good(lock(*reversed(wheels)) + "# a comment\n")
    check(one["profile"] == two["profile"], "another place, another order: another profile")
    check([p["build"] for p in one["packages"]] == [p["build"] for p in two["packages"]], "other packages")
    three = site.good(lock(wheels[0]))
    four = site.good(lock(*wheels), env={"PX_PROFILE_ENV_VARS": '{"A": "b"}'})
    check(len({one["profile"], three["profile"], four["profile"]}) == 3, "different environments of one name")


@test
def trees_do_not_depend_on_umask(site):
    wheels = demo_wheels(site)
    one = site.good(lock(*wheels))
    other = Site(Path(site.tool).parent, site.top / "elsewhere")
    for wheel in wheels:
        wheel.write(other.wheels)
    (other.project / "px.lock").write_text(lock(*wheels))
    done = other.run("sh", "-c", 'umask 077; exec "$@"', "sh", other.tool, "build", other.home, other.project / "px.lock", "-", 1)
    check(done.returncode == 0 and json.loads(done.stdout)["profile"] == one["profile"], done.stdout)


@test
def many_at_once(site):
    (site.project / "px.lock").write_text(lock(*demo_wheels(site)))
    words = [site.tool, "build", str(site.home), str(site.project / "px.lock"), "-", "1"]
    running = [subprocess.Popen(words, env=site.env, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    answers = [(p.communicate(timeout=LIMIT_S)[0], p.returncode) for p in running]
    check(all(status == 0 for _, status in answers), f"{answers}")
    check(len({json.loads(text)["profile"] for text, _ in answers}) == 1, "one lock, several profiles")
    check(sum(not json.loads(text)["cached"] for text, _ in answers) == 1, "built more than once")
    check(sorted(os.listdir(site.home / "envs")) == [json.loads(answers[0][0])["profile"]], "more than the link is there")


@test
def what_is_needed_stays(site):
    env = site.good(lock(*demo_wheels(site)))
    check(json.loads(site.ask("gc", site.home, 0))["trees"] == 0, "a young environment was collected")
    site.ask("name", site.home, str(site.project), env["profile"])
    check(json.loads(site.ask("gc", site.home, 1)) == {"trees": 0, "records": 0}, "a named environment was collected")
    check(site.good(lock(*demo_wheels(site)))["cached"], "it is not whole any more")
    smaller = site.good(lock(demo_wheels(site)[0]))
    site.ask("name", site.home, str(site.project), smaller["profile"])
    gone = json.loads(site.ask("gc", site.home, 1))
    check(gone == {"trees": 2, "records": 1}, f"what nobody needs stays, or more goes: {gone}")
    check(site.good(lock(demo_wheels(site)[0]))["cached"], "the other one is not whole any more")
    check(not (site.home / "envs" / env["profile"]).exists(), "its directory leads somewhere")


# ---- where archives come from ----


@test
def archives_by_path_address_and_directory(site):
    wheels = demo_wheels(site)
    want = site.good(lock(*wheels))["profile"]
    for how in (lambda w: (site.wheels / w.file).as_uri(), lambda w: str(site.wheels / w.file), lambda w: "./wheels/" + w.file):
        shutil.rmtree(site.home)
        check(site.good(lock(*wheels, url=how))["profile"] == want, f"{how(wheels[0])}")
    shutil.rmtree(site.home)
    check(site.good(lock(*wheels, url=lambda w: None), links=[site.wheels])["profile"] == want, "find-links")
    shutil.rmtree(site.home)
    site.refused("PX903", "no file for demo-tool", lock(*wheels, url=lambda w: None))
    site.refused("PX903", "cannot open", lock(*wheels, url=lambda w: "wheels/away.whl"))
    text = "".join(f"{w.name}=={w.version} --hash=sha256:{'0' * 64} --hash=sha256:{w.sha256()}\n" for w in wheels)
    check(site.good(text, links=[site.wheels], name="requirements.txt")["profile"] == want, "requirements with hashes")
    text = "".join(f"{w.name}=={w.version}\n" for w in wheels)
    site.refused("PX121", "no sha256", text, links=[site.wheels], name="requirements.txt")
    check(site.good(text, links=[site.wheels], name="requirements.txt", frozen=False)["profile"] == want, "without hashes, not frozen")


@test
def archives_that_are_not_what_the_lock_says(site):
    wheels = demo_wheels(site)
    wrong = lambda wheel: hashlib.sha256(b"something else").hexdigest()  # noqa: E731
    site.refused("PX800", "is not the file that the lock names", lock(*wheels, sha256=wrong))
    site.refused("PX800", "is not the file that the lock names", lock(*wheels, sha256=wrong, url=lambda w: None), links=[site.wheels])
    text = "".join(f"{w.name}=={w.version} --hash=sha256:{wrong(w)}\n" for w in wheels)
    site.refused("PX903", "no file for", text, links=[site.wheels], name="requirements.txt")
    check(not (site.home / "envs").exists(), "an environment came of it")


class Server(http.server.SimpleHTTPRequestHandler):
    """Files, a way to them by a redirection, and ways that lead nowhere."""

    def do_GET(self):
        self.server.asked.append(self.path)
        if self.path.startswith("/moved/"):
            self.send_response(302)
            self.send_header("Location", self.path[len("/moved"):])
            self.end_headers()
        elif self.path.startswith("/round/"):
            self.send_response(302)
            self.send_header("Location", self.path)
            self.end_headers()
        elif self.path.startswith("/cut/"):
            self.send_response(200)
            self.send_header("Content-Length", "100000")
            self.end_headers()
            self.wfile.write(b"x" * 10)
        else:
            super().do_GET()

    def log_message(self, *words):
        pass


@test
def archives_that_are_fetched(site):
    wheels = demo_wheels(site)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Server, directory=site.wheels))
    server.asked = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        top = f"http://127.0.0.1:{server.server_port}"
        site.env["PIP_INDEX_URL"] = f"{top}/simple"      # the user's own index
        first = site.good(lock(*wheels, url=lambda w: f"{top}/moved/{w.file}"))
        check(len(server.asked) == 4, f"{server.asked}")
        check(site.good(lock(*wheels, url=lambda w: f"{top}/{w.file}"))["cached"] and len(server.asked) == 4, "what is known was fetched again")
        shutil.rmtree(site.home)
        check(site.good(lock(*wheels, url=lambda w: f"{top}/{w.file}"))["profile"] == first["profile"], "another profile")
        shutil.rmtree(site.home)
        site.refused("PX903", "404", lock(*wheels, url=lambda w: f"{top}/away/{w.file}"))
        site.refused("PX903", "too often", lock(*wheels, url=lambda w: f"{top}/round/{w.file}"))
        site.refused("PX903", "ended before", lock(*wheels, url=lambda w: f"{top}/cut/{w.file}").replace("size = ", "size = 1000000 #"))
        wrong = lambda wheel: hashlib.sha256(b"something else").hexdigest()  # noqa: E731
        site.refused("PX800", "is not the file", lock(*wheels, url=lambda w: f"{top}/{w.file}", sha256=wrong))
        site.refused("PX903", "only https", lock(*wheels, url=lambda w: f"http://192.0.2.1/{w.file}"))
    finally:
        server.shutdown()
        server.server_close()


@test
def a_lock_leads_nowhere_within(site):
    """What a lock of a repository names is asked for at the user's own index, and nowhere else: not at other services of this machine."""
    wheels = demo_wheels(site)
    servers = [http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Server, directory=site.wheels)) for _ in range(2)]
    for server in servers:
        server.asked = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
    index, other = (server.server_port for server in servers)
    own = {"PIP_INDEX_URL": f"http://127.0.0.1:{index}/simple"}
    try:
        for place in (f"http://127.0.0.1:{other}/api/shutdown?", f"http://localhost:{other}/", f"http://[::1]:{other}/", f"https://127.0.0.1:{other}/",
                      f"http://127.9.9.9:{other}/", "https://169.254.169.254/latest/", "https://10.0.0.1/", "https://192.168.1.1:8443/",
                      "https://internal.example/", "https://pypi.org.example/", f"https://pypi.org:{other}/"):
            site.refused("PX903", "is not an index of yours", lock(*wheels, url=lambda w: f"{place}{w.file}"), env=own)
            site.refused("PX903", "is not an index of yours", lock(*wheels, url=lambda w: f"{place}{w.file}"))
        check(servers[1].asked == [], f"a service of this machine was asked for {servers[1].asked}")
        for settings in ({"PX_INDEX_HOSTS": f"registry.example 127.0.0.1:{other}"}, {"UV_INDEX": f"mine=http://user:pw@localhost:{other}/simple"},
                         {"PIP_EXTRA_INDEX_URL": f"https://a.example/ http://[::1]:{other}/"}):
            shutil.rmtree(site.home, ignore_errors=True)
            site.good(lock(*wheels, url=lambda w: f"http://127.0.0.1:{other}/{w.file}"), env=settings)
        shutil.rmtree(site.home)
        (site.top / ".config/pip").mkdir(parents=True)
        settings = site.top / ".config/pip/pip.conf"
        settings.write_text(f"[global]\n# index-url = http://127.0.0.1:{other}/simple\n")
        site.refused("PX903", "is not an index of yours", lock(*wheels, url=lambda w: f"http://127.0.0.1:{other}/{w.file}"))
        settings.write_text(f"[global]\nindex-url = http://127.0.0.1:{other}/simple\n")
        site.good(lock(*wheels, url=lambda w: f"http://127.0.0.1:{other}/{w.file}"))
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()


@test
def a_source_archive_has_words(site):
    data = b"not looked at"
    (site.wheels / "native-1.0.tar.gz").write_bytes(data)
    wheel = Wheel("native", "1.0")
    wheel.file, wheel.bytes = "native-1.0.tar.gz", lambda: data
    site.refused("PX900", "debian-12", lock(wheel))     # what it would be built on is not there


@test
def wheels_that_are_wrong(site):
    def put(path, data):
        return lambda files: files.__setitem__(path, (data, 0o100644))

    info = "bad-1.0.dist-info/"
    rows = {
        "changed": ("bad.py' is not what its RECORD", {"spoil": put("bad.py", b"other")}),
        "added": ("evil.py' is not in its RECORD", {"spoil": put("evil.py", b"x")}),
        "removed": ("which it does not hold", {"spoil": lambda files: files.pop("bad.py")}),
        "no record": ("no RECORD", {"spoil": lambda files: files.pop(info + "RECORD")}),
        "other name": ("METADATA", {"spoil": put(info + "METADATA", b"Name: good\nVersion: 1.0\n")}),
        "other version": ("METADATA", {"spoil": put(info + "METADATA", b"Name: bad\nVersion: 2.0\n")}),
        "wheel 2": ("version 1", {"spoil": put(info + "WHEEL", b"Wheel-Version: 2.0\nRoot-Is-Purelib: true\n")}),
        "script outside": ("entry_points", {"scripts": {"../../evil": "bad:main"}}),
        "script code": ("entry_points", {"scripts": {"x": "os;import evil:main"}}),
        "script twice": ("two scripts", {"scripts": {"x": "bad:main"}, "files": {"bad.py": b"", "bad-1.0.data/scripts/x": b"#!python\n"}}),
        "data twice": ("same place", {"files": {"bad.py": b"", "bad-1.0.data/purelib/bad.py": b"x"}}),
        "strange data": ("no known place", {"files": {"bad.py": b"", "bad-1.0.data/other/x": b"x"}}),
        "link": ("PX814", {"spoil": lambda files: files.__setitem__("link", (b"/etc/passwd", 0o120777))}),
        "dotdot": ("PX814", {"spoil": put("../evil", b"x")}),
    }
    for name, (word, more) in rows.items():
        wheel = Wheel("bad", "1.0", **{"files": {"bad.py": b"x = 1\n"}, **more})
        wheel.write(site.wheels)
        site.refused("PX814", word, lock(wheel))
    check(os.listdir(site.home / "store/trees") == [] and not (site.home / "envs").exists(), "something of them stayed")


# ---- against pip ----


def tree_of(path):
    found = {}
    for place, _, names in os.walk(path):
        for name in names:
            full = Path(place) / name
            relative = str(full.relative_to(path))
            if "__pycache__" not in relative:
                found[relative] = (full.read_bytes(), bool(full.stat().st_mode & stat.S_IXUSR))
    return found


def body(data):
    """A script without the lines that say who runs it."""
    lines = data.split(b"\n")
    return b"\n".join(lines[3:] if lines[0] == b"#!/bin/sh" and lines[1].startswith(b"'''exec'") else lines[1:])


def compare_with_pip(site, wheels):
    if site.run("/usr/bin/python3", "-m", "pip", "--version").returncode != 0:
        raise Skip("there is no pip for /usr/bin/python3 here")
    env = site.good(lock(*wheels))
    text = "".join(f"{w.name}=={w.version} --hash=sha256:{w.sha256()}\n" for w in wheels)
    (site.top / "requirements.txt").write_text(text)
    words = ["--no-index", "--find-links", site.wheels, "--require-hashes", "--no-deps", "--no-compile", "--target", site.top / "pip", "-r", site.top / "requirements.txt"]
    done = site.run("/usr/bin/python3", "-m", "pip", "install", "--quiet", "--no-cache-dir", "--disable-pip-version-check", *words)
    check(done.returncode == 0, done.stderr[-500:])
    want, got = tree_of(site.top / "pip"), {}
    for tree in site.packages(env).values():
        for path, item in tree_of(tree).items():
            got[path[len("site-packages/"):] if path.startswith("site-packages/") else path] = item
    requested = {path for path in want if path.endswith("/REQUESTED")}
    check(set(want) - requested == set(got), f"only pip: {set(want) - requested - set(got)}; only px: {set(got) - set(want)}")
    for path, (data, executable) in sorted(got.items()):
        other, other_executable = want[path]
        check(executable == other_executable, f"{path}: executable {executable}")
        if path.endswith(".dist-info/INSTALLER"):
            check(data == b"px\n", path)
        elif path.endswith(".dist-info/RECORD"):
            ours, theirs = ({line.rsplit(",", 2)[0].replace("../../bin", "../bin") for line in text.decode().splitlines()} for text in (data, other))
            theirs = {line for line in theirs if not line.endswith("/REQUESTED")}
            names = lambda lines: {line.split("/")[-1] for line in lines}  # noqa: E731
            check(len(ours) == len(theirs) and names(ours) == names(theirs), f"{path}: {ours ^ theirs}")
        elif path.startswith("bin/") and b"\nif __name__ == \"__main__\":\n    sys.exit(" in data:
            check([line for line in data.split(b"\n") if line.startswith(b"from ")] == [line for line in other.split(b"\n") if line.startswith(b"from ")], path)
        elif path.startswith("bin/"):
            check(body(data) == body(other) or data == other, f"{path}: {data!r} {other!r}")
        else:
            check(data == other, f"{path} differs")


@test
def as_pip_installs_them(site):
    compare_with_pip(site, demo_wheels(site))


@test
def real_wheels_as_pip_installs_them(site):
    found = sorted(Path("/usr/share/python-wheels").glob("*.whl"))
    if not found:
        raise Skip("there are no wheels in /usr/share/python-wheels here (python3-pip-whl, python3-setuptools-whl)")
    wheels = []
    for path in found:
        name, version, tag = path.stem.split("-", 2)
        wheel = Wheel(name, version, tag=tag)
        wheel.bytes = functools.partial(path.read_bytes)
        wheel.write(site.wheels)
        wheels.append(wheel)
    compare_with_pip(site, wheels)


@test
def records_tell_the_truth(site):
    env = site.good(lock(*demo_wheels(site)))
    for name, tree in site.packages(env).items():
        (record,) = tree.glob("site-packages/*.dist-info/RECORD")
        import csv
        rows = {os.path.normpath(tree / "site-packages" / row[0]): row[1:] for row in csv.reader(record.read_text().splitlines())}
        files = {str(path): path.read_bytes() for path in tree.rglob("*") if path.is_file()}
        check(set(rows) == set(files), f"{name}: {set(rows) ^ set(files)}")
        for path, data in files.items():
            check(path == str(record) or rows[path] == [record_hash(data), str(len(data))], f"{name}: {path}")


# ---- what packages need ----

REAL = {"python3-psycopg2": "postgres", "python3-lxml": "xml", "python3-pil": "imagecodecs", "python3-pycurl": "curl", "python3-ldap": "ldap"}


@test
def real_extensions_by_what_they_link(site):
    """Debian's own, by their bytes alone: nothing is installed, no name is looked at."""
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        raise Skip("there is no apt-get and dpkg-deb here")
    debs = site.top / "debs"
    debs.mkdir()
    done = site.run("apt-get", "-qq", "download", *REAL, cwd=debs)
    if done.returncode != 0:
        raise Skip(f"the packages cannot be downloaded: {done.stderr.strip().splitlines()[-1:]}")
    for package, capability in REAL.items():
        (archive,) = debs.glob(package + "_*.deb")
        check(site.run("dpkg-deb", "-x", archive, site.top / package).returncode == 0, f"cannot unpack {package}")
        reasons = json.loads(site.ask("infer", site.top / package))
        check(all(reason["source"] == "cas" for reason in reasons), f"{reasons}")
        found = {reason["capability"] for reason in reasons}
        check(capability in found, f"{package}: {reasons}")
    # As wheels, for one system: the same, by way of the store, with the libraries of each remembered there.
    (extension,) = (site.top / "python3-psycopg2").rglob("_psycopg.cpython-311-x86_64-linux-gnu.so")
    wheel = Wheel("psycopg2", "2.9.5", {"psycopg2/_psycopg.cpython-311-x86_64-linux-gnu.so": extension.read_bytes(), "psycopg2/__init__.py": b""},
                  tag="cp311-cp311-linux_x86_64", pure=False)
    wheel.write(site.wheels)
    check("libpq.so.5" in site.good(lock(wheel))["packages"][0]["needed"], "psycopg2 in the store")
    bundled = Wheel("psycopg2", "2.9.5", {**wheel.files, "psycopg2.libs/libpq.so.5": extension.read_bytes()}, tag=wheel.tag, pure=False)
    bundled.write(site.wheels)
    check("libpq.so.5" not in site.good(lock(bundled))["packages"][0]["needed"], "a library that the package brings counts")
    fake = Wheel("psycopg2", "2.9.5", {**wheel.files, "psycopg2.libs/libpq.so.5": b"not ELF"}, tag=wheel.tag, pure=False)
    fake.write(site.wheels)
    check("libpq.so.5" in site.good(lock(fake))["packages"][0]["needed"], "a name alone brings a library")


@test
def wishes_and_what_is_inferred(site):
    plain = Wheel("psycopg2", "2.9.5", tag="cp311-cp311-linux_x86_64", pure=False)
    brings = Wheel("lxml", "5.0", tag="cp311-cp311-manylinux_2_17_x86_64", pure=False)
    pure = Wheel("ldap3", "2.9")
    for wheel in (plain, brings, pure):
        wheel.write(site.wheels)
    text = lock(plain, brings, pure)
    head = '[project]\nname = "demo"\n[tool.px.sandbox]\n'
    rows = {
        "": ["postgres"],
        head: ["postgres"],
        head + "auto = false\n": [],
        head + "auto = false\n[tool.px.sandbox.capabilities]\npostgres = true\n": ["postgres"],
        head + "[tool.px.sandbox.capabilities]\npostgres = false\nxml = true\n": ["xml"],
    }
    for manifest, effective in rows.items():
        env = site.good(text, manifest=manifest or None)
        check(env["effective"] == effective, f"{manifest!r}: {env['effective']} {env['capabilities']}")
    reason, brought = site.good(text)["capabilities"]
    check(brought == {"capability": "xml", "source": "static map", "detail": "lxml", "counts": False, "set_aside": "its wheel brings the libraries"}, f"{brought}")
    check(reason == {"capability": "postgres", "source": "static map", "detail": "psycopg2", "counts": True}, f"{reason}")
    site.refused("PX901", "bogus", text, manifest=head + "[tool.px.sandbox.capabilities]\nbogus = false\n")


# ---- source archives, on the real base ----


def source(name, version, files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for path, data in {**files, "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode()}.items():
            info = tarfile.TarInfo(f"{name}-{version}/{path}")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    made = Wheel(name, version)
    made.file, data = f"{name}-{version}.tar.gz", out.getvalue()
    made.bytes = lambda: data
    return made


SETUP = b"""from setuptools import setup, Extension
import os
assert not os.path.exists(OUTSIDE), "the host is there"
setup(name="psycopg2", version="2.0", packages=["psycopg2"], entry_points={"console_scripts": ["pg = psycopg2:main"]},
      ext_modules=[Extension("psycopg2._pg", ["pg.c"], libraries=["pq"], include_dirs=["/usr/include/postgresql"])])
"""
CODE = b"""#include <Python.h>
#include <libpq-fe.h>
static PyObject *version(PyObject *self, PyObject *none) { return PyLong_FromLong(PQlibVersion()); }
static PyMethodDef methods[] = {{"version", version, METH_NOARGS, ""}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_pg", 0, -1, methods};
PyMODINIT_FUNC PyInit__pg(void) { return PyModule_Create(&module); }
"""


@real
def source_archives_on_the_base(site):
    """Built with the headers of the capability that its name stands for; what it links is then read from what was built, and runs with it."""
    site.home, _ = shared.home(site.px, site.top)
    site.env |= shared.environment() | {"PX_HOME": str(site.home)}
    setup = SETUP.replace(b"OUTSIDE", repr(str(site.project)).encode())
    init = b"from ._pg import version\ndef main():\n    print(version())\n"
    archive = source("psycopg2", "2.0", {"setup.py": setup, "pg.c": CODE, "psycopg2/__init__.py": init})
    archive.write(site.wheels)
    env = site.good(lock(archive))
    check(env["packages"][0]["needed"] == ["libpq.so.5"] and env["effective"] == ["postgres"], f"{env}")
    check({reason["source"] for reason in env["capabilities"]} == {"static map", "cas"}, f"{env['capabilities']}")
    check(site.good(lock(archive))["cached"], "it was built again")
    places = [word for place in ("envs", "store/trees") for word in ("--bind", f"{site.home / place}:{site.home / place}:ro")]
    done = site.run(site.px, "exec", "--base", "debian-12", *places, "--", Path(env["path"]) / "bin/pg")
    check(done.returncode == 1 and "libpq.so.5: cannot open shared object file" in done.stderr, f"{done.returncode} {done.stderr[-300:]}")
    done = site.run(site.px, "sandbox", "build", "--with", ",".join(env["effective"]), "--tag", "with-libraries", timeout=1800)
    check(done.returncode == 0, done.stderr[-300:])
    done = site.run(site.px, "exec", "--base", "with-libraries", *places, "--", Path(env["path"]) / "bin/pg")
    check(done.returncode == 0 and done.stdout.strip().isdigit(), f"{done.returncode} {done.stdout} {done.stderr[-300:]}")
    broken = source("broken", "1.0", {"setup.py": b"from setuptools import setup, Extension\nsetup(name='broken', version='1.0', ext_modules=[Extension('b', ['b.c'])])\n",
                                      "b.c": b"#include <jpeglib.h>\n"})
    broken.write(site.wheels)
    site.refused("PX903", "jpeglib.h: No such file", lock(broken))
    flood = source("flood", "1.0", {"setup.py": b"out = open('/var/tmp/flood', 'wb')\nwhile True:\n    out.write(b'x' * (1 << 20))\n"})
    flood.write(site.wheels)
    site.refused("PX903", "File too large", lock(flood))


# ---- running ----


def attempt(function, programs, top):
    place = Path(tempfile.mkdtemp(prefix=function.__name__ + ".", dir=top))
    verdict, why = verdict_of(lambda: function(Site(programs, place)))
    left = leaks.processes_left()
    if left and verdict != "not ok":
        verdict, why = "not ok", f"left {left}"
    subprocess.run(["chmod", "-R", "u+rwx", str(place)], check=False, stderr=subprocess.DEVNULL)
    subprocess.run(["rm", "-rf", "--", str(place)], check=False)
    return verdict, why


def main():
    words = parser("build")
    words.add_argument("--real", action="store_true")
    options = words.parse_args()
    tests = REAL_TESTS if options.real else TESTS
    if options.published:
        leaks.become_subreaper()
        return tell((f.__name__, *attempt(f, options.build, options.build / "work")) for f in chosen(tests, options.only))
    programs = built(options.build, "px-main", "px-layer", "px-fetch", "tests/env-tool")
    top = publish("envs", programs, [*HERE.glob("*.py"), HERE.parent / "leaks.py", HERE.parent / "real.py"], options.uid)
    return start_again(top, "envs/run.py", options, *["--real"] * options.real)


if __name__ == "__main__":
    sys.exit(main())
