"""Long prompts are prefilled in segments: a row of prompts, each ending one segment later than the one before.

Every segment reuses the one before it, so nothing is computed twice; between segments others get their turn, the
user sees how far it is, and a cancelled prefill keeps what it has done. Measured at 190K tokens: segments of 16,384
cost 3% more than one request, 8,192 about 8% (docs/engine.md).
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from laguna_daemon.engine.client import EngineClient, Finish, Sampling

Ids = NDArray[np.uint32]
TARGET_S = 0.7  # aim of one segment: short enough that a completion does not wait, long enough to cost little
_FIRST = 1024
_SMALLEST = 256
_ONE = Sampling(max_tokens=1, temperature=0.0)


class Resident:
    """What the engine is believed to hold: the last prompts that went through it.

    Belief only decides where segments are cut; what was really cached is the engine's own word.
    """

    def __init__(self, limit: int = 8) -> None:
        self._limit = limit
        self._known: list[Ids] = []

    def forget(self) -> None:
        """The engine was restarted."""
        self._known.clear()

    def add(self, ids: Ids) -> None:
        """``ids`` went through the engine."""
        self._known = [ids, *self._known[: self._limit - 1]]

    def common(self, ids: Ids) -> int:
        """Length of the longest known beginning of ``ids``, in tokens."""
        return max((common_prefix(ids, known) for known in self._known), default=0)


def common_prefix(one: Ids, other: Ids) -> int:
    """Number of leading ids that both have in common."""
    length = min(len(one), len(other))
    differing = np.flatnonzero(one[:length] != other[:length])
    return int(differing[0]) if len(differing) else length


@dataclass(frozen=True, slots=True)
class Segment:
    """One finished segment: ``end`` tokens are in the engine; ``cached`` of them were there before."""

    end: int
    cached: int


class Pace:
    """Segment sizes from the speed seen, in tokens; shared by all prefills of one engine."""

    def __init__(self, target_s: float = TARGET_S, first: int = _FIRST) -> None:
        self._target = target_s
        self.size = first

    def saw(self, tokens: int, seconds: float) -> None:
        """Take the time of one segment into account; at most doubling or halving, since times are noisy."""
        if tokens < _SMALLEST // 2 or seconds <= 0:
            return
        wanted = tokens / seconds * self._target
        self.size = int(min(max(wanted, self.size / 2, _SMALLEST), self.size * 2))


async def prefill(
    client: EngineClient,
    ids: Ids,
    resident: Resident,
    pace: Pace,
    *,
    priority: int,
    turn: Callable[[], Awaitable[None]] | None = None,
) -> AsyncGenerator[Segment, None]:
    """Bring all but the last part of ``ids`` into the engine, yielding after each segment.

    Leaves the end of the prompt to the request that wants the answer. ``turn`` is awaited
    between segments, so that others get theirs.
    """
    start = resident.common(ids)
    end = start + pace.size
    while end + pace.size // 2 < len(ids):
        began = time.perf_counter()
        finish = await _run(client, ids[:end], priority)
        pace.saw(end - max(start, finish.cached_tokens), time.perf_counter() - began)
        resident.add(ids[:end])
        yield Segment(end, finish.cached_tokens)
        if turn is not None:
            await turn()
        start, end = end, end + pace.size


async def _run(client: EngineClient, ids: Ids, priority: int) -> Finish:
    async with aclosing(client.generate(ids, _ONE, priority=priority)) as pieces:
        async for piece in pieces:
            if isinstance(piece, Finish):
                return piece
    raise AssertionError("a generation ends with its Finish")
