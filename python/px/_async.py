"""Sandboxes for asyncio, uvloop and trio."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import TracebackType
from typing import Literal, Self, Unpack, overload

from . import _px
from ._core import Command, CommandOptions, SandboxBase
from ._export import MAX_BYTES, export
from ._folders import StrPath
from ._hosted import Commands, Files, Part, Pty
from ._loop import Loop, running
from ._policy import TIMEOUT
from ._process import Home, Pipes
from ._streams import CHUNK, HIGH, Lines, Pieces, ProcessInput, ProcessOutput, Watch
from ._talk import Piece, Stream, Talk


class SandboxedProcess(Talk):
    """A command that runs in a sandbox, for the event loop that started it."""

    def __init__(self, box: _px.Box, pipes: Pipes, sandbox: Home, timeout: float | None, loop: Loop) -> None:
        super().__init__(box, pipes, sandbox, timeout, loop)
        self._begin()

    @property
    def stdin(self) -> ProcessInput | None:
        """None in PTY mode."""
        return None if self._pipes.pty else self._writer()

    @property
    def stdout(self) -> ProcessOutput | None:
        """None in PTY mode."""
        return None if self._pipes.pty else self._output["stdout"]

    @property
    def stderr(self) -> ProcessOutput | None:
        """None in PTY mode."""
        return None if self._pipes.pty else self._output["stderr"]

    async def send(self, data: bytes) -> None:
        """To its standard input or its terminal."""
        await self._send(data, HIGH)

    async def send_text(self, text: str, encoding: str = "utf-8") -> None:
        """The same for text."""
        await self.send(text.encode(encoding))

    async def wait(self, timeout: float | None = None, check: bool = False) -> int:
        """Its exit code. timeout: None means that of run().

        A command that says much must be read as well: communicate().
        """
        return await self._wait(timeout, check)

    async def communicate(
        self,
        input: bytes | None = None,  # noqa: A002
        timeout: float | None = None,
        check: bool = False,
    ) -> tuple[bytes, bytes]:
        """Sends the input, closes it, and returns all of the output. On a terminal everything is in the first part."""
        return await self._communicate(input, timeout, check)

    @overload
    def stream(
        self, *, include_stream: Literal[False] = False, decode: Literal[False] = False, chunk_size: int = 4096
    ) -> AsyncIterator[bytes]: ...
    @overload
    def stream(
        self, *, include_stream: Literal[False] = False, decode: Literal[True], chunk_size: int = 4096
    ) -> AsyncIterator[str]: ...
    @overload
    def stream(
        self, *, include_stream: Literal[True], decode: Literal[False] = False, chunk_size: int = 4096
    ) -> AsyncIterator[tuple[str, bytes]]: ...
    @overload
    def stream(
        self, *, include_stream: Literal[True], decode: Literal[True], chunk_size: int = 4096
    ) -> AsyncIterator[tuple[str, str]]: ...

    def stream(
        self, *, include_stream: bool = False, decode: bool = False, chunk_size: int = 4096
    ) -> AsyncIterator[Piece]:
        """The output as it comes; with include_stream as ("stdout" or "stderr", data)."""
        return Stream(self, lambda: Pieces(decode), include_stream, chunk_size)

    @overload
    def stream_lines(
        self, *, include_stream: Literal[False] = False, decode: Literal[True] = True
    ) -> AsyncIterator[str]: ...
    @overload
    def stream_lines(
        self, *, include_stream: Literal[False] = False, decode: Literal[False]
    ) -> AsyncIterator[bytes]: ...
    @overload
    def stream_lines(
        self, *, include_stream: Literal[True], decode: Literal[True] = True
    ) -> AsyncIterator[tuple[str, str]]: ...
    @overload
    def stream_lines(
        self, *, include_stream: Literal[True], decode: Literal[False]
    ) -> AsyncIterator[tuple[str, bytes]]: ...

    def stream_lines(self, *, include_stream: bool = False, decode: bool = True) -> AsyncIterator[Piece]:
        """The output line by line, each with its end; the last one may have none."""
        return Stream(self, lambda: Lines(decode), include_stream, CHUNK)


class Sandbox(SandboxBase[SandboxedProcess]):
    """A place to run commands in: a root that cannot be changed, a home and a /tmp that can, no way out.

    All commands share the files, the processes and the network of the sandbox. docs/python.md tells the rest.
    """

    commands, files, pty = Part(Commands), Part(Files), Part(Pty)
    _kind = SandboxedProcess
    _followed: Loop | None = None

    async def run(
        self,
        command: Command,
        timeout: float | None = TIMEOUT,
        use_pty: bool = False,
        ns_pid_override: int | None = None,
        **options: Unpack[CommandOptions],
    ) -> SandboxedProcess:
        """Starts a command: a text for `bash -c`, or a list of words.

        timeout: seconds that wait() and communicate() give it, and stream() and stream_lines() if it is named here;
                 None: no bound
        use_pty: on a terminal of its own
        env, cwd: variables and working directory of this command
        """
        return self._run(command, timeout, use_pty, ns_pid_override, **options)

    async def run_script(
        self,
        code: str,
        timeout: float | None = TIMEOUT,
        run_command: str = "python",
        extension: str = "py",
        ns_pid_override: int | None = None,
        **options: Unpack[CommandOptions],
    ) -> SandboxedProcess:
        """Writes the code to a file in the sandbox's /tmp and runs it with run_command."""
        command = self._write_script(code, run_command, extension)
        return await self.run(command, timeout, ns_pid_override=ns_pid_override, **options)

    async def export(self, path: StrPath, timeout: float | None = None, max_bytes: int = MAX_BYTES) -> None:
        """Writes the root, with the changes of an overlay, to a new file: a tar that rootfs= and px sandbox base import take.

        The sandbox's own tar makes it. The home, /tmp, binds and other mounts are left out.
        timeout: seconds; None: no bound
        """
        await export(self, path, timeout, max_bytes)

    def _loop(self) -> Loop:
        """It follows the box itself, too, which has work now and then: bounds on its disk, processes that outlived."""
        loop = running()
        if self._followed is not loop:
            while self._watchers:
                self._watchers.pop()()
            self._followed = loop
            self._watchers.append(Watch(self._alive(), loop).stop)
        return loop

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
