"""Touching: a request of exactly a prefix, for one token, makes its blocks the youngest again.

The engine reuses the oldest blocks first, so a repository that is touched often enough outlives any number of
completions without any memory of its own (docs/residency.md: 0.1 s at 190,000 tokens).
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

import numpy as np

from laguna_daemon.engine.client import NOTHING_NEW, finish_of
from laguna_daemon.errors import LagunaError
from laguna_daemon.residency.prefixes import Ids, Prefix

if TYPE_CHECKING:
    from laguna_daemon.residency.work import AdmittedClient, Work

TOUCH_PRIORITY = 1
_SHARE = 2
"""A prefix is touched once this part of its slack would be used up: half, since the count is an estimate."""
_SEGMENT = 0.44  # of the slack: measured with 4,096 of 9,300
_LITTLE = 64  # tokens computed: no more than the engine leaves out of every hit
_SETTLE = 64  # new tokens behind a prefix that make its copy in host memory whole
_BOUND_S = 10.0  # a touch that takes longer is not one: the prefix is gone, and is being computed
_log = logging.getLogger(__name__)


class Toucher:
    """Touches what is worth keeping, when it is due. One round at a time."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._round: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()
        self.touches = 0

    def poke(self, client: AdmittedClient) -> None:
        """Something was computed: begin a round if a touch is due."""
        if (self._round is None or self._round.done()) and self.due():
            self._round = asyncio.create_task(self.round(client))

    async def before(self, client: AdmittedClient, ids: Ids) -> None:
        """Work is about to begin: touch first what it would evict because the last touch is too long ago, and complete
        the copy in host memory of what it evicts in any case."""
        for prefix in self.kept():
            self._work.residency.let_go(prefix)
            slack = self._work.residency.slack(prefix)
            if slack is None or np_equal(prefix.ids, ids, min(prefix.warm, len(ids))):
                continue
            cost = len(ids) - self._work.residency.common(ids)
            if cost > slack and prefix.whole and self._work.residency.unsettled(prefix):
                async with self._turn:
                    await self.settle(client, prefix)
                continue
            since = self._work.residency.waiting(prefix)
            if since > 1 and cost <= slack < since + cost:
                async with self._turn:
                    if self._work.residency.waiting(prefix) >= since:  # or a round came before
                        await self.touch(client, prefix)

    async def round(self, client: AdmittedClient) -> None:
        """Touch whatever is due."""
        tried: set[int] = set()
        while due := [prefix for prefix in self.due() if id(prefix) not in tried]:
            tried.add(id(due[0]))
            try:
                async with self._turn:
                    if due[0] in self.due():
                        await self.touch(client, due[0])
            except LagunaError as error:
                _log.info("%s was not touched: %s", due[0].root, error.what)
                return

    def due(self) -> list[Prefix]:
        """Resident prefixes whose slack would be half used after one more request like the latest."""
        found = []
        for prefix in self.kept():
            if prefix.warming:
                continue
            self._work.residency.let_go(prefix)
            slack = self._work.residency.slack(prefix)
            if slack is None:
                continue
            since = self._work.residency.waiting(prefix)
            coming = max((cost for cost in self._work.costs if cost <= slack // _SHARE), default=0)
            if since > 1 and since + coming > slack // _SHARE:
                found.append(prefix)
        return sorted(found, key=lambda prefix: prefix.stamp)

    def kept(self) -> list[Prefix]:
        """Resident prefixes that touching is for: as many as fit into the pool together, those asked for last first,
        and none that comes back from host memory."""
        residency = self._work.residency
        pool = residency.pool
        if pool is None:
            return []
        wanted = [p for p in residency.prefixes.values() if p.warming or residency.resident(p)]
        found, taken = [], 0
        for prefix in sorted(wanted, key=lambda p: (-p.used, not p.pinned, -p.stamp)):
            needs = pool.resting(len(prefix.ids), len(prefix.anchors))
            if taken + needs < pool.usable:
                taken += needs
                found.append(prefix)
        whole = residency.offloads and not residency.holes
        return [p for p in found if p.warm and not whole and not (residency.offloads and p.settled)]

    async def touch(self, client: AdmittedClient, prefix: Prefix) -> bool:
        """Make a prefix and its anchors the youngest; False if that was not possible."""
        for place in (*prefix.held_anchors(), prefix.warm):
            ids = prefix.ids[:place]
            if not self._work.admission.room(ids, 1) or not await self._one(client, ids):
                return False
        prefix.anchored = self._work.residency.work
        return True

    async def settle(self, client: AdmittedClient, prefix: Prefix) -> bool:
        """Ask once more over the prefix, so that its copy in host memory has no holes; False if that was in vain."""
        filler = np.resize(prefix.ids[: 2 * _SETTLE][::-1], _SETTLE)
        ids = np.concatenate([prefix.ids, filler])
        finish = await finish_of(client.untouched(ids, NOTHING_NEW, TOUCH_PRIORITY))
        if finish.cached_tokens <= 0.9 * len(prefix.ids):
            return False
        prefix.settled = True
        return True

    async def anchors(self, client: AdmittedClient, ids: Ids, done: int, end: int) -> None:
        """Before a segment from ``done`` to ``end``: touch the anchors before it, if it could be the one that takes
        their windows."""
        residency = self._work.residency
        for prefix in residency.prefixes.values():
            places = [place for place in prefix.anchors if place < done]
            if not places or residency.pool is None or not np_equal(prefix.ids, ids, done):
                continue
            slack = residency.pool.slack(residency.pool.resting(end, len(places)))
            if residency.work - prefix.anchored + end - done <= slack // _SHARE:
                continue
            if not self._work.admission.room(ids[:done], 1):
                continue
            for place in places:
                await self._one(client, ids[:place])
            prefix.anchored = residency.work

    def segment(self, ids: Ids, computed: int) -> int | None:
        """The longest segment of ``computed`` tokens of work that spares what is kept; None: as long as one likes."""
        pool = self._work.residency.pool
        sizes = []
        for prefix in self.kept() if pool is not None else ():
            slack = self._work.residency.slack(prefix)
            if pool is None or not slack or np_equal(prefix.ids, ids, min(prefix.warm, len(ids))):
                continue
            size = max(1, int(_SEGMENT * slack))
            # What stays of the work itself, and one segment of it in all groups, must fit beside the prefix; longer
            # work evicts the prefix whatever is done.
            needs = pool.resting(prefix.warm) + pool.resting(len(ids)) + pool.groups * -(-size // pool.block_size)
            if computed > slack // _SHARE and needs <= pool.usable:
                sizes.append(size)
        return min(sizes, default=None)

    async def _one(self, client: AdmittedClient, ids: Ids) -> bool:
        self.touches += 1
        began = time.perf_counter()
        try:
            async with asyncio.timeout(_BOUND_S):
                finish = await finish_of(client.untouched(ids, NOTHING_NEW, TOUCH_PRIORITY))
        except TimeoutError:
            self._work.residency.found(ids, 0, len(ids), 1)
            return False
        if len(ids) - finish.cached_tokens < _LITTLE:
            self._work.pace.touched(len(ids), time.perf_counter() - began)
        return finish.cached_tokens > 0


def np_equal(one: Ids, other: Ids, length: int) -> bool:
    """Whether both begin with the same ``length`` ids."""
    return len(one) >= length and len(other) >= length and bool((one[:length] == other[:length]).all())
