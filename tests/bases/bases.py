#!/usr/bin/python3
"""bases.py [--as UID] [--real] [--only NAME...] BUILD - bases, capability layers and images, by the command line.

Most of it runs on a tiny distribution made by hand (debs.py), without a network. --real builds debian-12 from Debian's archive, once for
all parts of a run, and looks at that one. Prints `ok NAME`, `not ok NAME: why`, `skip NAME: why`, and last "N passed, N failed, N skipped".
"""

import contextlib
import functools
import http.server
import json
import os
import random
import re
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
sys.dont_write_bytecode = True
import debs  # noqa: E402
import leaks  # noqa: E402
import real as shared  # noqa: E402
from cases import TESTS, Skip, built, check, chosen, parser, publish, start_again, tell, test, verdict_of  # noqa: E402

LIMIT_S = 900
REAL = []
ORACLE_UID = 1200


def real(function):
    REAL.append(function)
    return function


class World:
    """px with a PX_HOME, and the tiny archive. One base is built for all tests, in the first home."""

    def __init__(self, programs, top):
        self.px, self.top = str(programs / "px"), Path(top)
        self.archive = debs.tiny(self.top / "mirror")
        self.base = None

    def environment(self, home, **more):
        mirror = self.archive.address if self.archive else ""
        return {"PATH": os.environ["PATH"], "HOME": str(self.top), "TMPDIR": str(self.top), "PX_HOME": str(home), "LANG": "C.UTF-8",
                "PX_APT_MIRROR": mirror, "PX_APT_SECURITY_MIRROR": mirror} | more

    def run(self, home, *words, status=0, before=(), **more):
        done = subprocess.run([*before, self.px, *words], stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S, check=False,
                              cwd=self.top, env=self.environment(home, **more), text=True)
        if status is not None:
            check(done.returncode == status, f"px {' '.join(words)[:120]}: exit {done.returncode}: {(done.stdout + done.stderr)[-600:]}")
        return done

    def ask(self, home, *words, **more):
        return json.loads(self.run(home, "--json", *words, **more).stdout)

    def refused(self, home, code, *words, **more):
        done = self.run(home, "--json", *words, status=None, **more)
        check(done.returncode != 0, f"px {' '.join(words)[:120]} worked")
        answer = json.loads(done.stdout)
        got = answer["details"]["code"]
        check(got in (code if isinstance(code, tuple) else (code,)), f"px {' '.join(words)[:120]}: {got} instead of {code}: {answer}")
        return answer

    def need_tiny(self):
        if not self.archive:
            raise Skip("the tiny distribution is made of a Debian 12 host's own programs")

    def home(self, name):
        return self.top / name

    def tiny_base(self):
        """The home that has the base, built by whoever comes first."""
        self.need_tiny()
        if not self.base:
            self.base = self.ask(self.home("first"), "sandbox", "base", "build")
        return self.home("first")

    def copy_home(self, name):
        """A home of the test's own that has the base already."""
        subprocess.run(["cp", "-a", "--", str(self.tiny_base()), str(self.home(name))], check=True)
        return self.home(name)


def tree_of(home, answer):
    return Path(home) / "store/trees" / answer["tree"] / "root"


def clean(home):
    """Nothing half done is left, and all that is there is what it is called."""
    left = [entry for place in ("tmp", "trash") for entry in os.listdir(Path(home) / "store" / place)]
    check(not left, f"the store has leftovers: {left}")


# ---- bases ----------------------------------------------------------------------------------------------------------


@test
def base_is_built(w):
    home = w.tiny_base()
    check(w.base["name"] == "debian-12" and w.base["variant"] == "py311" and len(w.base["packages"]) == 7, f"{w.base}")
    root = tree_of(home, w.base)
    for name in ("bin", "sbin", "lib", "lib64"):
        check(os.readlink(root / name) == f"usr/{name}", f"/{name} is not a link")
    check((root / "usr/share/doc/tiny/copyright").exists(), "the licence is gone")
    gone = ["usr/share/doc/tiny/README", "usr/share/man/man1/tiny.1", "usr/share/locale/de", "var/log/dpkg.log", "var/lib/dpkg/status-old", "px",
            "usr/sbin/policy-rc.d", "home/sandbox", "etc/machine-id", "dev/null"]
    there = [name for name in gone if (root / name).exists()]
    check(not there, f"the base still has {there}")
    check((root / "etc/resolv.conf").read_text() == "" and "localhost" in (root / "etc/hosts").read_text(), "files for engines to cover")
    check("Package: px-tiny\nEssential: yes\nStatus: install ok installed" in (root / "var/lib/dpkg/status").read_text(), "dpkg's status")
    check((root / "etc/installed-by").read_text() == "0\n", "scripts were not run as root of their box")
    check((root / "etc/interfaces-seen").read_text() == "1\n", "a script saw another network than the loopback")
    odd = [str(p) for p in root.rglob("*") if not p.is_symlink() and (p.stat().st_mode & 0o6000 or not stat.S_IFMT(p.stat().st_mode) & 0o140000)]
    check(not odd, f"set-id bits or devices: {odd[:3]}")
    clean(home)


@test
def base_runs(w):
    home = w.tiny_base()
    check(w.run(home, "exec", "--base", "debian-12", "-c", "cat /etc/fixture").stdout == "of the base\n", "a box on the base")
    check(w.run(home, "exec", "--base", w.base["base_os_oid"], "-c", "echo $((6*7))").stdout == "42\n", "a box on the base by its id")


@test
def base_is_listed_and_cached(w):
    home = w.tiny_base()
    rows = w.ask(home, "sandbox", "base", "list")
    check([row["name"] for row in rows["bases"]] == ["debian-12"] and rows["bases"][0]["base_os_oid"] == w.base["base_os_oid"], f"{rows}")
    check({row["name"]: row["can_build"] for row in rows["known"]} == {"debian-12": True, "debian-13": True, "alpine-3.20": False}, f"{rows['known']}")
    again = w.ask(home, "sandbox", "base", "build", PX_APT_MIRROR="[trusted=yes] file:///nowhere")
    check(again["cached"] is True and again["base_os_oid"] == w.base["base_os_oid"], "it was built again")


@test
def base_is_the_same_wherever_and_by_whomever(w):
    w.tiny_base()
    other = w.top / "a:strange,home \u00fc"
    odd = dict(TZ="Asia/Kathmandu", LC_ALL="C", SOURCE_DATE_EPOCH="1700000000", PYTHONHASHSEED="7")
    answer = w.ask(other, "sandbox", "base", "build", before=("sh", "-c", 'umask 077; exec "$@"', "sh"), **odd)
    check(answer["base_os_oid"] == w.base["base_os_oid"] and answer["layer"] == w.base["layer"], f"{answer['base_os_oid']}")
    if os.geteuid() != 0:
        return
    place = Path(tempfile.mkdtemp(prefix="bases.", dir=w.top))
    os.chown(place, ORACLE_UID, ORACLE_UID)
    drop = ("setpriv", "--reuid", str(ORACLE_UID), "--regid", str(ORACLE_UID), "--clear-groups", "--")
    answer = w.ask(place / "home", "sandbox", "base", "build", before=drop)
    check(answer["base_os_oid"] == w.base["base_os_oid"], "an ordinary user's base is another one")


@test
def base_is_built_again_offline(w):
    home = w.copy_home("offline")
    lock = w.run(home, "sandbox", "base", "lock").stdout
    rows = {row["name"]: row for row in json.loads(lock)["packages"]}
    check(len(rows) == 7 and set(rows["px-tiny"]) == {"arch", "name", "sha256", "size", "version"}, f"{rows.keys()}")
    (w.top / "base.lock").write_text(lock)
    nowhere = dict(PX_APT_MIRROR="[trusted=yes] file:///nowhere", PX_APT_SECURITY_MIRROR="[trusted=yes] file:///nowhere")
    answer = w.ask(home, "sandbox", "base", "build", "--force", **nowhere)
    check(answer["base_os_oid"] == w.base["base_os_oid"] and "cached" not in answer, f"{answer.get('cached')}")
    removed = w.ask(home, "sandbox", "base", "remove", "debian-12")
    check(removed["removed"] is True, f"{removed}")
    w.refused(home, "PX900", "exec", "--base", "debian-12", "true")
    answer = w.ask(home, "sandbox", "base", "build", "--lock", str(w.top / "base.lock"), **nowhere)
    check(answer["base_os_oid"] == w.base["base_os_oid"], "the lock gave another base")


@test
def base_of_a_lock_on_another_machine(w):
    home = w.tiny_base()
    lock = json.loads(w.run(home, "sandbox", "base", "lock").stdout)
    good, bad = w.top / "good.lock", w.top / "bad.lock"
    good.write_text(json.dumps(lock))
    check(w.ask(w.home("locked"), "sandbox", "base", "build", "--lock", str(good))["base_os_oid"] == w.base["base_os_oid"], "another base")
    for change, code in ((lambda p: p.update(sha256="0" * 64), "PX903"), (lambda p: p.update(version="9.9"), "PX903"),
                         (lambda p: p.update(name="-x"), "PX811")):
        wrong = json.loads(good.read_text())
        change(wrong["packages"][3])
        bad.write_text(json.dumps(wrong))
        w.refused(w.home("wrong"), code, "sandbox", "base", "build", "--lock", str(bad))
    w.refused(w.home("wrong"), "PX007", "sandbox", "base", "build", "--lock", str(w.top / "not-there"))
    clean(w.home("wrong"))


@test
def packages_that_changed_on_the_way_are_refused(w):
    w.need_tiny()
    other = debs.Archive(w.top / "liar")
    other.packages = dict(w.archive.packages)
    other.publish().lie("tzdata")
    w.refused(w.home("lied"), ("PX903", "PX800"), "sandbox", "base", "build", PX_APT_MIRROR=other.address, PX_APT_SECURITY_MIRROR=other.address)
    clean(w.home("lied"))
    # An archive without a signature is not believed unless the caller says so.
    bare = other.address.removeprefix("[trusted=yes] ")
    answer = w.refused(w.home("lied"), "PX903", "sandbox", "base", "build", PX_APT_MIRROR=bare, PX_APT_SECURITY_MIRROR=bare)
    check("sign" in json.dumps(answer).lower(), f"{answer}")


@test
def bases_that_cannot_be_had(w):
    home = w.home("none")
    w.refused(home, "PX900", "sandbox", "base", "build", "debian-99")
    w.refused(home, "PX900", "sandbox", "base", "build", "alpine-3.20")
    w.refused(home, "PX900", "sandbox", "build", "--base", "alpine-3.20")
    w.refused(home, "PX900", "sandbox", "base", "remove", "debian-12")
    w.refused(home, "PX900", "exec", "--base", "debian-12", "true")
    w.refused(home, "PX002", "sandbox", "base", "build", PX_APT_MIRROR="http://a b\ndeb x")
    w.refused(home, "PX903", "sandbox", "base", "build", PX_APT_MIRROR="[trusted=yes] file:///nowhere")


@test
def a_package_that_fails_leaves_nothing(w):
    w.need_tiny()
    home = w.home("failing")
    other = debs.Archive(w.top / "failing-mirror")
    other.packages = dict(w.archive.packages)
    other.put("tzdata", {}, scripts={"postinst": "#!/bin/sh\necho 'no such luck' >&2\nexit 3\n"})
    other.publish()
    answer = w.refused(home, "PX903", "sandbox", "base", "build", PX_APT_MIRROR=other.address, PX_APT_SECURITY_MIRROR=other.address)
    check("tzdata" in json.dumps(answer), f"{answer}")
    clean(home)
    check(w.ask(home, "sandbox", "base", "list")["bases"] == [], "a base is there")
    check(w.ask(home, "sandbox", "base", "build")["name"] == "debian-12", "and then it works")


# ---- capabilities and images ----------------------------------------------------------------------------------------


@test
def capability_becomes_a_layer(w):
    home = w.copy_home("image")
    image = w.ask(home, "sandbox", "build", "--with", "postgres", "--tag", "demo:1")
    check(image["cached"] is False and image["capabilities"] == ["postgres"] and image["base_os_oid"] == w.base["base_os_oid"], f"{image}")
    check([row["name"] for row in image["lock"]["packages"]] == ["libfake1", "libpq5"], f"{image['lock']}")
    check(len(image["layers"]) == 3 and image["layers"][0] == w.base["layer"], "base, capabilities, list of packages")
    record = json.loads((home / "sandbox/images" / image["sbx_id"] / "manifest.json").read_text())
    for member in ("sbx_id", "base_os_oid", "profile_oid", "capabilities", "image_digest", "created_at", "px_version", "sbx_version"):
        check(member in record, f"the record has no {member}")
    look = w.run(home, "exec", "--base", image["sbx_id"], "-c", "cat /usr/lib/px-pq/libpq.so.5 /usr/lib/libfake.so.1 /etc/pq; ls /etc/doomed /usr/share/doc/libpq5; "
                 "ls -l /usr/lib/px-pq | grep -c rws; ls -d /lib; [ -L /lib ] && echo link", status=None)
    check(look.stdout.split("\n")[:3] == ["not really", "needed", "0"] and "copyright" in look.stdout and "NEWS" not in look.stdout, look.stdout)
    check("/etc/doomed" in look.stderr and look.stdout.rstrip().endswith("0\n/lib\nlink"), look.stdout + look.stderr)
    check(w.run(home, "exec", "--base", "demo:1", "-c", "ls /etc/pq").stdout == "/etc/pq\n", "a box on the image by its tag")
    sbom = json.loads(w.run(home, "exec", "--base", image["sbx_id"], "-c", "cat /usr/share/px/sbom.spdx.json").stdout)
    versions = {row["name"]: row["versionInfo"] for row in sbom["packages"]}
    check(versions["libfake1"] == "1:2.0~rc1+b1" and "px-tiny" in versions and sbom["spdxVersion"] == "SPDX-2.3", f"{versions}")
    check(w.run(home, "exec", "--base", "debian-12", "-c", "ls /etc/doomed").stdout == "/etc/doomed\n", "the base changed")
    again = w.ask(home, "sandbox", "build", "--with", "postgres", PX_APT_MIRROR="[trusted=yes] file:///nowhere")
    check(again["cached"] is True and again["image_digest"] == image["image_digest"] and again["lock"] == image["lock"], f"{again}")
    forced = w.ask(home, "sandbox", "build", "--with", "postgres", "--force", PX_APT_MIRROR="[trusted=yes] file:///nowhere")
    check(forced["cached"] is False and forced["image_digest"] == image["image_digest"], "built again it is another one")
    clean(home)


@test
def image_is_the_same_elsewhere(w):
    one = w.ask(w.copy_home("here"), "sandbox", "build", "--with", "yaml,postgres")
    two = w.ask(w.home("there"), "sandbox", "build", "--with", "postgres", "--with", "yaml,postgres", TZ="Asia/Tokyo")
    check(one["sbx_id"] == two["sbx_id"] and one["image_digest"] == two["image_digest"], f"{one['image_digest']} {two['image_digest']}")
    plain = w.ask(w.home("there"), "sandbox", "build")
    check(plain["sbx_id"] != one["sbx_id"] and plain["capabilities"] == [] and len(plain["layers"]) == 2, f"{plain}")
    check(w.run(w.home("there"), "sandbox", "build", "--with", "yaml,postgres").stdout.count("postgres,yaml") == 1, "words for a person")


@test
def image_is_written(w):
    home = w.copy_home("written")
    for name, words in (("plain.tar", ()), ("zstd.tar", ("--compression", "zstd")), ("docker.tar", ("--format", "docker-archive")), ("layout", ())):
        answer = w.ask(home, "sandbox", "build", "--with", "yaml", "--out", str(w.top / name), "--tag", "px.local/demo:1", *words)
        check(answer["out"] == str(w.top / name), f"{answer}")
    with tarfile.open(w.top / "plain.tar") as archive:
        names = archive.getnames()
        check(any(name.endswith("index.json") for name in names) and any(answer["image_digest"][7:] in name for name in names), f"{names}")
    with tarfile.open(w.top / "docker.tar") as archive:
        check("manifest.json" in archive.getnames(), f"{archive.getnames()}")
    check((w.top / "layout/oci-layout").exists(), "no layout")
    for kind, name in (("oci-archive", "plain.tar"), ("oci-archive", "zstd.tar"), ("docker-archive", "docker.tar"), ("oci", "layout")):
        if shutil.which("skopeo"):
            done = subprocess.run(["skopeo", "inspect", "--raw", f"{kind}:{w.top / name}"], capture_output=True, text=True, check=False, timeout=LIMIT_S)
            check(done.returncode == 0, f"skopeo: {done.stderr[-200:]}")
    w.refused(home, "PX001", "sandbox", "build", "--compression", "zstd")
    w.refused(home, "PX001", "sandbox", "build", "--push")
    w.refused(home, "PX002", "sandbox", "build", "--compression", "rar")
    w.refused(home, "PX002", "sandbox", "build", "--out", str(w.top / "y"), "--format", "zip")


def another_day(w, name, **packages):
    """The archive with other packages: name=(version, what is in it)."""
    archive = debs.Archive(w.top / name)
    archive.packages = dict(w.archive.packages)
    for package, (version, data) in packages.items():
        archive.put(package, {f"usr/share/{package}": data}, version=version)
    address = archive.publish().address
    return dict(PX_APT_MIRROR=address, PX_APT_SECURITY_MIRROR=address)


@test
def one_id_is_one_image(w):
    words = ("sandbox", "build", "--with", "postgres")
    newer = another_day(w, "newer", libpq5=("2.0", b"newer\n"))
    other = another_day(w, "other", libpq5=("1.0", b"the same version, other bytes\n"))
    home = w.copy_home("days")
    seen = [w.ask(home, *words)]
    seen += [w.ask(w.copy_home(name), *words, **day) for name, day in (("days-newer", newer), ("days-other", other))]
    check(len({image["sbx_id"] for image in seen}) == 3 and len({image["image_digest"] for image in seen}) == 3, f"{seen}")
    # What the archive said holds until it is asked again, and then the image is the one that others have.
    check(w.ask(home, *words, **newer)["image_digest"] == seen[0]["image_digest"], "another image without a word")
    nowhere = dict(PX_APT_MIRROR="[trusted=yes] file:///nowhere", PX_APT_SECURITY_MIRROR="[trusted=yes] file:///nowhere")
    w.refused(home, "PX903", "sandbox", "update", **nowhere)
    check(w.ask(home, *words, **nowhere)["image_digest"] == seen[0]["image_digest"], "forgotten without an answer")
    for image, day in ((seen[1], newer), (seen[2], other), (seen[0], {})):
        w.run(home, "sandbox", "update", **day)
        again = w.ask(home, *words, **day)
        check((again["sbx_id"], again["image_digest"]) == (image["sbx_id"], image["image_digest"]), f"{again['sbx_id']}")
    clean(home)


@test
def update_brings_what_is_newer(w):
    home = w.copy_home("updated")
    w.run(home, "sandbox", "build", "--with", "yaml", "--tag", "demo:1")
    before = {name: w.ask(home, "exec", "--base", name, "-c", "cat /usr/share/tzdata; true")["stdout"] for name in ("debian-12", "demo:1")}
    check(set(before.values()) == {""}, f"{before}")
    answer = w.ask(home, "sandbox", "update")
    check([(row["kind"], row["name"], row["changed"]) for row in answer["updated"]] == [("base", "debian-12", False), ("image", "demo:1", False)], f"{answer}")
    newer = another_day(w, "newest", tzdata=("2.0", b"newer\n"), **{"libyaml-0-2": ("2.0", b"newer\n")})
    answer = w.ask(home, "sandbox", "update", **newer)
    check([(row["kind"], row["name"], row["changed"]) for row in answer["updated"]] == [("base", "debian-12", True), ("image", "demo:1", True)], f"{answer}")
    check(answer["updated"][0]["from"] == w.base["base_os_oid"], f"{answer}")
    said = w.run(home, "exec", "--base", "demo:1", "-c", "cat /usr/share/tzdata /usr/share/libyaml-0-2").stdout
    check(said == "newer\nnewer\n", said)
    gone = {row["kind"] for row in w.ask(home, "sandbox", "clean")["removed"]}
    check({"base", "image"} <= gone, f"what was there before stays: {gone}")
    check(w.run(home, "exec", "--base", "debian-12", "-c", "cat /usr/share/tzdata").stdout == "newer\n", "the base after collecting")
    w.run(home, "sandbox", "status", "--verify")


@test
def capabilities_that_cannot_be_had(w):
    home = w.copy_home("cannot")
    answer = w.refused(home, "PX901", "sandbox", "build", "--with", "postgers")
    check("Write postgres." in json.dumps(answer), f"{answer}")
    answer = w.refused(home, "PX903", "sandbox", "build", "--with", "xml")
    check("libxml2" in json.dumps(answer), f"the archive has no such package: {answer}")
    root = w.top / "alpine"
    (root / "etc").mkdir(parents=True)
    (root / "bin").mkdir()
    (root / "bin/sh").write_text("#!/bin/true\n")
    (root / "etc/os-release").write_text("ID=alpine\nVERSION_ID=3.20.3\n")
    w.run(home, "sandbox", "base", "import", "alpine-3.20", str(root))
    answer = w.refused(home, "PX901", "sandbox", "build", "--base", "alpine-3.20", "--with", "postgres")
    check("postgres" in answer["message"] and "alpine-3.20" in answer["message"], f"{answer}")
    check(w.ask(home, "sandbox", "build", "--base", "alpine-3.20")["capabilities"] == [], "without capabilities it is an image like any other")
    check(len(w.ask(home, "sandbox", "capabilities")["capabilities"]) > 90, "the table")
    clean(home)


@test
def damaged_layer_is_made_again(w):
    home = w.copy_home("damaged")
    image = w.ask(home, "sandbox", "build", "--with", "yaml")
    nowhere = dict(PX_APT_MIRROR="[trusted=yes] file:///nowhere", PX_APT_SECURITY_MIRROR="[trusted=yes] file:///nowhere")
    for layer in image["layers"]:       # of the base, of the capabilities, of the list of packages
        blob = home / "store/blobs/sha256" / layer["digest"]
        blob.unlink()
        again = w.ask(home, "sandbox", "build", "--with", "yaml", **nowhere)
        check(again["image_digest"] == image["image_digest"] and blob.exists(), "the layer is not back")


@test
def a_base_that_was_changed_is_unpacked_again(w):
    """One that was built, one that was imported, an archive as a root: none is used as somebody else left it."""
    home = w.copy_home("changed")
    nowhere = dict(PX_APT_MIRROR="[trusted=yes] file:///nowhere", PX_APT_SECURITY_MIRROR="[trusted=yes] file:///nowhere")
    base = w.ask(home, "sandbox", "base", "list")["bases"][0]
    archive = w.top / "changed.tar"
    subprocess.run(["tar", "-C", str(tree_of(home, base)), "-cf", str(archive), "."], check=True)
    imported = w.ask(home, "sandbox", "base", "import", "mine", str(archive))
    for words in (("--base", "debian-12"), ("--base", "mine"), ("--rootfs", str(archive))):
        run = ("exec", *words, "-c", "cat /etc/fixture")
        check(w.run(home, *run).stdout == "of the base\n", f"{words}")
        for path in home.glob("store/trees/*/root/etc/fixture"):
            path.chmod(0o644)
            path.write_text("of somebody else\n")
        done = w.run(home, *run, **nowhere)
        check(done.stdout == "of the base\n", f"{words}: {done.stdout}")
        check(os.listdir(home / "store/corrupt"), "it is not in corrupt")
        w.run(home, "sandbox", "clean", **nowhere)
    # Without its layer it cannot be made again.
    (home / "store/blobs/sha256" / imported["layer"]["digest"]).unlink()
    (tree_of(home, imported) / "etc/fixture").write_text("of somebody else\n")
    answer = w.refused(home, "PX800", "exec", "--base", "mine", "-c", "true")
    check("base remove mine" in " ".join(answer["details"]["fix"]), f"{answer}")
    w.run(home, "sandbox", "base", "remove", "mine")


@test
def a_base_with_a_record_of_another_px(w):
    home = w.copy_home("another-px")
    base = w.ask(home, "sandbox", "base", "list")["bases"][0]
    path = home / "sandbox/bases" / base["base_os_oid"] / "manifest.json"
    good = path.read_text()
    for text, code in ((json.dumps(json.loads(good) | {"sbx_version": 999}), "PX904"), ("not JSON", "PX811")):
        path.write_text(text)
        answer = w.refused(home, code, "exec", "--base", "debian-12", "-c", "true")
        check(f"px sandbox delete {base['base_os_oid']}" in " ".join(answer["details"]["fix"]), f"{answer}")
        again = w.ask(home, "sandbox", "base", "build", "--force")
        check(again["base_os_oid"] == base["base_os_oid"] and json.loads(path.read_text())["sbx_version"] == 1, f"{again}")
    path.write_text("not JSON")
    w.run(home, "sandbox", "delete", "debian-12")
    check(not path.exists() and not w.ask(home, "sandbox", "base", "list")["bases"], "it is there after delete")
    check(w.ask(home, "sandbox", "base", "build")["base_os_oid"] == base["base_os_oid"], "built again")


# ---- kills, full disks, many at once --------------------------------------------------------------------------------


def kill_at_random(w, home, words, rounds):
    """kill -9 at moments spread over a whole run; then a run that is left alone."""
    for i in range(rounds):
        process = subprocess.Popen([w.px, *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=w.top,
                                   env=w.environment(home))
        try:
            process.wait(timeout=random.random() * 0.4 * (i + 1))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
    return w.ask(home, *words)


@test
def killed_at_any_moment_it_can_be_built_again(w):
    w.tiny_base()
    home = w.home("killed")
    answer = kill_at_random(w, home, ("sandbox", "base", "build"), 6)
    check(answer["base_os_oid"] == w.base["base_os_oid"], "another base")
    image = kill_at_random(w, home, ("sandbox", "build", "--with", "postgres"), 6)
    check(w.run(home, "exec", "--base", image["sbx_id"], "-c", "cat /etc/pq").stdout == "0\n", "the image is not whole")
    w.run(home, "sandbox", "status", "--verify")
    w.run(home, "sandbox", "gc")
    clean(home)


class Halting(http.server.SimpleHTTPRequestHandler):
    """A mirror that sends one package, and the others when it is told to."""

    asked, go, alone = [], threading.Event(), threading.Lock()

    def do_GET(self):
        if self.path.endswith(".deb"):
            with self.alone:
                self.asked.append(self.path)
                first = len(self.asked) == 1
            if not first:
                self.go.wait(LIMIT_S)
        with contextlib.suppress(OSError):
            super().do_GET()

    def log_message(self, *_):
        pass


@test
def what_was_fetched_stays_after_an_interruption(w):
    w.tiny_base()
    home = w.home("halted")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Halting, directory=w.archive.top))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    mirror = f"[trusted=yes] http://127.0.0.1:{server.server_port}/"
    more = dict(PX_APT_MIRROR=mirror, PX_APT_SECURITY_MIRROR=mirror, no_proxy="127.0.0.1")
    try:
        process = subprocess.Popen([w.px, "sandbox", "base", "build"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, cwd=w.top, env=w.environment(home, **more))
        until = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < until and not any((home / "store/blobs").rglob("[0-9a-f]" * 64)):
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        process.wait(LIMIT_S)
        check(any((home / "store/blobs").rglob("[0-9a-f]" * 64)), f"of {len(Halting.asked)} packages none was kept")
        first, Halting.asked[:] = Halting.asked[0], []
        Halting.go.set()
        answer = w.ask(home, "sandbox", "base", "build", **more)
        check(answer["base_os_oid"] == w.base["base_os_oid"], "another base")
        check(Halting.asked and first not in Halting.asked, f"{first} was fetched again: {Halting.asked}")
    finally:
        Halting.go.set()
        server.shutdown()
        server.server_close()
    w.run(home, "sandbox", "gc")
    clean(home)


@test
def many_ask_for_the_same_and_one_builds(w):
    home = w.copy_home("many")
    processes = [subprocess.Popen([w.px, "--json", "sandbox", "build", "--with", "postgres,yaml"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, cwd=w.top, env=w.environment(home), text=True) for _ in range(8)]
    done = [process.communicate(timeout=LIMIT_S) for process in processes]
    check(all(process.returncode == 0 for process in processes), f"{[err[-300:] for _, err in done if err]}")
    answers = [json.loads(out) for out, _ in done]
    check(len({answer["image_digest"] for answer in answers}) == 1, "several images")
    check(sorted(answer["cached"] for answer in answers) == [False] + [True] * 7, "it was built more than once")
    clean(home)


@test
def full_disk_is_said_and_harms_nothing(w):
    w.need_tiny()
    if os.geteuid() != 0:
        raise Skip("a small file system of its own needs root")
    home = w.home("full")
    home.mkdir()
    size = sum(len(data) for _, data in w.archive.packages.values())
    # In one mount namespace: too small for the packages, for the files, for the layer; then large enough.
    sizes = [size // 2, size * 2, size * 4, size * 6]
    steps = "".join(f'mount -o remount,size={n} "$1"; "$2" --json sandbox base build || true; echo; ls -A "$1/store/tmp"; echo =\n' for n in sizes)
    text = f'mount -t tmpfs -o mode=0700 none "$1" || exit 77\n{steps}mount -o remount,size=2g "$1"; "$2" --json sandbox base build; "$2" sandbox status --verify >&2'
    done = subprocess.run(["unshare", "--mount", "sh", "-c", text, "sh", str(home), w.px], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=LIMIT_S, check=False, env=w.environment(home), cwd=w.top)
    if done.returncode == 77:
        raise Skip("no tmpfs can be mounted here")
    check(done.returncode == 0, f"exit {done.returncode}: {done.stdout[-400:]} {done.stderr[-300:]}")
    parts = done.stdout.split("=\n")
    codes = set()
    for part in parts[:-1]:
        line, _, left = part.partition("\n")
        answer = json.loads(line)
        check(not left.strip(), f"left in the store: {left}")
        if "details" in answer:
            codes.add(answer["details"]["code"])
    check(codes and codes <= {"PX903", "PX810"}, f"{codes}: {done.stdout[:600]}")
    last = json.loads(parts[-1])
    check(last["name"] == "debian-12" and (not w.base or last["base_os_oid"] == w.base["base_os_oid"]), "after that it is another base")


# ---- the real one ---------------------------------------------------------------------------------------------------


class RealWorld(World):
    """On the base that all parts of a run share (real.py)."""

    def __init__(self, programs, top):
        super().__init__(programs, top)
        self.archive, self.ready = None, None

    def environment(self, home, **more):
        plain = {name: value for name, value in super().environment(home).items() if not name.startswith("PX_APT_")}
        return plain | shared.environment() | more

    def built(self):
        if not self.ready:
            self.ready, self.base = shared.home(self.px, self.top)
        return self.ready


@real
def debian_is_built(w):
    home = w.built()
    check(80 < len(w.base["packages"]) < 110, f"{len(w.base['packages'])} packages")
    check(re.match(r"Python 3\.11\.", w.run(home, "exec", "--base", "debian-12", "--", "python3", "-V").stdout), "python3 -V")
    text = "import ssl, sqlite3, ctypes, zoneinfo, lzma, bz2; print(ssl.create_default_context().cert_store_stats()['x509'] > 50, zoneinfo.ZoneInfo('Europe/Paris'))"
    check(w.run(home, "exec", "--base", "debian-12", "--", "python3", "-c", text).stdout == "True Europe/Paris\n", "what wheels need")
    w.run(home, "exec", "--base", "debian-12", "--", "sh", "-c", "ldd /bin/ls && perl -e 'print 1' && openssl version && dpkg --audit")


@real
def debian_starts_python_from_byte_code(w):
    home = w.built()
    root = tree_of(home, w.base)
    codes = list(root.glob("usr/lib/python3*/**/*.pyc"))
    check(len(codes) > 300, f"{len(codes)} files of byte code")
    timed = [str(path) for path in codes if path.read_bytes()[4:8] != b"\1\0\0\0"]
    check(not timed, f"byte code that hangs on times: {timed[:3]}")
    said = w.run(home, "exec", "--base", "debian-12", "--", "python3", "-v", "-c", "import json, ssl").stderr
    fresh = re.findall(r"^# code object from (?!')/usr/lib/\S+", said, re.MULTILINE)
    check(not fresh, f"compiled at every start: {fresh[:3]}")


@real
def debian_is_the_same_again(w):
    home = w.built()
    again = w.ask(home, "sandbox", "base", "build", "--force", PX_APT_MIRROR="[trusted=yes] file:///nowhere")
    check(again["base_os_oid"] == w.base["base_os_oid"], "built again from its packages it is another one")
    w.run(home, "sandbox", "status", "--verify")


@real
def postgres_has_its_library(w):
    home = w.built()
    image = w.ask(home, "sandbox", "build", "--with", "postgres")
    text = "import ctypes; print(ctypes.CDLL('libpq.so.5').PQlibVersion() >= 150000)"
    check(w.run(home, "exec", "--base", image["sbx_id"], "--", "python3", "-c", text).stdout == "True\n", "libpq.so.5")
    bare = w.run(home, "exec", "--base", "debian-12", "--", "python3", "-c", text, status=1)
    check("libpq.so.5: cannot open shared object file" in bare.stderr, bare.stderr[-200:])
    check(w.ask(home, "sandbox", "build", "--with", "postgres", "--force")["image_digest"] == image["image_digest"], "another image")
    check(w.ask(home, "sandbox", "build", "--with", "ffi")["layers"][1:][0]["entries"] < 10, "the base has libffi: no layer of packages")


IN_BASE = set("libacl.so.1 libattr.so.1 libbz2.so.1.0 libcap.so.2 libcrypto.so.3 libdb-5.3.so libexpat.so.1 libffi.so.8 libgmp.so.10 liblzma.so.5 libncursesw.so.6 "
              "libpcre2-8.so.0 libreadline.so.8 libsqlite3.so.0 libssl.so.3 libsystemd.so.0 libtinfo.so.6 libudev.so.1 libz.so.1 libzstd.so.1".split())
NOT_IN_13 = {"libgssapi_krb5.so.2", "libk5crypto.so.3", "libkrb5.so.3", "liblz4.so.1"}


@real
def debian_13_is_a_base_too(w):
    """With another Python and other names of packages; what its capabilities ask for is in its archive."""
    home = w.built()
    base = w.ask(home, "sandbox", "base", "build", "debian-13")
    check((base["name"], base["variant"], base["os_release"]["version_id"]) == ("debian-13", "py313", "13"), f"{base}"[:400])
    text = "import sys, ssl, sqlite3, ctypes, zoneinfo, lzma, bz2; print(sys.version_info[:2], ssl.create_default_context().cert_store_stats()['x509'] > 50)"
    check(w.run(home, "exec", "--base", "debian-13", "--", "python3.13", "-c", text).stdout == "(3, 13) True\n", "its Python")
    w.run(home, "exec", "--base", "debian-13", "--", "sh", "-c", "ldd /bin/ls && perl -e 'print 1' && openssl version && dpkg --audit")
    timed = [str(path) for path in tree_of(home, base).glob("usr/lib/python3*/**/*.pyc") if path.read_bytes()[4:8] != b"\1\0\0\0"]
    check(not timed, f"byte code that hangs on times: {timed[:3]}")
    have = {path.name for path in (tree_of(home, base) / "usr/lib/x86_64-linux-gnu").iterdir()}
    check(IN_BASE <= have and not NOT_IN_13 & have, f"libraries that data/sonames.def has in the base: {sorted(IN_BASE - have)}, {sorted(NOT_IN_13 & have)}")
    image = w.ask(home, "sandbox", "build", "--base", "debian-13", "--with", "postgres,ldap,tls")
    text = "import ctypes; print(ctypes.CDLL('libpq.so.5').PQlibVersion() >= 170000, bool(ctypes.CDLL('libldap.so.2')))"
    check(w.run(home, "exec", "--base", image["sbx_id"], "--", "python3", "-c", text).stdout == "True True\n", "libpq.so.5, libldap.so.2")
    w.refused(home, "PX901", "sandbox", "build", "--base", "debian-13", "--with", "htmltopdf")


@real
def debian_13_has_the_packages_of_the_table(w):
    home = w.built()
    place = w.top / "names"
    for name in ("lists/partial", "empty", "cache"):
        (place / name).mkdir(parents=True)
    (place / "status").touch()
    mirror = "[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian"
    (place / "list").write_text(f"deb {os.environ.get('PX_APT_MIRROR') or mirror} trixie main\n")
    (place / "conf").write_text(
        f'Dir::Etc::parts "{place}/empty"; Dir::Etc::sourcelist "{place}/list"; Dir::Etc::sourceparts "{place}/empty"; Dir::State "{place}";\n'
        f'Dir::State::lists "{place}/lists"; Dir::State::status "{place}/status"; Dir::Cache "{place}/cache"; APT::Sandbox::User "";\n'
        'Acquire::Languages "none"; Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";\n')

    def apt(*words):
        done = subprocess.run(words, env=os.environ | {"APT_CONFIG": str(place / "conf"), "LC_ALL": "C"}, capture_output=True, text=True, check=False, timeout=LIMIT_S)
        if done.returncode != 0:
            raise Skip(f"the archive of Debian 13 cannot be looked at: {done.stderr[-200:]}")
        return done.stdout

    apt("apt-get", "update")
    there = set(apt("apt-cache", "pkgnames").split())
    rows = w.ask(home, "sandbox", "capabilities")["capabilities"]
    asked = {(row["name"], word) for row in rows for words in row["packages"]["debian-13"].values() for word in words.split()}
    missing = sorted(pair for pair in asked if pair[1] not in there)
    check(len(asked) > 250 and not missing, f"{len(asked)} names, not there: {missing}")


# What the oracle has and px leaves out: devices and mount points, apt's own places, logs and backups, empty directories of examples.
# And what px makes and the oracle does not: byte code of its own kind, the oracle keeps what the packages' scripts compiled.
NOT_OURS = re.compile(r"dev/.*|etc/apt(/.*)?|etc/dpkg/dpkg\.cfg\.d/99mmdebstrap|etc/fstab|var/(cache|lib|log)/apt(/.*)?|var/cache/debconf/.*-old|"
                      r"var/lib/dpkg/(arch|lock|lock-frontend|status-old|diversions-old|triggers/Lock)|usr/share/doc/.*|.*/__pycache__(/.*)?|var/log/[^/]*|etc/\.pwd\.lock|\.?")
ORACLE = ("--variant=essential", "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr", "--include=usr-is-merged,python3,ca-certificates,libstdc++6,tzdata,netbase",
          '--aptopt=Apt::Install-Recommends "0"', "--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/locale/*",
          "--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-include=/usr/share/doc/*/copyright", "--dpkgopt=path-exclude=/usr/share/info/*",
          "--dpkgopt=path-exclude=/usr/share/lintian/*")


@real
def debian_has_what_mmdebstrap_makes(w):
    home = w.built()
    if not shutil.which("mmdebstrap") or os.geteuid() != 0:
        raise Skip("mmdebstrap is not here, or this is not root")
    target = w.top / "oracle.tar"
    done = subprocess.run(["unshare", "--mount", "mmdebstrap", "--quiet", *ORACLE, "bookworm", str(target)], capture_output=True, text=True, check=False, timeout=LIMIT_S,
                          env=os.environ | {"SOURCE_DATE_EPOCH": "0", "TMPDIR": str(w.top)})
    if done.returncode != 0:
        raise Skip(f"mmdebstrap failed: {done.stderr[-200:]}")
    with tarfile.open(target) as archive:
        theirs = {entry.name.removeprefix("./").rstrip("/"): entry for entry in archive}
        root = tree_of(home, w.base)
        ours = {str(path.relative_to(root)) for path in root.rglob("*")}
        missing = sorted(name for name in set(theirs) - ours if not NOT_OURS.fullmatch(name))
        more = sorted(name for name in ours - set(theirs) if not NOT_OURS.fullmatch(name))
        check(not missing and not more, f"missing: {missing[:8]}, more: {more[:8]}")
        differ = [name for name in sorted(ours & set(theirs)) if theirs[name].isreg() and not NOT_OURS.fullmatch(name) and
                  name not in ("etc/hosts", "etc/hostname", "etc/resolv.conf") and
                  archive.extractfile(theirs[name]).read() != (root / name).read_bytes()]
        check(not differ, f"other bytes: {differ[:8]}")


# ---- running --------------------------------------------------------------------------------------------------------


def run_all(options):
    leaks.become_subreaper()
    world = (RealWorld if options.real else World)(options.build, options.build / "work")
    return tell((f.__name__, *verdict_of(f, world)) for f in chosen(REAL if options.real else TESTS, options.only))


def main():
    words = parser("build")
    words.add_argument("--real", action="store_true")
    options = words.parse_args()
    if options.published:
        return run_all(options)
    top = publish("bases", built(options.build, "px-main", "px-layer"), [HERE / "bases.py", HERE / "debs.py", HERE.parent / "leaks.py", HERE.parent / "real.py"], options.uid)
    return start_again(top, "bases/bases.py", options, *["--real"] * options.real)


if __name__ == "__main__":
    sys.exit(main())
