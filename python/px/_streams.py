"""Between pipes and whoever waits for them: no thread, nothing asked twice."""

from __future__ import annotations

import asyncio
import codecs
import os
import select
import sys
from collections.abc import Callable, Sequence
from typing import Protocol

from ._loop import Change, Loop, is_here, running

CHUNK = 1 << 16
HIGH = 1 << 16  # what is read or taken ahead of whoever uses it


def nothing(*_: object) -> None:
    """In the place of a function that was called for the last time."""


# ---- boxes ----


class Stepped(Protocol):
    """What is carried on step by step: a box, or an action of a task."""

    def fileno(self) -> int:
        """Readable whenever step() has work; -1 if it has ended from the start."""

    def step(self) -> bool:
        """Without waiting; False at its end."""


def step_out(box: Stepped) -> None:
    """Steps it to its end, and waits in between."""
    watch = select.poll()
    if box.fileno() >= 0:
        watch.register(box.fileno(), select.POLLIN)
    while box.step():
        watch.poll()


async def step_out_async(box: Stepped) -> None:
    """The same for an event loop; who is cancelled has stopped."""
    loop = running()
    change = Change(loop)
    watch = Watch(box, loop, lambda error: change.tell()) if box.step() else None
    try:
        while watch is not None and not watch.ended:
            await change.wait(None)
    finally:
        if watch is not None:
            watch.stop()
    if watch is not None and watch.error is not None:
        raise watch.error


class Watch:
    """Steps a box whenever it has work, until its end."""

    def __init__(self, box: Stepped, loop: Loop, finish: Callable[[Exception | None], None] = nothing) -> None:
        self._box, self._loop = box, loop
        self._finish: Callable[[Exception | None], None] = finish
        self._fd = box.fileno()
        self.ended = False
        self.error: Exception | None = None
        loop.add_reader(self._fd, self.step)

    def fileno(self) -> int:
        """Of the box."""
        return self._fd

    def step(self) -> bool:
        """One turn of the box: whether it goes on."""
        if self.ended:
            return False
        try:
            if self._box.step():
                return True
        except Exception as error:  # whoever waits gets it; nobody has to
            self.error = error
        self.ended = True
        if not self._loop.is_closed():
            self._loop.remove_reader(self._fd)
        finish, self._finish = self._finish, nothing  # whoever is told may be freed without a search for cycles
        finish(self.error)
        return False

    def stop(self) -> None:
        """From any thread, before the box is freed: the loop keeps it until it has let go of its descriptor."""
        self._finish = nothing
        if self.ended or self._loop.is_closed():
            return
        if is_here(self._loop):
            self._let_go()
        else:
            self._loop.call_soon_threadsafe(self._let_go)

    def _let_go(self) -> None:
        self._loop.remove_reader(self._fd)


# ---- pipes ----


class ProcessOutput:
    """What a command says on one stream, with the methods of asyncio.StreamReader.

    Reading begins with the first one who asks; until then it waits in the pipe. No more is read ahead than HIGH.
    """

    def __init__(self, fd: int, loop: Loop, change: Change, release: Callable[[int], None]) -> None:
        self._fd, self._loop, self._change = fd, loop, change
        self._release: Callable[[int], None] = release
        self._limit = HIGH
        self._watched = False
        self.ended = fd < 0
        self.unread = bytearray()

    def ask(self, limit: int = HIGH) -> None:
        """Reads on, so far ahead: as the last one wants who asked."""
        self._limit = limit
        if not self.ended and not self._watched and len(self.unread) < self._limit:
            self._watched = True
            self._loop.add_reader(self._fd, self._ready)

    def _pause(self) -> None:
        if self._watched and not self._loop.is_closed():
            self._loop.remove_reader(self._fd)
        self._watched = False

    def _ready(self) -> None:
        try:
            data = os.read(self._fd, CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if not data:
            self.close()
            return
        self.unread += data
        if len(self.unread) >= self._limit:
            self._pause()
        if self._limit < sys.maxsize:  # whoever wants all of it is told at its end
            self._change.tell()

    def close(self) -> None:
        """Nothing more will be read."""
        if self.ended:
            return
        self._pause()
        self.ended = True
        release, self._release = self._release, nothing
        release(self._fd)
        self._change.tell()

    def take(self, size: int) -> bytes:
        """So much of it, or what is there; there is room for more then."""
        data = bytes(self.unread if size >= len(self.unread) else self.unread[:size])
        del self.unread[:size]
        self.ask()
        return data

    async def _until(self, enough: Callable[[], bool], limit: int = HIGH) -> None:
        self.ask(limit)
        while not self.ended and not enough():
            await self._change.wait(None)
            self.ask(limit)

    async def read(self, n: int = -1) -> bytes:
        """Up to n bytes as soon as there are some; all of them to the end if n is negative."""
        if n < 0:
            await self._until(lambda: False, sys.maxsize)
            return self.take(sys.maxsize)
        await self._until(lambda: bool(self.unread) or n == 0)
        return self.take(n)

    async def readexactly(self, n: int) -> bytes:
        """n bytes; asyncio.IncompleteReadError if there are less."""
        await self._until(lambda: len(self.unread) >= n, n)
        if len(self.unread) < n:
            raise asyncio.IncompleteReadError(self.take(n), n)
        return self.take(n)

    async def readuntil(self, separator: bytes = b"\n") -> bytes:
        """To the separator and with it; asyncio.IncompleteReadError at the end, LimitOverrunError if it is too far."""
        await self._until(lambda: separator in self.unread or len(self.unread) >= HIGH)
        at = self.unread.find(separator)
        if at >= 0:
            return self.take(at + len(separator))
        if self.ended:
            raise asyncio.IncompleteReadError(self.take(sys.maxsize), None)
        raise asyncio.LimitOverrunError(f"there is no separator in {len(self.unread)} bytes", len(self.unread))

    async def readline(self) -> bytes:
        """A line with its end; the last one may have none; b"" at the end. ValueError if it is too long."""
        try:
            return await self.readuntil(b"\n")
        except asyncio.IncompleteReadError as error:
            return error.partial
        except asyncio.LimitOverrunError as error:
            raise ValueError(str(error)) from None

    def at_eof(self) -> bool:
        """Whether everything was read."""
        return self.ended and not self.unread

    def __aiter__(self) -> ProcessOutput:
        return self

    async def __anext__(self) -> bytes:
        line = await self.readline()
        if not line:
            raise StopAsyncIteration
        return line


class ProcessInput:
    """Standard input of a command, with the methods of asyncio.StreamWriter that it takes."""

    def __init__(self, fd: int, loop: Loop, change: Change, ended: Callable[[], None]) -> None:
        self._fd, self._loop, self._change, self._ended = fd, loop, change, ended
        self._buffer = bytearray()
        self._closing = self._closed = False
        self._broken: OSError | None = None

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
        self._change.tell()
        if self._closing:
            self._end()

    async def drain(self, left: int = HIGH) -> None:
        """Waits until most of what was written is gone."""
        while len(self._buffer) > left:
            await self._change.wait(None)
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
            self._change.tell()

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
            await self._change.wait(None)


# ---- text ----


class Cutter(Protocol):
    """Bytes in, as they come; pieces out."""

    def add(self, data: bytes) -> Sequence[bytes | str]:
        """Those that are complete now."""

    def flush(self) -> Sequence[bytes | str]:
        """What is left at the end."""


class Pieces:
    """As they come; as text a character that was cut in two waits for its rest, what is none becomes a replacement."""

    def __init__(self, decode: bool) -> None:
        self._decoder = decoder() if decode else None

    def add(self, data: bytes) -> Sequence[bytes | str]:
        piece: bytes | str = data if self._decoder is None else self._decoder.decode(data)
        return [piece] if piece else []

    def flush(self) -> Sequence[bytes | str]:
        text = "" if self._decoder is None else self._decoder.decode(b"", True)
        return [text] if text else []


class Lines:
    """Whole lines; a last one without its end comes in the end. A carriage return belongs to its line."""

    def __init__(self, decode: bool) -> None:
        self._decode = decode
        self._rest = bytearray()

    def add(self, data: bytes) -> Sequence[bytes | str]:
        end = data.rfind(b"\n") + 1
        if not end:
            self._rest += data
            return []
        whole = bytes(self._rest) + data[:end]
        self._rest = bytearray(data[end:])
        return [self._shown(line + b"\n") for line in whole[:-1].split(b"\n")]

    def flush(self) -> Sequence[bytes | str]:
        return [self._shown(bytes(self._rest))] if self._rest else []

    def _shown(self, line: bytes) -> bytes | str:
        return line.decode("utf-8", "replace") if self._decode else line


def decoder() -> codecs.IncrementalDecoder:
    """UTF-8."""
    return codecs.getincrementaldecoder("utf-8")(errors="replace")
