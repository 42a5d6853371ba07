"""Pieces of files that were open or edited lately, in an order that stays: what does not change is cached."""

from __future__ import annotations

from dataclasses import dataclass

from laguna_daemon.schemas import Snippet

SLOTS = 4
LINES = 40
_CHARS = 2000


@dataclass
class _Slot:
    key: str
    snippet: Snippet
    used: int


class Ring:
    """A fixed number of slots. A file keeps its slot; a new one takes that of the file left longest ago."""

    def __init__(self, slots: int = SLOTS) -> None:
        self._slots: list[_Slot] = []
        self._most = slots
        self._clock = 0

    def put(self, key: str, path: str, lines: list[str], line: int) -> None:
        """Remember what stands around ``line`` of a file that is being left."""
        first = max(0, line - LINES // 2)
        text = "".join(lines[first : first + LINES])[:_CHARS].strip("\n")
        if not text.strip():
            return
        self._clock += 1
        slot = _Slot(key, Snippet(path=path, text=text), self._clock)
        for number, held in enumerate(self._slots):
            if held.key == key:
                self._slots[number] = slot
                return
        if len(self._slots) < self._most:
            self._slots.append(slot)
        else:
            oldest = min(range(len(self._slots)), key=lambda number: self._slots[number].used)
            self._slots[oldest] = slot

    def drop(self, key: str) -> None:
        """Forget a file; the others stay in their order."""
        self._slots = [slot for slot in self._slots if slot.key != key]

    def snippets(self, current: str) -> list[Snippet]:
        """All pieces but those of the file that is being completed."""
        return [slot.snippet for slot in self._slots if slot.key != current]
