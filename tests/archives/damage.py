"""Bombs, damage, several at once, deaths, full disks, and the walls of the helper."""

import gzip
import itertools
import os
import random
import shutil
import signal
import subprocess
from pathlib import Path

from raw import aligned_bomb, BLOCK, bomb, COMPRESSORS, entry, folder, hardlink, long_name, pax, record, symlink, tar, zstd
from ground import check, LIMIT_S, make_root, need, outside, Skip, tar_of, test

# ---- bombs and damage ----


def measured(site, *words):
    """The answer, and the most memory that the process or its helper had, in bytes."""
    out = site.top / "said"
    with open(out, "wb") as file:
        child = subprocess.Popen([site.tool, *map(str, words)], env=site.env, stdout=file, stdin=subprocess.DEVNULL)
    _, _, usage = os.wait4(child.pid, 0)
    child.returncode = 0
    return out.read_text(), usage.ru_maxrss * 1024


@test
def bombs_end_at_the_bound(site):
    need("zstd")
    for name, compress in {
        "gzip": lambda data: gzip.compress(data, 6, mtime=0),
        "zstd": zstd,
        "bzip2": COMPRESSORS["tar.bz2"],
    }.items():
        archive = site.write("bomb", bomb(10 << 30, compress))
        out = site.fresh("out")
        answer, memory = measured(site, "unpack", archive, out, 0)
        written = sum(path.stat().st_size for path in out.iterdir())
        check(answer.startswith("PX814") and "200 times" in answer, f"{name}: {answer}")
        check(written <= 65 << 20, f"{name}: {written} bytes were written")
        check(memory < 300 << 20, f"{name}: it took {memory >> 20} MiB of memory")
        archive.unlink()


@test
def bombs_of_small_members(site):
    """Each member fits into one step of its decoder, so that the end of a member is all that is ever seen of it."""
    need("zstd")
    for name, compress in {"gzip": lambda data: gzip.compress(data, 6, mtime=0), "zstd": zstd, "bzip2": COMPRESSORS["tar.bz2"]}.items():
        for step in (4 << 10, 64 << 10, 128 << 10):
            if len(compress(bytes(step))) * 300 > step:
                continue        # too little to be refused
            archive = site.write("bomb", aligned_bomb(256 << 20, compress, step))
            out = site.fresh("out")
            answer = site.layer("unpack", archive, out, 0)
            written = sum(path.stat().st_size for path in out.iterdir())
            check(answer.startswith("PX814") and "200 times" in answer, f"{name}, members of {step}: {answer}")
            check(written <= 65 << 20, f"{name}, members of {step}: {written} bytes were written")
            archive.unlink()


@test
def limits_hold(site):
    data = tar(*[entry(f"f{i}", b"x" * 100) for i in range(50)])
    for limits, good in (((5000, 50, 200), True), ((4999, 50, 200), False), ((5000, 49, 200), False)):
        _, answer = site.unpack(data, limits=limits)
        check(answer.startswith("ok" if good else "PX814"), f"{limits}: {answer}")
    archive = site.write("archive", data)
    out = site.fresh("out")
    check(
        site.layer("unpack", archive, out, 0, 5000, 50, 200, len(data) - 1).startswith("PX814"),
        "longer than it was said to be",
    )


@test
def zstd_window(site):
    need("zstd")

    def frame(exponent):
        data = tar(entry("a", b"e"))
        return b"\x28\xb5\x2f\xfd\x00" + bytes([exponent << 3]) + (len(data) << 3 | 1).to_bytes(3, "little") + data

    check(site.unpack(frame(17))[1].startswith("ok"), "a window of 128 MiB")
    check(site.unpack(frame(18))[1].startswith("PX814"), "a window of 256 MiB")


@test
def truncated_everywhere(site):
    plain = tar(
        folder("d/"),
        entry("d/f", b"x" * 1500),
        long_name("n" * 200),
        entry("n", b"y"),
        pax(record("path", "p" * 200)),
        entry("p", b"z"),
        hardlink("h", "d/f"),
    )
    for cut in range(0, len(plain), BLOCK):
        for more in (0, 1, 511):
            if cut + more < len(plain):
                check(site.unpack(plain[: cut + more])[1].startswith("PX814"), f"the tar cut at {cut + more}")
    rng = random.Random(5)
    for ending, compress in COMPRESSORS.items():
        packed = compress(plain)
        for cut in sorted(
            {
                *range(0, min(len(packed), 40)),
                *range(len(packed) - 12, len(packed)),
                *(rng.randrange(len(packed)) for _ in range(25)),
            }
        ):
            check(site.unpack(packed[:cut])[1].startswith("PX814"), f"{ending} cut at {cut}")
    check(site.unpack(plain)[1].startswith("ok"), "the whole")


@test
def flipped_bits(site):
    """Anything may come of it but a crash, a hang or something outside."""
    plain = tar(
        folder("d/"),
        entry("d/f", b"x" * 700),
        symlink("l", "../../x"),
        hardlink("h", "d/f"),
        long_name("n" * 200),
        entry("n", b"y"),
    )
    rng = random.Random(11)
    before = outside(site)
    for data in [plain] + [compress(plain) for ending, compress in COMPRESSORS.items() if ending != "tar"]:
        for _ in range(40):
            broken = bytearray(data)
            for _ in range(rng.randrange(1, 4)):
                broken[rng.randrange(len(broken))] ^= 1 << rng.randrange(8)
            answer = site.unpack(bytes(broken))[1]
            check(answer.startswith(("ok", "PX814")) and "ended without" not in answer, answer)
            check(outside(site) == before, "something outside changed")


# ---- several at once, and deaths ----


@test
def eight_at_once_extract_once(site):
    """The helper is started through a script that counts, and is otherwise itself."""
    archive = site.write("root.tar.gz", COMPRESSORS["tar.gz"](big_root(site)))
    place = site.fresh("programs")
    place.chmod(0o755)
    for name in ("px", "px-main"):
        shutil.copyfile(Path(site.px).with_name(name), place / name)
        (place / name).chmod(0o755)
    (place / "px-layer").write_text(
        f"#!/bin/sh\necho once >> '{site.top}/count'\nexec '{Path(site.px).with_name('px-layer')}' \"$@\"\n"
    )
    (place / "px-layer").chmod(0o755)
    boxes = [
        subprocess.Popen(
            [place / "px", "exec", "--rootfs", archive, "--", "/bin/cat", "/etc/word"],
            env=site.env,
            cwd=site.top,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(8)
    ]
    for box in boxes:
        out, err = box.communicate(timeout=LIMIT_S)
        check(box.returncode == 0 and out == b"from the archive\n", err.decode())
    check((site.top / "count").read_text().count("once") == 1, "it was unpacked more than once")
    check(len(site.trees()) == 1 and site.left() == [], f"{site.trees()} {site.left()}")


def big_root(site, size=24 << 20):
    """A root with some weight, so that a death can fall into the middle of it."""
    root = make_root(site.top / "big")
    rng = random.Random(3)
    for i in range(200):
        (root / "usr" / f"file{i}").write_bytes(rng.randbytes(size // 200))
    return tar_of(root)


@test
def killed_at_any_moment(site):
    archive = site.write("root.tar.gz", COMPRESSORS["tar.gz"](big_root(site)))
    check(site.exec(archive).returncode == 0, "it does not run")
    expected = site.listing(site.home / "store/trees" / site.trees()[0] / "root")
    rng = random.Random(7)
    for _ in range(12):
        subprocess.run(["rm", "-rf", "--", str(site.home)], check=True)
        box = subprocess.Popen(
            [site.px, "exec", "--rootfs", str(archive), "--", "/bin/true"],
            env=site.env,
            cwd=site.top,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            box.wait(rng.random() * 0.3)
        except subprocess.TimeoutExpired:
            box.send_signal(signal.SIGKILL)
            box.wait()
        done = site.exec(archive, "/bin/cat", "/etc/word")
        check(done.stdout == "from the archive\n", f"after a kill: {done.stderr}")
        check(len(site.trees()) == 1, f"{site.trees()}")
        check(site.listing(site.home / "store/trees" / site.trees()[0] / "root") == expected, "another tree")
        check(site.left() == [], f"{site.left()} was not swept")


@test
def full_disk(site):
    if os.geteuid() != 0:
        raise Skip("needs a mount")
    archive = site.write("root.tar.gz", COMPRESSORS["tar.gz"](big_root(site)))
    site.home.mkdir(mode=0o700)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m,mode=0700", "px-test", str(site.home)], capture_output=True, check=False
    )
    if done.returncode:
        raise Skip("no mount here")
    try:
        done = site.exec(archive)
        check(done.returncode == 125 and "PX810" in done.stderr and "ENOSPC" in done.stderr, done.stderr)
        check(site.trees() == [] and site.left() == [], f"{site.trees()} {site.left()}")
        subprocess.run(["mount", "-o", "remount,size=80m,mode=0700", str(site.home)], check=True)
        done = site.exec(archive)
        check(done.returncode == 0, f"with room: {done.stderr}")
    finally:
        subprocess.run(["umount", str(site.home)], check=True)


# ---- the helper's walls ----


@test
def helper_is_confined(site):
    forbidden = (
        "read-outside",
        "write-outside",
        "make-device",
        "run-program",
        "new-process",
        "new-socket",
        "code-memory",
        "change-owner",
        "trace",
        "signal",
    )
    permitted = ("write-inside", "make-directory", "new-thread", "data-memory")
    for job, act in [*itertools.product(("unpack", "receive"), forbidden), ("receive", "make-link")]:
        place = site.fresh("dir")
        check(site.good("try", job, act, place) != ["0"], f"{act} worked inside px-layer {job}")
        check(not (site.top / "made-outside").exists() and os.listdir(place) == [], f"{act} left something")
    for job, act in [*itertools.product(("unpack", "receive"), permitted), ("unpack", "make-link")]:
        check(site.good("try", job, act, site.fresh("dir")) == ["0"], f"{act} does not work inside px-layer {job}")


@test
def helper_has_no_more_than_it_was_given(site):
    """A script in its place says what it has."""
    place = site.fresh("programs")
    place.chmod(0o755)
    shutil.copyfile(site.tool, place / "layer")
    (place / "layer").chmod(0o755)
    (place / "px-layer").write_text(f"#!/bin/sh\n{{ ls /proc/self/fd; env; }} > '{site.top}/has'\n")
    (place / "px-layer").chmod(0o755)
    secret = os.open("/etc/passwd", os.O_RDONLY)
    os.set_inheritable(secret, True)
    archive = site.write("archive", tar())
    done = subprocess.run(
        [place / "layer", "unpack", archive, site.fresh("out"), "0"],
        env={**site.env, "SECRET": "word"},
        close_fds=False,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    os.close(secret)
    check(
        done.returncode == 1 and "ended without an answer" in done.stdout, f"a helper that says nothing: {done.stdout}"
    )
    text = (site.top / "has").read_text()
    check("SECRET" not in text and "PX_HOME" not in text, text)
    numbers = {int(line) for line in text.split() if line.isdigit()}
    check(
        numbers - {6} <= {0, 1, 2, 3, 4, 5} and {3, 4, 5} <= numbers, f"it has {sorted(numbers)}"
    )  # 6 is the listing's own
