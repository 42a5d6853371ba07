"""From a place in a document to the text suggested there: the window, the pieces of other files, the filters."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from pathlib import Path

from laguna_context.secrets import forbidden
from laguna_daemon.completion import filters, window
from laguna_daemon.errors import EngineUnavailable, LagunaError
from laguna_daemon.lsp.configuration import Configuration
from laguna_daemon.lsp.inline.related import Related
from laguna_daemon.lsp.ports import ServicePort
from laguna_daemon.lsp.roots import Locator
from laguna_daemon.lsp.text.documents import Document, Documents, Place
from laguna_daemon.lsp.text.positions import content_length
from laguna_daemon.schemas import CompleteRequest, Snippet

_log = logging.getLogger(__name__)
PREFIX_CHARS = 24_000
SUFFIX_CHARS = 8_000
_OF_WORDS = frozenset(["markdown", "plaintext", "text", "restructuredtext", "asciidoc", "latex", "tex", "gitcommit"])
_ABOVE = 16  # lines around the cursor that filters see
_BELOW = 8
_MEASURED = 200  # lines by which the indentation is judged


@dataclass(frozen=True, slots=True)
class Question:
    """A place in a document where text is wanted, as it was when the request came.

    ``selected`` is what the user has picked in the editor's own menu and not accepted yet: the text counts as if it
    stood there already, from ``start`` up to ``place``.
    """

    uri: str
    turn: int
    document: Document
    place: Place
    start: Place
    selected: str
    site: filters.Site
    prefix: str
    suffix: str
    automatic: bool


class Suggester:
    """One client's way to the service."""

    def __init__(
        self, service: ServicePort, documents: Documents, locator: Locator, configuration: Configuration
    ) -> None:
        self._service = service
        self._locator = locator
        self._configuration = configuration
        self.related = Related(documents)

    def question(
        self, document: Document, wanted: Place, turn: int, automatic: bool, picked: tuple[Place, str] | None = None
    ) -> Question:
        """Take down what stands around a place now: the document may change in the next moment.

        ``picked``: where what is picked in a menu begins, and its text.
        """
        line, index = document.locate(wanted)
        lines = document.lines
        start, selected = index, ""
        if picked is not None and (place := document.locate(picked[0]))[0] == line and place[1] <= index:
            start, selected = place[1], picked[1]
        first = max(0, line - _ABOVE)
        site = filters.Site(
            before=document.valid(lines[line][:start]) + selected,
            rest=document.valid(lines[line][index : content_length(lines[line])]),
            above=tuple(document.valid(text[: content_length(text)]) for text in lines[first:line]),
            below=tuple(document.valid(text[: content_length(text)]) for text in lines[line + 1 : line + 1 + _BELOW]),
            indent=filters.step_of(lines[max(0, line - _MEASURED) : line + 1]),
            words=document.language in _OF_WORDS,
        )
        return Question(
            uri=document.uri,
            turn=turn,
            document=document,
            place=document.place(line, index),
            start=document.place(line, start),
            selected=selected,
            site=site,
            prefix=document.valid(window.lines_before(lines, line, start, PREFIX_CHARS)) + selected,
            suffix=document.valid(window.lines_after(lines, line, index, SUFFIX_CHARS)),
            automatic=automatic,
        )

    def after(self, question: Question, accepted: str) -> Question:
        """The question as it will be when ``accepted`` has been inserted."""
        lines = (question.site.before + accepted).split("\n")
        site = replace(question.site, before=lines[-1], above=(*question.site.above, *lines[:-1])[-_ABOVE:])
        return replace(question, site=site, prefix=question.prefix + accepted)

    async def request(self, question: Question) -> CompleteRequest:
        """What the service is asked; other files are looked at meanwhile, within a bound."""
        settings = self._configuration.settings.completion
        path = self._locator.path_of(question.uri)
        root = await self._locator.root_of(path)
        name = _shown_path(question.uri, path, root)
        snippets: list[Snippet] = []
        if settings.related and root is not None and path is not None and path.is_relative_to(root):
            self.related.at(question.uri, root, name, question.place.line)
            snippets = await self.related.snippets(question.document, root, name)
        return CompleteRequest(
            root=None if root is None else str(root),
            path=name,
            language=question.document.language,
            prefix=question.prefix,
            suffix=question.suffix,
            snippets=snippets,
            scope=settings.context,
            max_tokens=settings.max_tokens,
        )

    async def text(self, question: Question, request: CompleteRequest) -> str:
        """What to insert, after all filters; "" if there is nothing."""
        if forbidden(request.path) is not None:
            return ""  # a file of secrets
        try:
            result = await self._service.complete(request)
        except EngineUnavailable:
            return ""  # the status says why; an error at each keystroke would help nobody
        except LagunaError as error:
            _log.info("no suggestion: %s", error.what)
            return ""
        cut = result.usage.finish_reason in ("length", "timeout")
        return filters.apply(result.text, replace(question.site, cut=cut))


def _shown_path(uri: str, path: Path | None, root: Path | None) -> str:
    if path is None:
        return uri.rpartition("/")[2] or uri
    if root is not None and path.is_relative_to(root):
        return path.relative_to(root).as_posix()
    return path.name
