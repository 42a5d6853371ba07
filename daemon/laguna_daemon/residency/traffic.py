"""Who is using the engine: interactive requests go before background prefill."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

SETTLE_S = 0.1
"""A completion that is over within this time changes no status: telling every editor twice costs more than it does."""


class _Count:
    """How many of one kind are in flight, and a way to wait until none is."""

    def __init__(self) -> None:
        self.running = 0
        self.none = asyncio.Event()
        self.none.set()
        self.some = asyncio.Event()

    def enter(self) -> None:
        self.running += 1
        self.none.clear()
        self.some.set()

    def leave(self) -> None:
        self.running -= 1
        if self.running == 0:
            self.none.set()
            self.some.clear()


class Traffic:
    """Counts requests in flight, and lets others wait, within a bound, until none is left."""

    def __init__(self, on_change: Callable[[], None] = lambda: None) -> None:
        self._on_change = on_change
        self._ended = time.monotonic()
        self._all = _Count()
        self._coming = _Count()
        self._typing = _Count()
        self._settling: asyncio.TimerHandle | None = None

    @property
    def running(self) -> int:
        """Interactive requests in flight."""
        return self._all.running

    @asynccontextmanager
    async def interactive(self, *, typing: bool = False) -> AsyncIterator[None]:
        """Around a request that a user waits for; ``typing`` says that it is a completion, of which is told later."""
        tell = self._tell_later if typing else self._on_change
        counts = (self._all, self._typing) if typing else (self._all,)
        for count in counts:
            count.enter()
        tell()
        try:
            yield
        finally:
            for count in counts:
                count.leave()
            self._ended = time.monotonic()
            tell()

    def _tell_later(self) -> None:
        if self._settling is None:
            self._settling = asyncio.get_running_loop().call_later(SETTLE_S, self._settled)

    def _settled(self) -> None:
        self._settling = None
        self._on_change()

    def idle_s(self) -> float:
        """Seconds since the last interactive request ended; 0 while one runs."""
        return 0.0 if self.running else time.monotonic() - self._ended

    @asynccontextmanager
    async def coming(self) -> AsyncIterator[None]:
        """Around the whole of a question, from before its prompt is made: nothing is begun in the background then."""
        self._coming.enter()
        try:
            yield
        finally:
            self._coming.leave()

    async def calm(self, bound_s: float) -> bool:
        """Like `quiet`, and no question is on its way either."""
        return await _within(self._coming.none, bound_s) and await _within(self._all.none, bound_s)

    async def quiet(self, bound_s: float) -> bool:
        """Wait until no interactive request is in flight, at most ``bound_s`` seconds; True if so."""
        return await _within(self._all.none, bound_s)

    async def arrival(self, *, typing: bool) -> None:
        """Wait until an interactive request is in flight; ``typing``: a completion."""
        await (self._typing if typing else self._all).some.wait()

    async def pause(self, bound_s: float) -> bool:
        """Wait until no completion is in flight, at most ``bound_s`` seconds; True if so."""
        return await _within(self._typing.none, bound_s)


async def _within(event: asyncio.Event, bound_s: float) -> bool:
    if event.is_set():
        return True
    if bound_s <= 0:
        return False
    try:
        async with asyncio.timeout(bound_s):
            await event.wait()
    except TimeoutError:
        return False
    return True
