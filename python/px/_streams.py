"""Between pipes and an event loop: no thread, nothing asked twice."""

from __future__ import annotations

import asyncio
import codecs
import os
from collections.abc import Callable
from typing import Protocol

CHUNK = 1 << 16
WRITE_HIGH = 1 << 16


def nothing(*_: object) -> None:
    """In the place of a function that was called for the last time."""


class Stepped(Protocol):
    """What an event loop carries on: a box, or an action of a task."""

    def fileno(self) -> int:
        """Readable whenever step() has work."""

    def step(self) -> bool:
        """Without waiting; False at its end."""


class Watch:
    """Steps a box whenever it has work; `ended` is done once its result is final."""

    def __init__(
        self, box: Stepped, loop: asyncio.AbstractEventLoop, finish: Callable[[Exception | None], None]
    ) -> None:
        self._box, self._loop = box, loop
        self._finish: Callable[[Exception | None], None] = finish
        self._fd = box.fileno()
        self.ended: asyncio.Future[None] = loop.create_future()
        loop.add_reader(self._fd, self.step)

    def step(self) -> None:
        """One turn of the box."""
        if self.ended.done():
            return
        try:
            if self._box.step():
                return
        except Exception as error:
            self._stop(error)
            self.ended.set_exception(error)
            self.ended.exception()  # whoever waits gets it; nobody has to
            return
        self._stop()
        self.ended.set_result(None)

    def cancel(self) -> None:
        """The box will be stepped no more."""
        self.ended.cancel()
        self._stop()

    def _stop(self, error: Exception | None = None) -> None:
        if not self._loop.is_closed():
            self._loop.remove_reader(self._fd)
        finish, self._finish = self._finish, nothing  # whoever is told may be freed without a search for cycles
        finish(error)


class Pump:
    """Reads a pipe whenever there is something in it, until its end."""

    def __init__(self, fd: int, loop: asyncio.AbstractEventLoop, ended: Callable[[], None]) -> None:
        self._fd, self._loop = fd, loop
        self._ended: Callable[[], None] = ended
        self._closed = False
        loop.add_reader(fd, self._ready)

    def _take(self, data: bytes) -> None:
        raise NotImplementedError

    def _finish(self) -> None:
        raise NotImplementedError

    def _ready(self) -> None:
        try:
            data = os.read(self._fd, CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if data:
            self._take(data)
        else:
            self.close()

    def is_closing(self) -> bool:
        """Whether the end was seen."""
        return self._closed

    def close(self) -> None:
        """Nothing more will be read."""
        if self._closed:
            return
        self._closed = True
        if not self._loop.is_closed():
            self._loop.remove_reader(self._fd)
        self._finish()
        ended, self._ended = self._ended, nothing
        ended()


class Feed(Pump, asyncio.ReadTransport):
    """Reads a pipe into a StreamReader, no faster than that is emptied."""

    def __init__(
        self, fd: int, reader: asyncio.StreamReader, loop: asyncio.AbstractEventLoop, ended: Callable[[], None]
    ) -> None:
        asyncio.ReadTransport.__init__(self)
        self._reader = reader
        self._paused = False
        reader.set_transport(self)
        Pump.__init__(self, fd, loop, ended)

    def _take(self, data: bytes) -> None:
        self._reader.feed_data(data)

    def _finish(self) -> None:
        self._reader.feed_eof()

    def pause_reading(self) -> None:
        """The reader has enough for now."""
        if not self._paused and not self._closed:
            self._paused = True
            self._loop.remove_reader(self._fd)

    def resume_reading(self) -> None:
        """The reader wants more."""
        if self._paused and not self._closed:
            self._paused = False
            self._loop.add_reader(self._fd, self._ready)


class Collect(Pump):
    """Reads all of a pipe, for whoever waits for the end of it: a future, and no task."""

    def __init__(self, fd: int, into: bytearray, loop: asyncio.AbstractEventLoop, ended: Callable[[], None]) -> None:
        self.into = into
        self._waiters: list[asyncio.Future[None]] = []
        super().__init__(fd, loop, ended)

    def _take(self, data: bytes) -> None:
        self.into += data

    def _finish(self) -> None:
        wake(self._waiters)

    async def wait(self) -> None:
        """Until its end."""
        while not self._closed:
            await wait_in(self._waiters, self._loop)


def wake(waiters: list[asyncio.Future[None]]) -> None:
    """All of them, once."""
    while waiters:
        waiter = waiters.pop()
        if not waiter.done():
            waiter.set_result(None)


async def wait_in(waiters: list[asyncio.Future[None]], loop: asyncio.AbstractEventLoop) -> None:
    """Until they are woken."""
    waiter = loop.create_future()
    waiters.append(waiter)
    await waiter


class ProcessInput:
    """Standard input of a command, with the methods of asyncio.StreamWriter that it takes."""

    def __init__(self, fd: int, loop: asyncio.AbstractEventLoop, ended: Callable[[], None]) -> None:
        self._fd, self._loop, self._ended = fd, loop, ended
        self._buffer = bytearray()
        self._closing = self._closed = False
        self._broken: OSError | None = None
        self._waiters: list[asyncio.Future[None]] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Writes now what there is room for, and the rest when there is."""
        if self._closing:
            raise BrokenPipeError("standard input is closed")
        if not self._buffer:
            data = memoryview(data)[self._write(data) :]
        if len(data) and self._broken is None:
            if not self._buffer:
                self._loop.add_writer(self._fd, self._ready)
            self._buffer += data

    def _write(self, data: bytes | bytearray | memoryview) -> int:
        if self._broken is not None or not len(data):
            return len(data)
        try:
            return os.write(self._fd, data)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            self._broken = error
            return len(data)

    def _ready(self) -> None:
        del self._buffer[: self._write(self._buffer)]
        if self._buffer and self._broken is None:
            return
        self._buffer.clear()
        self._loop.remove_writer(self._fd)
        wake(self._waiters)
        if self._closing:
            self._end()

    async def drain(self) -> None:
        """Waits until most of what was written is gone."""
        while len(self._buffer) > WRITE_HIGH:
            await wait_in(self._waiters, self._loop)
        if self._broken is not None:
            raise BrokenPipeError("the command reads no more") from self._broken

    def close(self) -> None:
        """The end of input, after what was written."""
        if self._closing:
            return
        self._closing = True
        if not self._buffer:
            self._end()

    def _end(self) -> None:
        if not self._closed:
            self._closed = True
            self._ended()
            wake(self._waiters)

    def abort(self) -> None:
        """The end now; what was not written yet is dropped."""
        self._closing = True
        if self._buffer and not self._loop.is_closed():
            self._loop.remove_writer(self._fd)
        self._buffer.clear()
        self._end()

    def is_closing(self) -> bool:
        """Whether close() was called."""
        return self._closing

    async def wait_closed(self) -> None:
        """Waits until everything is written and the end is told."""
        while self._closing and not self._closed:
            await wait_in(self._waiters, self._loop)


class Lines:
    """Bytes in, whole lines out; a last one without its end comes with flush()."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def add(self, data: bytes) -> list[bytes]:
        """The lines that are complete now."""
        if b"\n" not in data:
            self._rest += data
            return []
        whole = split_lines(bytes(self._rest) + data)
        self._rest.clear()
        if not whole[-1].endswith(b"\n"):
            self._rest += whole.pop()
        return whole

    def flush(self) -> list[bytes]:
        """What is left."""
        rest = bytes(self._rest)
        self._rest.clear()
        return [rest] if rest else []


def split_lines(data: bytes) -> list[bytes]:
    """At line feeds only: a carriage return belongs to its line."""
    parts = data.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def decoder() -> codecs.IncrementalDecoder:
    """UTF-8; a character that is cut in two waits for its rest, what is none becomes a replacement."""
    return codecs.getincrementaldecoder("utf-8")(errors="replace")


def shown(
    name: str, line: bytes, include_stream: bool, decode: bool
) -> bytes | str | tuple[str, bytes] | tuple[str, str]:
    """A line as it was asked for."""
    if include_stream:
        return (name, line.decode("utf-8", "replace")) if decode else (name, line)
    return line.decode("utf-8", "replace") if decode else line
