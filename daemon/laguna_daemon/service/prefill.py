"""Long prompts are prefilled in segments: a row of prompts, each ending one segment later than the one before.

Every segment reuses the one before it, so nothing is computed twice; between segments others get their turn, the
user sees how far it is, and a cancelled prefill keeps what it has done. Measured at 190K tokens: segments of 16,384
cost 3% more than one request, 8,192 about 8%.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from laguna_daemon.engine.client import Finish, Sampling
from laguna_daemon.service.residency import Ids, Residency

if TYPE_CHECKING:
    from laguna_daemon.service.lane import Holder
    from laguna_daemon.service.work import AdmittedClient, Work

TARGET_S = 0.5  # aim of one segment: short enough that a completion does not wait
WARM_PRIORITY = 2
_FIRST = 1024
_SMALLEST = 256
_FIXED_SHARE = 1 / 6
_REMEMBERED, _ENOUGH = 8, 4  # segments that an estimate is made of
_ONE = Sampling(max_tokens=1, token_ids=False)
_WARM_WAIT_S = 30.0  # a warm-up waits so long at one boundary for requests that users wait for
_QUESTION_WAIT_S = 1.0  # a question's own prefill waits so long at one boundary for completions,
_QUESTION_SHARE = 0.5  # and in all for this share of the time that it has computed


@dataclass(frozen=True, slots=True)
class Segment:
    """One finished segment: ``end`` tokens are in the engine; ``cached`` of them were there before."""

    end: int
    cached: int


class Pace:
    """Segment sizes from the times seen, in tokens; shared by all prefills of one engine.

    A segment that computes ``n`` tokens and ends at ``end`` takes about ``a * end + b * n`` seconds: the whole prompt
    is sent, read and looked up each time. Measured on one H200 at 190,000 tokens: 0.3 s, and 0.1 ms a token. Segments
    aim at ``target_s``, but are never so short that more than ``share`` of the time goes into the fixed part.
    """

    def __init__(self, target_s: float = TARGET_S, first: int = _FIRST, share: float = _FIXED_SHARE) -> None:
        self._target = target_s
        self._first = first
        self._share = share
        self._seen: deque[tuple[float, float, float]] = deque(maxlen=_REMEMBERED)
        self._last = first

    def saw(self, end: int, tokens: int, seconds: float) -> None:
        """Take the time of one segment into account."""
        if tokens >= _SMALLEST // 2 and seconds > 0:
            self._seen.append((end, tokens, seconds))
            self._last = tokens

    def size(self, start: int) -> int:
        """Tokens of a segment that begins at ``start``; at most doubling or halving, since times are noisy."""
        if not self._seen:
            return self._first
        fixed, each = self._costs()
        paid = fixed * start
        wanted = max(self._target - paid, paid * (1 / self._share - 1)) / each
        return int(min(max(wanted, self._last / 2, _SMALLEST), self._last * 2))

    def _costs(self) -> tuple[float, float]:
        """Seconds for each token of the prompt, and for each token computed; the first is 0 until it shows."""
        rows = np.array(self._seen)
        times = rows[:, 2]
        if len(rows) >= _ENOUGH:
            (fixed, each), _, rank, _ = np.linalg.lstsq(rows[:, :2], times, rcond=None)
            if rank == rows[:, :2].shape[1] and fixed >= 0 and each > 0:
                return float(fixed), float(each)
        return 0.0, float(times.sum() / rows[:, 1].sum())


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

    One prefill at a time; at each boundary it waits, within bounds, for requests that go before it, and it ends there
    once ``current()`` says that nobody wants it any more.
    """
    work = client.work
    start = resident.common(ids)
    if _end(work, ids, start, pace, whole) is None:
        return
    async with work.lane.hold(priority) as holder:
        boundary = _Boundary(work, holder, priority)
        while current():
            await boundary.wait()
            start = max(start, resident.common(ids))
            end = _end(work, ids, start, pace, whole)
            if end is None or not current():
                return
            began = time.perf_counter()
            await work.toucher.anchors(client, ids, start, end)
            mark = time.perf_counter()
            finish = await _run(client, ids[:end], priority)
            pace.saw(end, end - max(start, finish.cached_tokens), time.perf_counter() - mark)
            boundary.computed += time.perf_counter() - began
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

    async def wait(self) -> None:
        """Let others go first."""
        began = time.perf_counter()
        if self._background:
            if self._traffic.running:
                self._holder.leave()
                await self._traffic.quiet(_WARM_WAIT_S)
                await self._holder.take()
            await self._holder.give_way()
        else:
            # A typist sends completions without end; a question that somebody waits for goes on all the same.
            allowed = _QUESTION_WAIT_S + _QUESTION_SHARE * self.computed - self._waited
            await self._traffic.pause(min(_QUESTION_WAIT_S, allowed))
            self._waited += time.perf_counter() - began


async def _run(client: AdmittedClient, ids: Ids, priority: int) -> Finish:
    async with aclosing(client.generate(ids, _ONE, priority=priority)) as pieces:
        async for piece in pieces:
            if isinstance(piece, Finish):
                return piece
    raise AssertionError("a generation ends with its Finish")
