"""Sandboxes without an event loop: the same names, and calls that wait.

    from px.sync import Sandbox

    with Sandbox() as sandbox:
        stdout, stderr = sandbox.run("echo hello").communicate()

A command makes progress while somebody waits for it or reads its output. Each command belongs to one thread at a time;
a sandbox may be used by several.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import time
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Literal, overload

from ._core import SandboxBase
from ._errors import SandboxError, SandboxTimeout
from ._process import ProcessBase
from ._streams import CHUNK, Lines, decoder, shown

__all__ = ["Sandbox", "SandboxedProcess"]


class SandboxedProcess(ProcessBase):
    """A command that runs in a sandbox."""

    _pending = b""
    _ending = False  # the input is to be closed once nothing is pending

    # ---- one turn of everything ----

    def _fd(self, name: str) -> int:
        return self._pipes.stdout if name == "stdout" else self._pipes.stderr

    def _open(self) -> set[str]:
        """The streams that may still say something."""
        names = {"stdout"} if self._pipes.pty else {"stdout", "stderr"}
        return {name for name in names if self._fd(name) >= 0}

    def _turn(self, names: set[str], end: float | None) -> list[tuple[str, bytes]]:
        """Waits until something can be done, and does it: what was read. Streams that end are taken out of names."""
        watch = select.poll()
        if self._box is not None:
            watch.register(self._box.fileno(), select.POLLIN)
        for name in names:
            watch.register(self._fd(name), select.POLLIN)
        writing = bool(self._pending) and self._pipes.stdin >= 0
        if writing:
            both = self._pipes.pty and "stdout" in names
            watch.register(self._pipes.stdin, select.POLLOUT | (select.POLLIN if both else 0))
        left = None if end is None else max(0.0, end - time.monotonic())
        ready = {fd for fd, _ in watch.poll(None if left is None else math.ceil(left * 1000))}
        if end is not None and time.monotonic() >= end:
            raise TimeoutError
        if writing and self._pipes.stdin in ready:
            self._write()
        if self._box is not None and self._box.fileno() in ready:
            self._step()
        return [
            found
            for name in sorted(names, reverse=True)
            if self._fd(name) in ready
            for found in self._read(name, names)
        ]

    def _read(self, name: str, names: set[str]) -> list[tuple[str, bytes]]:
        try:
            data = os.read(self._fd(name), CHUNK)
        except (BlockingIOError, InterruptedError):
            return []
        except OSError:
            data = b""
        if data:
            return [(name, data)]
        names.discard(name)
        return []

    def _write(self) -> None:
        try:
            self._pending = self._pending[os.write(self._pipes.stdin, self._pending) :]
        except (BlockingIOError, InterruptedError):
            return
        except OSError:  # it reads no more
            self._pending = b""
        if self._ending and not self._pending:
            self._pipes.close_stdin()

    # ---- input ----

    def send(self, data: bytes) -> None:
        """To its standard input or its terminal; returns when all of it is on its way."""
        if self._pipes.stdin < 0:
            raise BrokenPipeError("standard input is closed")
        self._pending += data
        try:
            while self._pending and self._box is not None:
                self._turn(set(), None)
        except BaseException:
            self.kill()
            raise

    def send_text(self, text: str, encoding: str = "utf-8") -> None:
        """The same for text."""
        self.send(text.encode(encoding))

    def close_stdin(self) -> None:
        """The end of its input, after what was sent; on a terminal the character that means it."""
        if self._pending:
            self._ending = True
        else:
            self._pipes.close_stdin()

    def close_pty(self) -> None:
        """Gives the terminal's descriptor back; may be called again."""
        if self._pipes.pty:
            self._pipes.close()

    # ---- the end ----

    def _end_of(self, timeout: float | None) -> tuple[float | None, float]:
        seconds = self._timeout if timeout is None else timeout
        return (None, 0.0) if seconds is None else (time.monotonic() + seconds, seconds)

    def _overdue(self, seconds: float, kept: Mapping[str, bytearray]) -> SandboxTimeout:
        """Ends it, and takes what it had said."""
        self.kill()
        self._pending = b""
        names = self._open()
        while names or self._box is not None:
            for name, data in self._turn(names, None):
                kept.get(name, bytearray()).extend(data)
        return SandboxTimeout(seconds, *(bytes(kept.get(name, b"")) for name in ("stdout", "stderr")))

    def poll(self) -> int | None:
        """Its exit code if it has ended by now."""
        self._step()
        return self.returncode

    def wait(self, timeout: float | None = None, check: bool = False) -> int:
        """Its exit code. timeout: None means that of run().

        A command that says much must be read as well: communicate().
        """
        end, seconds = self._end_of(timeout)
        try:
            while self._box is not None:
                self._turn(set(), end)
        except TimeoutError:
            raise self._overdue(seconds, {}) from None
        except BaseException:
            self.kill()
            raise
        return self._checked(check)

    def communicate(
        self,
        input: bytes | None = None,  # noqa: A002
        timeout: float | None = None,
        check: bool = False,
    ) -> tuple[bytes, bytes]:
        """Sends the input, closes it, and returns all of the output. On a terminal everything is in the first part."""
        end, seconds = self._end_of(timeout)
        kept = {"stdout": bytearray(), "stderr": bytearray()}
        names = self._open()
        if input and self._pipes.stdin >= 0:
            self._pending += input
        self.close_stdin()
        try:
            while names or self._box is not None:
                for name, data in self._turn(names, end):
                    kept[name] += data
        except TimeoutError:
            raise self._overdue(seconds, kept) from None
        except BaseException:
            self.kill()
            raise
        stdout, stderr = bytes(kept["stdout"]), bytes(kept["stderr"])
        if not self._pipes.pty:
            self._pipes.close()
        self._checked(check, stdout, stderr)
        return stdout, stderr

    def _chunks(self) -> Iterator[tuple[str, bytes]]:
        end, seconds = self._end_of(None)
        names = self._open()
        try:
            while names:
                yield from self._turn(names, end)
        except TimeoutError:
            raise self._overdue(seconds, {}) from None
        except GeneratorExit:  # who stops reading may still wait
            raise
        except BaseException:
            self.kill()
            raise

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
    ) -> Iterator[bytes | str | tuple[str, bytes] | tuple[str, str]]:
        """The output as it comes; with include_stream as ("stdout" or "stderr", data)."""
        decoders = {name: decoder() for name in ("stdout", "stderr")}
        for name, data in self._chunks():
            for at in range(0, len(data), chunk_size):
                part = data[at : at + chunk_size]
                piece: bytes | str = decoders[name].decode(part) if decode else part
                if piece:
                    yield (name, piece) if include_stream else piece  # type: ignore[misc]
        for name, rest in ((name, found.decode(b"", True)) for name, found in decoders.items() if decode):
            if rest:
                yield (name, rest) if include_stream else rest

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

    def stream_lines(
        self, *, include_stream: bool = False, decode: bool = True
    ) -> Iterator[bytes | str | tuple[str, bytes] | tuple[str, str]]:
        """The output line by line, each with its end; the last one may have none."""
        found = {name: Lines() for name in ("stdout", "stderr")}
        for name, data in self._chunks():
            for line in found[name].add(data):
                yield shown(name, line, include_stream, decode)
        for name, lines in found.items():
            for line in lines.flush():
                yield shown(name, line, include_stream, decode)

    def _lost(self) -> None:
        """The sandbox was closed: what nobody has read by now nobody will."""
        self._pending = b""
        with contextlib.suppress(SandboxError):
            if self._step():
                self._pipes.close()
            while self._step():
                self._turn(set(), None)

    def __del__(self) -> None:
        self._pipes.close()


class Sandbox(SandboxBase):
    """A place to run commands in: a root that cannot be changed, a home and a /tmp that can, no way out."""

    def run(
        self,
        command: str | Sequence[str],
        timeout: float | None = 10.0,
        use_pty: bool = False,
        ns_pid_override: int | None = None,
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> SandboxedProcess:
        """Starts a command: a text for `bash -c`, or a list of words. As px.Sandbox.run."""
        return self._run(SandboxedProcess, command, timeout, use_pty, ns_pid_override, env, cwd)

    def run_script(
        self,
        code: str,
        timeout: float | None = 10.0,
        run_command: str = "python",
        extension: str = "py",
        ns_pid_override: int | None = None,
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> SandboxedProcess:
        """Writes the code to a file in the sandbox's /tmp and runs it with run_command."""
        command = self._write_script(code, run_command, extension)
        return self.run(command, timeout, ns_pid_override=ns_pid_override, env=env, cwd=cwd)

    def __enter__(self) -> Sandbox:
        self._alive()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
