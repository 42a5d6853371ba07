"""The text of one file while blocks are being applied to it, in memory.

Every SEARCH is looked up in the file as it was, where the model saw it, and only if it is not there (or its lines
have been replaced by an earlier block) in the text as it has become. Lines that no block changes keep their bytes:
a line that stands in both parts of a block is the file's own line, with its trailing space and its ending.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Literal, TypeAlias

from laguna_daemon.edits.blocks import Replace, strip_fence
from laguna_daemon.edits.lines import content, ending, usual_ending
from laguna_daemon.edits.matching import Found, Lines, Missing, Shift

Outcome: TypeAlias = Literal["applied", "repeated"]


class Unmatched(Exception):
    """A block that cannot be placed: ``code`` is a refusal code, ``places`` 0-based lines it could mean."""

    def __init__(self, code: str, places: tuple[int, ...] = ()) -> None:
        super().__init__(code)
        self.code = code
        self.places = places


class Draft:
    """One file's lines: as they were (``base``) and as they are now (``lines``)."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.base = list(lines)
        self.lines = list(lines)
        self._origin = list(range(len(self.base)))
        self._usual = usual_ending(self.base)
        self._searchable: Lines | None = None
        self._applied: set[tuple[tuple[str, ...], tuple[str, ...]]] = set()

    @property
    def searchable(self) -> Lines:
        """The file as it was, prepared for searching."""
        if self._searchable is None:
            self._searchable = Lines(self.base)
        return self._searchable

    def holds(self, claim: Replace) -> bool:
        """Whether a hunk's lines stand exactly where its header says."""
        if claim.at is None:
            return False
        start = claim.at - 1 if claim.search else claim.at
        stop = start + len(claim.search)
        within = start >= 0 and stop <= len(self.base)
        return within and self.searchable.exact[start:stop] == list(claim.search)

    def apply_claim(self, claim: Replace) -> Outcome:
        """Apply a hunk at the line its header states; ``holds`` must be true."""
        start = (claim.at or 0) - (1 if claim.search else 0)
        place = self._position(start, start + len(claim.search))
        if place is None:
            raise Unmatched("overlap", (start,))
        self._splice(place, claim, Shift())
        return "applied"

    def apply(self, block: Replace) -> Outcome:
        """Apply one block. Raises Unmatched; the text is then as before."""
        if not any(line.strip() for line in block.search):
            if any(line.strip() for line in self.lines) or block.search:
                raise Unmatched("empty search")
            self._splice(0, block, Shift())
            return "applied"
        try:
            return self._apply(block)
        except Unmatched:
            inner, becomes = strip_fence(block.search), strip_fence(block.replace)
            if not (inner and becomes and inner[0] == becomes[0] and any(line.strip() for line in inner[1])):
                raise
            bare = Replace(block.path, inner[1], becomes[1], block.line, block.at, block.final_newline)
            return self._apply(bare)

    def _apply(self, block: Replace) -> Outcome:
        found = self.searchable.find(block.search)
        if isinstance(found, Missing) and found.code == "ambiguous":
            raise Unmatched(found.code, found.places)
        place = None
        if isinstance(found, Found):
            if (block.search, block.replace) in self._applied:
                return "repeated"
            place = self._position(found.start, found.stop)
        if place is None:
            now = Lines(self.lines).find(block.search) if self.lines != self.base else Missing("no match")
            if isinstance(now, Missing):
                overlap = isinstance(found, Found)
                raise Unmatched("overlap" if overlap else now.code, (found.start,) if isinstance(found, Found) else ())
            found, place = now, now.start
        assert isinstance(found, Found)
        self._splice(place, block, found.shift)
        self._applied.add((block.search, block.replace))
        return "applied"

    def _position(self, start: int, stop: int) -> int | None:
        """Where lines of the base stand now; None if any of them is gone or they are no longer together."""
        if start == stop:
            return self._gap(start)
        try:
            place = self._origin.index(start)
        except ValueError:
            return None
        together = self._origin[place : place + stop - start] == list(range(start, stop))
        return place if together else None

    def _gap(self, start: int) -> int | None:
        """Where a pure insertion before line ``start`` of the base goes now."""
        if start == len(self.base):
            return len(self.lines)
        return self._origin.index(start) if start in self._origin else None

    def _splice(self, place: int, block: Replace, shift: Shift) -> None:
        stop = place + len(block.search)
        old, origin = self.lines[place:stop], self._origin[place:stop]
        lines, origins = self._merge(old, origin, block, shift)
        at_end = stop == len(self.lines)
        last = self.lines[-1] if at_end and self.lines else ""
        if at_end and lines and origins[-1] < 0 and last and not ending(last):
            lines[-1] = content(lines[-1])
        self.lines[place:stop] = lines
        self._origin[place:stop] = origins
        self._close_gaps(place, place + len(lines))
        if block.final_newline is not None and at_end and self.lines:
            close = (ending(self.lines[-1]) or self._usual) if block.final_newline else ""
            self.lines[-1] = content(self.lines[-1]) + close

    def _merge(self, old: list[str], origin: list[int], block: Replace, shift: Shift) -> tuple[list[str], list[int]]:
        """The lines that take the place of ``old``, and for each the base line it is (-1: none)."""
        lines: list[str] = []
        origins: list[int] = []
        steps = difflib.SequenceMatcher(None, block.search, block.replace, autojunk=False).get_opcodes()
        for step, old_from, old_to, new_from, new_to in steps:
            if step == "equal":
                lines += old[old_from:old_to]
                origins += origin[old_from:old_to]
                continue
            for offset, text in enumerate(block.replace[new_from:new_to]):
                shifted = shift.apply(text)
                if shifted is None:
                    raise Unmatched("indentation")
                neighbour = min(old_from + offset, old_to - 1) if old_to > old_from else old_from - 1
                lines.append(shifted + (ending(old[neighbour]) if old and neighbour >= 0 else self._usual))
                origins.append(-1)
        return lines, origins

    def _close_gaps(self, start: int, stop: int) -> None:
        """Give an ending to every line that has none and is no longer the last."""
        for index in range(max(0, start - 1), min(stop, len(self.lines) - 1)):
            if not ending(self.lines[index]):
                self.lines[index] += self._usual
