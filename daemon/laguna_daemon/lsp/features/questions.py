"""A client's question as one of the service: whose root, and which lines, symbols and diagnostics it is about."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from laguna_daemon.lsp.configuration import Configuration
from laguna_daemon.lsp.errors import invalid_params
from laguna_daemon.lsp.features.workspace_edit import OpenFile
from laguna_daemon.lsp.roots import Locator
from laguna_daemon.lsp.text import symbols
from laguna_daemon.lsp.text.documents import Documents, Place
from laguna_daemon.lsp.text.positions import split_lines
from laguna_daemon.schemas import AskRequest, ChatParams, ChatReference, Diagnostic, LspRange, Reference

_SEVERITIES = {1: "error", 2: "warning", 3: "information", 4: "hint"}
_MOST_SYMBOL_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Place:
    """A reference with the file it names."""

    reference: ChatReference
    path: Path
    name: str


class Questions:
    """Reads one client's questions."""

    def __init__(self, documents: Documents, locator: Locator, configuration: Configuration) -> None:
        self._documents = documents
        self._locator = locator
        self._configuration = configuration

    async def request(self, params: ChatParams) -> AskRequest:
        """The question; raises InvalidParams."""
        if not params.text.strip() and params.task is None:
            raise invalid_params("The question is empty.")
        paths = [self._path(reference) for reference in params.references]
        if params.root is not None:
            root: Path | None = self._locator.named(params.root)
        else:
            root = await self._locator.root_of(paths[0] if paths else None)
        if params.mode == "edit" and root is None:
            raise invalid_params("The mode edit needs a workspace folder or a file to edit in.")
        places = [_located(found, path, root) for found, path in zip(params.references, paths, strict=True)]
        return AskRequest(
            root=None if root is None else str(root),
            question=params.text,
            mode=params.mode,
            task=params.task,
            conversation=params.conversation,
            references=[self._reference(place) for place in places],
            diagnostics=[found for place in places for found in _diagnostics(place)],
            no_context=root is None,
            thinking=self._configuration.settings.thinking if params.thinking is None else params.thinking,
            max_tokens=params.max_tokens,
            temperature=params.temperature,
            seed=params.seed,
            keep=True,
        )

    def opened(self, root: Path) -> dict[str, OpenFile]:
        """The client's open documents below `root`, by relative path, as they are now."""
        found: dict[str, OpenFile] = {}
        for document in self._documents:
            path = self._locator.path_of(document.uri)
            if path is not None and path.is_relative_to(root):
                found[path.relative_to(root).as_posix()] = OpenFile(document.uri, document.version, document.text)
        return found

    def _path(self, reference: ChatReference) -> Path:
        path = self._locator.path_of(reference.uri)
        if path is None:
            raise invalid_params(f"The reference {reference.uri} names no file.")
        return path

    def _reference(self, place: _Place) -> Reference:
        reference = place.reference
        if reference.symbol is not None:
            return self._symbol(place, reference.symbol)
        if reference.range is None:
            return Reference(path=place.name)
        first, last = _lines(reference.range)
        document = self._documents.get(reference.uri)
        if document is not None:
            last = min(last, len(document.lines) - 1)
        return Reference(path=place.name, first_line=min(first, last) + 1, last_line=last + 1)

    def _symbol(self, place: _Place, name: str) -> Reference:
        document = self._documents.get(place.reference.uri)
        lines = document.lines if document is not None else _disk_lines(place.path)
        found = symbols.named(lines, name)
        if found is None:
            raise invalid_params(f"There is no declaration of {name} in {place.name}.")
        return Reference(path=place.name, first_line=found.first + 1, last_line=found.end)


def _located(reference: ChatReference, path: Path, root: Path | None) -> _Place:
    if root is None or not path.is_relative_to(root):
        raise invalid_params(f"The reference {reference.uri} is not below the root of this question.")
    return _Place(reference, path, path.relative_to(root).as_posix())


def _lines(span: LspRange) -> tuple[int, int]:
    """First and last line of a range, from 0."""
    start, end = sorted(Place(point.line, point.character) for point in (span.start, span.end))
    # An end at column 0 stands behind the line ending of the line before.
    return start.line, end.line if end.column > 0 or end.line == start.line else end.line - 1


def _diagnostics(place: _Place) -> list[Diagnostic]:
    return [
        Diagnostic(
            path=place.name,
            line=found.range.start.line + 1,
            message=found.message,
            severity=_SEVERITIES.get(found.severity or 0, ""),
            source=found.source or "",
        )
        for found in place.reference.diagnostics
    ]


def _disk_lines(path: Path) -> list[str]:
    """The lines of a file that is not open. One read of bounded size: the question itself reads far more."""
    try:
        with path.open("rb") as file:
            return split_lines(file.read(_MOST_SYMBOL_BYTES).decode("utf-8", "replace"))
    except OSError as error:
        raise invalid_params(f"{path.name} cannot be read: {error.strerror}.") from error
