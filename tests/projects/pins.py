"""pins.py - what px.lock pins of the system, and that one commit is one image whatever the archive has that day."""

import hashlib
import json
import shutil
import tomllib

import debs
from cases import check, test
from pack_place import commit, make, pack
from projects import NOWHERE, Project, equal

NAMES = ("tzdata", "libpq5")


def later(w, name, keep):
    """The archive of another day: two packages are newer. keep: the old ones are still to be had."""
    archive = debs.Archive(w.top / name)
    archive.packages = dict(w.archive.packages)
    for package in NAMES if keep else ():
        archive.packages[f"{package}-before"] = w.archive.packages[package]
    archive.put("tzdata", {"usr/share/zoneinfo/newer": b"2\n"}, version="2.0")
    archive.put("libpq5", {"lib/px-pq/libpq.so.5": b"newer\n"}, version="2.0", depends="libfake1 (>= 1)")
    return archive.publish()


def day(archive):
    return {"PX_APT_MIRROR": archive.address, "PX_APT_SECURITY_MIRROR": archive.address}


def locked(w, **more):
    """A project with a px.lock, on a machine that has the base."""
    project = w.project(**more)
    (project.dir / "requirements.txt").unlink()
    (project.dir / "main.py").write_text("print('runs')\n")
    return project


def clone(w, project, name):
    """The same commit on a machine that has nothing."""
    other = Project(w, w.top / name / "demo", w.top / name / "home")
    for file in ("pyproject.toml", "px.lock", "main.py"):
        shutil.copy(project.dir / file, other.dir / file)
    return other


def system(project):
    return tomllib.loads((project.dir / "px.lock").read_text())["system"]


@test
def one_commit_is_one_image_on_any_day(w):
    project = locked(w)
    project.run("sandbox", "add", "postgres")
    project.run("sync")
    equal((system(project)["base"], system(project)["from"], system(project)["capabilities"]), ("debian-12", "debian bookworm", []), "the base alone")
    base = json.loads(project.run("sandbox", "base", "lock", cwd=w.top).stdout)["packages"]
    equal(system(project)["base_packages"], [{key: row[key] for key in ("name", "version", "arch", "sha256", "size")} for row in base], "its packages")
    equal((project.explain()["sbx_id"], project.explain()["pinned"]), (None, False), "before the archive was asked")
    first = project.build()
    unpinned = project.run("pack", "image")
    check("run `px sync` and commit it" in unpinned.stderr, unpinned.stderr)
    done = project.ask("sync")
    equal((done["message"], done["details"]["action"], done["details"]["wrote_lock"]), ("px sync: wrote px.lock", "pin_system", True), "sync")
    text = (project.dir / "px.lock").read_bytes()
    equal([row["name"] for row in system(project)["packages"]], ["libfake1", "libpq5"], "packages of the capabilities")
    check(str(w.top).encode() not in text and b"file:" not in text, "a place of this machine is in the lock")
    equal(project.ask("sync")["details"]["action"], "noop", "a second sync")
    equal((project.dir / "px.lock").read_bytes(), text, "the lock")
    equal((project.explain()["sbx_id"], project.explain()["pinned"]), (first["sbx_id"], True), "explained")
    check("pinned by px.lock" in project.run("sandbox", "explain").stdout, "for a person")
    again = project.build(**NOWHERE)
    equal((again["cached"], again["image_digest"]), (True, first["image_digest"]), "by its pins")
    commit(project.dir)
    packed = pack(project, **NOWHERE)
    check("unpinned" not in packed, f"{packed.get('unpinned')}")

    other, moved = clone(w, project, "another-machine"), later(w, "moved", True)
    other.run("sync", "--frozen", **day(moved))
    second = other.build(**day(moved))
    equal((second["sbx_id"], second["image_digest"]), (first["sbx_id"], first["image_digest"]), "another day, another machine")
    equal(pack(other, CI="1", **NOWHERE)["image_digest"], packed["image_digest"], "packed there")
    equal((other.dir / "px.lock").read_bytes(), text, "the lock there")
    names = [row["name"] for row in other.ask("sandbox", "base", "list", cwd=w.top)["bases"]]
    equal(names, [str(other.dir / "px.lock")], "what a project pins is nobody else's debian-12")
    other.run("sandbox", "clean")
    equal(other.build(**NOWHERE)["cached"], True, "after what has no name was removed")
    away = other.dir.rename(other.dir.parent / "away")
    check("base" in {row["kind"] for row in other.ask("sandbox", "clean", "--dry-run", cwd=w.top)["removed"]}, "the base of a project that is gone")
    away.rename(other.dir)

    # The same without pins: it is read as ever, and is another one.
    (other.dir / "px.lock").write_bytes(text.split(b"\n[system]")[0])
    loose = other.build(PX_HOME=str(w.top / "loose-home"), **day(moved))
    check(loose["sbx_id"] != first["sbx_id"] and loose["image_digest"] != first["image_digest"], "the archive moved, and the image did not")
    other.run("sync", "--frozen")
    check(b"[system]" not in (other.dir / "px.lock").read_bytes(), "a frozen sync wrote pins")


@test
def pins_that_the_archive_has_dropped(w):
    project, gone = locked(w), later(w, "dropped", False)
    project.run("sandbox", "add", "postgres")
    project.run("sync")
    first = project.build()
    project.run("sync")
    lock = (project.dir / "px.lock").read_bytes()
    forced = project.build("--force", **day(gone))
    equal((forced["cached"], forced["image_digest"]), (False, first["image_digest"]), "of what the store has")

    # One that is lost and still to be had is fetched, the dropped ones are here.
    rows = {row["name"]: project.home / "store/blobs/sha256" / row["sha256"] for row in system(project)["base_packages"] + system(project)["packages"]}
    for name in ("libfake1", "netbase"):
        rows[name].unlink()
    pack(project, "--allow-dirty", "--check-repro", **day(gone))
    check(rows["libfake1"].exists() and rows["netbase"].exists(), "they are not back")

    other = clone(w, project, "too-late")
    other.run("sync", "--frozen", **day(gone))
    details = other.refused("PX903", "sandbox", "build", **day(gone))
    equal(details["reason"], "package_gone", f"{details}")
    check("tzdata" in json.dumps(details) and "px update --system" in details["fix"][0], f"{details}")
    equal(json.loads(other.run("--json", "update", "--system", status=1, CI="1", **day(gone)).stdout)["details"]["reason"], "frozen", "in a pipeline")
    equal((other.dir / "px.lock").read_bytes(), lock, "the lock")

    answer = other.ask("update", "--system", **day(gone))
    equal({row["name"]: (row["from"], row["to"]) for row in answer["details"]["changed"]}, {name: ("1.0", "2.0") for name in NAMES}, "what moved")
    check(answer["message"] == "px update: 2 packages changed" and (other.dir / "px.lock").read_bytes() != lock, answer["message"])
    second = other.build(**NOWHERE)
    check(second["cached"] and second["sbx_id"] != first["sbx_id"] and other.explain()["pinned"], "it was not built of what it pins")
    said = other.run("update", "--system", **day(gone)).stdout
    equal(said, "px update: nothing is newer than what px.lock has\n", "once more")


@test
def pins_outlive_a_new_lock_and_are_not_believed_blindly(w):
    project = locked(w)
    project.run("sync")
    before = system(project)
    manifest = project.dir / "pyproject.toml"
    manifest.write_text(manifest.read_text().replace('version = "1.2.3"', 'version = "1.2.3"\nrequires-python = ">=3.11,<4"'))
    equal(project.ask("sync")["details"]["action"], "resolve_lock", "sync")
    equal(system(project), before, "the pins after another manifest")
    lock = project.dir / "px.lock"
    text = lock.read_text()
    for wrong in (text.replace('name = "tzdata"', 'name = "-o"'), text.replace('name = "tzdata"', 'name = "netbase"'),
                  text.replace("capabilities = []", 'capabilities = ["bogus"]')):
        lock.write_text(wrong)
        project.refused("PX121", "sandbox", "build")
    lock.write_text(text.replace(f'arch = "{debs.architecture()}"\nfrom', 'arch = "riscv64"\nfrom'))
    equal(project.build()["cached"], False, "of another processor: as if nothing was pinned")
    equal(project.explain()["pinned"], False, "explained")
    # A hash that no package has is not built from what is called the same.
    lock.write_text(text.replace(before["base_packages"][0]["sha256"], "0" * 64))
    details = project.refused("PX903", "sandbox", "build")
    equal(details["reason"], "package_gone", f"{details}")
    lock.write_text(text)
    check(project.build()["sbx_id"] and project.explain()["pinned"], "as it was")


@test
def check_repro_begins_at_the_packages(w):
    project = make(w, sandbox="[tool.px.sandbox.capabilities]\npostgres = true\n")
    first = pack(project)
    blobs = project.home / "store/blobs/sha256"
    base = json.loads(project.run("sandbox", "base", "lock", cwd=w.top).stdout)["packages"]
    record = json.loads(project.record(first).read_text())
    wheels = [hashlib.sha256(path.read_bytes()).hexdigest() for path in project.wheels.iterdir()]
    archives = [blobs / name for name in [row["sha256"] for row in base + record["lock"]["packages"]] + wheels]
    for path in archives:
        path.unlink(missing_ok=True)
    equal(project.refused("PX903", "pack", "image", "--check-repro", **NOWHERE)["reason"], "archive_unreachable", "without an archive")
    done = pack(project, "--check-repro")
    equal((done["image_digest"], done["rebuilt"]), (first["image_digest"], ["base", "system", "env"]), "made again")
    missing = [path.name for path in archives if not path.exists()]
    check(not missing, f"it was not made of {missing}")
