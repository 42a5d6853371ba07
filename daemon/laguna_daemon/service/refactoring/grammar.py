"""A grammar under which a model can only write edits of the planned lines, for models too small to write blocks.

Every place of the plan becomes one block: its SEARCH part is the file's own text, made longer until it is unique, and
in its REPLACE part each of the planned identifiers may become one of the new names, or any name where the instruction
gives none. The form is the EBNF of vLLM's structured outputs (``{"grammar": ...}``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from laguna_daemon.errors import UsageError
from laguna_daemon.service.refactoring import words
from laguna_daemon.service.refactoring.batches import Batch

_ANY_NAME = "name ::= [a-zA-Z_] [a-zA-Z0-9_]{0,30}"
_MOST_WIDENED = 40  # lines around a place that are tried to make it unique


def grammar(batch: Batch, texts: Mapping[str, str], names: Sequence[str], new: Sequence[str]) -> dict[str, str]:
    """The ``structured_outputs`` of one batch. ``texts``: path -> text of its files; ``new``: the new names.

    Raises UsageError if no place of the batch can be edited so.
    """
    found = words.pattern(names) if names else None
    blocks: list[str] = []
    for item in batch:
        text = texts.get(item.planned.path)
        if text is not None and found is not None and "\r" not in text:
            lines = text.split("\n")
            blocks += [_block(item.planned.path, lines[a:b], found) for a, b in spans(lines, item.planned.lines)]
    if not blocks:
        raise UsageError(
            "A constrained answer needs lines to edit, and the plan has none.",
            "Name an identifier of the repository in the instruction, or leave --structured out.",
        )
    name = "name ::= " + " | ".join(_literal(word) for word in new) if new else _ANY_NAME
    return {"grammar": "root ::= " + " ".join(blocks) + f"\n{name}\n"}


def spans(lines: Sequence[str], places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Runs of lines (from, to), each unique in the file, none overlapping another, that hold the places."""
    merged: list[tuple[int, int]] = []
    for place in places:
        start, end = _unique(lines, place)
        if start >= end:
            continue
        while merged and start < merged[-1][1]:
            before = merged.pop()
            start, end = min(start, before[0]), max(end, before[1])
        merged.append((start, end))
    yield from merged


def _unique(lines: Sequence[str], place: int) -> tuple[int, int]:
    """The shortest run around a place that stands once in the file; empty if none within reach does."""
    for size in range(1, _MOST_WIDENED + 1):
        for start in range(max(0, place - size + 1), place + 1):
            end = start + size
            if end <= len(lines) and _count(lines, lines[start:end]) == 1 and "=======" not in lines[start:end]:
                return start, end
    return place, place


def _count(lines: Sequence[str], run: Sequence[str]) -> int:
    size = len(run)
    return sum(1 for at in range(len(lines) - size + 1) if lines[at] == run[0] and lines[at : at + size] == run)


def _block(path: str, lines: Sequence[str], found: re.Pattern[str]) -> str:
    head = f"<<<<<<< SEARCH {path}\n" + "".join(f"{line}\n" for line in lines) + "=======\n"
    parts = [_literal(head)]
    rest = "".join(f"{line}\n" for line in lines)
    at = 0
    for match in found.finditer(rest):
        if rest[at : match.start()]:
            parts.append(_literal(rest[at : match.start()]))
        parts.append("name")
        at = match.end()
    parts.append(_literal(rest[at:] + ">>>>>>> REPLACE\n"))
    return " ".join(parts)


def _literal(text: str) -> str:
    """A string of the grammar; what is not plain ASCII is escaped."""
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character == "\n":
        return "\\n"
    if " " <= character <= "~":
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
