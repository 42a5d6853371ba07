"""One lane for long prefills: two at once would only share the same speed, and each other's blocks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

from laguna_daemon.errors import OverBudget


class Lane:
    """Held by one at a time; lower ranks go first, equal ones in their order."""

    def __init__(self, limit: int = 16) -> None:
        self._limit = limit
        self.holder: Holder | None = None
        self._waiting: list[Holder] = []
        self._order = count()

    @asynccontextmanager
    async def hold(self, rank: int) -> AsyncIterator[Holder]:
        """The lane, once it is this one's turn. Raises OverBudget if too many wait for it."""
        if len(self._waiting) >= self._limit:
            raise OverBudget(
                f"The engine is busy: {len(self._waiting)} long prompts wait to be read, and no more are queued.",
                "Ask again in a moment, or cancel one of the others.",
            )
        holder = Holder(self, rank, next(self._order))
        await holder.take()
        try:
            yield holder
        finally:
            holder.leave()

    def wanted(self, rank: int) -> bool:
        """Whether someone waits who goes before ``rank``."""
        return any(waiting.rank < rank for waiting in self._waiting)

    def _pass_on(self) -> None:
        if self.holder is None and self._waiting:
            self.holder = min(self._waiting, key=lambda holder: (holder.rank, holder.order))
            self._waiting.remove(self.holder)
            self.holder.turn.set()


class Holder:
    """One that has the lane or waits for it."""

    def __init__(self, lane: Lane, rank: int, order: int) -> None:
        self.rank, self.order = rank, order
        self.turn = asyncio.Event()
        self._lane = lane

    async def take(self) -> None:
        """Wait for the lane."""
        self.turn.clear()
        self._lane._waiting.append(self)
        self._lane._pass_on()
        try:
            await self.turn.wait()
        except asyncio.CancelledError:
            self.leave()
            raise

    def leave(self) -> None:
        """Let go of the lane, or of the place in the line; twice is no harm."""
        if self in self._lane._waiting:
            self._lane._waiting.remove(self)
        if self._lane.holder is self:
            self._lane.holder = None
            self._lane._pass_on()

    async def give_way(self) -> bool:
        """At a boundary: let those pass who go before, and take the lane again. True if any did."""
        if not self._lane.wanted(self.rank):
            return False
        self.leave()
        await self.take()
        return True
