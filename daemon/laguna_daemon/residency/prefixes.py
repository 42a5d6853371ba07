"""What the engine is believed to hold of each repository's prefix, checked against what it says it found.

The belief is arithmetic on the engine's own rule, least recently used first out: a prefix is gone once more tokens have
been computed since it was last used than the pool has room for beside it (docs/residency.md). The engine's word,
`cached_tokens` of every answer, corrects it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from laguna_daemon.residency.pool import Pool

Ids = NDArray[np.uint32]
State = Literal["cold", "warming", "resident", "offloaded", "evicted"]
_MOSTLY = 0.9  # a prefix whose last changes are not in yet is still resident
_FIRST_LOOK = 512
_GRAIN = 512  # tokens between the places that `resumable` names where any would do
_ONE_STEP = 1024  # tokens: what is computed in one step is copied without a hole
_NONE: Ids = np.empty(0, dtype=np.uint32)
_log = logging.getLogger(__name__)


def common_prefix(one: Ids, other: Ids) -> int:
    """Number of leading ids that both have in common."""
    length = min(len(one), len(other))
    start, size = 0, _FIRST_LOOK  # most differ early, or not at all
    while start < length:
        end = min(length, start + size)
        differing = np.flatnonzero(one[start:end] != other[start:end])
        if len(differing):
            return start + int(differing[0])
        start, size = end, size * 16
    return length


@dataclass(eq=False)
class Prefix:
    """What all questions about one root start with: head, snapshot and overlay.

    `warm`: tokens of it that went through the engine and were not lost since; `stamp`, `born`, `anchored`: the engine's
    work, in tokens, when it was last used, last computed, and its anchors last touched; `kept`: what was copied to host
    memory by its last use; `settled`: its copy there is whole; `used`: when a user last asked for it (monotonic, 0:
    never).
    """

    root: Path
    ids: Ids
    identity: str
    anchors: tuple[int, ...] = ()
    warm: int = 0
    stamp: int = 0
    born: int = 0
    kept: int = 0
    settled: bool = False
    anchored: int = 0
    warming: bool = False
    pinned: bool = False
    used: float = 0.0
    evictions: int = 0

    @property
    def whole(self) -> bool:
        """Whether all of it went through the engine."""
        return self.warm >= len(self.ids)

    def held_anchors(self) -> tuple[int, ...]:
        """The anchors that lie in what is warm."""
        return tuple(anchor for anchor in self.anchors if anchor < self.warm)


@dataclass
class _Known:
    ids: Ids
    stamp: int


@dataclass
class Residency:
    """Belief about one engine's cache. `work` counts tokens that it computed or generated; `pool` is None while its
    size is not known, and then everything that went through counts as held. `offloads`: blocks are copied to host
    memory; `host`: tokens of one KV group that it holds, 0 if unknown; `holes`: such a copy is whole only once the
    prefix was settled; `copied` counts the tokens copied, in all groups."""

    pool: Pool | None = None
    offloads: bool = False
    holes: bool = False
    host: int = 0
    work: int = 0
    copied: int = 0
    limit: int = 6
    prefixes: dict[Path, Prefix] = field(default_factory=dict)
    _known: list[_Known] = field(default_factory=list)

    def forget(self) -> None:
        """The engine was restarted: nothing is held, and its pool may be another."""
        self._known.clear()
        self.pool = None
        self.work = self.copied = 0
        for prefix in self.prefixes.values():
            if prefix.warm:
                prefix.evictions += 1
            prefix.warm = prefix.stamp = prefix.born = prefix.kept = 0
            prefix.settled = False

    # what went through -------------------------------------------------------------------------------------------

    def add(self, ids: Ids, computed: int = 0, answer: Ids = _NONE, counted: int = 0) -> None:
        """``ids`` went through the engine, which computed ``computed`` of them and then generated ``answer``. The
        answer, and ``counted`` of those computed, are in ``work`` already."""
        self.work += computed - counted
        self.copied += computed
        whole = np.concatenate([ids, answer]) if len(answer) else ids
        others = [known for known in self._known if common_prefix(known.ids, whole) < len(known.ids)]
        self._known = [_Known(whole, self.work), *others][: self.limit]
        for prefix in self.prefixes.values():
            shared = common_prefix(prefix.ids, ids)
            if shared - (len(ids) - computed) > _ONE_STEP:
                prefix.settled = False  # copied anew, step by step
            if shared == len(prefix.ids) or (shared == len(ids) and shared > prefix.warm):
                held = prefix.held_anchors()
                if shared > prefix.warm:
                    prefix.born = self.work
                prefix.warm = shared
                if self._at_its_end(prefix, len(ids) - computed):
                    # What stands behind the prefix in this request was computed after it.
                    prefix.stamp = self.work - min(computed, len(ids) - shared) - len(answer)
                prefix.kept = self.copied
                if not held:
                    prefix.anchored = self.work  # the first one was just passed, if any was

    def _at_its_end(self, prefix: Prefix, cached: int) -> bool:
        """Whether a request with so much from the cache used the prefix as far as it goes, and not further: one that
        found more (questions begin alike) made the sliding windows behind its end young, and not those at its end."""
        return self.pool is None or self.pool.groups == 1 or cached <= len(prefix.ids)

    def generated(self, tokens: int) -> None:
        """Tokens of an answer, which take blocks like any others."""
        self.work += tokens

    def found(self, ids: Ids, cached: int, expected: int, block: int) -> bool:
        """Compare the engine's word on a request with the belief; True if a prefix was lost against expectation."""
        allowed = cached + 2 * block  # the engine gives whole blocks, and with a draft model one less
        if allowed >= expected:
            return False
        lost = False
        for prefix in self.prefixes.values():
            # A request that leaves it earlier says nothing: where windows have passed, nothing is found.
            if prefix.warm > allowed and common_prefix(prefix.ids, ids) >= prefix.warm:
                _log.info("%s: %d of %d tokens were still cached", prefix.root, cached, prefix.warm)
                prefix.evictions += 1
                prefix.settled = False
                prefix.warm = cached
                lost = True
        self._known = [known for known in self._known if common_prefix(known.ids, ids) <= allowed]
        return lost

    # what is held ------------------------------------------------------------------------------------------------

    def common(self, ids: Ids, *, away: bool = True) -> int:
        """Length of the longest beginning of ``ids`` that the engine is believed to hold, in tokens; ``away``: in host
        memory too."""
        # Work elsewhere makes single requests forgotten, never a root's prefix.
        warm = (_Known(p.ids[: p.warm], p.stamp) for p in self.prefixes.values() if p.warm)
        found = (self._reusable(known, common_prefix(ids, known.ids), away=away) for known in (*self._known, *warm))
        return max(found, default=0)

    def ever(self, ids: Ids) -> int:
        """Length of the longest beginning that went through this engine, whether it still holds it or not."""
        return max((common_prefix(ids, known.ids) for known in self._known), default=0)

    def _reusable(self, known: _Known, shared: int, *, away: bool) -> int:
        if self.pool is None or not shared:
            return shared
        owner = self._owner(known.ids)
        if owner is not None and self.state(owner) == "offloaded":
            return min(shared, len(owner.ids)) if away else 0
        if owner is not None and not self.resident(owner):
            return 0
        age = self.work - known.stamp
        slack = self.pool.slack(self.pool.resting(len(known.ids)))
        if owner is None and age > slack:
            return 0
        # Where sliding windows have passed, a prefix is found only near its end, and where it was kept on purpose.
        if self.pool.groups == 1 or len(known.ids) - shared + (age if owner is None else 0) <= slack:
            return shared
        kept = (len(owner.ids), *owner.held_anchors()) if owner is not None else ()
        return max((place for place in kept if place <= shared), default=0)

    def _owner(self, ids: Ids) -> Prefix | None:
        """The prefix that a request's ids begin with."""
        owners = (p for p in self.prefixes.values() if p.warm and len(ids) >= p.warm)
        return next((p for p in owners if common_prefix(p.ids, ids) >= p.warm), None)

    def since(self, prefix: Prefix) -> int:
        """Tokens computed since the prefix was last used."""
        return self.work - prefix.stamp

    def waiting(self, prefix: Prefix) -> int:
        """Tokens computed since the prefix, or an anchor of it, was last used: questions make the prefix young, and
        its anchors not."""
        return max(self.since(prefix), self.work - prefix.anchored if prefix.held_anchors() else 0)

    def slack(self, prefix: Prefix) -> int | None:
        """Tokens of other work that the prefix survives, from its last use on; None if the pool is not known."""
        if self.pool is None:
            return None
        resting = [self.pool.resting(p.warm, len(p.held_anchors())) for p in (prefix, *self._again(prefix))]
        return self.pool.slack(sum(resting))

    def _again(self, prefix: Prefix) -> list[Prefix]:
        """Those made young again since the prefix was, without being computed: they no longer stand before it in the
        line."""
        return [p for p in self.prefixes.values() if p.warm and p.born <= prefix.stamp < p.stamp]

    def let_go(self, prefix: Prefix) -> None:
        """Forget anchors that were not touched for too long: to touch one that is gone is to compute it, which evicts
        the rest."""
        slack = self.slack(prefix)
        if prefix.held_anchors() and slack is not None and self.work - prefix.anchored > slack:
            prefix.anchors = tuple(anchor for anchor in prefix.anchors if anchor >= prefix.warm)

    def resident(self, prefix: Prefix) -> bool:
        """Whether what is warm of the prefix is in the pool."""
        slack = self.slack(prefix)
        return prefix.warm > 0 and (slack is None or self.since(prefix) <= slack)

    def state(self, prefix: Prefix) -> State:
        """In one word, where the prefix is."""
        if prefix.warming:
            return "warming"
        if not prefix.warm:
            return "evicted" if prefix.evictions else "cold"
        if self.resident(prefix):
            return "resident" if prefix.warm >= _MOSTLY * len(prefix.ids) else "cold"
        return "offloaded" if self.away(prefix) else "evicted"

    def unsettled(self, prefix: Prefix) -> bool:
        """Whether the prefix's copy in host memory may have holes."""
        return self.offloads and self.holes and not prefix.settled

    def away(self, prefix: Prefix) -> bool:
        """Whether host memory holds all that is warm of the prefix: its copy has no holes, and what was copied or used
        since left it there. Copies take a block of each group, a prefix that is only used makes one young."""
        if not self.offloads or self.unsettled(prefix):
            return False
        if self.pool is None or not self.host:
            return True
        younger = sum(p.warm for p in self._again(prefix))
        return prefix.warm + younger + self.pool.groups * (self.copied - prefix.kept) <= self.host

    def resumable(self, root: Path) -> list[int] | None:
        """Lengths of the root's prefix at which the engine can go on with other tokens, in tokens; None: at any."""
        prefix = self.prefixes.get(root)
        if prefix is None or self.pool is None or self.pool.groups == 1 or self.offloads:
            return None
        near = max(0, prefix.warm - (self.slack(prefix) or 0))
        return [0, *prefix.held_anchors(), *range(near, prefix.warm, _GRAIN), prefix.warm]

    # roots -------------------------------------------------------------------------------------------------------

    def follow(self, root: Path, ids: Ids, identity: str, percents: Iterable[int] = ()) -> Prefix:
        """The prefix of a root is now ``ids``; what it shares with the one before stays warm."""
        block = self.pool.block_size if self.pool else 1
        places = tuple(len(ids) * percent // 100 // block * block for percent in percents)
        prefix = self.prefixes.get(root)
        if prefix is None:
            prefix = self.prefixes[root] = Prefix(root, ids, identity, places)
            prefix.warm = min(self.common(ids), len(ids))
            prefix.stamp = prefix.born = self.work
            return prefix
        if prefix.identity != identity:
            kept = min(self.common(ids), prefix.warm, common_prefix(prefix.ids, ids))
            old = tuple(anchor for anchor in prefix.anchors if anchor <= kept)
            prefix.anchors = (*old, *(place for place in places if place > kept))
            prefix.warm, prefix.settled = kept, False
        else:
            prefix.warm = min(prefix.warm, common_prefix(prefix.ids, ids))
        prefix.ids, prefix.identity = ids, identity
        return prefix

    def used(self, root: Path) -> None:
        """A user asked for this root now."""
        if root in self.prefixes:
            self.prefixes[root].used = time.monotonic()

    def last_used(self) -> Prefix | None:
        """The prefix that a user asked for last."""
        asked = [prefix for prefix in self.prefixes.values() if prefix.used]
        return max(asked, key=lambda prefix: prefix.used, default=None)

    def fits_beside(self, prefix: Prefix, others: Iterable[Prefix]) -> bool:
        """Whether the prefix and the others can be in the pool together."""
        if self.pool is None:
            return True
        resting = sum(self.pool.resting(len(p.ids), len(p.anchors)) for p in (prefix, *others))
        return resting < self.pool.usable

    def drop(self, root: Path) -> None:
        """The root was closed."""
        self.prefixes.pop(root, None)
