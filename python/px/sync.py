"""Sandboxes without an event loop: the same names, and calls that wait.

    from px.sync import Sandbox

    with Sandbox() as sandbox:
        stdout, stderr = sandbox.run("echo hello").communicate()

A command makes progress while somebody waits for it or reads its output. Each command belongs to one thread at a time;
a sandbox may be used by several.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Literal, Unpack, overload

from . import _async, _hosted
from ._core import Command, CommandOptions, SandboxBase
from ._hosted import MAX_BYTES, CommandResult, Part, RunOptions
from ._loop import PlainLoop, now, plain
from ._policy import TIMEOUT
from ._streams import CHUNK, Lines, Pieces
from ._talk import Piece, Stream, Talk

__all__ = ["CommandHandle", "Sandbox", "SandboxedProcess"]


def each(items: Stream) -> Iterator[Piece]:
    """What the iterator gives, without an event loop."""
    with contextlib.suppress(StopAsyncIteration):
        while True:
            yield now(items.__anext__())


class SandboxedProcess(Talk):
    """A command that runs in a sandbox."""

    def send(self, data: bytes) -> None:
        """To its standard input or its terminal; returns when all of it is on its way."""
        now(self._send(data, 0))

    def send_text(self, text: str, encoding: str = "utf-8") -> None:
        """The same for text."""
        self.send(text.encode(encoding))

    def poll(self) -> int | None:
        """Its exit code if it has ended by now."""
        watch = self._begin()
        if watch is not None and not watch.step() and watch.error is not None:
            raise watch.error
        return self.returncode

    wait = plain(_async.SandboxedProcess.wait)
    communicate = plain(_async.SandboxedProcess.communicate)

    @overload
    def stream(
        self, *, include_stream: Literal[False] = False, decode: Literal[False] = False, chunk_size: int = 4096
    ) -> Iterator[bytes]: ...
    @overload
    def stream(
        self, *, include_stream: Literal[False] = False, decode: Literal[True], chunk_size: int = 4096
    ) -> Iterator[str]: ...
    @overload
    def stream(
        self, *, include_stream: Literal[True], decode: Literal[False] = False, chunk_size: int = 4096
    ) -> Iterator[tuple[str, bytes]]: ...
    @overload
    def stream(
        self, *, include_stream: Literal[True], decode: Literal[True], chunk_size: int = 4096
    ) -> Iterator[tuple[str, str]]: ...

    def stream(
        self, *, include_stream: bool = False, decode: bool = False, chunk_size: int = 4096
    ) -> Iterator[Piece]:
        """The output as it comes; with include_stream as ("stdout" or "stderr", data)."""
        return each(Stream(self, lambda: Pieces(decode), include_stream, chunk_size))

    @overload
    def stream_lines(
        self, *, include_stream: Literal[False] = False, decode: Literal[True] = True
    ) -> Iterator[str]: ...
    @overload
    def stream_lines(self, *, include_stream: Literal[False] = False, decode: Literal[False]) -> Iterator[bytes]: ...
    @overload
    def stream_lines(
        self, *, include_stream: Literal[True], decode: Literal[True] = True
    ) -> Iterator[tuple[str, str]]: ...
    @overload
    def stream_lines(self, *, include_stream: Literal[True], decode: Literal[False]) -> Iterator[tuple[str, bytes]]: ...

    def stream_lines(self, *, include_stream: bool = False, decode: bool = True) -> Iterator[Piece]:
        """The output line by line, each with its end; the last one may have none."""
        return each(Stream(self, lambda: Lines(decode), include_stream, CHUNK))


class CommandHandle(_hosted.HandleBase):
    """A command in the background."""

    wait = plain(_hosted.CommandHandle.wait)
    send_stdin = plain(_hosted.CommandHandle.send_stdin)


class Commands(_hosted.CommandsBase):
    """sandbox.commands."""

    send_stdin = plain(_hosted.Commands.send_stdin)

    @overload
    def run(self, cmd: Command, background: Literal[False] = False, **options: Unpack[RunOptions]) -> CommandResult: ...
    @overload
    def run(self, cmd: Command, background: Literal[True], **options: Unpack[RunOptions]) -> CommandHandle: ...

    def run(
        self, cmd: Command, background: bool = False, **options: Unpack[RunOptions]
    ) -> CommandResult | CommandHandle:
        """Runs a command to its end, without input; or starts one, for its handle to be waited for."""
        handle = _hosted.start(CommandHandle, self._sandbox, cmd, **options)
        return handle if background else handle.alone().wait()


class Pty(_hosted.PtyBase):
    """sandbox.pty."""

    send_stdin = plain(_hosted.Commands.send_stdin)

    def create(
        self,
        size: _hosted.PtySize | None = None,
        on_data: _hosted.Listener | None = None,
        **options: Unpack[_hosted.PtyOptions],
    ) -> CommandHandle:
        """A shell on a terminal; on_data is told what it says, while somebody waits for the handle."""
        return self._create(CommandHandle, size, on_data, **options)


class Files(_hosted.FilesBase):
    """sandbox.files: relative paths are below the home. A missing file is a FileNotFoundError."""

    @overload
    def read(self, path: str, format: Literal["text"] = "text", max_bytes: int = MAX_BYTES) -> str: ...
    @overload
    def read(self, path: str, format: Literal["bytes"], max_bytes: int = MAX_BYTES) -> bytes: ...

    def read(
        self,
        path: str,
        format: Literal["text", "bytes"] = "text",  # noqa: A002
        max_bytes: int = MAX_BYTES,
    ) -> str | bytes:
        """What is in a file; one that is longer than max_bytes is an error."""
        return now(self._read(path, format, max_bytes))

    write = plain(_hosted.Files.write)
    list = plain(_hosted.Files.list)
    exists = plain(_hosted.Files.exists)
    get_info = plain(_hosted.Files.get_info)
    remove = plain(_hosted.Files.remove)
    rename = plain(_hosted.Files.rename)
    make_dir = plain(_hosted.Files.make_dir)


class Sandbox(SandboxBase[SandboxedProcess]):
    """A place to run commands in: a root that cannot be changed, a home and a /tmp that can, no way out."""

    commands, files, pty = Part(Commands), Part(Files), Part(Pty)
    _kind = SandboxedProcess

    export = plain(_async.Sandbox.export)

    def _loop(self) -> PlainLoop:
        return PlainLoop()

    def run(
        self,
        command: Command,
        timeout: float | None = TIMEOUT,
        use_pty: bool = False,
        ns_pid_override: int | None = None,
        **options: Unpack[CommandOptions],
    ) -> SandboxedProcess:
        """Starts a command: a text for `bash -c`, or a list of words. As px.Sandbox.run."""
        return self._run(command, timeout, use_pty, ns_pid_override, **options)

    def run_script(
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
        return self.run(command, timeout, ns_pid_override=ns_pid_override, **options)
