"""The names that hosted sandboxes have for what a sandbox does: sandbox.commands, sandbox.files, sandbox.pty.

Coroutines for event loops; px.sync makes plain functions of them. A command that fails is a result, here as everywhere
in px: it raises with check=True only.
"""

from __future__ import annotations

import inspect
import os
import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, Self, TypedDict, TypeVar, Unpack, overload

from ._core import HOME, Command, SandboxBase
from ._errors import FileSandboxError, FileTooLargeError, SandboxError, SandboxFileNotFoundError
from ._streams import CHUNK, decoder
from ._talk import Talk

TIMEOUT = 60.0
MAX_BYTES = 64 << 20
MISSING = 44  # the exit code of the lines of bash below
Listener = Callable[[str], object]
Kind = Literal["file", "dir", "link", "other"]
T = TypeVar("T")


class Part(Generic[T]):
    """A property of a sandbox that is another view of it."""

    def __init__(self, kind: Callable[[SandboxBase[Any]], T]) -> None:
        self._kind = kind

    def __get__(self, sandbox: SandboxBase[Any] | None, owner: object) -> T:
        if sandbox is None:
            raise AttributeError("only a sandbox has it, not its class")
        return self._kind(sandbox)


# ---- commands and terminals ----


@dataclass
class CommandResult:
    """How a command ended."""

    stdout: str
    stderr: str
    exit_code: int


@dataclass
class PtySize:
    """Of a terminal."""

    rows: int = 24
    cols: int = 80


class RunOptions(TypedDict, total=False):
    """Of commands.run().

    envs, cwd: variables and working directory
    timeout:   seconds; None: no bound
    check:     another exit code than 0 is a CommandError
    on_stdout, on_stderr: are told what the command says, while somebody waits for it
    """

    envs: Mapping[str, str] | None
    cwd: str | None
    timeout: float | None
    check: bool
    on_stdout: Listener | None
    on_stderr: Listener | None


class HandleBase:
    """A command in the background; process is the same with the names of px."""

    def __init__(self, process: Talk, check: bool, on_stdout: Listener | None, on_stderr: Listener | None) -> None:
        self.process = process
        self._check, self._listeners = check, {"stdout": on_stdout, "stderr": on_stderr}
        self._heard: dict[str, list[str]] = {"stdout": [], "stderr": []}

    @property
    def pid(self) -> int:
        """As the host counts."""
        return self.process.pid

    @property
    def stdout(self) -> str:
        """What was heard so far."""
        return "".join(self._heard["stdout"])

    @property
    def stderr(self) -> str:
        """What was heard so far."""
        return "".join(self._heard["stderr"])

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self.process.returncode

    def alone(self) -> Self:
        """Without input."""
        self.process.close_stdin()
        return self

    def kill(self) -> bool:
        """Ends it; whether there was something to end."""
        alive = self.process.returncode is None
        self.process.kill()
        return alive

    async def _hear(self, name: str, text: str) -> None:
        listener = self._listeners[name]
        if not text:
            return
        self._heard[name].append(text)
        answer = listener(text) if listener is not None else None
        if inspect.isawaitable(answer):
            await answer


class CommandHandle(HandleBase):
    """A command in the background."""

    async def wait(self) -> CommandResult:
        """Its output and exit code."""
        decoders = {name: decoder() for name in self._heard}
        bound = self.process._end_of(None)
        while found := await self.process._more(CHUNK, bound):
            for name, data in found:
                await self._hear(name, decoders[name].decode(data))
        for name, last in decoders.items():
            await self._hear(name, last.decode(b"", True))
        await self.process._wait(None, False)
        self.process.close_pty()
        code = self.process._checked(self._check, self.stdout.encode(), self.stderr.encode())
        return CommandResult(self.stdout, self.stderr, code)

    async def send_stdin(self, data: str | bytes) -> None:
        """To its input."""
        await self.process._send(data.encode() if isinstance(data, str) else data, 0)


Handle = TypeVar("Handle", bound=HandleBase)


def start(
    kind: type[Handle],
    sandbox: SandboxBase[Any],
    cmd: Command,
    *,
    envs: Mapping[str, str] | None = None,
    cwd: str | None = None,
    timeout: float | None = TIMEOUT,
    check: bool = False,
    on_stdout: Listener | None = None,
    on_stderr: Listener | None = None,
    size: PtySize | None = None,
) -> Handle:
    """A command; size: on a terminal."""
    options = {} if size is None else {"rows": size.rows, "cols": size.cols}
    process = sandbox._run(cmd, timeout, size is not None, env=envs, cwd=cwd, **options)
    return kind(process, check, on_stdout, on_stderr)


class CommandsBase:
    """The commands of a sandbox, by their pids."""

    def __init__(self, sandbox: SandboxBase[Any]) -> None:
        self._sandbox = sandbox

    def _find(self, pid: int) -> Talk | None:
        alive = [one for one in self._sandbox._processes if one.pid == pid and one.returncode is None]
        return alive[0] if alive else None

    def _found(self, pid: int) -> Talk:
        process = self._find(pid)
        if process is None:
            raise SandboxError(f"no command of this sandbox has the pid {pid}", fix="Use the pid of a handle.")
        return process

    def kill(self, pid: int) -> bool:
        """Ends a command; whether there was one."""
        process = self._find(pid)
        if process is not None:
            process.kill()
        return process is not None


class Commands(CommandsBase):
    """sandbox.commands."""

    @overload
    async def run(
        self, cmd: Command, background: Literal[False] = False, **options: Unpack[RunOptions]
    ) -> CommandResult: ...
    @overload
    async def run(
        self, cmd: Command, background: Literal[True], **options: Unpack[RunOptions]
    ) -> CommandHandle: ...

    async def run(
        self, cmd: Command, background: bool = False, **options: Unpack[RunOptions]
    ) -> CommandResult | CommandHandle:
        """Runs a command to its end, without input; or starts one, for its handle to be waited for."""
        handle = start(CommandHandle, self._sandbox, cmd, **options)
        return handle if background else await handle.alone().wait()

    async def send_stdin(self, pid: int, data: str | bytes) -> None:
        """To the input of a command."""
        await self._found(pid)._send(data.encode() if isinstance(data, str) else data, 0)


class PtyOptions(TypedDict, total=False):
    """Of pty.create(): variables, working directory, seconds or no bound."""

    envs: Mapping[str, str] | None
    cwd: str | None
    timeout: float | None


class PtyBase(CommandsBase):
    """Terminals of a sandbox, each with a shell."""

    def _create(
        self,
        kind: type[Handle],
        size: PtySize | None,
        on_data: Listener | None,
        **options: Unpack[PtyOptions],
    ) -> Handle:
        options["envs"] = {"TERM": "xterm-256color", **(options.get("envs") or {})}
        words = ["bash", "-i", "-l"]
        return start(kind, self._sandbox, words, on_stdout=on_data, size=size or PtySize(), **options)

    def resize(self, pid: int, size: PtySize) -> None:
        """Of the terminal of a command."""
        self._found(pid).set_terminal_size(size.rows, size.cols)


class Pty(PtyBase):
    """sandbox.pty."""

    send_stdin = Commands.send_stdin

    async def create(
        self, size: PtySize | None = None, on_data: Listener | None = None, **options: Unpack[PtyOptions]
    ) -> CommandHandle:
        """A shell on a terminal; on_data is told what it says, while somebody waits for the handle."""
        return self._create(CommandHandle, size, on_data, **options)


# ---- files ----


@dataclass
class EntryInfo:
    """A file or directory of the sandbox; modified: seconds since 1970."""

    name: str
    path: str
    type: Kind
    size: int
    modified: float


KINDS: dict[str, Kind] = {"f": "file", "d": "dir", "l": "link"}
THERE = f'[ -e "$1" ] || [ -L "$1" ] || exit {MISSING}; '
SHOWN = " -printf '%y %s %T@ %p\\0'"
INFO = f'{THERE}find "$1" -maxdepth 0{SHOWN}'
READ = f'{THERE}cat "$1"'
WRITE = f'mkdir -p "$2" && cat > "$1" || exit 1; {INFO}'
LIST = f'{THERE}[ -d "$1" ] || {{ echo not a directory >&2; exit 1; }}; find -H "$1" -mindepth 1 -maxdepth "$2"{SHOWN}'
REMOVE = f'{THERE}rm -rf "$1"'
RENAME = f'{THERE}mv -T "$1" "$2" || exit 1; shift; {INFO}'
MAKE_DIR = '[ -d "$1" ] && echo there || mkdir -p "$1"'


def entries(data: bytes) -> list[EntryInfo]:
    """What find has printed."""
    found = []
    for line in data.split(b"\0")[:-1]:
        kind, size, modified, path = os.fsdecode(line).split(" ", 3)
        found.append(EntryInfo(posixpath.basename(path), path, KINDS.get(kind, "other"), int(size), float(modified)))
    return sorted(found, key=lambda entry: entry.path)


def entry(data: bytes) -> EntryInfo:
    """The same of one file."""
    return entries(data)[0]


def placed(path: str) -> str:
    """From the home on, as for a command; never an option."""
    if not path:
        raise ValueError("path: it is empty")
    return posixpath.normpath(posixpath.join(HOME, path))


class FilesBase:
    """Files as the commands of the sandbox see them: bash in the box looks, so a link leads nowhere but in the box."""

    def __init__(self, sandbox: SandboxBase[Any]) -> None:
        self._sandbox = sandbox

    async def _ask(self, line: str, path: str, *more: str, data: bytes = b"", max_bytes: int = MAX_BYTES) -> bytes:
        """What a line of bash says of the path."""
        code, stdout, stderr = await self._answer(line, path, *more, data=data, max_bytes=max_bytes)
        if code == MISSING:
            raise SandboxFileNotFoundError(f"there is no '{path}' in the sandbox")
        if code != 0:
            raise FileSandboxError(f"'{path}' in the sandbox: {stderr.decode('utf-8', 'replace').strip()}")
        return stdout

    async def _answer(
        self, line: str, path: str, *more: str, data: bytes = b"", max_bytes: int = MAX_BYTES
    ) -> tuple[int, bytes, bytes]:
        """Its exit code and output; who says more than max_bytes is ended: it is the box that speaks."""
        process = self._sandbox._run(["bash", "-c", line, "px", placed(path), *more], TIMEOUT)
        process._writer().write(data)
        process.close_stdin()
        said = {"stdout": bytearray(), "stderr": bytearray()}
        bound = process._end_of(None)
        while found := await process._more(CHUNK, bound):
            for name, piece in found:
                said[name] += piece
            size = sum(map(len, said.values()))
            if size > max_bytes:
                process.kill()
                process._discard()
                await process._wait(None, False)
                raise FileTooLargeError(path, size, max_bytes)
        code = await process._wait(None, False)
        return code, bytes(said["stdout"]), bytes(said["stderr"])

    async def _read(self, path: str, kind: str, max_bytes: int) -> str | bytes:
        if kind not in ("text", "bytes"):
            raise ValueError(f"format: '{kind}' is neither text nor bytes")
        data = await self._ask(READ, path, max_bytes=max_bytes)
        return data.decode("utf-8", "replace") if kind == "text" else data


class Files(FilesBase):
    """sandbox.files: relative paths are below the home. A missing file is a FileNotFoundError."""

    @overload
    async def read(self, path: str, format: Literal["text"] = "text", max_bytes: int = MAX_BYTES) -> str: ...
    @overload
    async def read(self, path: str, format: Literal["bytes"], max_bytes: int = MAX_BYTES) -> bytes: ...

    async def read(
        self,
        path: str,
        format: Literal["text", "bytes"] = "text",  # noqa: A002
        max_bytes: int = MAX_BYTES,
    ) -> str | bytes:
        """What is in a file; one that is longer than max_bytes is an error."""
        return await self._read(path, format, max_bytes)

    async def write(self, path: str, data: str | bytes) -> EntryInfo:
        """Writes a file, and makes the directories above it."""
        content = data.encode() if isinstance(data, str) else data
        return entry(await self._ask(WRITE, path, posixpath.dirname(placed(path)), data=content))

    async def list(self, path: str, depth: int = 1) -> list[EntryInfo]:
        """What is below a directory, so deep; sorted by path."""
        return entries(await self._ask(LIST, path, str(int(depth))))

    async def exists(self, path: str) -> bool:
        """Whether there is something."""
        return (await self._answer(THERE, path))[0] == 0

    async def get_info(self, path: str) -> EntryInfo:
        """What it is."""
        return entry(await self._ask(INFO, path))

    async def remove(self, path: str) -> None:
        """A file, or a directory with all that is in it."""
        await self._ask(REMOVE, path)

    async def rename(self, old_path: str, new_path: str) -> EntryInfo:
        """A file at the new path is replaced."""
        return entry(await self._ask(RENAME, old_path, placed(new_path)))

    async def make_dir(self, path: str) -> bool:
        """With those above it; False if it was there."""
        return await self._ask(MAKE_DIR, path) == b""
