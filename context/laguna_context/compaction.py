"""Where to cut a snapshot when the overlay has grown too long, and the snapshot behind that cut.

Everything before the cut stays byte-identical, stale or not, and one entry for each stale document in it is carried
along; everything behind it is packed and ordered anew. Carried entries belong to what was compacted: they count against
the snapshot's budget, so that the overlay has its whole budget for what changes next. A cut at document c costs

    prefill(c) = tokens behind the cut, written anew  +  carried(c)      (tokens the engine must read once)
    room(c)    = overlay budget - carried(c)                            (what later compactions can still carry)

and the cut with the smallest prefill(c) / room(c) is chosen. Cuts that leave the request `COMFORT` of its prompt to
read come first: only when there is none is a deep one taken, and then the one that pays for the longest time, since a
question that has to wait anyway is the time to clear up. The last cut keeps the whole snapshot and writes the overlay
anew. Attention makes a token behind a long prefix dearer than one behind a short one; the model leaves that out, since
all candidates pay for tokens at the same far end.
"""

from __future__ import annotations

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
from laguna_context.snapshot import Part, Snapshot
from laguna_context.tokens import Tokenizer

COMFORT = 0.075
"""Share of a snapshot's budget that a request may have to read without anybody noticing: 0.9 s of 190,000 tokens on an
H200."""

MOST_CARRIED = 0.8
"""Largest share of the overlay's budget that may be carried."""

WORTH = 0.25
"""Share of the overlay's budget that a compaction by choice must free."""

WAIT = 0.3
"""What a wait costs whatever its length, as a share of a snapshot's budget."""

# A snapshot that holds less than this share of its budget is filled up again when it is compacted.
_SHRUNK = 0.75


@dataclass(frozen=True, slots=True)
class Plan:
    """`cut`: documents kept; `prefill`: tokens to be read anew; `carried`: tokens of overlay entries kept; `waits`:
    whether the request that meets it has to wait."""

    cut: int
    prefill: int
    carried: int
    waits: bool = False


def plan(
    parts: Sequence[Part],
    carried: Mapping[str, int],
    everything: int,
    wanted: Mapping[str, int],
    budget: int,
    overlay: int,
    last: int | None = None,
) -> Plan:
    """Choose the cut.

    `carried`: path of each stale document -> tokens of the entry that would correct it. `everything`: tokens of all
    entries if the whole snapshot is kept. `wanted`: tokens that stale documents, and files that only the overlay shows,
    have as documents now. `budget`: tokens that snapshot and carried entries may have. `overlay`: the overlay's budget
    in tokens. `last`: the last cut allowed.
    """
    more = sum(wanted.values())
    unchanged = sum(part.end - part.start for part in parts if part.path not in wanted)
    best: tuple[bool, float, Plan] | None = None
    kept = corrected = 0
    for cut in range(len(parts) + 1 if last is None else last + 1):
        if cut:
            part = parts[cut - 1]
            kept += part.end - part.start
            corrected += carried.get(part.path, 0)
            more -= wanted.get(part.path, 0)
            unchanged -= 0 if part.path in wanted else part.end - part.start
        whole = cut == len(parts)
        behind = everything if whole else corrected
        needed = kept + behind + (0 if whole else more)
        if cut and (behind > MOST_CARRIED * overlay or needed > budget):
            continue
        prefill = behind if whole else min(budget - kept - behind, unchanged + more) + behind
        waits = prefill > COMFORT * (kept + prefill)
        score = (prefill + waits * WAIT * budget) / (overlay - behind + 1)
        found = (waits, score, Plan(cut, prefill, behind, waits))
        if best is None or found[:2] <= best[:2]:
            best = found
    assert best is not None  # cut 0 is always considered
    return best[2]


def expelled(catalogue: Catalogue, paths: Iterable[str], seen: Collection[str]) -> set[str]:
    """Of these, files that the model was shown, that are still there, and that a rule now keeps out: unlike deleted
    ones they may not stay in the prefix until it is compacted anyway."""
    gone = {path for path in paths if path not in catalogue.entries and path in seen}
    return {path for path in gone if os.path.lexists(catalogue.root / path)}


def compact(
    old: Journal,
    catalogue: Catalogue,
    tokenizer: Tokenizer,
    builder: Builder,
    pending: Iterable[str],
    overlay: int,
    *,
    gently: bool = False,
) -> Journal | None:
    """A snapshot and overlay that say the same in fewer tokens behind the overlay's start, or None if none do.

    `pending`: paths that may have changed since the last entry; `overlay`: the overlay's budget in tokens.
    """
    snapshot = old.snapshot
    paths = {part.path for part in snapshot.parts} - {frames.LISTING_PATH}
    new = {path for path in pending if path in catalogue.entries} - snapshot.tiers.keys() - paths
    shown = {path for path in old.shown_by_overlay() | new if not builder.minor(path)}
    corrections = _corrections(snapshot, catalogue, tokenizer, builder.budget)
    clean = Journal(catalogue, tokenizer, old.snapshot)
    changes = clean.differences({*paths, *shown, *pending}, {}, builder.budget, show=shown)
    recent = shown | {path for path in corrections if not builder.minor(path)}
    now = catalogue.ids(sorted(recent & catalogue.entries.keys()))
    found = plan(
        snapshot.parts,
        {path: change.ids.size for path, change in corrections.items()},
        sum(change.ids.size for change in changes) if changes is not None else builder.budget,
        dict.fromkeys(recent, 0) | {path: ids.size for path, ids in now.items()},
        builder.budget,
        overlay,
        _last_cut(snapshot, catalogue),
    )
    if gently and (found.waits or old.overlay.tokens - found.carried < WORTH * overlay):
        return None
    if changes is not None and found.cut == len(snapshot.parts):
        if sum(change.ids.size for change in changes) >= old.overlay.tokens:
            return None
        return _carrying(clean, changes)
    return _cut(snapshot, found, catalogue, tokenizer, builder, recent, corrections)


def _last_cut(snapshot: Snapshot, catalogue: Catalogue) -> int:
    """Documents before the first that may not stay."""
    paths = [part.path for part in snapshot.parts]
    out = expelled(catalogue, paths, paths)
    return sum(1 for _ in takewhile(lambda path: path not in out, paths))


def _cut(
    snapshot: Snapshot,
    found: Plan,
    catalogue: Catalogue,
    tokenizer: Tokenizer,
    builder: Builder,
    recent: Collection[str],
    corrections: Mapping[str, Change],
) -> Journal:
    kept = part_pieces(snapshot, found.cut)
    weights = dict(builder.weights())
    for path in recent:
        weights[path] = weights.get(path, 0.0) + 1.0
    sizes = {piece.path: piece.ids.size for piece in kept}
    # Files that nobody touched are not worth reading anew now, unless the snapshot has shrunk.
    full = sum(sizes.values()) + found.prefill - found.carried
    limit = min(max(full, int(_SHRUNK * builder.budget)), builder.budget - found.carried)
    packing = builder.pack(weights, kept=sizes, first=recent, limit=limit)
    order = sorted(packing.full, key=lambda path: stable_first(path, weights, packing.full[path].size))
    journal = Journal(catalogue, tokenizer, builder.join(kept, packing, order))
    stale = [path for path in sizes if path in corrections]
    return _carrying(journal, journal.differences(stale, {}, builder.budget) or ())


def _carrying(journal: Journal, changes: Iterable[Change]) -> Journal:
    for change in changes:
        journal.apply(change)
    journal.carried = journal.overlay.tokens
    return journal


def _corrections(snapshot: Snapshot, catalogue: Catalogue, tokenizer: Tokenizer, room: int) -> dict[str, Change]:
    """For each stale document of a snapshot, the one entry that would correct it."""
    clean = Journal(catalogue, tokenizer, snapshot)
    out: dict[str, Change] = {}
    for part in snapshot.parts:
        if part.path != frames.LISTING_PATH and clean.now(part.path, {}).digest != part.digest:
            for change in clean.differences([part.path], {}, room) or ():
                out[part.path] = change
    return out
