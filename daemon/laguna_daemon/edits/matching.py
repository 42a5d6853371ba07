"""Where the lines of a SEARCH stand in a file: exactly once, or nowhere.

Three steps, each only if the one before found nothing: the same lines; the same up to white space at line ends; the
same up to one indentation added to, or taken from, every line. There is no fourth. Line endings never matter.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from laguna_daemon.edits.lines import contents, indentation

# The nearest candidate is a courtesy: it may not cost more than a moment on a large file.
_CLOSE_LINES = 4000
_SHOWN_LINES = 24


@dataclass(frozen=True, slots=True)
class Shift:
    """What re-indents the lines of a block to those of the file: a prefix to add, and one to take away."""

    add: str = ""
    take: str = ""

    def apply(self, line: str) -> str | None:
        """The line as it belongs into the file; None if it has less indentation than must go."""
        if not line.strip():
            return "" if self.add or self.take else line
        if not line.startswith(self.take):
            return None
        return self.add + line[len(self.take) :]


@dataclass(frozen=True, slots=True)
class Found:
    """The one match: lines ``start`` to ``stop`` (0-based, half open)."""

    start: int
    stop: int
    shift: Shift = Shift()


@dataclass(frozen=True, slots=True)
class Missing:
    """No match, or more than one; ``places`` are their first lines (0-based)."""

    code: Literal["no match", "ambiguous"]
    places: tuple[int, ...] = ()


class Lines:
    """The lines of a file, prepared for searching."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.exact = contents(lines)

    @cached_property
    def trimmed(self) -> list[str]:
        """Without white space at the end."""
        return [line.rstrip() for line in self.exact]

    @cached_property
    def bare(self) -> list[str]:
        """Without white space on either side."""
        return [line.strip() for line in self.exact]

    def find(self, search: Sequence[str]) -> Found | Missing:
        """The one place of ``search``, which holds at least one line that is not blank."""
        if not _has_words(search) and len(places := self._loosely(search)) > 1:
            return Missing("ambiguous", tuple(places))
        trimmed = [line.rstrip() for line in search]
        for haystack, needle in ((self.exact, search), (self.trimmed, trimmed)):
            places = _places(haystack, needle)
            if places:
                return _only([Found(place, place + len(search)) for place in places])
        return _only(self._indented(trimmed))

    def _loosely(self, search: Sequence[str]) -> list[int]:
        """Every place a SEARCH without a word in it could mean: ``}`` stands for too many of them."""
        bare = [line.strip() for line in search]
        if len(bare) == 1:
            return [number for number, line in enumerate(self.exact) for _ in range(line.count(bare[0]))]
        return _places(self.bare, bare)

    def _indented(self, search: Sequence[str]) -> list[Found]:
        found = []
        for place in _places(self.bare, [line.strip() for line in search]):
            shift = _shift(self.exact[place : place + len(search)], search)
            if shift is not None:
                found.append(Found(place, place + len(search), shift))
        return found

    def nearest(self, search: Sequence[str]) -> tuple[int, int] | None:
        """The run of lines most like ``search`` (0-based, half open), or None if nothing is like it."""
        start = self._most_shared(search)
        if start is None:
            start = self._closest_line(search)
        if start is None:
            return None
        start = max(0, min(start, len(self.exact) - 1))
        return start, min(len(self.exact), start + min(len(search), _SHOWN_LINES))

    def _most_shared(self, search: Sequence[str]) -> int | None:
        wanted: dict[str, list[int]] = {}
        for offset, line in enumerate(search):
            if len(bare := line.strip()) > 2:
                wanted.setdefault(bare, []).append(offset)
        votes: Counter[int] = Counter()
        for number, line in enumerate(self.bare):
            for offset in wanted.get(line, ()):
                votes[number - offset] += 1
        return min(votes, key=lambda start: (-votes[start], start)) if votes else None

    def _closest_line(self, search: Sequence[str]) -> int | None:
        offset, longest = max(enumerate(search), key=lambda pair: len(pair[1].strip()))
        wanted = longest.strip()
        near = [line for line in self.bare if 2 * len(line) > len(wanted) and len(line) < 2 * len(wanted)]
        close = difflib.get_close_matches(wanted[:400], near[:_CLOSE_LINES], n=1, cutoff=0.6)
        return self.bare.index(close[0]) - offset if close else None


def _has_words(search: Sequence[str]) -> bool:
    return any(re.search(r"\w", line) for line in search)


def _places(haystack: list[str], needle: Sequence[str]) -> list[int]:
    """Every index at which ``needle`` stands in ``haystack``."""
    wanted = list(needle)
    anchor = max(range(len(wanted)), key=lambda index: len(wanted[index]))
    places, at = [], anchor
    try:
        while True:
            at = haystack.index(wanted[anchor], at)
            if haystack[at - anchor : at - anchor + len(wanted)] == wanted:
                places.append(at - anchor)
            at += 1
    except ValueError:
        return places


def _only(found: list[Found]) -> Found | Missing:
    if len(found) == 1:
        return found[0]
    if not found:
        return Missing("no match")
    return Missing("ambiguous", tuple(match.start for match in found))


def _shift(there: Sequence[str], search: Sequence[str]) -> Shift | None:
    """The one change of indentation between two runs of otherwise equal lines, or None."""
    shifts = set()
    for file_line, line in zip(there, search, strict=True):
        if not line.strip():
            continue
        have, want = indentation(line), indentation(file_line)
        if want.endswith(have):
            shifts.add(Shift(add=want[: len(want) - len(have)]))
        elif have.endswith(want):
            shifts.add(Shift(take=have[: len(have) - len(want)]))
        else:
            return None
    return shifts.pop() if len(shifts) == 1 else None
