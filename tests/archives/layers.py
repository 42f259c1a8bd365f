"""Layers: the same tree gives the same bytes, and everybody can read them."""

import gzip
import hashlib
import os
import random
import shutil
import socket
import stat
import subprocess
import tarfile
import threading
import zlib

from raw import tar, zstd
from ground import BUSYBOX, Skip, check, tar_of, test


def blob(site, digest):
    return site.home / "store/blobs/sha256" / digest


def random_tree(rng, path, depth=0):
    path.mkdir()
    for _ in range(rng.randrange(1, 8)):
        name = "".join(rng.choice("ab.-_ äz~Q0") for _ in range(rng.choice((1, 2, 3, 10, 60, 110)))).strip() or "x"
        name = name.encode()[:250].decode(errors="ignore")
        at = path / name
        if name in (".", "..") or name.startswith(".wh.") or at.exists() or at.is_symlink():
            continue
        kind = rng.random()
        if kind < 0.25 and depth < 4:
            random_tree(rng, at, depth + 1)
            at.chmod(rng.choice((0o755, 0o700, 0o1777, 0o2775)))
        elif kind < 0.4:
            at.symlink_to(rng.choice(("x", "/etc/passwd", "../..", "t" * 130)))
        elif kind < 0.5 and any(child.is_file() and not child.is_symlink() for child in path.iterdir()):
            os.link(next(child for child in sorted(path.iterdir()) if child.is_file() and not child.is_symlink()), at)
        else:
            at.write_bytes(rng.randbytes(rng.choice((0, 1, 511, 512, 513, 5000, 1 << 20, (1 << 20) + 1))))
            at.chmod(rng.choice((0o644, 0o600, 0o755, 0o4755, 0o444)))


@test
def pack_is_a_fixed_point(site):
    for seed in range(8):
        root = site.top / f"tree{seed}"
        random_tree(random.Random(seed), root)
        names = {}
        for how in ("none", "gzip", "zstd"):
            digest, diff_id, size, tar_size, _ = site.good("pack", site.home, root, "", 0, how)
            path = blob(site, digest)
            check(
                path.stat().st_size == int(size) and hashlib.sha256(path.read_bytes()).hexdigest() == digest,
                f"{how}: its name",
            )
            out, answer = site.unpack(path)
            check(answer.split()[2] == diff_id, f"{seed} {how}: {answer}")
            check(site.listing(out) == site.listing(root), f"{seed} {how}: another tree")
            check(
                site.good("pack", site.home, out, "", 0, how)[:2] == [digest, diff_id],
                f"{seed} {how}: packed again it is another layer",
            )
            names[how] = diff_id
            if how == "none":
                check(digest == diff_id and path.stat().st_size == int(tar_size), "a plain tar")
        check(len(set(names.values())) == 1, "the tar depends on the compression")
        check(site.good("pack", "-", root, "", 0, "none") == [names["none"]], "the name alone")


@test
def others_read_our_layers(site):
    tried = 0
    for seed in range(20, 28):
        root = site.top / "tree"
        subprocess.run(["rm", "-rf", "--", str(root)], check=True)
        random_tree(random.Random(seed), root)
        (root / ("long" * 50)).mkdir()
        (root / ("long" * 50) / ("name" * 50)).write_text("x")
        for how, program in (
            ("gzip", "tar"),
            ("zstd", "bsdtar"),
            ("none", "tar"),
            ("gzip", "bsdtar"),
            ("none", "python"),
        ):
            if program != "python" and not shutil.which(program):
                continue
            path = blob(site, site.good("pack", site.home, root, "", 0, how)[0])
            out = site.fresh("other")
            if program == "python":
                with tarfile.open(path) as archive:
                    archive.extractall(out)
            else:
                more = ("--zstd",) if how == "zstd" and program == "tar" else ()
                done = site.run(program, "-xpf", path, "-C", out, *more)
                check(done.returncode == 0 and not done.stderr, f"{program} {how}: {done.stderr}")
            check(site.listing(out) == site.listing(root), f"{seed}: {program} makes another tree of {how}")
            tried += 1
    check(tried >= 16, "neither GNU tar nor bsdtar is installed")


def gzip_members(data):
    count = 0
    while data:
        member = zlib.decompressobj(31)
        member.decompress(data)
        check(member.eof, "a member has no end")
        data, count = member.unused_data, count + 1
    return count


@test
def others_read_every_member(site):
    root = site.top / "tree"
    root.mkdir()
    (root / "a").write_bytes(random.Random(5).randbytes(1500) * 2000)
    digest, diff_id, *_ = site.good("pack", site.home, root, "", 0, "gzip")
    path = blob(site, digest)
    check(gzip_members(path.read_bytes()) == 3, "not a member for each MiB")
    check(hashlib.sha256(gzip.decompress(path.read_bytes())).hexdigest() == diff_id, "Python reads something else")
    for program in (("gzip", "-dc"), (BUSYBOX, "gunzip", "-c")):
        with path.open("rb") as layer:
            done = subprocess.run(program, stdin=layer, capture_output=True, check=False)
        check(done.returncode == 0 and hashlib.sha256(done.stdout).hexdigest() == diff_id, f"{program[0]}: {done.stderr}")


@test
def pack_does_not_know_when_or_who(site):
    first, second = site.top / "first", site.top / "second"
    random_tree(random.Random(99), first)
    shutil.copytree(first, second, symlinks=True)
    links = {}
    for path in sorted(first.rglob("*")):  # copytree makes two files of one
        st = path.lstat()
        if stat.S_ISREG(st.st_mode) and st.st_nlink > 1:
            twin = second / path.relative_to(first)
            if st.st_ino in links:
                twin.unlink()
                os.link(links[st.st_ino], twin)
            links.setdefault(st.st_ino, twin)
    for path in second.rglob("*"):
        if not path.is_symlink():
            os.utime(path, (5, 5))
    if os.geteuid() == 0:
        for path in second.rglob("*"):
            os.lchown(path, 1234, 1234)
            if path.is_file() and not path.is_symlink():
                path.chmod(stat.S_IMODE((first / path.relative_to(second)).stat().st_mode))
    check(
        site.good("pack", "-", first, "", 0, "none") == site.good("pack", "-", second, "", 0, "none"),
        "times or owners are in the layer",
    )


@test
def prefix_and_skip(site):
    root = site.top / "tree"
    (root / "a/b").mkdir(parents=True)
    (root / "a/b/c").write_text("c")
    (root / "a.b").write_text("ab")
    (root / "secret/deep").mkdir(parents=True)
    (root / "secret/deep/key").write_text("k")
    digest = site.good("pack", site.home, root, "px/env/", 0, "none", "secret", "a/b/c")[0]
    with tarfile.open(blob(site, digest)) as archive:
        names = archive.getnames()
    check(names == ["px", "px/env", "px/env/a", "px/env/a.b", "px/env/a/b"], f"{names}")
    for bad in ("/px/", "px", "../px/", "px//env/"):
        check(site.layer("pack", site.home, root, bad, 0, "none").startswith("PX002"), f"prefix {bad}")


@test
def overlay_uppers(site):
    upper, lower = site.top / "upper", site.top / "lower"
    (upper / "d").mkdir(parents=True)
    (upper / "d/new").write_text("new")
    try:
        os.mknod(upper / "gone", 0o600 | stat.S_IFCHR, os.makedev(0, 0))
        os.setxattr(upper / "d", "trusted.overlay.opaque" if os.geteuid() == 0 else "user.overlay.opaque", b"y")
    except OSError as error:
        raise Skip(f"no whiteouts here: {error.strerror}") from error
    (lower / "d").mkdir(parents=True)
    (lower / "d/old").write_text("old")
    (lower / "gone").write_text("old")
    (lower / "stays").write_text("old")
    digest = site.good("pack", site.home, upper, "", 1, "gzip")[0]
    out, _ = site.unpack(tar_of(lower))
    _, answer = site.unpack(blob(site, digest), onto=True, whiteouts=True)
    found = sorted(str(path.relative_to(out)) for path in out.rglob("*"))
    check(answer.startswith("ok") and found == ["d", "d/new", "stays"], f"{answer} {found}")
    check(site.layer("pack", site.home, upper, "", 0, "none").startswith("PX005"), "a device, not of an overlay")
    os.setxattr(upper / "d", "trusted.overlay.redirect" if os.geteuid() == 0 else "user.overlay.redirect", b"/x")
    check("redirect" in site.layer("pack", site.home, upper, "", 1, "none"), "content that lies elsewhere")


@test
def hostile_trees(site):
    def refused(why, make, name):
        root = site.fresh("tree")
        make(root)
        answer = site.layer("pack", site.home, root, "", 0, "gzip")
        check(answer.startswith("PX") and name in answer, f"{why}: {answer}")

    def make_socket(root):
        with socket.socket(socket.AF_UNIX) as end:
            end.bind(os.path.relpath(root / "talk"))

    def make_deep(root):
        os.makedirs(root / ("a/" * 140))

    os.chdir(site.top)
    refused("a pipe", lambda root: os.mkfifo(root / "pipe"), "'pipe'")
    refused("a socket", make_socket, "'talk'")
    refused("too deep", make_deep, "128")
    refused("a name of a whiteout", lambda root: (root / ".wh.x").touch(), "'.wh.x'")
    if os.geteuid() != 0:

        def make_closed(root):
            (root / "closed").write_text("x")
            (root / "closed").chmod(0)

        refused("a file that cannot be read", make_closed, "'closed'")
    root = site.fresh("tree")
    (root / "out").symlink_to("/etc/passwd")
    (root / "up").symlink_to("..")
    digest = site.good("pack", site.home, root, "", 0, "none")[0]
    with tarfile.open(blob(site, digest)) as archive:
        check(
            [(item.name, item.linkname) for item in archive] == [("out", "/etc/passwd"), ("up", "..")],
            "links were followed",
        )
    check(not (site.home / "store/tmp").exists() or site.left() == [], f"{site.left()}")


@test
def changed_while_read(site):
    root = site.fresh("tree")
    (root / "busy").write_bytes(bytes(32 << 20))
    done = threading.Event()

    def write():
        with open(root / "busy", "r+b", buffering=0) as file:
            while not done.is_set():
                file.seek(0)
                file.write(b"x")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        answer = site.layer("pack", site.home, root, "", 0, "none")
    finally:
        done.set()
        writer.join()
    check("'busy'" in answer and "changed" in answer, answer)
    check(site.layer("pack", site.home, root, "", 0, "none").startswith("ok"), "once it is quiet")
