"""What the tests of the package share. Each test has a directory of its own for the store and for temporary files, which must be empty of
what px makes when the test ends; so must the list of our children and descriptors."""

from __future__ import annotations

import asyncio
import functools
import gc
import io
import itertools
import os
import shutil
import stat
import tarfile
import time
from pathlib import Path

import pytest

PATIENCE_S = 60
MANY = int(os.environ.get("PX_MANY", "200"))  # sandboxes in a row; 10000 for the long run
NETWORK = "waits for the outbound network of boxes (PX003 until then)"
_numbers = itertools.count()


def looped(function):
    """A test that is a coroutine, in an event loop of its own."""

    @functools.wraps(function)
    def plain(*args, **words):
        return asyncio.run(asyncio.wait_for(function(*args, **words), 300 + MANY))

    return plain


def word():
    """A number of seconds that no other process has as an argument."""
    return f"{7000 + os.getpid() % 1000}.{next(_numbers):04d}{time.time_ns() % 100000:05d}"


def running(text):
    """How many processes of this machine have the text in their command line."""
    found = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found += text.encode() in (entry / "cmdline").read_bytes()
            except OSError:
                pass
    return found


def until(condition, what):
    """Waits for something that happens soon."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f"{what}: not within {PATIENCE_S} s"
        time.sleep(0.01)


def descriptors():
    return set(os.listdir("/proc/self/fd"))


def children():
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()


@pytest.fixture(autouse=True)
def clean(tmp_path, monkeypatch, request):
    """Nothing is left: no descriptor, no child, no temporary directory."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setenv("PX_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("tempfile.tempdir", None)
    gc.collect()
    before = descriptors()
    yield
    request.node.funcargs.pop("sandbox", None)  # pytest keeps what a fixture gave until later
    gc.collect()
    assert descriptors() <= before, "descriptors are left open"
    assert children() == [], "processes are left"
    assert list(temporary.glob("px-*")) == [], "directories are left"


# ---- roots ----


def make_tree(path, extra=None):
    """A root with one program, which is also its bash."""
    busybox = shutil.which("busybox")
    if busybox is None:
        pytest.skip("busybox is not installed")
    for name in ("bin", "etc", "tmp", "home/sandbox", "dev", "proc"):
        (path / name).mkdir(parents=True)
    shutil.copy(busybox, path / "bin" / "busybox")
    for name in ("sh", "cat", "ls", "touch", "echo"):
        (path / "bin" / name).symlink_to("busybox")
    (path / "bin" / "bash").write_text('#!/bin/busybox sh\nexec /bin/busybox sh "$@"\n')
    (path / "bin" / "bash").chmod(0o755)
    (path / "etc" / "marker").write_text(extra or "of the archive\n")
    return path


def pack(tree, target, mode):
    with tarfile.open(target, mode) as tar:
        tar.add(tree, arcname=".")
    return target


@pytest.fixture
def tree(tmp_path):
    return make_tree(tmp_path / "tree")


@pytest.fixture
def archive(tmp_path, tree):
    return pack(tree, tmp_path / "root.tar.gz", "w:gz")


def bad_archive(target, name, kind=tarfile.REGTYPE, link=""):
    """An archive with one entry that it must not have."""
    with tarfile.open(target, "w") as tar:
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname, entry.mode = kind, link, stat.S_IRWXU
        entry.size = 4 if kind == tarfile.REGTYPE else 0
        tar.addfile(entry, io.BytesIO(b"evil") if kind == tarfile.REGTYPE else None)
    return target
