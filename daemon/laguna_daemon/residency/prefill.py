"""Long prompts are prefilled in segments: a row of prompts, each ending one segment later than the one before.

Every segment reuses the one before it, so nothing is computed twice; between segments others get their turn, the
user sees how far it is, and a cancelled prefill keeps what it has done. Measured at 190K tokens: segments of 16,384
cost 3% more than one request, 8,192 about 8%. A completion beside a running segment would decode at the segment's
steps, 0.1 s a token: so it breaks the segment off, which loses one step of the engine's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from laguna_daemon.engine.client import NOTHING_NEW, Finish, finish_of
from laguna_daemon.residency.prefixes import Ids, Residency

if TYPE_CHECKING:
    from laguna_daemon.residency.lane import Holder
    from laguna_daemon.residency.pace import Pace
    from laguna_daemon.residency.work import AdmittedClient, Work

WARM_PRIORITY = 2
_WARM_WAIT_S = 30.0  # a warm-up waits so long at one boundary for requests that users wait for
_QUESTION_WAIT_S = 1.0  # a question's own prefill waits so long at one boundary for completions,
_QUESTION_SHARE = 0.5  # and in all for this share of the time that it has computed
_BROKEN_OFF_S = 0.3  # what breaking off a segment costs: a step, and the prompt sent again


@dataclass(frozen=True, slots=True)
class Segment:
    """One finished segment: ``end`` tokens are in the engine; ``cached`` of them were there before."""

    end: int
    cached: int


async def prefill(
    client: AdmittedClient,
    ids: Ids,
    resident: Residency,
    pace: Pace,
    *,
    priority: int,
    whole: bool = False,
    current: Callable[[], bool] = lambda: True,
) -> AsyncGenerator[Segment, None]:
    """Bring ``ids`` into the engine, yielding after each segment; all but the last part unless ``whole``.

    One prefill at a time; at each boundary it waits, within bounds, for requests that go before it; such a request
    makes a boundary where it comes, as long as those bounds are not used up. It ends at a boundary once ``current()``
    says that nobody wants it any more.
    """
    work = client.work
    start = resident.common(ids)
    if _end(work, ids, start, pace, whole) is None:
        return
    async with work.lane.hold(priority) as holder:
        boundary = _Boundary(work, holder, priority)
        while current():
            patient = await boundary.wait()
            start = max(start, resident.common(ids))
            end = _end(work, ids, start, pace, whole)
            if end is None or not current():
                return
            began = time.perf_counter()
            await work.toucher.anchors(client, ids, start, end)
            mark = time.perf_counter()
            run = finish_of(client.generate(ids[:end], NOTHING_NEW, priority=priority))
            finish = await (_unless(run, boundary.knock()) if patient else run)
            boundary.computed += time.perf_counter() - began
            if finish is None:
                boundary.broken_off()
                continue
            pace.saw(end, end - max(start, finish.cached_tokens), time.perf_counter() - mark)
            yield Segment(end, finish.cached_tokens)
            start = end
            await work.toucher.round(client)


def _end(work: Work, ids: Ids, start: int, pace: Pace, whole: bool) -> int | None:
    """Where the next segment ends; None if there is none."""
    left = len(ids) - start
    most = work.toucher.segment(ids, left)
    size = pace.size(start)
    if most is not None:
        size = min(size, most)
    end = start + size
    if left <= size + size // 2:
        if not whole or left <= 0:
            return None
        end = len(ids)
    places = [place for p in work.residency.prefixes.values() for place in p.anchors if start < place < end]
    return min(places, default=end)


class _Boundary:
    """Between two segments."""

    def __init__(self, work: Work, holder: Holder, priority: int) -> None:
        self._traffic, self._holder = work.traffic, holder
        self._background = priority >= WARM_PRIORITY
        self.computed = 0.0
        self._waited = 0.0

    async def wait(self) -> bool:
        """Let others go first; whether the next segment may be broken off for others still."""
        if self._background:
            quiet = True
            if self._traffic.running:
                self._holder.leave()
                quiet = await self._traffic.quiet(_WARM_WAIT_S)
                await self._holder.take()
            await self._holder.give_way()
            return quiet
        # A typist sends completions without end; a question that somebody waits for goes on all the same.
        began = time.perf_counter()
        quiet = await self._traffic.pause(min(_QUESTION_WAIT_S, self._allowed()))
        self._waited += time.perf_counter() - began
        return quiet and self._allowed() > _BROKEN_OFF_S

    def knock(self) -> Coroutine[Any, Any, None]:
        """Returns once somebody comes who goes first."""
        return self._traffic.arrival(typing=not self._background)

    def broken_off(self) -> None:
        """A segment was broken off."""
        self._waited += _BROKEN_OFF_S

    def _allowed(self) -> float:
        return _QUESTION_WAIT_S + _QUESTION_SHARE * self.computed - self._waited


async def _unless(run: Coroutine[Any, Any, Finish], knock: Coroutine[Any, Any, None]) -> Finish | None:
    """What ``run`` returns; None if ``knock`` was there first, and ``run`` is broken off."""
    running, knocking = asyncio.create_task(run), asyncio.create_task(knock)
    try:
        await asyncio.wait({running, knocking}, return_when=asyncio.FIRST_COMPLETED)
        return running.result() if running.done() else None
    finally:
        running.cancel()
        knocking.cancel()
        await asyncio.wait({running, knocking})
        if not running.cancelled():
            running.exception()  # looked at, whoever came first
