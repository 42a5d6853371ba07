"""Declarations of the symbols that a file imports: their signatures, from the files that declare them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

from laguna_context.entries import Entry
from laguna_context.listing import Selection, refresh
from laguna_context.reading import Document, read_file
from laguna_context.secrets import forbidden, redact
from laguna_daemon.completion.imports import imports
from laguna_daemon.lsp.text import symbols
from laguna_daemon.lsp.text.positions import split_lines
from laguna_daemon.schemas import Snippet

_CHARS = 1600  # in all
_EACH = 600
_MOST_BYTES = 512 * 1024
_FILES = 8
_KEPT = 64


class Declarations:
    """Looks up declarations; what it has read of a file counts until the file changes. One thread at a time."""

    def __init__(self) -> None:
        self._read: OrderedDict[Path, tuple[tuple[int, int], list[str] | None]] = OrderedDict()

    def of(self, lines: Sequence[str], path: str, root: Path, language: str) -> list[Snippet]:
        """Signatures of what the file at ``path`` imports from its own repository; blocks on reading."""
        found: list[Snippet] = []
        room, files = _CHARS, 0
        for each in imports(lines, path, language):
            source = next((name for name in each.candidates if name != path and (root / name).is_file()), None)
            if source is None or files == _FILES or room <= 0:
                continue
            files += 1
            text = self._lines(root, source)
            shown = "\n".join(_signatures(text, each.names))[:room] if text else ""
            if shown:
                found.append(Snippet(path=source, text=redact(shown, source).text))
                room -= len(shown)
        return found

    def _lines(self, root: Path, name: str) -> list[str] | None:
        path = root / name
        try:
            stat = path.lstat()
        except OSError:
            return None
        stamp = (stat.st_mtime_ns, stat.st_size)
        known = self._read.get(path)
        if known is None or known[0] != stamp:
            known = (stamp, _listed_lines(root, name) if stat.st_size <= _MOST_BYTES else None)
            self._read[path] = known
            while len(self._read) > _KEPT:
                self._read.popitem(last=False)
        return known[1]


def is_listed(root: Path, name: str) -> bool:
    """Whether a file is one of those that a model may see; blocks on git."""
    return forbidden(name) is None and refresh(root, [name], {}, Selection())[name] is not None


def _listed_lines(root: Path, name: str) -> list[str] | None:
    """A file's lines if it is one that a model may see; as for questions, no link is followed out of the root."""
    if forbidden(name) is not None:
        return None
    entry: Entry | None = refresh(root, [name], {}, Selection())[name]
    found = None if entry is None else read_file(root, entry)
    return split_lines(found.text) if isinstance(found, Document) else None


def _signatures(lines: list[str], names: tuple[str, ...]) -> list[str]:
    wanted = [symbols.named(lines, name) for name in names] if names else symbols.declarations(lines)
    return [_signature(lines, symbol)[:_EACH] for symbol in wanted if symbol is not None]


def _signature(lines: list[str], symbol: symbols.Symbol) -> str:
    """The declaration's own line and those of what it declares inside, without bodies."""
    kept = [lines[symbol.first].rstrip()]
    depth = None
    for inner in symbols.declarations(lines, symbol.first + 1, symbol.end):
        line = lines[inner.first]
        indent = len(line) - len(line.lstrip())
        depth = indent if depth is None else depth
        if indent == depth:
            kept.append(line.rstrip())
    return "\n".join(kept)
