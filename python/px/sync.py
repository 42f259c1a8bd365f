"""Sandboxes without an event loop: the same names, and calls that wait.

    from px.sync import Sandbox

    with Sandbox() as sandbox:
        stdout, stderr = sandbox.run("echo hello").communicate()

A command makes progress while somebody waits for it or reads its output. Each command belongs to one thread at a time;
a sandbox may be used by several.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Literal, TypeVar, Unpack, overload

from ._core import CommandOptions, SandboxBase
from ._loop import PlainLoop, now
from ._talk import Piece, Talk

__all__ = ["Sandbox", "SandboxedProcess"]

T = TypeVar("T")


def each(items: AsyncIterator[T]) -> Iterator[T]:
    """What the iterator gives, without an event loop."""
    while True:
        try:
            item = now(anext(items))
        except StopAsyncIteration:
            return
        yield item


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

    def wait(self, timeout: float | None = None, check: bool = False) -> int:
        """Its exit code. timeout: None means that of run().

        A command that says much must be read as well: communicate().
        """
        return now(self._wait(timeout, check))

    def communicate(
        self,
        input: bytes | None = None,  # noqa: A002
        timeout: float | None = None,
        check: bool = False,
    ) -> tuple[bytes, bytes]:
        """Sends the input, closes it, and returns all of the output. On a terminal everything is in the first part."""
        return now(self._communicate(input, timeout, check))

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
        return each(self._stream(include_stream, decode, chunk_size))

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
        return each(self._stream_lines(include_stream, decode))


class Sandbox(SandboxBase):
    """A place to run commands in: a root that cannot be changed, a home and a /tmp that can, no way out."""

    def run(
        self,
        command: str | Sequence[str],
        timeout: float | None = 10.0,
        use_pty: bool = False,
        ns_pid_override: int | None = None,
        **options: Unpack[CommandOptions],
    ) -> SandboxedProcess:
        """Starts a command: a text for `bash -c`, or a list of words. As px.Sandbox.run."""
        return self._run(SandboxedProcess, PlainLoop(), command, timeout, use_pty, ns_pid_override, **options)

    def run_script(
        self,
        code: str,
        timeout: float | None = 10.0,
        run_command: str = "python",
        extension: str = "py",
        ns_pid_override: int | None = None,
        **options: Unpack[CommandOptions],
    ) -> SandboxedProcess:
        """Writes the code to a file in the sandbox's /tmp and runs it with run_command."""
        command = self._write_script(code, run_command, extension)
        return self.run(command, timeout, ns_pid_override=ns_pid_override, **options)
