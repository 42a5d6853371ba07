"""Line differences, and the diff and summary a person reads."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import AnyStr, Literal, NamedTuple

from laguna_daemon.edits.changes import ChangeSet, FileChange, FileState
from laguna_daemon.edits.files import NotText, load_text
from laguna_daemon.edits.lines import content
from laguna_daemon.edits.safety import printable

_CONTEXT = 3
# Beyond this many lines between the first and the last difference, they are shown as one block: difflib is quadratic.
_COMPARED_LINES = 20_000
_COLOURS = {"+": "\x1b[32m", "-": "\x1b[31m", "@": "\x1b[36m", "=": "\x1b[1m"}
_PLAIN = "\x1b[0m"
_NO_NEWLINE = "\\ No newline at end of file"


class Change(NamedTuple):
    """Lines ``old_from:old_to`` of one text become ``new_from:new_to`` of the other (0-based, half open)."""

    old_from: int
    old_to: int
    new_from: int
    new_to: int


@dataclass(frozen=True, slots=True)
class Counts:
    """Lines added and removed."""

    added: int
    removed: int


def changes_between(old: Sequence[AnyStr], new: Sequence[AnyStr]) -> list[Change]:
    """The differing runs of lines, in order."""
    start, end = 0, 0
    shortest = min(len(old), len(new))
    while start < shortest and old[start] == new[start]:
        start += 1
    while end < shortest - start and old[len(old) - 1 - end] == new[len(new) - 1 - end]:
        end += 1
    old_middle, new_middle = old[start : len(old) - end], new[start : len(new) - end]
    if not old_middle and not new_middle:
        return []
    if len(old_middle) + len(new_middle) > _COMPARED_LINES:
        return [Change(start, start + len(old_middle), start, start + len(new_middle))]
    steps = difflib.SequenceMatcher(None, old_middle, new_middle, autojunk=False).get_opcodes()
    return [
        Change(start + old_from, start + old_to, start + new_from, start + new_to)
        for step, old_from, old_to, new_from, new_to in steps
        if step != "equal"
    ]


def grouped(changes: Sequence[Change], context: int = _CONTEXT) -> list[list[Change]]:
    """Changes in groups whose contexts touch: one hunk each."""
    groups: list[list[Change]] = []
    for change in changes:
        if groups and change.old_from - groups[-1][-1].old_to <= 2 * context:
            groups[-1].append(change)
        else:
            groups.append([change])
    return groups


def hunk(
    old: Sequence[AnyStr], new: Sequence[AnyStr], group: Sequence[Change]
) -> tuple[str, list[tuple[Literal[" ", "+", "-"], AnyStr]]]:
    """The ``@@`` line of a group and its lines, each with its sign."""
    first, last = group[0], group[-1]
    before = min(_CONTEXT, first.old_from)
    after = min(_CONTEXT, len(old) - last.old_to)
    lines: list[tuple[Literal[" ", "+", "-"], AnyStr]] = []
    at = first.old_from - before
    for change in group:
        lines += [(" ", line) for line in old[at : change.old_from]]
        lines += [("-", line) for line in old[change.old_from : change.old_to]]
        lines += [("+", line) for line in new[change.new_from : change.new_to]]
        at = change.old_to
    lines += [(" ", line) for line in old[at : last.old_to + after]]
    old_range = _range(first.old_from - before, last.old_to + after)
    new_range = _range(first.new_from - before, last.new_to + after)
    return f"@@ -{old_range} +{new_range} @@", lines


def _range(start: int, stop: int) -> str:
    length = stop - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def _lines_of(state: FileState | None) -> list[str] | None:
    """A file's lines, [] for no file, None for one that is not text."""
    if state is None:
        return []
    try:
        return load_text(state.data).lines
    except NotText:
        return None


def render(changes: ChangeSet, *, colour: bool = False) -> str:
    """All changes as unified diffs to read, control characters of the files made harmless."""
    lines = [line for change in changes.changes for line in _rendered(change)]
    if not colour:
        return "".join(f"{line}\n" for line in lines)
    return "".join(
        f"{_COLOURS[kind]}{line}{_PLAIN}\n" if kind in _COLOURS else f"{line}\n"
        for line, kind in zip(lines, _kinds(lines), strict=True)
    )


def _kinds(lines: Sequence[str]) -> list[str]:
    return ["=" if line.startswith("=== ") else line[:1] for line in lines]


def _rendered(change: FileChange) -> list[str]:
    lines = ["=== " + headline(change)]
    before, after = change.before, change.after
    if before is not None and after is not None and before.mode != after.mode:
        lines.append(f"    mode {before.mode:o} -> {after.mode:o}")
    if before is not None and after is not None and before.data == after.data:
        return lines
    old, new = _lines_of(before), _lines_of(after)
    if old is None or new is None:
        return [*lines, "    (not shown: not text)"]
    for group in grouped(changes_between(old, new)):
        header, body = hunk(old, new, group)
        lines.append(header)
        for sign, line in body:
            lines.append(sign + _harmless(content(line)))
            if line == content(line):
                lines.append(_NO_NEWLINE)
    return lines


def _harmless(text: str) -> str:
    """Text for a terminal: what could move the cursor, change colours or turn the reading direction is escaped."""
    if text.isprintable():
        return text
    return "".join(c if c == "\t" or c.isprintable() else c.encode("unicode_escape", "replace").decode() for c in text)


def headline(change: FileChange) -> str:
    """One line about one file: ``changed a.py  +3 -1``."""
    name = printable(change.path)
    if change.source is not None:
        name = f"{printable(change.source)} -> {name}"
    numbers = count(change)
    return f"{change.kind} {name}" + (f"  +{numbers.added} -{numbers.removed}" if numbers else "")


def count(change: FileChange) -> Counts | None:
    """Lines added and removed in one file, None if it is not text."""
    old, new = _lines_of(change.before), _lines_of(change.after)
    if old is None or new is None:
        return None
    found = changes_between(old, new)
    return Counts(sum(c.new_to - c.new_from for c in found), sum(c.old_to - c.old_from for c in found))


def summary(changes: ChangeSet) -> str:
    """One line about the set: ``3 files: 1 created, 2 changed; +10 -4``."""
    kinds = [change.kind for change in changes.changes]
    parts = [f"{kinds.count(kind)} {kind}" for kind in ("created", "changed", "renamed", "deleted") if kind in kinds]
    counts = [numbers for change in changes.changes if (numbers := count(change))]
    files = "1 file" if len(kinds) == 1 else f"{len(kinds)} files"
    added, removed = sum(c.added for c in counts), sum(c.removed for c in counts)
    return f"{files}: {', '.join(parts)}; +{added} -{removed}"
