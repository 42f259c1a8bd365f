#!/usr/bin/python3
"""projects.py [--as UID] [--only NAME...] BUILD - the sandbox of a project: what is in it, what it is called, and what it is built of.

Everything runs on a tiny distribution with this machine's Python (python_base.py) and on wheels made here; there is no network. The names of
the rows in the specification (P1...) stand at the tests. Prints `ok NAME`, `not ok NAME: why`, `skip NAME: why`, and last
"N passed, N failed, N skipped".
"""

import base64
import gzip
import hashlib
import http.server
import itertools
import json
import os
import subprocess
import sys
import tarfile
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "envs"), str(HERE.parent / "bases"), str(HERE.parent)]
sys.dont_write_bytecode = True
import elf  # noqa: E402
import leaks  # noqa: E402
import python_base  # noqa: E402
from cases import TESTS, WITHOUT_REASON, Problem, Skip, built, check, chosen, parser, publish, start_again, tell, test, verdict_of  # noqa: E402
from wheels import Wheel  # noqa: E402  (of envs/)

LIMIT_S = 900
PLAIN = "cp311-cp311-linux_x86_64"
NOWHERE = {"PX_APT_MIRROR": "[trusted=yes] file:///nowhere", "PX_APT_SECURITY_MIRROR": "[trusted=yes] file:///nowhere"}


def equal(got, expected, what):
    check(got == expected, f"{what}: {got!r} and not {expected!r}")


def tree(directory):
    """Every file and link below a directory with its bytes."""
    return {str(path.relative_to(directory)): os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
            for path in sorted(Path(directory).rglob("*"))}


class Project:
    """A directory with a manifest and a lock, and a PX_HOME."""

    def __init__(self, world, directory, home):
        self.world, self.dir, self.home = world, directory, home
        self.wheels = directory.parent / (directory.name + "-wheels")
        self.dir.mkdir(parents=True, exist_ok=True)
        self.wheels.mkdir(exist_ok=True)

    def write(self, *wheels, sandbox="", more=""):
        """The manifest, and a list of pinned requirements as its lock."""
        for wheel in wheels:
            wheel.write(self.wheels)
        names = ", ".join(f'"{wheel.name}"' for wheel in wheels)
        (self.dir / "pyproject.toml").write_text(
            f'[project]\nname = "demo"\nversion = "1.2.3"\ndependencies = [{names}]\n\n[tool.px]\n{more}' +
            (f"\n[tool.px.sandbox]\n{sandbox}" if sandbox else ""))
        (self.dir / "requirements.txt").write_text(
            "".join(f"{wheel.name}=={wheel.version} --hash=sha256:{wheel.sha256()}\n" for wheel in wheels) or "# nothing\n")
        return self

    def sandbox(self, text):
        path = self.dir / "pyproject.toml"
        path.write_text(path.read_text().split("\n[tool.px.sandbox]")[0] + "\n[tool.px.sandbox]\n" + text)

    def environment(self, **more):
        address = self.world.archive.address if self.world.archive else ""
        return {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(self.world.top), "TMPDIR": str(self.world.top), "PX_HOME": str(self.home),
                "LANG": "C.UTF-8", "PX_APT_MIRROR": address, "PX_APT_SECURITY_MIRROR": address, "PIP_NO_INDEX": "1",
                "PIP_FIND_LINKS": str(self.wheels)} | more

    def run(self, *words, status=0, cwd=None, before=(), **more):
        done = subprocess.run([*before, self.world.px, *words], stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S, check=False,
                              cwd=cwd or self.dir, env=self.environment(**more), text=True)
        if status is not None:
            check(done.returncode == status, f"px {' '.join(words)[:120]}: exit {done.returncode}: {(done.stdout + done.stderr)[-800:]}")
        return done

    def ask(self, *words, **more):
        return json.loads(self.run("--json", *words, **more).stdout)

    def refused(self, code, *words, **more):
        answer = json.loads(self.run("--json", *words, status=1, **more).stdout)
        equal((answer["status"], answer["details"]["code"]), ("user-error", code), f"{words}: {answer}")
        check((answer["details"]["why"] or code in WITHOUT_REASON) and answer["details"]["fix"], f"no why or fix: {answer}")
        check(answer["message"].startswith(f"px {' '.join(words[:2])}: "), answer["message"])
        return answer["details"]

    def synced(self):
        self.run("sync")
        return self

    def build(self, *words, **more):
        return self.ask("sandbox", "build", *words, **more)

    def explain(self):
        return self.ask("sandbox", "explain")

    def inferred(self):
        """{capability: [(source, detail)...]} of what counts."""
        found = {}
        for reason in self.explain()["reasons"]:
            if reason["counts"]:
                found.setdefault(reason["capability"], []).append((reason["source"], reason["detail"]))
        return found

    def record(self, answer):
        return self.home / "sandbox/images" / answer["sbx_id"] / "manifest.json"


class World:
    """px, the archive, and one PX_HOME with the base that tests copy."""

    def __init__(self, programs, top):
        self.px, self.top = str(programs / "px"), Path(top)
        self.archive = python_base.archive(self.top / "mirror")
        self.first = None
        self.number = itertools.count()

    def based(self):
        """A PX_HOME of the test's own that has the base."""
        if not self.archive:
            raise Skip("the tiny distribution is made of a Debian 12 host's own programs, with python3.11")
        if not self.first:
            made = Project(self, self.top / "first", self.top / "first-home")
            made.ask("sandbox", "base", "build", cwd=self.top)
            self.first = made.home
        home = self.top / f"home{next(self.number)}"
        subprocess.run(["cp", "-a", "--", str(self.first), str(home)], check=True)
        return home

    def project(self, *wheels, base=True, **more):
        number = next(self.number)
        home = self.based() if base else self.top / f"home{number}"
        return Project(self, self.top / f"project{number}" / "demo", home).write(*wheels, **more)


ALPHA = Wheel("alpha", "1.0", {"alpha.py": b"def main():\n    print('alpha', __file__)\n"}, scripts={"alpha": "alpha:main"})


def plain(name, version="1.0", files=None):
    return Wheel(name, version, files, tag=PLAIN, pure=False)


# ---- what the manifest says (P1 - P7, P33) --------------------------------------------------------------------------


@test
def p1_nothing_said(w):
    answer = w.project(ALPHA, base=False).synced().explain()
    equal((answer["base"], answer["auto"], answer["capabilities"], answer["built"]), ("debian-12", True, [], False), "the defaults")
    equal(answer["sbx_id"], None, "an id without a base in the store")
    check("px sandbox build" in answer["unknown"], f"{answer['unknown']}")


@test
def p2_unknown_base(w):
    project = w.project(ALPHA, base=False).synced()
    project.sandbox('base = "does-not-exist"\n')
    before = tree(project.dir), tree(project.home)
    for words in (("sandbox", "build"), ("sandbox", "explain")):
        details = project.refused("PX900", *words)
        equal(details["base"], "does-not-exist", "details.base")
        equal(details["why"], ["Requested sandbox base 'does-not-exist' is unknown or incompatible with this platform/px version."], "why")
        equal(details["fix"], ["Remove or change [tool.px.sandbox].base.", "Upgrade px to a version that supports this base.",
                               "px knows debian-12, debian-13, alpine-3.20; `px sandbox base list` has those of this machine, too."], "fix")
    check((tree(project.dir), tree(project.home)) == before, "something was written")
    said = project.run("sandbox", "build", status=1).stderr
    check(said.startswith("PX900  ") and "  - Remove or change [tool.px.sandbox].base.\n" in said, said)


@test
def p3_unknown_capability(w):
    project = w.project(base=False).synced()
    for value in ("true", "false"):
        project.sandbox(f"[tool.px.sandbox.capabilities]\nbogus = {value}\n")
        for verb in ("build", "explain"):
            equal(project.refused("PX901", "sandbox", verb)["capability"], "bogus", "details.capability")
    equal(project.refused("PX901", "sandbox", "add", "postgers")["fix"][0], "Write postgres.", "the nearest name")
    project.run("sandbox", "remove", "bogus")
    equal(project.explain()["capabilities"], [], "after the wrong line was removed")


@test
def p4_capability_that_a_base_has_not(w):
    project = w.project(base=False).synced()
    project.sandbox('base = "alpine-3.20"\n[tool.px.sandbox.capabilities]\npostgres = true\n')
    details = project.refused("PX901", "sandbox", "explain")
    equal((details["capability"], details["base"]), ("postgres", "alpine-3.20"), "details")
    equal(details["fix"], ["Change [tool.px.sandbox].base to a supported base.", "Or remove/disable that capability."], "fix")
    text = (project.dir / "pyproject.toml").read_text()
    project.refused("PX901", "sandbox", "add", "yaml")
    equal((project.dir / "pyproject.toml").read_text(), text, "the manifest after a refusal")


@test
def p5_p6_p7_said_and_inferred(w):
    project = w.project(plain("psycopg2"), base=False).synced()
    equal(project.inferred(), {"postgres": [("static map", "psycopg2")]}, "from the lock")
    project.sandbox("auto = false\n")
    equal(project.explain()["capabilities"], [], "nothing automatic")
    equal([(r["capability"], r["counts"], r["set_aside"]) for r in project.explain()["reasons"]],
          [("postgres", False, "[tool.px.sandbox] says auto = false")], "what is set aside")
    project.sandbox("auto = false\n[tool.px.sandbox.capabilities]\npostgres = true\n")
    equal(project.explain()["capabilities"], ["postgres"], "said")
    project.sandbox("[tool.px.sandbox.capabilities]\npostgres = false\nyaml = true\n")
    equal(project.explain()["capabilities"], ["yaml"], "refused, and another one said")
    check("[tool.px.sandbox.capabilities] says false" in {r.get("set_aside") for r in project.explain()["reasons"]}, "why")


@test
def p33_the_root_of_a_workspace_counts(w):
    project = w.project(base=False)
    member = project.dir / "libs/core"
    member.mkdir(parents=True)
    (project.dir / "pyproject.toml").write_text('[tool.px.workspace]\nmembers = ["libs/core"]\n\n[tool.px.sandbox.capabilities]\nyaml = true\n')
    (member / "pyproject.toml").write_text('[project]\nname = "core"\n[tool.px]\n[tool.px.sandbox]\nbase = "alpine-3.20"\n')
    (project.dir / "requirements.txt").unlink()
    project.run("sync", cwd=member)
    answer = project.ask("sandbox", "explain", cwd=member)
    equal((answer["base"], answer["capabilities"], answer["workspace"]), ("debian-12", ["yaml"], True), "the root's sandbox")
    warnings = json.loads(project.run("--json", "status", status=None, cwd=member).stdout)["warnings"]
    check(len(warnings) == 1 and "libs/core" in warnings[0], f"{warnings}")
    before = (member / "pyproject.toml").read_bytes()
    project.run("sandbox", "add", "postgres", cwd=member)
    equal((member / "pyproject.toml").read_bytes(), before, "the member's manifest")
    equal(project.explain()["capabilities"], ["postgres", "yaml"], "added to the root")


# ---- inference (P8 - P11) -------------------------------------------------------------------------------------------


@test
def p8_p9_names_of_the_lock(w):
    for name in ("Pillow", "pillow", "PILLOW"):
        check(("static map", "pillow") in w.project(plain(name), base=False).synced().inferred()["imagecodecs"], name)
    equal(list(w.project(plain("mysqlclient"), base=False).synced().inferred()), ["mysql"], "mysqlclient")
    for name in ("PyMySQL", "ldap3", "tifffile", "curlify"):
        equal(w.project(Wheel(name, "1.0"), base=False).synced().inferred(), {}, name)


@test
def p10_p11_what_files_link(w):
    code = {"thing/_ext.so": elf.shared_library("libpq.so.5", "libc.so.6"), "thing/__init__.py": b""}
    equal(w.project(plain("thing", files=code), base=False).synced().inferred(), {"postgres": [("cas", "thing: libpq.so.5")]}, "linked")
    said = w.project(plain("thing", files=code), base=False).synced().run("sandbox", "explain").stdout
    check("postgres      elf: thing -> libpq.so.5 (cas)\n" in said, said)
    brought = code | {"thing.libs/libpq.so.5": elf.shared_library("libc.so.6", soname="libpq.so.5")}
    equal(w.project(plain("thing", files=brought), base=False).synced().inferred(), {}, "brought along")
    fake = {"thing/libpq.so.5": b"libpq.so.5, or so it says\n", "thing/__init__.py": b""}
    equal(w.project(plain("thing", files=fake), base=False).synced().inferred(), {}, "named so, and not ELF")
    cut = {"thing/_ext.so": elf.shared_library("libpq.so.5")[:150], "thing/__init__.py": b""}
    equal(w.project(plain("thing", files=cut), base=False).synced().inferred(), {}, "cut off")
    other = {"thing/_ext.so": elf.shared_library("libpq.so.5", machine=183), "thing/__init__.py": b""}
    equal(w.project(plain("thing", files=other), base=False).synced().inferred(), {}, "of another machine")


# ---- identity (P12, P13, P19) ---------------------------------------------------------------------------------------


def sbx_id(answer):
    """With the packages that the capabilities brought, where there are some."""
    system = {"system_deps": answer["system_oid"]} if answer.get("system_oid") else {}
    text = json.dumps({"sandbox": {"base_os_oid": answer["base_os_oid"], "capabilities": sorted(answer["capabilities"]),
                                   "profile_oid": answer["profile_oid"], "sbx_version": 1} | system}, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


@test
def p12_p13_p19_the_id_is_what_it_is_made_of(w):
    vector = {"base_os_oid": "base", "profile_oid": "profile", "capabilities": ["postgres", "imagecodecs"]}
    equal(sbx_id(vector), "3fdc21967cb2b1c24dabaa931aae17f842363747b16297adff346ba12f8863ab", "the golden vector")
    equal(sbx_id(vector | {"capabilities": []}), "f8e459558397097b7461ccee34f8470a91ac2f568d6174b3fdd197d6d482d9dc", "and without capabilities")
    project = w.project(ALPHA).synced()
    seen = []
    for text in ("auto = true\n", "[tool.px.sandbox.capabilities]\nyaml = true\npostgres = true\n",
                 "[tool.px.sandbox.capabilities]\npostgres = true\nyaml = true\n"):
        project.sandbox(text)
        if not seen[1:]:
            equal(project.explain()["sbx_id"] is None, bool(seen), "an id before the archive was asked for the packages")
            project.build()
        answer = project.explain()
        equal(answer["sbx_id"], sbx_id(answer), "the id")
        equal(json.loads(project.run("--json", "status").stdout)["project"]["state"], "Consistent", "the project's state")
        seen.append(answer["sbx_id"])
    check(seen[0] != seen[1] and seen[1] == seen[2], f"{seen}")
    other = Project(w, w.top / "other" / "demo", project.home).write(ALPHA, Wheel("beta", "1.0")).synced().explain()
    check(other["sbx_id"] not in seen and other["base_os_oid"] == answer["base_os_oid"], "another environment, the same id")


# ---- the image (P14 - P17, P37, P38) --------------------------------------------------------------------------------


def layers_of(layout):
    """The config of the only image of a layout, and its layers as archives."""
    def blob(descriptor):
        path = layout / "blobs/sha256" / descriptor["digest"][7:]
        data = path.read_bytes()
        equal(hashlib.sha256(data).hexdigest(), path.name, "a blob")
        equal(len(data), descriptor["size"], "its size")
        return data
    manifest = json.loads(blob(json.loads((layout / "index.json").read_text())["manifests"][0]))
    config = json.loads(blob(manifest["config"]))
    return config, [gzip.decompress(blob(layer)) for layer in manifest["layers"]]


@test
def p14_built_once_and_it_runs(w):
    project = w.project(ALPHA, more='[tool.px.env]\nMODE = "test"\nPATH = "/nowhere"\n').synced()
    project.run("sandbox", "add", "yaml")
    before = tree(project.dir)
    first = project.build("--out", str(project.dir.parent / "layout"))
    equal((first["cached"], first["capabilities"], first["sbx_id"]), (False, ["yaml"], sbx_id(first)), "the image")
    kept = project.record(first).read_bytes()
    again = project.build(**NOWHERE)
    equal((again["cached"], again["image_digest"], project.record(again).read_bytes()), (True, first["image_digest"], kept), "a second time")
    check(tree(project.dir) == before, "something was written in the project")
    check("(as it was)" in project.run("sandbox", "build").stdout and "(built)" in project.run("sandbox", "explain").stdout, "words for a person")
    forced = project.build("--force", **NOWHERE)
    equal((forced["cached"], forced["image_digest"]), (False, first["image_digest"]), "by force")

    config, layers = layers_of(project.dir.parent / "layout")
    env = dict(item.split("=", 1) for item in config["config"]["Env"])
    equal((env["PATH"].split(":")[0], env["PX_SANDBOX_ID"], env["MODE"]), ("/px/env/bin", first["sbx_id"], "test"), "Env")
    equal(config["config"]["WorkingDir"], "/app", "WorkingDir")
    equal(len(layers), 4, "base, capabilities, environment, list of packages")
    (layer,) = [data for data in layers if b"px/env/pyvenv.cfg" in data]
    (project.dir.parent / "env.tar").write_bytes(layer)
    with tarfile.open(project.dir.parent / "env.tar") as archive:
        for entry in archive:
            check(entry.name == "px" or entry.name.startswith("px/"), entry.name)
            equal((entry.uid, entry.gid, entry.mtime), (0, 0, 0), entry.name)
            check(str(w.top) not in entry.linkname, entry.name)
            check(not entry.name.endswith(".pyc") or archive.extractfile(entry).read(8)[4:] == b"\1\0\0\0", f"byte code with a time: {entry.name}")
            check(not entry.isfile() or str(w.top).encode() not in archive.extractfile(entry).read(), f"a path of this machine in {entry.name}")
    code = "import alpha, json, os, sys; print(json.dumps([alpha.__file__.split('/')[1:4], sys.prefix, os.environ['MODE']]))"
    run = ("exec", "--base", first["sbx_id"], "--")
    equal(json.loads(project.run(*run, "/px/env/bin/python", "-c", code).stdout), [["px", "store", "pkg-builds"], "/px/env", "test"], "in the image")
    check(project.run(*run, "/px/env/bin/alpha").stdout.startswith("alpha /px/store/pkg-builds/"), "its script")
    names = {row["name"]: row for row in json.loads(project.run(*run, "/px/env/bin/python", "-c",
                                                                 "print(open('/usr/share/px/sbom.spdx.json').read())").stdout)["packages"]}
    equal(names["alpha"]["externalRefs"][0]["referenceLocator"], "pkg:pypi/alpha@1.0", "the list of packages")
    check("libyaml-0-2" in names, "and the system's")
    project.run("sandbox", "status", "--verify")


@test
def p15_what_is_lost_is_built_again(w):
    project = w.project(ALPHA).synced()
    project.run("sandbox", "add", "postgres")
    first = project.build()
    record = json.loads(project.record(first).read_text())
    lost = [project.home / "store/blobs/sha256" / layer["digest"] for layer in record["layers"]]
    lost += [project.home / "store/blobs/sha256" / first["image_digest"][7:]]
    for path in lost:
        path.unlink()
        again = project.build(**NOWHERE)
        equal((again["image_digest"], again["cached"], path.exists()), (first["image_digest"], False, True), f"without {path.name}")
    for name in ("root", "inside"):
        path = project.home / "store/trees" / record[name]
        subprocess.run(["rm", "-rf", "--", str(path)], check=True)
        again = project.build(**NOWHERE)
        equal((again["image_digest"], path.exists()), (first["image_digest"], True), f"without {name}")
        (path / "complete").write_text("{}")
        equal((project.build(**NOWHERE)["image_digest"], project.build(**NOWHERE)["cached"]), (first["image_digest"], True), f"{name} damaged")
    equal(json.loads(project.record(first).read_text()), record, "the record")


def change(path):
    """A line more at the end of a file of the store."""
    mode = path.stat().st_mode
    path.chmod(0o644)
    path.write_bytes(path.read_bytes() + b"\n# changed\n")
    path.chmod(mode)


@test
def what_was_changed_is_set_aside_and_built_again(w):
    """In the environment's part of the sandbox, in a package (its files are the part's), in the base, and in base and capabilities as one."""
    project = w.project(ALPHA).synced()
    for capability in (None, "postgres"):
        if capability:
            project.run("sandbox", "add", capability)
        first = project.build()
        record = json.loads(project.record(first).read_text())
        trees = project.home / "store/trees"
        for pattern in (f"{record['inside']}/root/env/pyvenv.cfg", f"{record['inside']}/root/store/pkg-builds/*/site-packages/alpha.py",
                        f"{record['root']}/root/usr/bin/sed"):
            (path,) = trees.glob(pattern)
            before, corrupt = path.read_bytes(), len(list((project.home / "store/corrupt").iterdir()))
            change(path)
            check(project.run("status", status=None).returncode in (0, 1), "status")
            done = project.run("sandbox", "build", **NOWHERE)
            check(first["image_digest"] in done.stdout, f"after a change of {pattern}: {done.stdout}")
            equal(path.read_bytes(), before, pattern)
            check("is not what px stored" in done.stderr, f"it was not said: {done.stderr}")
            check(len(list((project.home / "store/corrupt").iterdir())) > corrupt, "it is not in corrupt")
            equal(project.build(**NOWHERE)["cached"], True, "and then it is as it was")
    project.run("sandbox", "status", "--verify")


@test
def names_and_what_they_name_can_be_removed(w):
    project, other = w.project(ALPHA).synced(), None
    first = project.build()
    tagged = project.build("--tag", "kept:1")
    equal(tagged["sbx_id"], first["sbx_id"], "one image with two names")
    names = {name: row["id"] for kind in ("bases", "images", "envs") for row in project.ask("sandbox", "list")[kind] for name in row["names"]}
    check({"kept:1", str(project.dir), "debian-12"} <= set(names), f"{names}")

    def left(kind):
        return [(row["id"], row["names"]) for row in project.ask("sandbox", "list")[kind]]

    for word in ("nosuch", "abc", "0" * 64, "sha256:" + "0" * 64):
        answer = json.loads(project.run("--json", "sandbox", "delete", "kept:1", word, status=1).stdout)
        equal((answer["details"]["code"], word in answer["message"]), ("PX002", True), f"{answer}")
    check(len(left("images")) == 1 and "kept:1" in left("images")[0][1], "of several words one is wrong: all of it stays")
    equal(project.ask("sandbox", "delete", "kept:1")["removed"],
          [{"kind": "image", "id": first["sbx_id"], "name": "kept:1", "last": False}], "a name of two")
    said = project.run("sandbox", "delete", str(project.dir)).stdout
    check("removed image" in said and "removed env" in said and "px sandbox gc" in said, said)
    equal((left("images"), left("envs")), ([], []), "a project's image and environment")
    project.run("sandbox", "gc")
    again = project.build()
    equal(again["image_digest"], first["image_digest"], "built again")
    project.run("sandbox", "delete", first["image_digest"])
    equal(left("images"), [], "by its digest")
    project.run("sync")
    project.build()
    # A project that is gone keeps nothing.
    other = Project(w, w.top / f"gone-{next(w.number)}" / "demo", project.home).write(ALPHA).synced()
    other.run("sandbox", "add", "yaml")
    other.build()
    subprocess.run(["rm", "-rf", "--", str(other.dir)], check=True)
    check(f"{other.dir} (gone)" in project.run("sandbox", "list").stdout, "the list")
    would = project.ask("sandbox", "clean", "--dry-run")["removed"]
    check({"kind": "name", "id": str(other.dir), "bytes": 0} in would, f"{would}")
    check(any(str(other.dir) in names for _, names in left("images")), "a dry run")
    check(f"{other.dir}: the directory is gone" in project.run("sandbox", "clean").stdout, "what it says")
    equal([names for _, names in left("images")], [[str(project.dir)]], "what is left")
    equal(project.build(**NOWHERE)["cached"], True, "the other project's")


@test
def p16_p17_records_of_something_else(w):
    project = w.project(ALPHA).synced()
    first = project.build()
    path = project.record(first)
    good = path.read_text()
    path.write_text(json.dumps(json.loads(good) | {"sbx_version": 999}))
    details = project.refused("PX904", "sandbox", "build")
    equal((details["expected"], details["found"]), ("1", "999"), "details")
    equal(details["fix"], ["Rebuild sandbox images with this px version: px sandbox build --force.",
                           f"Or clear the sandbox store and rerun: px sandbox delete {first['sbx_id']}."], "fix")
    check(first["sbx_id"] in project.run("sandbox", "build", status=1).stderr, "the error names the image")
    for text in ("not JSON", "[]", "{}", good[:100], json.dumps(json.loads(good) | {"profile_oid": "0" * 64}),
                 json.dumps(json.loads(good) | {"base_os_oid": "0" * 64}), json.dumps(json.loads(good) | {"inside": 7})):
        path.write_text(text)
        details = project.refused("PX904", "sandbox", "build")
        equal(details["sbx_id"], first["sbx_id"], f"details with {text[:20]}")
        check("--force" in details["fix"][0] and ("expected" in details or first["sbx_id"] in details["file"]), f"{details}")
        again = project.build("--force")
        equal((again["image_digest"], json.loads(path.read_text())), (first["image_digest"], json.loads(good)), f"--force after {text[:20]}")
    path.write_text(good)
    equal(project.build()["cached"], True, "as it was")
    # One that nobody can read is a row of the list, and goes by itself or by its id.
    for words in (("clean",), ("delete", first["sbx_id"][:12])):
        path.write_text("not JSON")
        check("(cannot be read)" in project.run("sandbox", "list").stdout, "the list")
        equal([row["readable"] for row in project.ask("sandbox", "list")["images"]], [False], "the list for machines")
        project.run("sandbox", *words)
        check(not path.exists(), f"it is there after {words}")
        equal(project.build()["image_digest"], first["image_digest"], f"after {words}")


@test
def records_of_another_layout(w):
    """What an older px laid out differently is made again, under the same names."""
    project = w.project(ALPHA).synced()
    first = project.build()
    state = json.loads((project.dir / ".px/state.json").read_text())["current_env"]
    env, image = project.home / "sandbox/envs" / state["profile_oid"] / "manifest.json", project.record(first)
    record = json.loads(env.read_text())
    env.write_text(json.dumps({key: value for key, value in record.items() if key != "layout"}))
    image.write_text(json.dumps(json.loads(image.read_text()) | {"inside": "0" * 64}))
    equal(project.ask("status", status=1)["env"]["reason"], "invalid_env", "the environment")
    equal(project.ask("sync", "--frozen")["details"]["profile_oid"], state["profile_oid"], "its name")
    again = project.build()
    equal((again["cached"], again["sbx_id"], again["image_digest"]), (False, first["sbx_id"], first["image_digest"]), "the image")


@test
def p37_many_at_once(w):
    project = w.project(ALPHA).synced()
    project.run("sandbox", "add", "yaml")
    running = [subprocess.Popen([w.px, "--json", "sandbox", "build"], cwd=project.dir, env=project.environment(), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(6)]
    done = [process.communicate(timeout=LIMIT_S) for process in running]
    check(all(process.returncode == 0 for process in running), f"{done}")
    answers = [json.loads(out) for out, _ in done]
    equal(len({answer["image_digest"] for answer in answers}), 1, "images")
    equal(sorted(answer["cached"] for answer in answers), [False] + [True] * 5, "built")
    equal(len(list((project.home / "sandbox/images").iterdir())), 1, "records")


@test
def p38_collecting_leaves_it(w):
    project = w.project(ALPHA).synced()
    project.run("sandbox", "add", "yaml")
    first = project.build()
    for words in (("gc",), ("clean",), ("gc", "--max-size", "1")):
        project.run("sandbox", *words)
        again = project.build(**NOWHERE)
        equal((again["cached"], again["image_digest"]), (True, first["image_digest"]), f"after {words}")
    check(str(project.dir) in project.run("sandbox", "list").stdout, "it has the project's name")
    project.run("sandbox", "status", "--verify")


@test
def the_same_everywhere(w):
    """Two clones with other times, another place, another user's umask, another PX_HOME: one image."""
    one = w.project(ALPHA, plain("psycopg2")).synced()
    two = Project(w, w.top / "elsewhere" / "demo", w.top / "strange,home").write(ALPHA, plain("psycopg2"))
    for path in [*two.dir.rglob("*"), *two.wheels.rglob("*")]:
        os.utime(path, (1e9, 1e9))
    two.run("sync", before=("sh", "-c", 'umask 077; exec "$@"', "sh"), TZ="Asia/Tokyo")
    first, second = one.build(), two.build(before=("sh", "-c", 'umask 077; exec "$@"', "sh"), TZ="Asia/Tokyo")
    equal(first["capabilities"], ["postgres"], "inferred")
    equal({name: second[name] for name in ("sbx_id", "image_digest", "size")}, {name: first[name] for name in ("sbx_id", "image_digest", "size")}, "two machines")


# ---- a base of one's own -----------------------------------------------------------------------------------------------


def root_with_python(project, name="root"):
    """The files of the tiny base, as a project could bring them in a directory."""
    tree_id = project.ask("sandbox", "base", "build", cwd=project.world.top)["tree"]
    root = project.dir / name
    subprocess.run(["cp", "-a", "--", str(project.home / "store/trees" / tree_id / "root"), str(root)], check=True)
    return root


@test
def a_base_by_its_place(w):
    project = w.project(ALPHA)
    root = root_with_python(project)
    with tarfile.open(project.dir / "root.tar.gz", "w:gz") as archive:
        archive.add(root, ".")
    before = tree(project.dir)
    seen = {}
    for place in ("./root", str(root), "./root.tar.gz"):
        project.sandbox(f'base = "{place}"\n')
        equal(project.explain()["sbx_id"], None, "explained before it was brought")
        project.synced()
        first = project.build()
        equal((first["base"], first["capabilities"], first["sbx_id"]), (place, [], sbx_id(first)), "the image")
        said = project.run("exec", "--base", first["sbx_id"], "--", "/px/env/bin/python", "-c", "import sys, alpha; print(sys.version_info[:2], sys.prefix)").stdout
        equal(said, "(3, 11) /px/env\n", place)
        seen[place] = first["base_os_oid"], first["sbx_id"]
        again = project.build()
        equal((again["cached"], again["image_digest"]), (True, first["image_digest"]), "a second time")
        equal(project.explain()["sbx_id"], first["sbx_id"], "explained")
    equal(len(set(seen.values())), 1, f"the same files in other places: {seen}")
    runtime = json.loads(project.run("--json", "status").stdout)["runtime"]
    check(runtime["version"].startswith("3.11."), f"{runtime}")
    equal({name for name in tree(project.dir) if not name.startswith(".px")}, {name for name in before}, "files of the project")
    project.run("sandbox", "build", "--out", str(project.dir / "out"))
    config, _ = layers_of(project.dir / "out")
    check(str(w.top) not in json.dumps(config), f"a path of this machine in {config}")
    equal(config["config"]["Labels"]["px.base"], "imported", "its label")
    project.sandbox('base = "oci:out"\n')
    project.synced()
    check(project.build()["base_os_oid"] != first["base_os_oid"], "an image as a base")


@test
def a_base_of_a_name_of_ones_own(w):
    project = w.project(ALPHA)
    project.run("sandbox", "base", "import", "mine", str(root_with_python(project)))
    project.sandbox('base = "mine"\n')
    equal(project.synced().build()["base"], "mine", "by its name")


@test
def a_base_outside_of_the_project(w):
    """A manifest names what comes with the project; what else of this machine a sandbox shows the user says, by an import."""
    project = w.project(ALPHA).synced()
    root = root_with_python(project)
    outside = project.dir.with_name(project.dir.name + "-private")
    packed = outside.with_name(outside.name + ".tar.gz")
    root.rename(outside)
    (outside / "secret").write_text("hunter2")
    with tarfile.open(packed, "w:gz") as archive:
        archive.add(outside, ".")
    (project.dir / "link").symlink_to(f"../{outside.name}")
    (project.dir / "part").mkdir()
    (project.dir / "part" / "up").symlink_to("../..")
    (project.dir / "archive").symlink_to(f"../{packed.name}")
    for place in (f"../{outside.name}", f"../{outside.name}/.", str(outside), f"{project.dir}/../{outside.name}", "./link", "./link/.", f"part/up/{outside.name}", "./archive",
                  f"oci:../{outside.name}", f"oci-archive:{packed}", "docker-archive:archive", "oci:link:name"):
        project.sandbox(f'base = "{place}"\n')
        equal(project.ask("sync")["details"]["action"], "noop", f"{place}: this machine's environment")
        for words in (("sandbox", "build"), ("run", "--sandbox", "python", "-c", "print(open('/secret').read())")):
            answer = json.loads(project.run("--json", *words, status=1).stdout)["details"]
            equal((answer["code"], answer["reason"]), ("PX900", "outside_project"), f"{place} {words}: {answer}")
            check("px sandbox base import NAME" in answer["fix"][0], f"{answer}")
    project.run("sandbox", "base", "import", "trusted", str(outside))
    project.sandbox(f'base = "../{outside.name}"\n')
    equal(project.refused("PX900", "sandbox", "build")["reason"], "outside_project", "imported, but not named so")
    project.sandbox('base = "trusted"\n')
    equal(project.synced().build()["base"], "trusted", "by its name")


@test
def a_registry_of_a_manifest_gets_no_credentials(w):
    """Nor does one of this machine get a question: a manifest names images that anybody can have."""
    heard = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            heard.append((self.path, self.headers.get("Authorization")))
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="r"')
            self.end_headers()

        def log_message(self, *words):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    project = w.project(ALPHA).synced()
    name = f"127.0.0.1:{server.server_port}"
    auth = project.dir.with_name(project.dir.name + "-auth.json")
    login = base64.b64encode(b"ci-bot:secret").decode()
    (auth).write_text(json.dumps({"auths": {name: {"auth": login}}}))
    secrets = {"PX_REGISTRY_USERNAME": "ci-bot", "PX_REGISTRY_PASSWORD": "secret", "PX_REGISTRY": name,
               "REGISTRY_AUTH_FILE": str(auth)}
    try:
        for base in (f"{name}/team/image:1", f"docker://{name}/team/image:1", f"localhost:{server.server_port}/team/image"):
            project.sandbox(f'base = "{base}"\n')
            project.run("sync", **secrets)
            answer = json.loads(project.run("--json", "sandbox", "build", status=1, **secrets).stdout)["details"]
            equal((answer["code"], answer["reason"]), ("PX900", "import_failed"), f"{answer}")
            check("px sandbox base import NAME" in " ".join(answer["fix"]), f"{answer}")
        equal(heard, [], "what the registry of the manifest heard")
        project.run("sandbox", "base", "import", "mine", f"docker://{name}/team/image:1", status=1, **secrets)
        check(("/v2/", f"Basic {login}") in heard or any(said == f"Basic {login}" for _, said in heard), f"one that the user named: {heard}")
    finally:
        server.shutdown()
        server.server_close()


@test
def a_base_that_will_not_do(w):
    project = w.project(ALPHA).synced()
    root = root_with_python(project)
    for python in root.glob("usr/bin/python3*"):
        python.unlink()
    (root / "usr/bin/python3.12").write_text("#!/bin/sh\n")
    (project.dir / "bare").mkdir()
    (project.dir / "cut.tar.gz").write_bytes(b"\x1f\x8b\x08\0\0\0")
    rows = {"./root": "no_python", "./nowhere": "import_failed", "./bare": "import_failed", "./cut.tar.gz": "import_failed",
            "oci:./nowhere": "import_failed", "127.0.0.1:1/team/base:1": "import_failed"}
    for place, reason in rows.items():
        project.sandbox(f'base = "{place}"\n')
        before = tree(project.dir)
        for words in (("sandbox", "build"), ("run", "--sandbox", "python")):
            answer = json.loads(project.run("--json", *words, status=1).stdout)["details"]
            equal((answer["code"], answer["reason"], answer["base"]), ("PX900", reason, place), f"{words}: {answer}")
        equal(project.ask("sync")["details"]["action"], "noop", f"{place}: this machine's environment")
        check(tree(project.dir) == before, f"{place}: something was written")
    whole = root_with_python(project, "whole")
    path = project.dir / "pyproject.toml"
    path.write_text(path.read_text().replace('version = "1.2.3"', 'version = "1.2.3"\nrequires-python = ">=3.12"'))
    project.sandbox(f'base = "{whole}"\n')
    answer = json.loads(project.run("--json", "sandbox", "build", status=1).stdout)
    equal((answer["details"]["code"], answer["details"]["reason"]), ("PX900", "python_version"), f"{answer}")
    check("has Python 3.11." in answer["message"] and ">=3.12" in answer["message"], f"{answer}")


@test
def a_base_with_another_python(w):
    """Its environment is made from the same lock, beside this machine's, and kept; what the lock has no file for is refused."""
    project = w.project(ALPHA).synced()
    root = root_with_python(project)
    (root / "usr/bin/python3.11").rename(root / "usr/bin/python3.12")
    (root / "usr/bin/python3").unlink()
    own = project.explain()
    state = (project.dir / ".px/state.json").read_bytes()
    project.sandbox('base = "./root"\n')
    equal(project.explain()["sbx_id"], None, "explained before it was brought")
    first = project.build()
    check(first["profile_oid"] != own["profile_oid"], "the environment of another Python")
    shown = project.run("exec", "--base", first["sbx_id"], "--", "/bin/ls", "/px/env/lib", "/px/env/bin").stdout.split()
    check({"python3.12"} <= set(shown) and "python3.11" not in shown, f"{shown}")
    equal(project.run("run", "--sandbox", "--frozen", "python", "-c", "print('runs')").stdout, "runs\n", "in it")
    equal(project.run("run", "--frozen", "alpha").stdout.split()[0], "alpha", "on this machine")
    for words in (("gc",), ("clean",), ("gc", "--max-size", "1")):
        project.run("sandbox", *words)
        again = project.build(PIP_FIND_LINKS="/nowhere", **NOWHERE)
        equal((again["cached"], again["image_digest"]), (True, first["image_digest"]), f"after {words}")
        equal(project.explain()["sbx_id"], first["sbx_id"], f"explained after {words}")
    equal((project.dir / ".px/state.json").read_bytes(), state, "this machine's state")
    project.run("sandbox", "base", "import", "other", "root")
    project.sandbox('base = "other"\n')
    made = project.build()["profile_oid"]
    (project.dir / "own.yaml").write_text("project: .\nbase: other\n")
    project.run("task", "prepare", "--config", "own.yaml", "t", "--text", "a=1")
    answer = project.ask("task", "apply", "--config", "own.yaml", "t", "--", "python", "-c", "import os; print(os.environ['VIRTUAL_ENV'])")
    equal(answer["stdout"], f"{project.home}/envs/{made}\n", f"an action of a task has the environment of the base: {answer}")
    project.write(ALPHA, plain("native"), sandbox='base = "./root"\n')
    lock = (f'[[packages]]\nname = "{wheel.name}"\nversion = "{wheel.version}"\n[[packages.wheels]]\nname = "{wheel.write(project.wheels).name}"\n'
            f'path = "../demo-wheels/{wheel.write(project.wheels).name}"\nhashes = {{sha256 = "{wheel.sha256()}"}}\n' for wheel in (ALPHA, plain("native")))
    (project.dir / "requirements.txt").unlink()
    (project.dir / "pylock.toml").write_text('lock-version = "1.0"\ncreated-by = "a test"\n' + "".join(lock))
    project.synced()
    details = project.refused("PX900", "sandbox", "build")
    equal(details["reason"], "lock_python", f"{details}")
    check('python = "3.12" in [tool.px]' in details["fix"][0], f"{details}")


@test
def the_names_of_a_base(w):
    """Also those that tell its Python, as a registry would have them."""
    project = w.project(ALPHA, base=False).synced()
    for said, name in (("debian-12-py311", "debian-12"), ("px/base:debian-12-py311", "debian-12"), ("px/base:debian-13-py313", "debian-13"),
                       ("px/base:alpine-3.20-py312", "alpine-3.20"), ("debian-13", "debian-13")):
        project.sandbox(f'base = "{said}"\n')
        equal(project.explain()["base"], name, said)
    for said in ("debian-12-py312", "px/base:debian-12-py313"):
        project.sandbox(f'base = "{said}"\n')
        equal(project.refused("PX900", "sandbox", "build")["reason"], "unknown_base", said)


# ---- commands (P36) -------------------------------------------------------------------------------------------------


@test
def p36_explain_says_where_from_and_writes_nothing(w):
    code = {"thing/_ext.so": elf.shared_library("libyaml-0.so.2"), "thing/__init__.py": b""}
    project = w.project(plain("psycopg2"), plain("thing", files=code), sandbox="[tool.px.sandbox.capabilities]\nxml = true\npostgres = false\n").synced()
    before = tree(project.dir), tree(project.home)
    said = project.run("sandbox", "explain").stdout
    answer = project.explain()
    check((tree(project.dir), tree(project.home)) == before, "something was written")
    for line in (f"base          debian-12 (base_os_oid={answer['base_os_oid']})\n", "sbx_id        not known yet\n",
                 "The archive was not asked yet for the capabilities' packages", "xml           [tool.px.sandbox.capabilities] (explicit)\n", "yaml          elf: thing -> libyaml-0.so.2 (cas)\n",
                 "lock: psycopg2 (static map); [tool.px.sandbox.capabilities] says false\n"):
        check(line in said, f"{line!r} is not in {said}")
    equal(answer["capabilities"], ["xml", "yaml"], "capabilities")
    project.sandbox("auto = false\n")
    answer = project.explain()
    equal(answer["sbx_id"], sbx_id(answer), "the id without capabilities")
    check(f"sbx_id        {answer['sbx_id']} (not built yet)\npackages      not pinned\n" in project.run("sandbox", "explain").stdout, "without capabilities")


@test
def explain_before_anything_is_there(w):
    project = w.project(plain("psycopg2"), base=False)
    answer = project.explain()
    equal((answer["capabilities"], answer["sbx_id"], answer["profile_oid"]), (["postgres"], None, None), "from the lock alone")
    check("px sync" in answer["unknown"], answer["unknown"])
    (project.dir / "requirements.txt").unlink()
    check("There is no lock" in project.explain()["unknown"], "without a lock")
    project.refused("PX120", "sandbox", "build")
    equal(json.loads(project.run("--json", "sandbox", "explain", status=1, cwd=w.top).stdout)["details"]["code"], "PX100", "no project")


@test
def add_and_remove_leave_the_rest(w):
    project = w.project(plain("psycopg2"), base=False).synced()
    path = project.dir / "pyproject.toml"
    text = path.read_text() + "\n# mine\n[tool.px.sandbox.capabilities]   # these\nxml = true # for lxml\n\n[tool.other]\na = 1\n"
    path.write_text(text)
    path.chmod(0o640)
    equal(project.ask("sandbox", "add", "yaml", "xml", "yaml")["details"]["capabilities"], ["yaml"], "what was added")
    equal(path.read_text(), text.replace("# for lxml\n", "# for lxml\nyaml = true\n"), "the file")
    equal(path.stat().st_mode & 0o777, 0o640, "its mode")
    equal(project.ask("sandbox", "add", "yaml")["details"]["changed"], False, "once more")
    project.run("sandbox", "remove", "yaml", "xml")
    equal(path.read_text(), text.replace("xml = true # for lxml\n", ""), "removed")
    answer = project.ask("sandbox", "remove", "postgres")
    equal(answer["message"], "px sandbox remove: set postgres to false in pyproject.toml: the project's packages ask for it", "words")
    answer = answer["details"]
    equal((answer["refused"], project.explain()["capabilities"]), (["postgres"], []), "one that the lock asks for")
    equal(project.ask("sandbox", "remove", "postgres")["details"]["changed"], False, "and again")
    project.run("sandbox", "add", "postgres")
    equal(project.explain()["capabilities"], ["postgres"], "and back")
    kept = path.read_bytes()
    project.refused("PX901", "sandbox", "add", "yaml", "nonsense")
    equal(path.read_bytes(), kept, "half of it was written")
    path.write_text("[project\n")
    project.refused("PX102", "sandbox", "add", "yaml")
    equal(path.read_text(), "[project\n", "a file that cannot be read")


@test
def status_tells_of_the_sandbox(w):
    project = w.project(ALPHA).synced()
    first = project.build()
    about = project.ask("sandbox", "status")["project"]
    equal((about["sbx_id"], about["built"], about["root"]), (first["sbx_id"], True, str(project.dir)), "in the project")
    check(f"sandbox  {first['sbx_id'][:16]} (built), base debian-12, capabilities none\n" in project.run("sandbox", "status").stdout, "for a person")
    check("project" not in project.ask("sandbox", "status", cwd=w.top), "elsewhere")
    project.sandbox('base = "nope"\n')
    check("nope" in project.ask("sandbox", "status")["project"]["error"], "a project that has none")


@test
def plain_builds_are_what_they_were(w):
    project = w.project(ALPHA).synced()
    inside, outside = project.build("--with", "yaml"), project.build("--with", "yaml", cwd=w.top)
    equal((inside["sbx_id"], outside["cached"]), (outside["sbx_id"], True), "with words about it, it is not the project's")
    check(inside["sbx_id"] != project.build()["sbx_id"], "without, it is")


@test
def states_that_are_refused(w):
    project = w.project(ALPHA).synced()
    (project.dir / "pyproject.toml").write_text((project.dir / "pyproject.toml").read_text().replace('"alpha"', '"alpha", "gamma"'))
    before = tree(project.dir)
    for more in ({}, {"CI": "1"}):
        equal(project.refused("PX120", "sandbox", "build", **more)["reason"], "missing_lock", "a lock that holds not all")
    check(tree(project.dir) == before, "something was written")
    project.write(ALPHA).synced()
    subprocess.run(["rm", "-rf", "--", str(project.dir / ".px")], check=True)
    equal(project.refused("PX201", "sandbox", "build", CI="1")["reason"], "missing_env", "frozen, without an environment")
    equal(project.build()["cached"], False, "otherwise it is made")
    check(not (project.dir / ".px").exists(), "a reader wrote the project's state")


# ---- running --------------------------------------------------------------------------------------------------------


def run_all(options):
    leaks.become_subreaper()
    world = World(options.build, options.build / "work")
    return tell((f.__name__, *verdict_of(f, world)) for f in chosen(TESTS, options.only))


def main():
    options = parser("build").parse_args()
    if options.published:
        return run_all(options)
    scripts = [*(HERE / name for name in ("projects.py", "python_base.py", "elf.py")), HERE.parent / "bases/debs.py", HERE.parent / "envs/wheels.py",
               HERE.parent / "leaks.py"]
    top = publish("projects", built(options.build, "px-main", "px-layer", "px-fetch", "px-net"), scripts, options.uid)
    return start_again(top, "projects/projects.py", options)


if __name__ == "__main__":
    sys.exit(main())
