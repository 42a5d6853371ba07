"""All work of the engine passes here: admitted by what its KV pool holds, counted for what that does to prefixes."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

import numpy as np
from numpy.typing import NDArray

from laguna_daemon.config import Settings
from laguna_daemon.engine.client import EngineClient, Finish, Piece, Sampling
from laguna_daemon.engine.launch import Launch
from laguna_daemon.errors import LagunaError
from laguna_daemon.residency.admission import Admission
from laguna_daemon.residency.lane import Lane
from laguna_daemon.residency.pace import Pace
from laguna_daemon.residency.pool import Pool
from laguna_daemon.residency.prefixes import Ids, Residency
from laguna_daemon.residency.touching import Toucher
from laguna_daemon.residency.traffic import Traffic

_LOOK_EVERY = 256  # tokens of an answer between two looks at what it does to prefixes
_log = logging.getLogger(__name__)


class Work:
    """What the daemon knows of its engine's work; one for all engines that follow each other."""

    def __init__(self, settings: Settings, on_change: Callable[[], None]) -> None:
        self.traffic = Traffic(on_change)
        self.residency = Residency()
        self.pace = Pace()
        self.lane = Lane(settings.daemon.queue)
        self.admission = Admission(lambda: self.residency.pool, settings.daemon.queue)
        self.toucher = Toucher(self)
        self.costs: deque[int] = deque(maxlen=8)
        self.launch: Launch | None = None
        self.on_change = on_change
        self._client: AdmittedClient | None = None
        self._learned = False

    def begin(self, launch: Launch) -> None:
        """Another engine is being started."""
        self.launch = launch
        self._learned = False
        cache = launch.profile.cache
        self.residency.offloads = launch.offload_gib > 0
        self.residency.host = int(launch.offload_gib * 2**30 / cache.token_bytes) if cache.token_bytes else 0
        self.residency.holes = cache.settle

    def admitted(self, client: EngineClient) -> AdmittedClient:
        """The client as everybody uses it."""
        if self._client is None or self._client.inner is not client:
            self._client = AdmittedClient(client, self)
        return self._client

    async def learn(self, client: EngineClient) -> None:
        """Ask the engine once how large its pool is; without an answer nothing is refused and nothing presumed lost."""
        if self._learned or self.launch is None:
            return
        self._learned = True
        profile = self.launch.profile
        if profile.kind == "remote":
            return
        try:
            found = await client.metrics()
        except LagunaError as error:
            _log.warning("the size of the KV pool is not known: %s", error)
            return
        if not found.kv_blocks:
            return
        cache = profile.cache
        self.residency.pool = Pool(
            blocks=found.kv_blocks,
            block_size=found.block_size or profile.block_size,
            groups=cache.groups,
            window=cache.window,
            batch=int(profile.flags.get("max-num-batched-tokens", 2048)),
        )
        _log.info("KV pool: %s", self.residency.pool)

    def cost(self, tokens: int) -> None:
        """A request cost so many tokens of work; small ones say what the next may cost."""
        self.costs.append(tokens)


class AdmittedClient(EngineClient):
    """An engine's client whose generations wait for room and are counted. Shares the connections of ``inner``."""

    def __init__(self, inner: EngineClient, work: Work) -> None:
        vars(self).update(vars(inner))
        self.inner = inner
        self.work = work

    async def generate(
        self, prompt: NDArray[np.uint32] | Sequence[int], sampling: Sampling, *, priority: int = 0
    ) -> AsyncGenerator[Piece | Finish, None]:
        """As EngineClient's. Raises OverBudget where the prompt does not fit the pool, or too many wait."""
        await self.work.learn(self.inner)
        ids = np.asarray(prompt, dtype=np.uint32)
        await self.work.toucher.before(self, ids)
        async with aclosing(self.untouched(ids, sampling, priority)) as pieces:
            async for piece in pieces:
                yield piece

    async def untouched(self, ids: Ids, sampling: Sampling, priority: int) -> AsyncGenerator[Piece | Finish, None]:
        """The same without a look at what it may evict."""
        work = self.work
        async with work.admission.admit(ids, sampling.max_tokens, priority):
            meter = _Meter(work, ids)
            try:
                async with aclosing(self.inner.generate(ids, sampling, priority=priority)) as pieces:
                    async for piece in pieces:
                        if meter.saw(piece):
                            work.toucher.poke(self)
                        yield piece
            finally:
                meter.ended()
        work.toucher.poke(self)


class _Meter:
    """What one request does to the cache."""

    def __init__(self, work: Work, ids: Ids) -> None:
        self._work, self._ids = work, ids
        self._believed = work.residency.common(ids)
        self._pooled = work.residency.common(ids, away=False)
        self._counted = 0
        self._answer: list[int] = []
        self._begun = self._done = False

    def saw(self, piece: Piece | Finish) -> bool:
        """Count a piece; True now and then, when it is time to look at what became of prefixes."""
        if isinstance(piece, Finish):
            self._finished(piece)
            return False
        if not self._begun:
            self._begun = True
            self._counted = max(0, len(self._ids) - self._believed)
            self._work.residency.generated(self._counted)
        before = len(self._answer) // _LOOK_EVERY
        self._answer.extend(piece.token_ids)
        self._work.residency.generated(len(piece.token_ids))
        return len(self._answer) // _LOOK_EVERY > before

    def _finished(self, finish: Finish) -> None:
        self._done = True
        work, residency = self._work, self._work.residency
        pool = residency.pool
        residency.found(self._ids, finish.cached_tokens, self._believed, pool.block_size if pool else 128)
        computed = max(0, len(self._ids) - finish.cached_tokens)
        if residency.offloads and pool is not None:
            # Blocks that came back from host memory took room too, in one group only.
            residency.generated(max(0, finish.cached_tokens - self._pooled) // pool.groups)
        answer = np.asarray(self._answer, dtype=np.uint32)
        residency.add(self._ids, computed, answer, self._counted)
        work.cost(computed + len(answer))

    def ended(self) -> None:
        """The request is over; one that was broken off may have computed all of its prompt."""
        if self._done:
            return
        if not self._begun:
            self._work.residency.generated(max(0, len(self._ids) - self._believed))
