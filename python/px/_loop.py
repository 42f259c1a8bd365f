"""What a sandbox waits for: descriptors, changes, time. The only part that knows who runs the program.

asyncio's loops, uvloop's too, are a Loop as they are. Under trio one task of a run watches one descriptor for all
sandboxes of the run. Where nobody runs anything, in px.sync, a Loop goes on while somebody waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import math
import select
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

Callback = Callable[[], object]
T = TypeVar("T")
P = ParamSpec("P")


class Loop(Protocol):
    """Calls back when a descriptor is ready. These are names of asyncio."""

    def add_reader(self, fd: int, callback: Callback, /) -> object:
        """Whenever it can be read, or has ended."""

    def remove_reader(self, fd: int, /) -> object:
        """No more; before the descriptor is closed."""

    def add_writer(self, fd: int, callback: Callback, /) -> object:
        """Whenever it can be written, or nobody reads it any more."""

    def remove_writer(self, fd: int, /) -> object:
        """No more."""

    def call_soon_threadsafe(self, callback: Callback, /) -> object:
        """In the loop's thread, from another one."""

    def time(self) -> float:
        """Seconds on the clock of its deadlines."""

    def is_closed(self) -> bool:
        """Whether it has ended for good."""


class Poll(Protocol):
    """What select.poll and select.epoll share."""

    def register(self, fd: int, mask: int, /) -> None:
        """Watches another descriptor."""

    def modify(self, fd: int, mask: int, /) -> None:
        """Watches it for something else."""

    def unregister(self, fd: int, /) -> None:
        """Watches it no more."""


class Polled:
    """The callbacks of a Loop that is not asyncio's."""

    def __init__(self, poll: Poll) -> None:
        self._poll = poll
        self._wanted: dict[int, dict[int, Callback]] = {}  # by descriptor, then POLLIN or POLLOUT

    def add_reader(self, fd: int, callback: Callback, /) -> None:
        self._want(fd, select.POLLIN, callback)

    def remove_reader(self, fd: int, /) -> None:
        self._want(fd, select.POLLIN, None)

    def add_writer(self, fd: int, callback: Callback, /) -> None:
        self._want(fd, select.POLLOUT, callback)

    def remove_writer(self, fd: int, /) -> None:
        self._want(fd, select.POLLOUT, None)

    def _want(self, fd: int, kind: int, callback: Callback | None) -> None:
        before = self._wanted.pop(fd, {})
        after = {at: found for at, found in {**before, kind: callback}.items() if found is not None}
        if self.is_closed():
            return
        if after:
            self._wanted[fd] = after
            (self._poll.modify if before else self._poll.register)(fd, sum(after))
        elif before:
            with contextlib.suppress(OSError):
                self._poll.unregister(fd)

    def _dispatch(self, ready: Iterable[tuple[int, int]]) -> None:
        """An end or an error is for whoever watches; a callback may take others away."""
        for fd, mask in ready:
            for kind, other in ((select.POLLOUT, select.POLLIN), (select.POLLIN, select.POLLOUT)):
                callback = self._wanted.get(fd, {}).get(kind)
                if callback is not None and mask & ~other:
                    callback()

    def is_closed(self) -> bool:
        return False

    def is_here(self) -> bool:
        return True


class PlainLoop(Polled):
    """For one command, in the thread that waits for it."""

    def __init__(self) -> None:
        self._ready = select.poll()
        super().__init__(self._ready)

    def turn(self, until: float | None) -> bool:
        """Waits for something and does it; False if the time is over."""
        left = None if until is None else until - self.time()
        if left is not None and left <= 0:
            return False
        self._dispatch(self._ready.poll(None if left is None else math.ceil(left * 1000)))
        return True

    def call_soon_threadsafe(self, callback: Callback, /) -> None:
        callback()

    def time(self) -> float:
        return time.monotonic()


class TrioLoop(Polled):
    """For all sandboxes of one trio.run()."""

    def __init__(self, trio: Any) -> None:
        self._ready = select.epoll()
        super().__init__(self._ready)
        self.trio, self._token = trio, trio.lowlevel.current_trio_token()
        _runs[self._token] = self
        trio.lowlevel.spawn_system_task(self._serve)

    async def _serve(self) -> None:
        try:
            while True:
                await self.trio.lowlevel.wait_readable(self._ready.fileno())
                self._dispatch(self._ready.poll(0))
        finally:  # the run has ended
            del _runs[self._token]
            self._ready.close()
            self._wanted.clear()

    def call_soon_threadsafe(self, callback: Callback, /) -> None:
        with contextlib.suppress(self.trio.RunFinishedError):
            self._token.run_sync_soon(callback)

    def time(self) -> float:
        return float(self.trio.current_time())

    def is_closed(self) -> bool:
        return self._ready.closed

    def is_here(self) -> bool:
        return self.is_closed() or (in_trio() is not None and self._token is self.trio.lowlevel.current_trio_token())


_runs: dict[Any, TrioLoop] = {}


def in_trio() -> Any:
    """The library, if a task of it runs here; who has not imported it has none."""
    trio = sys.modules.get("trio")
    if trio is None or not hasattr(trio, "lowlevel"):
        return None
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        return None
    return trio


def running() -> Loop:
    """That of the caller."""
    trio = in_trio()
    if trio is None:
        return asyncio.get_running_loop()
    return _runs.get(trio.lowlevel.current_trio_token()) or TrioLoop(trio)


def is_here(loop: Loop) -> bool:
    """Whether the loop can be used in this thread now: it runs here, or nowhere."""
    if isinstance(loop, Polled):
        return loop.is_here()
    assert isinstance(loop, asyncio.AbstractEventLoop)
    return not loop.is_running() or asyncio._get_running_loop() is loop


# ---- waiting ----


class Change:
    """Something that is waited for. Whoever is woken looks for himself whether it is what he wanted."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._waiting: list[Callback] = []

    def tell(self) -> None:
        """Wakes all that wait now."""
        while self._waiting:
            self._waiting.pop()()

    async def wait(self, until: float | None) -> bool:
        """Until it is told; False if the time comes first."""
        if isinstance(self._loop, TrioLoop):
            return await self._wait_trio(self._loop.trio, math.inf if until is None else until)
        if isinstance(self._loop, PlainLoop):
            return self._wait_plain(self._loop, until)
        assert isinstance(self._loop, asyncio.AbstractEventLoop)
        return await self._wait_asyncio(self._loop, until)

    async def _wait_asyncio(self, loop: asyncio.AbstractEventLoop, until: float | None) -> bool:
        future: asyncio.Future[bool] = loop.create_future()

        def wake(told: bool = True) -> None:
            if not future.done():
                future.set_result(told)

        timer = None if until is None else loop.call_at(until, wake, False)
        self._waiting.append(wake)
        try:
            return await future
        finally:
            self._forget(wake)
            if timer is not None:
                timer.cancel()

    async def _wait_trio(self, trio: Any, until: float) -> bool:
        event = trio.Event()
        self._waiting.append(event.set)
        try:
            with trio.move_on_at(until):
                await event.wait()
        finally:
            self._forget(event.set)
        return bool(event.is_set())

    def _wait_plain(self, loop: PlainLoop, until: float | None) -> bool:
        told: list[bool] = []

        def wake() -> None:
            told.append(True)

        self._waiting.append(wake)
        try:
            while not told:
                if not loop.turn(until):
                    return False
        finally:
            self._forget(wake)
        return True

    def _forget(self, wake: Callback) -> None:
        if wake in self._waiting:
            self._waiting.remove(wake)


async def shielded(loop: Loop, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """To its end, however often the caller is cancelled meanwhile; only for who raises that afterwards."""
    if isinstance(loop, TrioLoop):
        with loop.trio.CancelScope(shield=True):
            await work()
    elif isinstance(loop, PlainLoop):
        await work()
    else:
        task = asyncio.ensure_future(work())
        while not task.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([task])
        if not task.cancelled():
            task.result()


def now(work: Awaitable[T]) -> T:
    """The result of what waits in a PlainLoop only: so it never has to be resumed."""
    try:
        work.__await__().send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise RuntimeError("something else than a PlainLoop was waited for")


def plain(work: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[Any, P], T]:
    """A method of the same name that waits, of an object whose commands have a PlainLoop."""

    @functools.wraps(work)
    def call(self: Any, /, *args: P.args, **words: P.kwargs) -> T:
        return now(work(self, *args, **words))

    return call
