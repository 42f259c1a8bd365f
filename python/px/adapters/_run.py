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
LEAST_S = 0.01
TIMED_OUT, FAILED = 124, 125
COMMAND = "Run a shell command in the sandbox, with bash. Files of its home and of /tmp stay for the next command."
CODE = "Run a Python program in the sandbox. Only what it prints is seen; files of its home stay for the next one."


@dataclass(frozen=True)
class Outcome:
    """How a command ended. truncated: it said more than is kept here."""

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
        parts.append("[the output is cut here: it was longer]" if self.truncated else "")
        parts.append("[it ran too long and was killed]" if self.timed_out else "")
        parts.append(f"[exit code {self.exit_code}]" if self.exit_code and not self.timed_out else "")
        return "\n".join(part.rstrip("\n") for part in parts if part) or "[no output]"


class Kept:
    """The first bytes of each stream, and how it ended: code is None if it ran too long."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._streams = {"stdout": bytearray(), "stderr": bytearray()}
        self._truncated = False
        self.code: int | None = None

    def add(self, name: str, data: bytes) -> None:
        """What there is room for; the rest is dropped, so that the command goes on."""
        stream = self._streams[name]
        room = self._limit - len(stream)
        stream += data[:room]
        self._truncated = self._truncated or len(data) > room

    def read(self, name: str) -> bytes:
        """What one of them said."""
        return bytes(self._streams[name])

    def outcome(self) -> Outcome:
        """All of it, as text."""
        stdout, stderr = (self.read(name).decode("utf-8", "replace") for name in ("stdout", "stderr"))
        late = self.code is None
        return Outcome(TIMED_OUT if self.code is None else self.code, stdout, stderr, late, self._truncated)


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
