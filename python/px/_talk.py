"""What is said to a command and by it, and how its end is waited for: once, for every kind of Loop."""

from __future__ import annotations

import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable

from . import _px
from ._errors import SandboxTimeout
from ._loop import Change, Loop, is_here, shielded
from ._policy import Unasked, checked_timeout
from ._process import Home, Pipes, ProcessBase
from ._streams import Cutter, ProcessInput, ProcessOutput, Watch, step_out

Piece = bytes | str | tuple[str, bytes] | tuple[str, str]


class Talk(ProcessBase):
    """A command that runs in a sandbox; the public kinds give their names to what begins with an underscore here."""

    def __init__(self, box: _px.Box, pipes: Pipes, sandbox: Home, timeout: float | None, loop: Loop) -> None:
        super().__init__(box, pipes, sandbox, timeout)
        self._loop = loop
        self._change = change = Change(loop)
        self._input: ProcessInput | None = None
        self._watch: Watch | None = None
        self._output = {"stdout": ProcessOutput(pipes.stdout, loop, change, pipes.close_output)}
        if not pipes.pty:
            self._output["stderr"] = ProcessOutput(pipes.stderr, loop, change, pipes.close_output)

    def _begin(self) -> Watch | None:
        """The loop carries the command on from now."""
        if self._watch is None and self._box is not None:
            self._watch = Watch(self._box, self._loop, self._take_end)
        return self._watch

    # ---- input ----

    def _writer(self) -> ProcessInput:
        if self._input is None:
            self._input = ProcessInput(self._pipes.stdin, self._loop, self._change, self._pipes.close_stdin)
            if self._pipes.stdin < 0:
                self._input.abort()
        return self._input

    async def _send(self, data: bytes, left: int) -> None:
        self._begin()
        self._writer().write(data)
        await self._writer().drain(left)

    def close_stdin(self) -> None:
        """The end of its input, after what was sent; on a terminal the character that means it."""
        self._writer().close()

    def close_pty(self) -> None:
        """Gives the terminal's descriptor back; may be called again."""
        if self._pipes.pty:
            self._discard()

    def _discard(self) -> None:
        """Its output has no reader: nothing more of it can be waited for."""
        if self._input is not None:
            self._input.abort()
        for output in self._output.values():
            output.close()
        self._pipes.close()

    # ---- its end ----

    def _end_of(self, timeout: float | None) -> tuple[float | None, float]:
        seconds = self._timeout if timeout is None else checked_timeout(timeout)
        return (None, 0.0) if seconds is None else (self._loop.time() + seconds, seconds)

    def _end_of_stream(self) -> tuple[float | None, float]:
        """Who reads output as it comes may do so for long: only a timeout that was asked for bounds it."""
        return (None, 0.0) if isinstance(self._timeout, Unasked) else self._end_of(None)

    async def _within(self, done: Callable[[], bool], end: float | None, seconds: float) -> None:
        """Until it is done, or the command is ended: by its time, or because whoever waits was cancelled."""
        watch = self._begin()
        try:
            while not done():
                if not await self._change.wait(end):
                    break
            else:
                if watch is not None and watch.error is not None:
                    raise watch.error
                return
        except GeneratorExit:  # the coroutine itself is thrown away
            self.kill()
            raise
        except BaseException:
            self.kill()
            await shielded(self._loop, self._rest)
            raise
        self.kill()
        await self._rest()
        raise SandboxTimeout(seconds, *(bytes(output.unread) for output in self._output.values()))

    async def _rest(self) -> None:
        """It was killed: takes what it had said, and returns when it is gone."""
        while not self._all_said() or self._box is not None:
            await self._change.wait(None)

    def _all_said(self) -> bool:
        """Reads all of the output; whether that has ended."""
        for output in self._output.values():
            output.ask(sys.maxsize)
        return all(output.ended for output in self._output.values())

    def _gone(self) -> bool:
        """Whether it has ended. Of one that was told to end, what it had said is bounded, and its end waits for a reader."""
        if self._sent in (signal.SIGKILL, signal.SIGTERM):
            self._all_said()
        return self._box is None

    async def _wait(self, timeout: float | None, check: bool) -> int:
        await self._within(self._gone, *self._end_of(timeout))
        return self._checked(check)

    async def _communicate(self, data: bytes | None, timeout: float | None, check: bool) -> tuple[bytes, bytes]:
        end, seconds = self._end_of(timeout)
        if data and not self._writer().is_closing():
            self._writer().write(data)
        self.close_stdin()
        await self._within(lambda: self._all_said() and self._box is None, end, seconds)
        found = [output.take(sys.maxsize) for output in self._output.values()]
        stdout, stderr = found[0], b"".join(found[1:])
        self._checked(check, stdout, stderr)
        return stdout, stderr

    # ---- its output as it comes ----

    async def _more(self, size: int, bound: tuple[float | None, float]) -> list[tuple[str, bytes]]:
        """The next (stream, bytes), as soon as there are some; none at the end."""
        outputs = self._output.values()
        for output in outputs:
            output.ask()
        await self._within(lambda: any(out.unread for out in outputs) or all(out.ended for out in outputs), *bound)
        return [(name, output.take(size)) for name, output in self._output.items() if output.unread]

    # ---- what happens to it ----

    def _take_end(self, error: Exception | None = None) -> None:
        super()._take_end(error)
        if self._input is not None:
            self._input.abort()  # nobody reads it any more
        self._change.tell()

    def _lost(self) -> None:
        """The sandbox was closed: by the thread of our loop, or by another one, and the loop will see it by itself."""
        if is_here(self._loop):
            watch = self._begin()
            if watch is not None and watch.step():
                self._discard()
                step_out(watch)


class Stream:
    """stream() and stream_lines(): no generator, so whoever stops in the middle has nothing to close."""

    def __init__(self, process: Talk, cutter: Callable[[], Cutter], include_stream: bool, size: int) -> None:
        self._process, self._include_stream, self._size = process, include_stream, size
        self._cutters = {name: cutter() for name in process._output}
        self._ready: deque[Piece] = deque()
        self._bound: tuple[float | None, float] | None = None
        self._ended = False

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> Piece:
        self._bound = self._bound or self._process._end_of_stream()
        while not self._ready and not self._ended:
            found = await self._process._more(self._size, self._bound)
            for name, data in found:
                self._put(name, self._cutters[name].add(data))
            if not found:
                self._ended = True
                for name, cutter in self._cutters.items():
                    self._put(name, cutter.flush())
        if not self._ready:
            raise StopAsyncIteration
        return self._ready.popleft()

    def _put(self, name: str, pieces: Iterable[bytes | str]) -> None:
        self._ready.extend((name, piece) if self._include_stream else piece for piece in pieces)  # type: ignore[misc]

    async def aclose(self) -> None:
        """As of a generator."""
        self._ended = True
        self._ready.clear()
