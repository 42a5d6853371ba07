"""The files of a plan in batches: each as much as one answer has room for, with the text that the model lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from laguna_context.reading import Document
from laguna_daemon.service.refactoring.files import Planned

_PLACE_TOKENS = 45  # the markers and the context of one block
_CHARACTERS_PER_TOKEN = 3
_UNKNOWN_TOKENS = 300  # a file whose places are not known
_AROUND = 6  # lines shown around a place of a file that is too long to be shown whole

Count = Callable[[str], int]
"""Tokens of a text."""


@dataclass(frozen=True, slots=True)
class Item:
    """A file of a batch. ``output``: tokens its edits may take; ``extras``: (name, text) of what must be shown with
    the task, ``extra_tokens`` long; ``digest``: sha256 (hex) of the file if the extras show all of it.
    """

    planned: Planned
    output: int
    extras: tuple[tuple[str, str], ...] = ()
    extra_tokens: int = 0
    digest: str = ""


Batch = tuple[Item, ...]


def edit_tokens(planned: Planned) -> int:
    """Guess the tokens that the edits of a file take: every line found is written twice, with some around it."""
    if not planned.lines:
        return _UNKNOWN_TOKENS
    return len(planned.lines) * _PLACE_TOKENS + 2 * planned.characters // _CHARACTERS_PER_TOKEN


def size_up(planned: Planned, document: Document | None, room: int, count: Count) -> Item | str:
    """The item of a file that the prompt does not show: whole, or the lines around its places; else why not.

    ``room`` is in tokens, for what has to be shown with the task.
    """
    if document is None:
        return "it has no text that may be shown"
    output = edit_tokens(planned)
    whole = count(document.text)
    if whole <= room:
        return Item(planned, output, ((planned.path, document.text),), whole, document.sha256)
    extras = tuple(_excerpts(planned, document.text.split("\n")))
    tokens = sum(count(text) for _, text in extras)
    if not extras or tokens > room:
        return f"it is too long to be shown ({whole:,} tokens)"
    return Item(planned, output, extras, tokens)


def group(items: Iterable[Item], output: int, room: int, count: Count) -> list[Batch]:
    """Fill batch after batch, in order: edits within ``output`` tokens, paths and extras within ``room``."""
    found: list[list[Item]] = []
    left_output = left_room = 0
    for item in items:
        listed = count(line(item.planned)) + item.extra_tokens
        if not found or item.output > left_output or listed > left_room:
            found.append([])
            left_output, left_room = output, room
        found[-1].append(item)
        left_output -= item.output
        left_room -= listed
    return [tuple(batch) for batch in found]


def line(planned: Planned) -> str:
    """The line of the task that names a file."""
    places = f" ({len(planned.lines)} lines)" if len(planned.lines) > 1 else ""
    return f"{planned.path}{places}\n"


def _excerpts(planned: Planned, lines: Sequence[str]) -> Iterable[tuple[str, str]]:
    spans: list[list[int]] = []
    for place in planned.lines:
        start, end = max(0, place - _AROUND), min(len(lines), place + _AROUND + 1)
        if spans and start <= spans[-1][1]:
            spans[-1][1] = end
        else:
            spans.append([start, end])
    for start, end in spans:
        yield f"{planned.path}:{start + 1}-{end}", "\n".join(lines[start:end])
