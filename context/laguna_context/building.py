"""A new snapshot from the tree as it is: rank, pack, order, freeze."""

from __future__ import annotations

import stat
from collections.abc import Collection, Iterable, Mapping, Sequence

from laguna_context import frames
from laguna_context.catalogue import Catalogue, Progress
from laguna_context.history import change_weights, head, stable_first
from laguna_context.idcache import Store
from laguna_context.packing import BYTES_PER_TOKEN, Packing, generated, importance, pack
from laguna_context.planning import SPARE
from laguna_context.snapshot import Piece, Snapshot, freeze, listing_piece
from laguna_context.tokens import Ids, Tokenizer

# Shares of a snapshot's budget.
_LONGEST = 0.25
_LONGEST_GENERATED = 0.005


class Builder:
    """Builds snapshots of at most `budget` tokens from a catalogue."""

    def __init__(
        self, catalogue: Catalogue, tokenizer: Tokenizer, store: Store, budget: int, order: Sequence[str]
    ) -> None:
        self._catalogue = catalogue
        self._tokenizer = tokenizer
        self._store = store
        self.budget = budget
        self._order = order

    def weights(self) -> Mapping[str, float]:
        """Change weights of the commit checked out, kept per commit."""
        root = self._catalogue.root
        commit = head(root) if self._catalogue.in_git else ""
        if not commit:
            return {}
        key = f"history {root}"
        kept = self._store.get_note(key)
        if isinstance(kept, list) and kept[0] == commit:
            return dict(kept[1])
        weights = change_weights(root)
        self._store.put_note(key, [commit, weights])
        return weights

    def minor(self, path: str) -> bool:
        """Whether a file is not worth room only because it is new or has changed: generated ones of some length, and
        those that would push too much else out."""
        entry = self._catalogue.entries.get(path)
        if entry is None:
            return False
        share = _LONGEST_GENERATED if generated(path) else _LONGEST
        return entry.size / BYTES_PER_TOKEN > share * self.budget

    def pack(
        self,
        weights: Mapping[str, float],
        *,
        kept: Mapping[str, int] | None = None,
        first: Collection[str] = (),
        limit: int | None = None,
        progress: Progress | None = None,
    ) -> Packing:
        """Decide what is shown in full. `kept`: documents that stay whatever their rank, with their tokens; `first`:
        paths that come before any rank; `limit`: tokens in all, if fewer than the budget."""
        kept = kept or {}
        budget = self.budget if limit is None else min(limit, self.budget)
        readable, named = self._candidates(kept)
        rank = importance(self._order, weights, first)
        readable.sort(key=lambda item: (rank(*item), item[0]))

        spent = 0

        def ids_of(paths: Sequence[str]) -> Mapping[str, Ids]:
            nonlocal spent
            found = self._catalogue.ids(paths)
            spent += sum(ids.size for ids in found.values())
            if progress is not None:
                progress("packing", min(spent, budget), budget)
            return found

        def count(text: str) -> int:
            return self._tokenizer.encode(text).size

        packing = pack(readable, named, budget - sum(kept.values()), ids_of, count, first)
        if progress is not None:
            progress("packing", budget, budget)
        return packing

    def _candidates(self, kept: Mapping[str, int]) -> tuple[list[tuple[str, int]], list[str]]:
        readable: list[tuple[str, int]] = []
        named: list[str] = []
        for path, entry in self._catalogue.entries.items():
            if path in kept:
                continue
            known = self._catalogue.remembered(path)
            no_text = known is not None and known.skip
            plain = entry.kind == "file" and stat.S_ISREG(entry.mode) and entry.size > 0
            if plain and not no_text and self._catalogue.hidden(path) is None:
                readable.append((path, entry.size))
            else:
                named.append(path)
        return readable, named

    def pieces(self, full: Mapping[str, Ids], paths: Iterable[str]) -> list[Piece]:
        """Documents of these paths."""
        out = []
        for path in paths:
            info = self._catalogue.info(path)
            out.append(Piece(path, info.digest, info.version, info.frame, full[path]))
        return out

    def fresh(self, progress: Progress | None = None) -> Snapshot:
        """A snapshot that owes nothing to an earlier one."""
        weights = self.weights()
        packing = self.pack(weights, limit=int((1 - SPARE) * self.budget), progress=progress)
        order = sorted(packing.full, key=lambda path: stable_first(path, weights, packing.full[path].size))
        return self.join([], packing, order)

    def join(self, kept: Sequence[Piece], packing: Packing, order: Iterable[str]) -> Snapshot:
        """Freeze kept documents, then those of `order`, then the listing of the rest."""
        pieces = [*kept, *self.pieces(packing.full, order)]
        if packing.lines:
            pieces.append(listing_piece(packing.lines, self._tokenizer))
        return freeze(pieces, packing.lines, packing.tiers)


def part_pieces(snapshot: Snapshot, cut: int) -> list[Piece]:
    """The first `cut` documents of a snapshot, unchanged."""
    return [
        Piece(part.path, part.digest, part.version, part.id, snapshot.ids[part.start : part.end])
        for part in snapshot.parts[:cut]
        if part.path != frames.LISTING_PATH
    ]
