"""Who is using the engine: interactive requests go before background prefill."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


class Traffic:
    """Counts requests in flight, and lets background work wait until none is left, within a bound."""

    def __init__(self, on_change: Callable[[], None] = lambda: None) -> None:
        self._on_change = on_change
        self.running = 0
        self._quiet = asyncio.Event()
        self._quiet.set()

    @asynccontextmanager
    async def interactive(self) -> AsyncIterator[None]:
        """Around a request that a user waits for."""
        self.running += 1
        self._quiet.clear()
        self._on_change()
        try:
            yield
        finally:
            self.running -= 1
            if self.running == 0:
                self._quiet.set()
            self._on_change()

    async def quiet(self, bound_s: float) -> bool:
        """Wait until no interactive request is in flight, at most ``bound_s`` seconds; True if so."""
        try:
            async with asyncio.timeout(bound_s):
                await self._quiet.wait()
        except TimeoutError:
            return False
        return True
