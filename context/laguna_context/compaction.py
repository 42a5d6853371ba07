"""Where to cut a snapshot when the overlay has grown too long.

Everything before the cut stays byte-identical, stale or not, and its overlay entries are carried along; everything
behind it is packed and ordered anew. A cut at document c costs

    prefill(c) = tokens behind the cut, written anew  +  carried(c)      (tokens the engine must read once)
    room(c)    = overlay budget - carried(c)                            (tokens of change until the next compaction)

and the cut with the smallest prefill(c) / room(c) is chosen: tokens read per token of change that it makes room for.
(Replaying 200 commits of flask, the plain ratio read fewer tokens in all than the prefill alone or a ratio with the
square root of the room.) A cut at the very end keeps the whole snapshot and only writes the overlay anew, one entry
per stale document. Cuts that free less than three tenths of the overlay, or less than the next entry may need, are
not considered, except where no other remains. Attention makes a token behind a long prefix dearer than one behind a
short one; the model leaves that out, since all candidates pay for tokens at the same far end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from laguna_context.snapshot import Part

SMALLEST_ROOM = 0.3
"""Share of the overlay's budget that a compaction must free."""


@dataclass(frozen=True, slots=True)
class Plan:
    """`cut`: documents kept; `prefill`: tokens to be read anew; `carried`: tokens of overlay entries kept."""

    cut: int
    prefill: int
    carried: int


def plan(
    parts: Sequence[Part], carried: Mapping[str, int], added: int, budget: int, overlay_budget: int, largest: int = 0
) -> Plan:
    """Choose the cut.

    `carried`: path of each stale document -> tokens of the entry that would correct it. `added`: tokens that must find
    room besides: files that only the overlay shows, and what stale ones have grown by. `budget`: tokens that a snapshot
    may hold. `overlay_budget`: tokens of overlay between compactions. `largest`: tokens of the largest entry lately,
    which must fit again.
    """
    smallest = max(SMALLEST_ROOM * overlay_budget, min(1.5 * largest, 0.9 * overlay_budget))
    total = min(budget, (parts[-1].end if parts else 0) + added)
    best: tuple[float, Plan] | None = None
    kept = corrected = 0
    for cut in range(len(parts) + 1):
        if cut:
            part = parts[cut - 1]
            kept += part.end - part.start
            corrected += carried.get(part.path, 0)
        room = overlay_budget - corrected
        if cut and (room < smallest or kept + added > budget):
            break
        prefill = max(0, total - kept) + corrected
        score = prefill / max(1, room)
        if best is None or score <= best[0]:
            best = (score, Plan(cut, prefill, corrected))
    assert best is not None  # cut 0 is always considered
    return best[1]
