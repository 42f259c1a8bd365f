"""What the tests of the package share. Each test has a directory of its own for the store and for temporary files, which must be empty of
what px makes when the test ends; so must the list of our children and descriptors."""

from __future__ import annotations

import asyncio
import ctypes
import functools
import gc
import io
import itertools
import json
import os
import re
import shutil
import socket
import stat
import struct
import subprocess
import tarfile
import threading
import time
from pathlib import Path

import pytest

PATIENCE_S = 60
MANY = int(os.environ.get("PX_MANY", "200"))  # sandboxes in a row; 10000 for the long run
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


async def cancelled(work, text):
    """The work, which starts a command with the text in it, is cancelled; so is the command."""
    task = asyncio.create_task(work)
    while not running(text):
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    until(lambda: not running(text), "the command goes on")


def descriptors():
    return set(os.listdir("/proc/self/fd"))


def children():
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def held():
    """What of the kernel this process holds, by name: descriptors with what they are, threads, mounts, mappings of files, children."""
    links = []
    for name in descriptors():
        try:
            links.append(re.sub(r"\d+", "", os.readlink(f"/proc/self/fd/{name}")))
        except OSError:  # the one that read the list
            pass
    maps = {line.split(maxsplit=5)[5] for line in Path("/proc/self/maps").read_text().splitlines() if "/" in line}
    return {
        "descriptors": sorted(links),
        "threads": len(os.listdir("/proc/self/task")),
        "mounts": Path("/proc/self/mountinfo").read_text(),
        "files": sorted(maps),
        "children": children(),
    }


@pytest.fixture
def orphans():
    """Every process that loses its parent becomes our child, so that none is left without being seen."""
    libc, reaper = ctypes.CDLL(None, use_errno=True), 36  # PR_SET_CHILD_SUBREAPER
    assert libc.prctl(reaper, 1, 0, 0, 0) == 0
    yield
    libc.prctl(reaper, 0, 0, 0, 0)


@pytest.fixture(autouse=True, scope="session")
def light():
    """What was imported is not searched for garbage after every test; frameworks are large."""
    gc.collect()
    gc.freeze()


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
    for name in ("sandbox", "worker", "files", "backend", "executor"):
        request.node.funcargs.pop(name, None)  # pytest keeps what a fixture gave until later
    gc.collect()
    assert descriptors() <= before, "descriptors are left open"
    assert children() == [], "processes are left"
    assert list(temporary.glob("px-*")) == [], "directories are left"


# ---- servers on the host's loopback ----


class Server:
    """Answers on a descriptor of the host's until it is closed, in a thread."""

    def __init__(self, kind, address):
        self._socket = socket.socket(socket.AF_INET, kind)
        try:
            self._socket.bind(address)
        except BaseException:
            self._socket.close()
            raise
        self.address, self.port = self._socket.getsockname()
        self.asked = []
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._socket.shutdown(socket.SHUT_RDWR)  # whoever waits in it is woken
        self._thread.join(PATIENCE_S)
        self._socket.close()


class Greeter(Server):
    """Says its greeting to everybody who connects."""

    def __init__(self, greeting):
        super().__init__(socket.SOCK_STREAM, ("127.0.0.1", 0))
        self._greeting = greeting
        self._socket.listen(16)

    def _serve(self):
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            with client:
                client.sendall(self._greeting)


class NameServer(Server):
    """Has one address for every name, and remembers who was asked for."""

    def __init__(self, address, answer):
        super().__init__(socket.SOCK_DGRAM, (address, 53))
        self._answer = socket.inet_aton(answer)

    def __exit__(self, *_):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", (self.address, self.port))  # a datagram socket is not woken by shutdown()
        self._thread.join(PATIENCE_S)
        self._socket.close()

    def _serve(self):
        while len((asked := self._socket.recvfrom(2000))[0]) > 12:
            data, whom = asked
            end = data.index(b"\0", 12) + 5
            labels, at = [], 12
            while data[at]:
                labels.append(data[at + 1 : at + 1 + data[at]].decode())
                at += 1 + data[at]
            self.asked.append(".".join(labels))
            four = data[end - 4 : end - 2] == b"\0\1"
            record = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 60, 4) + self._answer if four else b""
            head = data[:2] + struct.pack(">HHHHH", 0x8180, 1, int(four), 0, 0)
            self._socket.sendto(head + data[12:end] + record, whom)


def free_ports(count):
    """Ports of the loopback where nobody listens now."""
    found = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [one.getsockname()[1] for one in found]
    finally:
        for one in found:
            one.close()


def connect(port):
    """What a server at the host's loopback says first; "" if it does not."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as client:
            return client.recv(100).decode()
    except OSError:
        return ""


# ---- roots ----


def px_program(*words):
    """px itself, whose store bases and images are in."""
    if "PX" not in os.environ:
        pytest.skip("PX does not say where px is")
    done = subprocess.run([os.environ["PX"], "--json", *words], capture_output=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def make_tree(path, extra=None):
    """A root with one program, which is also its bash."""
    busybox = shutil.which("busybox")
    if busybox is None:
        pytest.skip("busybox is not installed")
    for name in ("bin", "etc", "tmp", "home/sandbox", "dev", "proc"):
        (path / name).mkdir(parents=True)
    shutil.copy(busybox, path / "bin" / "busybox")
    for name in ("sh", "cat", "ls", "touch", "echo", "tar", "find", "rm", "chmod", "mkdir"):
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
