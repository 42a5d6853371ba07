"""Files, or some of their lines, that a question points at: their text goes right before the question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from laguna_context.listing import Selection, refresh
from laguna_context.reading import Document, read_file
from laguna_context.secrets import forbidden
from laguna_daemon.errors import RepositoryError
from laguna_daemon.lsp.text.positions import split_lines
from laguna_daemon.schemas import Reference


def resolve(
    root: Path, references: Iterable[Reference], texts: Mapping[str, str], selection: Selection
) -> list[tuple[str, str]]:
    """(name, text) of each reference, an editor's text before the disk's; blocks on reading.

    Raises RepositoryError for a path that is not one of the root's listed text files.
    """
    return [_one(root, reference, texts, selection) for reference in references]


def _one(root: Path, reference: Reference, texts: Mapping[str, str], selection: Selection) -> tuple[str, str]:
    path = _relative(root, reference.path)
    reason = forbidden(path)
    if reason is not None:
        raise RepositoryError(f"{path} is never shown to a model: {reason}.", "Point at another file.")
    text = texts.get(path)
    if text is None:
        text = _read(root, path, selection)
    first, last = reference.first_line, reference.last_line
    if first is None and last is None:
        return path, text
    lines = split_lines(text)  # as editors count them
    if not lines[-1]:
        lines.pop()
    start, end = max(first or 1, 1), min(last or len(lines), len(lines))
    if start > end and lines:
        raise RepositoryError(f"{path} has {len(lines)} lines; {first}-{last} names none.", "Name lines it has.")
    return f"{path}:{start}-{end}", "".join(lines[start - 1 : end])


def _relative(root: Path, named: str) -> str:
    path = PurePosixPath(named)
    if path.is_absolute():
        if not path.is_relative_to(root):
            raise RepositoryError(f"{named} is not inside {root}.", "Point at a file of this repository.")
        path = path.relative_to(root)
    if ".." in path.parts or not path.parts:
        raise RepositoryError(f"{named} is not the path of a file in {root}.", "Point at a file of this repository.")
    return str(path)


def _read(root: Path, path: str, selection: Selection) -> str:
    entry = refresh(root, [path], {}, selection)[path]
    if entry is None:
        raise RepositoryError(f"{path} is not among the files of {root}.", f"Why: laguna-daemon context why {path}")
    found = read_file(root, entry)
    if not isinstance(found, Document):
        raise RepositoryError(f"{path} cannot be shown: {found.reason} ({found.detail}).", "Point at another file.")
    return found.text
