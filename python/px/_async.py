"""Sandboxes for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from types import TracebackType
from typing import Literal, TypeVar, overload

from . import _px
from ._core import SandboxBase
from ._errors import SandboxError, SandboxTimeout
from ._process import Home, Pipes, ProcessBase
from ._streams import CHUNK, Collect, Feed, Lines, ProcessInput, Pump, Watch, decoder, shown

T = TypeVar("T")


class SandboxedProcess(ProcessBase):
    """A command that runs in a sandbox, for the event loop that started it."""

    def __init__(self, box: _px.Box, pipes: Pipes, sandbox: Home, timeout: float | None) -> None:
        super().__init__(box, pipes, sandbox, timeout)
        self._loop = asyncio.get_running_loop()
        self._readers: dict[str, asyncio.StreamReader] = {}
        self._feeds: dict[str, Pump] = {}
        self._input: ProcessInput | None = None
        self._watch = Watch(box, self._loop, self._take_end)

    # ---- streams ----

    def _reader(self, name: str) -> asyncio.StreamReader:
        """Reading begins with the first one who asks; until then the command's output waits in the pipe."""
        reader = self._readers.get(name)
        if reader is None:
            reader = self._readers[name] = asyncio.StreamReader(limit=CHUNK, loop=self._loop)
            fd = self._fd(name)
            if fd < 0 or name in self._feeds:  # there is no more, or it was collected
                reader.feed_eof()
            else:
                self._feeds[name] = Feed(fd, reader, self._loop, self._close_output)
        return reader

    def _fd(self, name: str) -> int:
        return self._pipes.stdout if name == "stdout" else self._pipes.stderr

    def _names(self) -> tuple[str, ...]:
        return ("stdout",) if self._pipes.pty else ("stdout", "stderr")

    def _close_output(self) -> None:
        """Once all that can be read was read; a terminal stays for close_pty(), whoever holds its descriptor."""
        if not self._pipes.pty and len(self._feeds) == 2 and all(feed.is_closing() for feed in self._feeds.values()):
            self._abort_input()
            self._pipes.close()

    def _writer(self) -> ProcessInput:
        if self._input is None:
            self._input = ProcessInput(self._pipes.stdin, self._loop, self._pipes.close_stdin)
            if self._pipes.stdin < 0:
                self._input.abort()
        return self._input

    def _abort_input(self) -> None:
        if self._input is not None:
            self._input.abort()

    @property
    def stdin(self) -> ProcessInput | None:
        """None in PTY mode."""
        return None if self._pipes.pty else self._writer()

    @property
    def stdout(self) -> asyncio.StreamReader | None:
        """None in PTY mode."""
        return None if self._pipes.pty else self._reader("stdout")

    @property
    def stderr(self) -> asyncio.StreamReader | None:
        """None in PTY mode."""
        return None if self._pipes.pty else self._reader("stderr")

    async def send(self, data: bytes) -> None:
        """To its standard input or its terminal."""
        writer = self._writer()
        writer.write(data)
        await writer.drain()

    async def send_text(self, text: str, encoding: str = "utf-8") -> None:
        """The same for text."""
        await self.send(text.encode(encoding))

    def close_stdin(self) -> None:
        """The end of its input, after what was sent; on a terminal the character that means it."""
        self._writer().close()

    def close_pty(self) -> None:
        """Gives the terminal's descriptor back; may be called again."""
        if not self._pipes.pty or self._pipes.stdout < 0:
            return
        self._abort_input()
        for feed in self._feeds.values():
            feed.close()
        self._pipes.close()

    # ---- its end ----

    async def _within(self, work: Awaitable[T], timeout: float | None, kept: Mapping[str, bytearray]) -> T:
        """What it says, or the command is ended: by its time, or because whoever waits was cancelled."""
        seconds = self._timeout if timeout is None else timeout
        bound = asyncio.timeout(seconds)
        try:
            async with bound:
                return await work
        except TimeoutError:
            self.kill()
            if not bound.expired() or seconds is None:
                raise
            await self._drop(kept)
            raise SandboxTimeout(seconds, *(bytes(kept.get(name, b"")) for name in ("stdout", "stderr"))) from None
        except BaseException:
            self.kill()
            raise

    async def _drop(self, kept: Mapping[str, bytearray]) -> None:
        """It was killed: takes what it had said, and returns when it is gone."""
        await self._collect({name: kept.get(name, bytearray()) for name in self._names()})
        await self._gone()

    async def _gone(self) -> None:
        await asyncio.shield(self._watch.ended)

    async def _collect(self, kept: Mapping[str, bytearray]) -> None:
        """All output to its end. Where nobody has asked for a reader there is none, and so no task to empty it."""
        if self._readers:
            await asyncio.gather(*(self._empty(name, into) for name, into in kept.items()))
            return
        for name, into in kept.items():
            feed = self._feeds.get(name)
            if isinstance(feed, Collect):
                feed.into = into
            elif self._fd(name) >= 0:
                self._feeds[name] = Collect(self._fd(name), into, self._loop, self._close_output)
        for feed in list(self._feeds.values()):
            if isinstance(feed, Collect):
                await feed.wait()

    async def _empty(self, name: str, into: bytearray) -> None:
        reader = self._reader(name)
        while data := await reader.read(CHUNK):
            into += data

    async def wait(self, timeout: float | None = None, check: bool = False) -> int:
        """Its exit code. timeout: None means that of run().

        A command that says much must be read as well: communicate().
        """
        await self._within(self._gone(), timeout, {})
        return self._checked(check)

    async def communicate(
        self,
        input: bytes | None = None,  # noqa: A002
        timeout: float | None = None,
        check: bool = False,
    ) -> tuple[bytes, bytes]:
        """Sends the input, closes it, and returns all of the output. On a terminal everything is in the first part."""
        kept = {name: bytearray() for name in self._names()}
        await self._within(self._talk(input, kept), timeout, kept)
        stdout, stderr = bytes(kept["stdout"]), bytes(kept.get("stderr", b""))
        self._checked(check, stdout, stderr)
        return stdout, stderr

    async def _talk(self, data: bytes | None, kept: Mapping[str, bytearray]) -> None:
        if data and not self._writer().is_closing():
            self._writer().write(data)
        self.close_stdin()
        await self._collect(kept)
        await self._gone()

    async def _chunks(self, chunk_size: int) -> AsyncIterator[tuple[str, bytes]]:
        """(stream, bytes) as they come, within the time of run()."""
        end = None if self._timeout is None else self._loop.time() + self._timeout
        tasks = {self._loop.create_task(self._reader(name).read(chunk_size)): name for name in self._names()}
        try:
            while tasks:
                left = None if end is None else max(0.0, end - self._loop.time())
                done, _ = await asyncio.wait(tasks, timeout=left, return_when=asyncio.FIRST_COMPLETED)
                if not done:
                    await self._overdue()
                for task in done:
                    name = tasks.pop(task)
                    if data := task.result():
                        tasks[self._loop.create_task(self._reader(name).read(chunk_size))] = name
                        yield name, data
        except asyncio.CancelledError:
            self.kill()
            raise
        finally:
            for task in tasks:
                task.cancel()

    async def _overdue(self) -> None:
        self.kill()
        await self._gone()
        assert self._timeout is not None
        raise SandboxTimeout(self._timeout)

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

    async def stream(
        self, *, include_stream: bool = False, decode: bool = False, chunk_size: int = 4096
    ) -> AsyncIterator[bytes | str | tuple[str, bytes] | tuple[str, str]]:
        """The output as it comes; with include_stream as ("stdout" or "stderr", data)."""
        decoders = {name: decoder() for name in self._names()}
        async for name, data in self._chunks(chunk_size):
            piece: bytes | str = decoders[name].decode(data) if decode else data
            if piece:
                yield (name, piece) if include_stream else piece  # type: ignore[misc]
        for name, rest in ((name, found.decode(b"", True)) for name, found in decoders.items() if decode):
            if rest:
                yield (name, rest) if include_stream else rest

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

    async def stream_lines(
        self, *, include_stream: bool = False, decode: bool = True
    ) -> AsyncIterator[bytes | str | tuple[str, bytes] | tuple[str, str]]:
        """The output line by line, each with its end; the last one may have none."""
        found = {name: Lines() for name in self._names()}
        async for name, data in self._chunks(CHUNK):
            for line in found[name].add(data):
                yield shown(name, line, include_stream, decode)
        for name, lines in found.items():
            for line in lines.flush():
                yield shown(name, line, include_stream, decode)

    def _lost(self) -> None:
        """The sandbox was closed: in our own loop, or in a thread beside it, where the loop will see it by itself."""
        if is_here(self._loop):
            while self._box is not None and not self._watch.ended.done():
                self._watch.step()
                if self._box is not None and not self._watch.ended.done():
                    self._discard()

    def _take_end(self, error: Exception | None = None) -> None:
        super()._take_end(error)
        self._abort_input()  # nobody reads it any more

    def _discard(self) -> None:
        """Its output has no reader: nothing more of it can be waited for."""
        self._abort_input()
        for feed in self._feeds.values():
            feed.close()
        self._pipes.close()

    def __del__(self) -> None:
        self._pipes.close()


class Sandbox(SandboxBase):
    """A place to run commands in: a root that cannot be changed, a home and a /tmp that can, no way out.

    All commands share the files, the processes and the network of the sandbox. docs/python.md tells the rest.
    """

    _followed: asyncio.AbstractEventLoop | None = None

    async def run(
        self,
        command: str | Sequence[str],
        timeout: float | None = 10.0,
        use_pty: bool = False,
        ns_pid_override: int | None = None,
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> SandboxedProcess:
        """Starts a command: a text for `bash -c`, or a list of words.

        timeout: seconds that wait(), communicate(), stream() and stream_lines() give it; None: no bound
        use_pty: on a terminal of its own
        env, cwd: variables and working directory of this command
        """
        process = self._run(SandboxedProcess, command, timeout, use_pty, ns_pid_override, env, cwd)
        self._follow(asyncio.get_running_loop())
        return process

    async def run_script(
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
        return await self.run(command, timeout, ns_pid_override=ns_pid_override, env=env, cwd=cwd)

    def _follow(self, loop: asyncio.AbstractEventLoop) -> None:
        """The box itself has work now and then: bounds on its disk, processes that outlived their commands."""
        if self._followed is loop or self._home is None:
            return
        while self._watchers:
            self._watchers.pop()()
        self._followed = loop
        self._watchers.append(Follow(self._home, loop).stop)

    def __enter__(self) -> Sandbox:
        self._alive()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Sandbox:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Follow:
    """Steps the box of a sandbox whenever it has work."""

    def __init__(self, home: _px.Box, loop: asyncio.AbstractEventLoop) -> None:
        self._home, self._loop, self._fd = home, loop, home.fileno()
        loop.add_reader(self._fd, self._step)

    def _step(self) -> None:
        try:
            if self._home.step():
                return
        except SandboxError:  # its commands tell it, each in its own result
            pass
        self._loop.remove_reader(self._fd)

    def stop(self) -> None:
        """From any thread, before the box is freed: the loop keeps it until it has let go of its descriptor."""
        if self._loop.is_closed():
            return
        if is_here(self._loop):
            self._loop.remove_reader(self._fd)
        else:
            self._loop.call_soon_threadsafe(self._let_go)

    def _let_go(self) -> None:
        self._loop.remove_reader(self._fd)


def is_here(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether the loop can be used in this thread now: it runs here, or nowhere."""
    try:
        running: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
    except RuntimeError:
        running = None
    return running is loop or not loop.is_running()
