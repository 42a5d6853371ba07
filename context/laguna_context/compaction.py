"""A shorter prefix that says the same: everything before one cut stays byte-identical, stale or not, and what stands
behind it is packed and ordered anew.

One entry for each stale document before the cut is carried along. Carried entries belong to what was compacted: they
count against the snapshot's budget, so that the overlay has its whole budget for what changes next. Where to cut is
decided in `planning`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from laguna_context import frames
from laguna_context.building import Builder, part_pieces
from laguna_context.catalogue import Catalogue
from laguna_context.history import stable_first
from laguna_context.journal import Journal
from laguna_context.overlay import Change
from laguna_context.planning import Limits, Plan, plan
from laguna_context.tokens import Tokenizer

WORTH = 0.25
"""Share of the overlay's budget that a compaction by choice must free."""

# A snapshot that holds less than this share of its budget is filled up again when it is compacted.
_SHRUNK = 0.75


@dataclass(frozen=True, slots=True)
class Wish:
    """`below`: the price that a plan has to beat; `gently`: only where nobody has to wait and much is freed;
    `resumable`: as in `planning.Limits`."""

    below: float = math.inf
    gently: bool = False
    resumable: Sequence[int] | None = None


def expelled(catalogue: Catalogue, paths: Iterable[str], seen: Collection[str]) -> set[str]:
    """Of these, files that the model was shown, that are still there, and that a rule now keeps out: unlike deleted
    ones they may not stay in the prefix until it is compacted anyway."""
    gone = {path for path in paths if path not in catalogue.entries and path in seen}
    return {path for path in gone if os.path.lexists(catalogue.root / path)}


class Compaction:
    """What one compaction works on. `old`: the journal to be replaced; `pending`: paths that may have changed since its
    last entry; `overlay`: the overlay's budget in tokens."""

    def __init__(
        self,
        old: Journal,
        catalogue: Catalogue,
        tokenizer: Tokenizer,
        builder: Builder,
        pending: Iterable[str],
        overlay: int,
    ) -> None:
        self._old = old
        self._catalogue = catalogue
        self._tokenizer = tokenizer
        self._builder = builder
        self._overlay = overlay
        self._snapshot = old.snapshot
        pending = set(pending)
        paths = {part.path for part in old.snapshot.parts} - {frames.LISTING_PATH}
        new = {path for path in pending if path in catalogue.entries} - old.snapshot.tiers.keys() - paths
        self._shown = {path for path in old.shown_by_overlay() | new if not builder.minor(path)}
        self._paths = paths | self._shown | pending
        self._hopeless: set[str] = set()

    def run(self, wish: Wish) -> Journal | None:
        """A snapshot and overlay that say the same in fewer tokens behind the overlay's start, or None if none do, or
        none as wished."""
        corrections = self._corrections()
        recent = self._shown | {path for path in corrections if not self._builder.minor(path)}
        whole = self._rewritten()
        found = self._plan(corrections, recent, whole, wish)
        if found.price >= wish.below:
            return None
        if wish.gently and (found.waits or self._old.overlay.tokens - found.carried < WORTH * self._overlay):
            return None
        if whole is None or found.cut < len(self._snapshot.parts):
            return self._cut(found, recent, corrections)
        return _carrying(whole) if found.carried < self._old.overlay.tokens else None

    def _plan(
        self, corrections: Mapping[str, Change], recent: Collection[str], whole: Journal | None, wish: Wish
    ) -> Plan:
        now = self._catalogue.ids(sorted(recent & self._catalogue.entries.keys()))
        budget = self._builder.budget
        return plan(
            self._snapshot.parts,
            {path: change.ids.size for path, change in corrections.items()},
            budget if whole is None else whole.overlay.tokens,
            dict.fromkeys(recent, 0) | {path: ids.size for path, ids in now.items()},
            Limits(budget, self._overlay, self._last_cut(), wish.resumable),
        )

    def _last_cut(self) -> int:
        """Documents before the first that may not stay: a rule keeps it out, or no entry that corrects it would fit."""
        paths = [part.path for part in self._snapshot.parts]
        out = expelled(self._catalogue, paths, paths) | self._hopeless
        return sum(1 for _ in takewhile(lambda path: path not in out, paths))

    def _rewritten(self) -> Journal | None:
        """The overlay written anew behind the same snapshot, or None if that is too long."""
        journal = Journal(self._catalogue, self._tokenizer, self._snapshot)
        changes = journal.differences(self._paths, {}, self._builder.budget, show=self._shown)
        return None if changes is None else _applied(journal, changes)

    def _cut(self, found: Plan, recent: Collection[str], corrections: Mapping[str, Change]) -> Journal:
        builder = self._builder
        kept = part_pieces(self._snapshot, found.cut)
        weights = dict(builder.weights())
        for path in recent:
            weights[path] = weights.get(path, 0.0) + 1.0
        sizes = {piece.path: piece.ids.size for piece in kept}
        packing = builder.pack(weights, kept=sizes, first=recent, limit=self._limit(found, sum(sizes.values())))
        order = sorted(packing.full, key=lambda path: stable_first(path, weights, packing.full[path].size))
        journal = Journal(self._catalogue, self._tokenizer, builder.join(kept, packing, order))
        stale = [path for path in sizes if path in corrections]
        return _carrying(_applied(journal, journal.differences(stale, {}, builder.budget) or ()))

    def _limit(self, found: Plan, kept: int) -> int:
        """Tokens of the new snapshot. Files that nobody touched are not worth reading anew now, unless the snapshot
        has shrunk."""
        budget = self._builder.budget
        return min(max(kept + found.tail, int(_SHRUNK * budget)), budget - found.carried)

    def _corrections(self) -> dict[str, Change]:
        """For each stale document of the snapshot, the one entry that would correct it, if one can."""
        clean = Journal(self._catalogue, self._tokenizer, self._snapshot)
        out: dict[str, Change] = {}
        for part in self._snapshot.parts:
            if part.path != frames.LISTING_PATH and clean.now(part.path, {}).digest != part.digest:
                changes = clean.differences([part.path], {}, self._builder.budget)
                if changes is None:
                    self._hopeless.add(part.path)
                for change in changes or ():
                    out[part.path] = change
        return out


def _applied(journal: Journal, changes: Iterable[Change]) -> Journal:
    for change in changes:
        journal.apply(change)
    return journal


def _carrying(journal: Journal) -> Journal:
    journal.carried = journal.overlay.tokens
    return journal
