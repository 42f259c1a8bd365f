"""Roots by the command line: what is unpacked when, who keeps it, and what is refused."""

import os
import shutil
import subprocess

from raw import COMPRESSORS, entry, tar, zstd
from ground import LIMIT_S, check, make_root, tar_of, test


@test
def formats_of_compression(site):
    root = make_root(site.top / "root")
    plain = tar_of(root)
    for ending, compress in COMPRESSORS.items():
        archive = site.write(f"root.{ending}", compress(plain))
        done = site.exec(archive, "/bin/cat", "/etc/same")
        check(
            done.returncode == 0 and done.stdout == "from the archive\n", f"{ending}: {done.returncode} {done.stderr}"
        )
    check(len(COMPRESSORS) == 6, "zstd is not installed, so .tar.zst was not tried")


@test
def root_is_read_only_and_stays(site):
    archive = site.write("root.tar", tar_of(make_root(site.top / "root")))
    check(site.exec(archive).returncode == 0, "it does not run")
    tree = site.home / "store/trees" / site.trees()[0] / "root"
    before = site.listing(tree)
    done = site.exec(archive, "/bin/sh", "-c", "touch /etc/x; echo more >> /etc/word; touch /new")
    check(done.stderr.count("Read-only") == 3, f"it can be written: {done.stderr}")
    check(site.listing(tree) == before, "the tree changed")
    done = site.exec(archive, "/bin/sh", "-c", "touch /etc/x && echo made", options=("--overlay",))
    if "PX003" not in done.stderr:
        check(done.stdout == "made\n", f"with an overlay: {done.stderr}")
        check(site.listing(tree) == before, "the tree changed under an overlay")


@test
def one_extraction_each(site):
    root = make_root(site.top / "root")
    first = site.write("first.tar", tar_of(root))
    for _ in range(2):
        check(site.exec(first).returncode == 0, "it does not run")
    check(len(site.trees()) == 1, f"twice the same archive: {site.trees()}")
    shutil.copyfile(first, site.top / "copy.tar")
    check(site.exec(site.top / "copy.tar").returncode == 0 and len(site.trees()) == 1, "a copy was unpacked again")
    (root / "etc/word").write_text("another\n")
    check(
        site.exec(site.write("second.tar", tar_of(root))).returncode == 0 and len(site.trees()) == 2,
        "another archive, the same tree",
    )
    before = site.trees()
    check(site.exec(root).returncode == 0 and site.trees() == before, "a directory went through the store")


@test
def changed_archive_is_seen(site):
    """The same name and size, other bytes: what was remembered of the file must not count."""
    root = make_root(site.top / "root")
    archive = site.write("root.tar", tar_of(root))
    check(site.exec(archive, "/bin/cat", "/etc/word").stdout == "from the archive\n", "it does not run")
    archive.write_bytes(archive.read_bytes().replace(b"from the archive\n", b"FROM THE ARCHIVE\n"))
    check(site.exec(archive, "/bin/cat", "/etc/word").stdout == "FROM THE ARCHIVE\n", "the old tree was used")


@test
def refusals_of_the_command_line(site):
    rows = {"../x": 814, "/etc/x": 814}
    for name, code in rows.items():
        done = site.exec(site.write("bad.tar", tar(entry(name, b"evil"))))
        check(done.returncode == 125 and f"PX{code}" in done.stderr and name in done.stderr, f"{name}: {done.stderr}")
        check(not (site.top / "x").exists() and not (site.home / "x").exists(), f"{name} was written")
    for words, data in {"not an archive": b"hello\n" * 500, "empty": b""}.items():
        done = site.exec(site.write("bad.tar", data))
        check(done.returncode == 125 and "PX814" in done.stderr and "bad.tar" in done.stderr, f"{words}: {done.stderr}")
    done = site.exec(site.top / "missing.tar")
    check(done.returncode == 125 and "PX034" in done.stderr and "missing.tar" in done.stderr, f"missing: {done.stderr}")
    os.mkfifo(site.top / "pipe")
    done = site.exec(site.top / "pipe")
    check(done.returncode == 125 and "PX034" in done.stderr, f"a pipe: {done.stderr}")
    done = site.run(site.px, "exec", "--base", "no-such-base", "--", "/bin/true")
    check(done.returncode == 125 and "PX900" in done.stderr and "no-such-base" in done.stderr, f"a base: {done.stderr}")
    check(site.trees() == [] and site.left() == [], f"the store has {site.trees()} {site.left()}")
    check(
        site.exec(site.write("bad.tar", tar_of(make_root(site.top / "root")))).returncode == 0,
        "a good archive afterwards",
    )


@test
def lease_holds_a_living_box(site):
    archive = site.write("root.tar", tar_of(make_root(site.top / "root")))
    done = site.run(site.px, "box", "start", "--name", "leased", "--rootfs", archive)
    check(done.returncode == 0, done.stderr)
    try:
        check(site.good("gc", site.home) == ["0"], "the tree of a box that runs went away")
        done = site.run(site.px, "box", "exec", "leased", "--", "/bin/cat", "/etc/word")
        check(done.stdout == "from the archive\n", done.stderr)
    finally:
        site.run(site.px, "box", "stop", "leased")
    check(site.good("gc", site.home) == ["1"] and site.trees() == [], "nobody uses the tree, and it stayed")


@test
def lease_holds_a_command(site):
    archive = site.write("root.tar", tar_of(make_root(site.top / "root")))
    box = subprocess.Popen(
        [site.px, "exec", "-i", "--rootfs", str(archive), "--", "/bin/sh", "-c", "echo up; cat"],
        env=site.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=site.top,
    )
    try:
        check(box.stdout.readline() == b"up\n", "it did not start")
        check(site.good("gc", site.home) == ["0"], "the tree of a box that runs went away")
    finally:
        box.stdin.close()
        check(box.wait(LIMIT_S) == 0, "it did not end")
        box.stdout.close()
    check(site.good("gc", site.home) == ["1"], "nobody uses the tree, and it stayed")
