"""A change set as edits of text with positions, from which a language server builds a WorkspaceEdit.

Nothing here knows the protocol's types. Positions are (line, character), both from 0; a character is counted in the
units the client has chosen. Lines end at ``\\n``, ``\\r\\n`` and ``\\r``; a byte order mark is not part of the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from laguna_daemon.edits.changes import ChangeSet, FileChange, FileState, Kind
from laguna_daemon.edits.diff import changes_between
from laguna_daemon.edits.files import decode_as
from laguna_daemon.edits.lines import content, split_lines

Units: TypeAlias = Literal["utf-8", "utf-16", "utf-32"]


@dataclass(frozen=True, slots=True)
class Position:
    """A place between two characters."""

    line: int
    character: int


@dataclass(frozen=True, slots=True)
class TextEdit:
    """Replace what is between ``start`` and ``end`` by ``new_text``."""

    start: Position
    end: Position
    new_text: str


@dataclass(frozen=True, slots=True)
class FileEdits:
    """What happens to one file, in this order: created or renamed (from ``source``), its text edited, deleted.

    ``edits`` do not overlap and are all in terms of the text as it is now; those of a created file insert its whole
    text. ``base`` is the sha256 (hex) of the bytes the edits are for, None for a created file and for a buffer.
    """

    path: str
    kind: Kind
    edits: tuple[TextEdit, ...]
    source: str | None = None
    base: str | None = None
    unsaved: bool = False


def text_edits(changes: ChangeSet, *, units: Units = "utf-16") -> tuple[FileEdits, ...]:
    """Every file of the set; characters are counted in ``units``."""
    return tuple(
        _file_edits(change, changes.buffers.get(change.source or change.path), units) for change in changes.changes
    )


def _file_edits(change: FileChange, buffer: str | None, units: Units) -> FileEdits:
    base = change.before.digest if change.before is not None and buffer is None else None
    kind: Kind = "changed" if change.kind == "created" and buffer is not None else change.kind
    edits: tuple[TextEdit, ...] = ()
    if change.after is not None and change.encoding is not None:
        before = buffer if buffer is not None else _text(change.before, change.encoding)
        edits = edits_between(split_lines(before), split_lines(_text(change.after, change.encoding)), units)
    return FileEdits(change.path, kind, edits, change.source, base, buffer is not None)


def _text(state: FileState | None, encoding: str) -> str:
    return "" if state is None else decode_as(state.data, encoding)


def edits_between(old: Sequence[str], new: Sequence[str], units: Units = "utf-16") -> tuple[TextEdit, ...]:
    """The edits that turn one text, given as lines with their endings, into another."""
    return tuple(
        TextEdit(_start_of(old, change.old_from, units), _start_of(old, change.old_to, units),
                 "".join(new[change.new_from : change.new_to]))
        for change in changes_between(old, new)
    )  # fmt: skip


def _start_of(lines: Sequence[str], index: int, units: Units) -> Position:
    """The start of a line; behind the last one, the end of the text."""
    if index < len(lines) or not lines or lines[-1] != content(lines[-1]):
        return Position(index, 0)
    return Position(index - 1, length(lines[-1], units))


def length(text: str, units: Units) -> int:
    """The length of a text without line ending, in the units of a position."""
    if units == "utf-32":
        return len(text)
    if units == "utf-8":
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text) + sum(ord(c) > 0xFFFF for c in text)
