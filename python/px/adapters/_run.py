"""One command of a model's: bounded in time and in what it says, told as a value. What the adapters share."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .. import Sandbox, SandboxedProcess, SandboxError, SandboxTimeout, sync
from ..files import usable

TIMEOUT_S = 60.0
LIMIT = 64 * 1024  # bytes of each stream that are kept
LEFT_OUT = b"[... %d bytes left out ...]\n"  # the same words as px_box_output has
LEAST_S = 0.01
TIMED_OUT, FAILED = 124, 125
COMMAND = "Run a shell command in the sandbox, with bash. Files of its home and of /tmp stay for the next command."
CODE = "Run a Python program in the sandbox. Only what it prints is seen; files of its home stay for the next one."


@dataclass(frozen=True)
class Outcome:
    """How a command ended. truncated: it said more than is kept, and a line in the text says how much is left out."""

    exit_code: int
    stdout: str
    stderr: str
    timed_out: bool = False
    truncated: bool = False

    def as_dict(self) -> dict[str, Any]:
        """For a model that reads JSON."""
        return asdict(self)

    def as_text(self) -> str:
        """For one that reads text: what it said, and below it what else there is to know."""
        parts = [self.stdout, f"stderr:\n{self.stderr}" if self.stderr else ""]
        parts.append("[it ran too long and was killed]" if self.timed_out else "")
        parts.append(f"[exit code {self.exit_code}]" if self.exit_code and not self.timed_out else "")
        return "\n".join(part.rstrip("\n") for part in parts if part) or "[no output]"


class Stream:
    """What one stream said: its first bytes, and the last ones of what came after them."""

    def __init__(self, limit: int) -> None:
        self._limit, self._half = limit, limit // 2
        self.first, self._last, self._total = bytearray(), bytearray(), 0

    def add(self, data: bytes) -> None:
        """What there is room for; the rest is dropped, so that the command goes on."""
        room = self._limit - len(self.first)
        self.first += data[:room]
        self._last += data[room:]
        del self._last[: -self._half or None]
        self._total += len(data)

    def truncated(self) -> bool:
        """Whether it said more than the limit."""
        return self._total > self._limit

    def text(self) -> bytes:
        """Its beginning and its end with a line between them, together no longer than the limit.

        A limit too small for the line gives the beginning alone.
        """
        if not self.truncated():
            return bytes(self.first)
        head, mark = self.first[: self._half], b""
        for _ in range(3):  # the number of bytes that are left out counts those that the line takes
            mark = LEFT_OUT % (self._total - self._limit + len(mark))
            mark = mark if head.endswith(b"\n") else b"\n" + mark
        room = self._limit - len(head) - len(mark)
        tail = self.first[self._half :] + self._last
        return bytes(head + mark + tail[-room:] if room > 0 else self.first)


class Kept:
    """What is kept of both streams, and how the command ended: code is None if it ran too long."""

    def __init__(self, limit: int) -> None:
        self._streams = {"stdout": Stream(limit), "stderr": Stream(limit)}
        self.code: int | None = None

    def add(self, name: str, data: bytes) -> None:
        """A piece of either."""
        self._streams[name].add(data)

    def read(self, name: str) -> bytes:
        """The first bytes that one of them said, and no others."""
        return bytes(self._streams[name].first)

    def text(self, name: str) -> bytes:
        """What one of them said, for people and models."""
        return self._streams[name].text()

    def outcome(self) -> Outcome:
        """All of it, as text."""
        stdout, stderr = (self.text(name).decode("utf-8", "replace") for name in ("stdout", "stderr"))
        truncated = any(stream.truncated() for stream in self._streams.values())
        return Outcome(TIMED_OUT if self.code is None else self.code, stdout, stderr, self.code is None, truncated)


def bounded(asked: float | None, most: float) -> float:
    """The seconds that a model asked for, but no more than it has."""
    return min(asked, most) if asked is not None and asked > 0 else most


def failed(error: Exception) -> Outcome:
    """Of a command that could not be started at all."""
    return Outcome(FAILED, "", str(error))


# ---- for event loops ----


async def collect(process: SandboxedProcess, timeout: float, limit: int) -> Kept:
    """Takes what it says, to its end. Who cancels the call ends the command."""
    kept, end = Kept(limit), time.monotonic() + timeout
    try:
        process.close_stdin()
        async for name, data in process.stream(include_stream=True, chunk_size=LIMIT):
            kept.add(name, data)
        kept.code = await process.wait(max(LEAST_S, end - time.monotonic()))
    except SandboxTimeout:
        pass
    return kept


async def run(sandbox: Sandbox, command: str | Sequence[str], timeout: float, limit: int = LIMIT) -> Outcome:
    """Runs a command to its end."""
    try:
        return (await collect(await sandbox.run(command, timeout), timeout, limit)).outcome()
    except (SandboxError, ValueError) as error:
        return failed(error)


async def run_code(sandbox: Sandbox, code: str, timeout: float, limit: int = LIMIT) -> Outcome:
    """Runs a program of Python's to its end."""
    try:
        return (await collect(await sandbox.run_script(code, timeout), timeout, limit)).outcome()
    except (SandboxError, ValueError) as error:
        return failed(error)


# ---- without one ----


def collect_sync(process: sync.SandboxedProcess, timeout: float, limit: int) -> Kept:
    """Takes what it says, to its end."""
    kept, end = Kept(limit), time.monotonic() + timeout
    try:
        process.close_stdin()
        for name, data in process.stream(include_stream=True, chunk_size=LIMIT):
            kept.add(name, data)
        kept.code = process.wait(max(LEAST_S, end - time.monotonic()))
    except SandboxTimeout:
        pass
    return kept


def run_sync(sandbox: sync.Sandbox, command: str | Sequence[str], timeout: float, limit: int = LIMIT) -> Outcome:
    """Runs a command to its end."""
    try:
        return collect_sync(sandbox.run(command, timeout), timeout, limit).outcome()
    except (SandboxError, ValueError) as error:
        return failed(error)


def run_code_sync(sandbox: sync.Sandbox, code: str, timeout: float, limit: int = LIMIT) -> Outcome:
    """Runs a program of Python's to its end."""
    try:
        return collect_sync(sandbox.run_script(code, timeout), timeout, limit).outcome()
    except (SandboxError, ValueError) as error:
        return failed(error)


# ---- files, by commands: what a path means is decided in the sandbox, whatever links were made there ----

FILE_BYTES = 64 << 20
NOT_FOUND = 4
SEND = '[ ! -d "$1" ] || exit 3; mkdir -p -- "${1%/*}/" && : >>"$1" || exit 5; cat >"$1" || exit 7'
FETCH = '[ ! -d "$1" ] || exit 3; [ -e "$1" ] || exit 4; [ -f "$1" ] || exit 6; head -c "$2" -- "$1" || exit 5'
REASONS = {
    3: "is_directory",
    NOT_FOUND: "file_not_found",
    5: "permission_denied",
    6: "invalid_path",
    7: "it could not be written whole",
    None: "it took too long",
}


def send(path: str) -> list[str]:
    """The command that writes its input to a file, and makes the directories above it."""
    return ["bash", "-c", SEND, "send", path]


def fetch(path: str, most: int) -> list[str]:
    """The command that says the first bytes of a file."""
    return ["bash", "-c", FETCH, "fetch", path, str(most)]


def reason(code: int | None) -> str | None:
    """Why one of them failed; None if it did not."""
    return None if code == 0 else REASONS.get(code, f"exit code {code}")


def is_path(path: str) -> bool:
    """Whether it can be an absolute path in the sandbox."""
    return path.startswith("/") and usable(path)
