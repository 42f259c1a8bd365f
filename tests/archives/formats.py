"""Archives that other programs write, and what becomes of them on disk."""

import hashlib
import os
import shutil
import stat
import tarfile

from raw import COMPRESSORS, entry, folder, header, pax, symlink, tar
from ground import check, make_root, tar_of, test

WRITERS = [
    *[
        ("tar", ("tar", f"--format={name}", "-cf", "{out}", "-C", "{root}", "."))
        for name in ("v7", "oldgnu", "gnu", "ustar", "posix")
    ],
    *[
        ("bsdtar", ("bsdtar", "--format", name, "-cf", "{out}", "-C", "{root}", "."))
        for name in ("v7tar", "ustar", "pax", "gnutar")
    ],
]


def sample_tree(path, long_names):
    make_root(path)
    (path / "etc/empty").touch()
    (path / "etc/sticky").mkdir()
    (path / "etc/sticky").chmod(0o1777)
    (path / "etc/quiet").write_bytes(b"x" * 511)
    (path / "etc/quiet").chmod(0o400)
    (path / "etc/dangling").symlink_to("/no/such/file")
    (path / "etc/mit Leerzeichen").write_bytes(b"y" * 513)
    if long_names:
        deep = path / ("d" * 90) / ("e" * 90) / ("f" * 90)
        deep.mkdir(parents=True)
        (deep / ("g" * 120)).write_text("long\n")
        (deep / "link").symlink_to("h" * 150)
        (path / "etc/käse").write_text("utf-8\n")
    for folder_path, folders, files in os.walk(path):
        for name in folders + files:
            if not os.path.islink(os.path.join(folder_path, name)):
                os.utime(os.path.join(folder_path, name), (10, 10))
    return path


@test
def archives_of_other_programs(site):
    short, full = sample_tree(site.top / "short", False), sample_tree(site.top / "full", True)
    tried = 0
    for program, words in WRITERS:
        if not shutil.which(program):
            continue
        old = words[1] in ("--format=v7", "--format=ustar") or words[2] in ("v7tar", "ustar")
        root = short if old else full
        done = site.run(*(word.format(out=site.top / "other.tar", root=root) for word in words))
        check(done.returncode == 0, f"{words[:3]}: {done.stderr}")
        out, answer = site.unpack(site.top / "other.tar")
        check(answer.startswith("ok"), f"{words[:3]}: {answer}")
        check(site.listing(out) == site.listing(root), f"{words[:3]}: another tree")
        tried += 1
    check(tried >= 5, "neither GNU tar nor bsdtar is installed")


@test
def archives_of_python(site):
    root = sample_tree(site.top / "root", True)
    for kind in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        out, answer = site.unpack(tar_of(root, format=kind))
        check(answer.startswith("ok") and site.listing(out) == site.listing(root), f"format {kind}: {answer}")
    short = sample_tree(site.top / "short", False)
    out, answer = site.unpack(tar_of(short, format=tarfile.USTAR_FORMAT))
    check(answer.startswith("ok") and site.listing(out) == site.listing(short), f"ustar: {answer}")


@test
def answers_are_hashes(site):
    plain = tar_of(make_root(site.top / "root"))
    for ending, compress in COMPRESSORS.items():
        packed = compress(plain)
        _, answer = site.unpack(packed)
        words = answer.split()
        check(words[1] == hashlib.sha256(packed).hexdigest(), f"{ending}: the archive's hash")
        check(words[2] == hashlib.sha256(plain).hexdigest(), f"{ending}: the tar's hash")
        check(int(words[3]) == len(packed), f"{ending}: its size")


@test
def normal_form_on_disk(site):
    data = tar(
        folder("./"),
        entry("set-id", b"x", mode=0o6755),
        entry("unreadable", b"x", mode=0o000),
        header("closed/", b"5", mode=0o000),
        entry("closed/in", b"x", mode=0o600),
        symlink("link", "/etc/passwd"),
        header("sticky/", b"5", mode=0o3777),
    )
    out, answer = site.unpack(data)
    check(answer.startswith("ok"), answer)
    modes = {"set-id": 0o755, "unreadable": 0o400, "closed": 0o700, "closed/in": 0o600, "sticky": 0o1777}
    for name, mode in modes.items():
        st = os.lstat(out / name)
        check(stat.S_IMODE(st.st_mode) == mode, f"{name} has mode {st.st_mode:o}")
        check(st.st_mtime == 0 and st.st_uid == os.geteuid(), f"{name}: time {st.st_mtime}, owner {st.st_uid}")
    check(
        os.lstat(out / "link").st_mtime == 0 and out.stat().st_mtime == 0 and out.stat().st_mode & 0o777 == 0o755,
        "link or root",
    )
