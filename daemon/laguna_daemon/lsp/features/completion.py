"""Ghost text: `textDocument/inlineCompletion`, and `textDocument/completion` for clients without it."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable
from dataclasses import dataclass
from pathlib import Path

from lsprotocol import types

from laguna_daemon.completion import filters
from laguna_daemon.errors import EngineUnavailable
from laguna_daemon.lsp.configuration import Configuration
from laguna_daemon.lsp.ports import ServicePort
from laguna_daemon.lsp.roots import Locator
from laguna_daemon.lsp.text.documents import Document, Documents, Place
from laguna_daemon.lsp.text.positions import to_column
from laguna_daemon.schemas import CompleteRequest, CompletionEvent

PREFIX_CHARS = 24_000
SUFFIX_CHARS = 8_000
ACCEPTED = "laguna.didAcceptCompletion"
"""Command that an editor runs when a suggestion was accepted; its argument is the suggestion's id."""


@dataclass(frozen=True, slots=True)
class Question:
    """A place in a document where text is wanted, as it was when the request came."""

    uri: str
    turn: int
    document: Document
    place: Place
    site: filters.Site
    prefix: str
    suffix: str


class Completion:
    """One client's completions: for each document at most one is being made.

    A document's turn changes with every request and every change of its text; an answer counts only in the turn
    of its request. Requests are taken when they come, not when their task first runs: a change may stand right
    behind them in the same read.
    """

    def __init__(
        self, service: ServicePort, documents: Documents, locator: Locator, configuration: Configuration
    ) -> None:
        self._service = service
        self._documents = documents
        self._locator = locator
        self._configuration = configuration
        self._running: dict[str, asyncio.Task[str]] = {}
        self._turns: dict[str, int] = {}
        self._numbers = itertools.count(1)
        self.counts: Counter[str] = Counter()  # shown, accepted, ...: kept here and nowhere else

    def inline(self, params: types.InlineCompletionParams) -> Awaitable[types.InlineCompletionList | None]:
        """One suggestion; an empty list if there is none or none is wanted; None if the text has moved on.

        Neovim takes an empty list as "show nothing", and None as "leave what is shown".
        """
        return self._inline(self._take(params.text_document.uri, params.position))

    def listed(self, params: types.CompletionParams) -> Awaitable[types.CompletionList]:
        """The same suggestion as an item of the editor's completion menu."""
        return self._listed(self._take(params.text_document.uri, params.position))

    def changed(self, uri: str) -> None:
        """The document is another one now: what is being made for it is of no use."""
        self._turns.pop(uri, None)
        running = self._running.pop(uri, None)
        if running is not None:
            running.cancel()
            self.counts["superseded"] += 1

    def shown(self, event: CompletionEvent) -> None:
        """`laguna/didShowCompletion`."""
        self.counts["shown"] += 1

    def accepted(self, event: CompletionEvent) -> None:
        """`laguna/didAcceptCompletion`."""
        self.counts["accepted"] += 1

    def partially_accepted(self, event: CompletionEvent) -> None:
        """`laguna/didPartiallyAcceptCompletion`."""
        self.counts["partially accepted"] += 1

    def _take(self, uri: str, position: types.Position) -> Question | None:
        document = self._documents.get(uri)
        if document is None or not self._configuration.settings.completion.enabled:
            return None
        self.changed(uri)  # a new request supersedes the one before: not every client cancels it
        turn = self._turns[uri] = next(self._numbers)
        line, index = document.locate(Place(position.line, position.character))
        place = document.place(line, index)
        return Question(
            uri=uri,
            turn=turn,
            document=document,
            place=place,
            site=filters.Site(before=document.lines[line][:index], rest=document.rest_of_line(place)),
            prefix=document.before(place, PREFIX_CHARS),
            suffix=document.after(place, SUFFIX_CHARS),
        )

    async def _inline(self, question: Question | None) -> types.InlineCompletionList | None:
        text = "" if question is None else await self._text(question)
        if text is None:
            return None
        if question is None or not text:
            return types.InlineCompletionList(items=[])
        position = types.Position(question.place.line, question.place.column)
        item = types.InlineCompletionItem(
            insert_text=text, range=types.Range(position, position), command=_on_accept(question)
        )
        return types.InlineCompletionList(items=[item])

    async def _listed(self, question: Question | None) -> types.CompletionList:
        text = None if question is None else await self._text(question)
        items = [_menu_item(question, text)] if question is not None and text else []
        return types.CompletionList(is_incomplete=True, items=items)

    async def _text(self, question: Question) -> str | None:
        """What to insert, "" if there is nothing; None if superseded. Cancelling waits until the engine has let go."""
        if self._turns.get(question.uri) != question.turn:
            return None
        work = asyncio.create_task(self._make(question))
        self._running[question.uri] = work
        try:
            await asyncio.wait({work})
        finally:
            if self._running.get(question.uri) is work:
                del self._running[question.uri]
            if not work.done():
                work.cancel()
                await asyncio.wait({work})
        if work.cancelled() or self._turns.get(question.uri) != question.turn:
            return None
        return work.result()

    async def _make(self, question: Question) -> str:
        path = self._locator.path_of(question.uri)
        root = await self._locator.root_of(path)
        request = CompleteRequest(
            root=None if root is None else str(root),
            path=_shown_path(question.uri, path, root),
            language=question.document.language,
            prefix=question.prefix,
            suffix=question.suffix,
            max_tokens=self._configuration.settings.completion.max_tokens,
        )
        try:
            result = await self._service.complete(request)
        except EngineUnavailable:
            return ""  # the status says why; an error at each keystroke would help nobody
        return filters.apply(result.text, question.site)


def _shown_path(uri: str, path: Path | None, root: Path | None) -> str:
    if path is None:
        return uri.rpartition("/")[2] or uri
    if root is not None and path.is_relative_to(root):
        return path.relative_to(root).as_posix()
    return path.name


def _on_accept(question: Question) -> types.Command:
    return types.Command(title="Suggestion accepted", command=ACCEPTED, arguments=[f"c{question.turn}"])


def _menu_item(question: Question, text: str) -> types.CompletionItem:
    """A menu item that survives the client's filter: it replaces the word before the cursor by itself."""
    before = question.site.before
    start = len(before)
    while start > 0 and (before[start - 1].isalnum() or before[start - 1] == "_"):
        start -= 1
    text = before[start:] + text
    place = question.place
    first = to_column(before, start, question.document.encoding)
    return types.CompletionItem(
        label=text.strip().partition("\n")[0],
        kind=types.CompletionItemKind.Text,
        detail="laguna",
        sort_text="~",
        filter_text=text,
        insert_text_format=types.InsertTextFormat.PlainText,
        insert_text_mode=types.InsertTextMode.AsIs,
        text_edit=types.TextEdit(
            range=types.Range(types.Position(place.line, first), types.Position(place.line, place.column)),
            new_text=text,
        ),
        command=_on_accept(question),
    )
