"""Which requests may be in the engine at once: only as many as its KV pool holds to their ends.

vLLM preempts a running request when blocks run out, whatever its length; so nothing is sent that could take blocks
from one that runs. What does not fit waits here, completions first, and a full queue refuses.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count

from laguna_daemon.errors import OverBudget
from laguna_daemon.residency.pool import Pool
from laguna_daemon.residency.prefixes import Ids, common_prefix

PATIENCE_S = 3.0
"""A question that has waited so long goes before completions that came later: they would starve it otherwise."""


@dataclass(eq=False)
class Ticket:
    """A request on its way: its ids, its length with the answer in tokens, its rank (lower goes first)."""

    ids: Ids
    tokens: int
    rank: int
    order: int
    since: float
    admitted: asyncio.Event

    def place(self) -> tuple[int, int]:
        late = time.monotonic() - self.since > PATIENCE_S and self.rank <= 1
        return (-1 if late else self.rank, self.order)


class Admission:
    """Admits requests by the blocks they will need at their ends. ``pool`` tells the engine's pool, None if unknown."""

    def __init__(self, pool: Callable[[], Pool | None], limit: int) -> None:
        self._pool = pool
        self._limit = limit
        self._running: list[Ticket] = []
        self._waiting: list[Ticket] = []
        self._order = count()

    @property
    def waiting(self) -> int:
        """Requests that wait for room."""
        return len(self._waiting)

    @asynccontextmanager
    async def admit(
        self, ids: Ids, output: int, rank: int, on_wait: Callable[[int], None] | None = None
    ) -> AsyncIterator[None]:
        """Around a request; waits until it fits. ``on_wait`` is told once how many requests stand before it.

        Raises OverBudget if it can never fit, or if too many wait already.
        """
        ticket = Ticket(ids, len(ids) + output, rank, next(self._order), time.monotonic(), asyncio.Event())
        self._refuse_hopeless(ticket)
        if self._waiting or not self._fits(ticket):
            if len(self._waiting) >= self._limit:
                raise OverBudget(
                    f"The engine is busy: {len(self._running)} requests are running and {len(self._waiting)} wait, "
                    "and no more are queued.",
                    "Ask again in a moment, or cancel one of the others.",
                )
            self._waiting.append(ticket)
            self._next()
            if not ticket.admitted.is_set() and on_wait is not None:
                on_wait(len(self._running) + len(self._waiting) - 1)
        else:
            self._running.append(ticket)
            ticket.admitted.set()
        try:
            await ticket.admitted.wait()
            yield
        finally:
            (self._running if ticket in self._running else self._waiting).remove(ticket)
            self._next()

    def room(self, ids: Ids, output: int) -> bool:
        """Whether such a request could start now, with nobody waiting before it."""
        ticket = Ticket(ids, len(ids) + output, 9, 0, 0.0, asyncio.Event())
        return not self._waiting and self._fits(ticket)

    def reset(self) -> None:
        """The pool became known or changed: look again who fits."""
        self._next()

    def _refuse_hopeless(self, ticket: Ticket) -> None:
        pool = self._pool()
        if pool is not None and pool.running(ticket.tokens) > pool.usable:
            raise OverBudget(
                f"The request needs room for {ticket.tokens:,} tokens with its answer, and the engine's KV memory "
                f"holds about {pool.tokens():,}.",
                "Use a smaller context (profile: budget.context), or give the engine more KV memory.",
            )

    def _next(self) -> None:
        while self._waiting:
            first = min(self._waiting, key=Ticket.place)
            if not self._fits(first):
                return
            self._waiting.remove(first)
            self._running.append(first)
            first.admitted.set()

    def _fits(self, ticket: Ticket) -> bool:
        pool = self._pool()
        if pool is None or not self._running:
            return True
        return self._reserved(pool, [*self._running, ticket]) <= pool.usable

    def _reserved(self, pool: Pool, tickets: list[Ticket]) -> int:
        """Blocks that these need at their ends; a beginning that several share counts once."""
        total = 0
        for index, ticket in enumerate(tickets):
            shared = max((common_prefix(ticket.ids, other.ids) for other in tickets[:index]), default=0)
            total += pool.running(ticket.tokens) - shared // pool.block_size
        return total
