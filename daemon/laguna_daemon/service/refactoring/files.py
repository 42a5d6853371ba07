"""The files of a refactoring before the model is asked: those it names, and those that name what it is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from laguna_context.ignoring import Globs
from laguna_context.listing import Selection, list_files, refresh
from laguna_context.reading import Document, read_file
from laguna_context.secrets import forbidden
from laguna_daemon.errors import UsageError
from laguna_daemon.service.refactoring import words

MOST_FILES = 2000
"""A word found in more files than this names nothing in particular; it is left out of the plan, and said."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A file that has to be edited or passed over; ``lines`` are the places found in it, from 0.

    ``characters`` is the length of those lines, from which the length of their edits is guessed.
    """

    path: str
    reason: str
    lines: tuple[int, ...] = ()
    characters: int = 0


@dataclass(frozen=True)
class Plan:
    """The files found, in path order. ``names`` are the identifiers that were searched for and found."""

    names: tuple[str, ...]
    files: tuple[Planned, ...]
    notes: tuple[str, ...] = ()


class Scope:
    """Which files a refactoring may touch: everything, or what the globs of ``--paths`` take."""

    def __init__(self, globs: Sequence[str]) -> None:
        self.globs = tuple(globs)
        self._globs = Globs(globs)

    def allows(self, path: str) -> bool:
        """Whether ``path``, of a file that is there or of a new one, may be touched."""
        return not self._globs or self._globs.matches(path)


@dataclass
class _Search:
    """``counts``: files by word; ``hits``: the lines (number -> length) by file and word."""

    counts: dict[str, int] = field(default_factory=dict)
    hits: dict[str, dict[str, dict[int, int]]] = field(default_factory=dict)


def find(root: Path, selection: Selection, scope: Scope, instruction: str, texts: Mapping[str, str]) -> Plan:
    """Make the plan; blocks while it reads the tree. ``texts`` holds unsaved text, which beats the disk.

    Raises UsageError if the scope takes no file at all.
    """
    entries = [
        entry
        for entry in list_files(root, selection).entries
        if entry.kind == "file" and scope.allows(entry.path) and not forbidden(entry.path) and _spelled(entry.path)
    ]
    if not entries and scope.globs:
        raise UsageError(
            f"No file of {root} matches {', '.join(scope.globs)}.", "Globs are as in .gitignore: 'src/**/*.py'."
        )
    known = {entry.path for entry in entries}
    named = words.named_files(instruction, known)
    names = words.identifiers(instruction, named)
    search = _Search()
    if names:
        for entry in entries:
            text = texts.get(entry.path)
            if text is None:
                found = read_file(root, entry)
                text = found.text if isinstance(found, Document) else ""
            _look(entry.path, text, names, search)
    return _plan(named, names, search)


def read(root: Path, path: str, selection: Selection) -> Document | None:
    """The text of one listed file, None if it has none that may be shown."""
    entry = refresh(root, [path], {}, selection)[path]
    found = read_file(root, entry) if entry is not None and not forbidden(path) else None
    return found if isinstance(found, Document) else None


def _spelled(path: str) -> bool:
    """Whether a model can write the path at all: names of bytes that are no text cannot be written."""
    return not any("\ud800" <= character <= "\udfff" for character in path)


def _look(path: str, text: str, names: Sequence[str], search: _Search) -> None:
    there = [name for name in names if name in text]
    if not there:
        return
    lines = text.split("\n")
    for name in there:
        single = words.pattern([name])
        hits = {number: len(line) for number, line in enumerate(lines) if name in line and single.search(line)}
        if hits:
            search.counts[name] = search.counts.get(name, 0) + 1
            search.hits.setdefault(path, {})[name] = hits


def _plan(named: Sequence[str], names: Sequence[str], search: _Search) -> Plan:
    notes = [
        f"{name} stands in {count:,} files, which is too many to plan; they were not listed."
        for name, count in search.counts.items()
        if count > MOST_FILES
    ]
    kept = [name for name in names if 0 < search.counts.get(name, 0) <= MOST_FILES]
    files = {path: Planned(path, "named in the instruction") for path in named}
    for path, hits in search.hits.items():
        here = [name for name in kept if name in hits]
        if here:
            lines = {number: length for name in here for number, length in hits[name].items()}
            files[path] = Planned(path, f"has {', '.join(here)}", tuple(sorted(lines)), sum(lines.values()))
    return Plan(tuple(kept), tuple(files[path] for path in sorted(files)), tuple(notes))
