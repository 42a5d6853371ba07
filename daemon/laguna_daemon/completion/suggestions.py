"""Suggestions that were made, kept alive while the user types what they say."""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass

_KEPT = 24
_LIFE = 300.0  # seconds
_TAIL = 400  # characters before the cursor that must be the same
_HEAD = 200  # and behind it
_LONGEST = 4000  # characters that are followed
_CLOSERS = ")]}\"'`>;"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A text for one place: ``tail`` stands before it and ``head`` behind it. ``made`` is a monotonic time."""

    id: str
    tail: str
    head: str
    text: str
    made: float


class Suggestions:
    """The latest suggestions of one document, the youngest first to be found."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Suggestion] = OrderedDict()

    def keep(self, id: str, prefix: str, suffix: str, text: str) -> None:
        """Remember what was suggested between ``prefix`` and ``suffix``."""
        self._kept[id] = Suggestion(id, prefix[-_TAIL:], suffix[:_HEAD], text, time.monotonic())
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)

    def find(self, prefix: str, suffix: str) -> tuple[Suggestion, str] | None:
        """A suggestion that the text before the cursor is following, and what of it is left; None if there is none.

        Brackets and quotes that an editor adds behind the cursor by itself do not count as another place.
        """
        now = time.monotonic()
        for each in reversed(self._kept.values()):
            if now - each.made > _LIFE or not _same_place(each.head, suffix):
                continue
            typed = _typed(prefix, each)
            if typed is not None:
                return each, each.text[typed:]
        return None

    def get(self, id: str) -> Suggestion | None:
        """The suggestion of that id, if it is still kept."""
        return self._kept.get(id)


def _typed(prefix: str, each: Suggestion) -> int | None:
    """How many characters of a suggestion stand before the cursor by now; None if something else does."""
    for count in range(min(len(each.text), _LONGEST)):
        if not prefix.endswith(each.text[:count]):
            continue
        before = prefix[: len(prefix) - count]
        # A tail that is shorter begins at the start of the file.
        if before == each.tail or (len(each.tail) == _TAIL and before.endswith(each.tail)):
            return count
    return None


def _same_place(head: str, suffix: str) -> bool:
    for added in range(4):
        if suffix[added : added + _HEAD] == head:
            return True
        if added == len(suffix) or suffix[added] not in _CLOSERS:
            return False
    return False
