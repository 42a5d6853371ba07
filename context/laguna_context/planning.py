"""Where to cut a prefix that has grown too long: a model of what each cut costs and what it is good for.

A cut at document c keeps everything before it, stale or not, and writes everything behind it anew. A cut behind the
last document keeps the snapshot and writes the overlay anew.

    prefill = tokens written anew, and those between the last place before the cut where the engine can resume and it
    room    = tokens that the overlay can take afterwards: its budget, what the snapshot leaves of its own (at most as
              much again), less the entries that are there already
    price   = (prefill + WAIT * budget if somebody has to wait) / room

The cheapest cut that makes nobody wait is chosen; a cut that makes somebody wait only if there is none, and it leaves
`SPARE` of the snapshot's budget free, so that the next wait is far off. Attention makes a token behind a long prefix
dearer than one behind a short one; the model leaves that out, since all candidates pay for tokens at the same far end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from laguna_context.snapshot import Part

COMFORT = 0.075
"""Share of a prompt that a request may have to read without anybody noticing: 0.9 s of 190,000 tokens on an H200."""

MOST_CARRIED = 0.8
"""Largest share of the overlay's budget that entries may take right after a compaction."""

SPARE = 0.1
"""Share of a snapshot's budget that is left free where the tree is read anew: files grow and the overlay may use it."""

WAIT = 0.15
"""What a wait costs whatever its length, as a share of a snapshot's budget."""


@dataclass(frozen=True, slots=True)
class Plan:
    """`cut`: documents kept; `tail`: tokens of the documents behind them; `prefill`: tokens to be read; `carried`:
    tokens of overlay entries afterwards; `waits`: whether the request that meets it has to wait."""

    cut: int
    tail: int
    prefill: int
    carried: int
    waits: bool
    price: float


@dataclass(frozen=True, slots=True)
class Limits:
    """`budget`: tokens that the snapshot and what is carried may have; `overlay`: the overlay's budget; `last`: the
    last cut allowed; `resumable`: tokens, counted from the first document, of the places where the engine can resume,
    None for any."""

    budget: int
    overlay: int
    last: int | None = None
    resumable: Sequence[int] | None = None


def price(prefill: int, room: int, waits: bool, budget: int) -> float:
    """Tokens read for each token of room made; the lower the better."""
    return (prefill + waits * WAIT * budget) / max(1, room)


def plan(
    parts: Sequence[Part],
    carried: Mapping[str, int],
    everything: int,
    wanted: Mapping[str, int],
    limits: Limits,
) -> Plan:
    """Choose the cut.

    `carried`: path of each stale document -> tokens of the entry that would correct it. `everything`: tokens of all
    entries if the whole snapshot is kept. `wanted`: tokens that stale documents, and files that only the overlay shows,
    have as documents now.
    """
    last = len(parts) if limits.last is None else limits.last
    return min(
        (found for found in _plans(parts, carried, everything, wanted, limits) if found.cut <= last),
        key=lambda found: (found.waits, found.price, -found.cut),
    )


def _plans(
    parts: Sequence[Part],
    carried: Mapping[str, int],
    everything: int,
    wanted: Mapping[str, int],
    limits: Limits,
) -> Iterator[Plan]:
    """Every cut allowed; the one that keeps nothing always is."""
    changed = sum(wanted.values())
    unchanged = sum(part.end - part.start for part in parts if part.path not in wanted)
    corrected = 0
    for cut, part in enumerate(parts):
        if not cut or _fits(part.start, corrected, changed, limits):
            yield _behind(cut, part.start, corrected, changed, unchanged, limits)
        corrected += carried.get(part.path, 0)
        changed -= wanted.get(part.path, 0)
        unchanged -= 0 if part.path in wanted else part.end - part.start
    kept = parts[-1].end if parts else 0
    if not parts or _fits(kept, everything, 0, limits):
        prefill = everything + _lost(kept, limits)
        yield _plan(len(parts), 0, prefill, kept, everything, limits, waits=_waits(prefill, kept + everything))


def _fits(kept: int, behind: int, changed: int, limits: Limits) -> bool:
    return behind <= MOST_CARRIED * limits.overlay and kept + behind + changed <= limits.budget


def _behind(cut: int, kept: int, corrected: int, changed: int, unchanged: int, limits: Limits) -> Plan:
    space = limits.budget - kept - corrected
    more = corrected + _lost(kept, limits)
    tail = min(space, unchanged + changed)
    if _waits(tail + more, kept + tail + corrected):
        tail = min(tail, max(space - int(SPARE * limits.budget), changed, 0))
        return _plan(cut, tail, tail + more, kept, corrected, limits, waits=True)
    return _plan(cut, tail, tail + more, kept, corrected, limits, waits=False)


def _plan(cut: int, tail: int, prefill: int, kept: int, behind: int, limits: Limits, *, waits: bool) -> Plan:
    unused = limits.budget - kept - tail
    room = limits.overlay + min(max(0, unused), limits.overlay) - behind
    return Plan(cut, tail, prefill, behind, waits, price(prefill, room, waits, limits.budget))


def _waits(prefill: int, prompt: int) -> bool:
    return prefill > COMFORT * prompt


def _lost(place: int, limits: Limits) -> int:
    if limits.resumable is None:
        return 0
    return place - max((at for at in limits.resumable if at <= place), default=0)
