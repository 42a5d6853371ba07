"""Ghost text: `textDocument/inlineCompletion`, and `textDocument/completion` for clients without it."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path

from lsprotocol import types

from laguna_daemon.errors import EngineUnavailable
from laguna_daemon.lsp import filters
from laguna_daemon.lsp.documents import Document, Documents, Place
from laguna_daemon.lsp.ports import ServicePort
from laguna_daemon.lsp.roots import Locator
from laguna_daemon.schemas import CompleteRequest, CompletionEvent

PREFIX_CHARS = 24_000
SUFFIX_CHARS = 8_000
ACCEPTED = "laguna.didAcceptCompletion"
"""Command that an editor runs when a suggestion was accepted; its argument is the suggestion's id."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Text to insert at `place`."""

    id: str
    text: str
    place: Place


class Completion:
    """One client's completions: for each document at most one is being made."""

    def __init__(self, service: ServicePort, documents: Documents, locator: Locator) -> None:
        self._service = service
        self._documents = documents
        self._locator = locator
        self._running: dict[str, asyncio.Task[str]] = {}
        self._ids = itertools.count(1)
        self.counts: Counter[str] = Counter()  # shown, accepted, ...: kept here and nowhere else

    async def inline(self, params: types.InlineCompletionParams) -> types.InlineCompletionList | None:
        """One suggestion; an empty list if there is none; None if the text has moved on meanwhile.

        Neovim takes an empty list as "show nothing", and None as "leave what is shown".
        """
        found = await self._suggest(params.text_document.uri, params.position)
        if found is None:
            return None
        if not found.text:
            return types.InlineCompletionList(items=[])
        position = types.Position(found.place.line, found.place.column)
        command = types.Command(title="Suggestion accepted", command=ACCEPTED, arguments=[found.id])
        item = types.InlineCompletionItem(
            insert_text=found.text, range=types.Range(position, position), command=command
        )
        return types.InlineCompletionList(items=[item])

    async def listed(self, params: types.CompletionParams) -> types.CompletionList:
        """The same suggestion as an item of the editor's completion menu."""
        found = await self._suggest(params.text_document.uri, params.position)
        document = self._documents.get(params.text_document.uri)
        if found is None or document is None or not found.text:
            return types.CompletionList(is_incomplete=True, items=[])
        return types.CompletionList(is_incomplete=True, items=[_menu_item(document, found)])

    def changed(self, uri: str) -> None:
        """The document is another one now: what is being made for it is of no use."""
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

    async def _suggest(self, uri: str, position: types.Position) -> Suggestion | None:
        """What to insert, "" if there is nothing; None if superseded, or if the document is another one by now."""
        document = self._documents.get(uri)
        if document is None:
            return None
        self.changed(uri)  # a new request supersedes the one before: not every client cancels it
        version = document.version
        place = document.place(*document.locate(Place(position.line, position.character)))
        text = await self._supersedable(uri, self._make(uri, document, place))
        if text is None or self._documents.get(uri) is not document or document.version != version:
            return None
        return Suggestion(f"c{next(self._ids)}", text, place)

    async def _supersedable(self, uri: str, making: Coroutine[None, None, str]) -> str | None:
        """The result, None if superseded. Cancelling waits until the engine has let go."""
        work = asyncio.create_task(making)
        self._running[uri] = work
        try:
            await asyncio.wait({work})
        finally:
            if self._running.get(uri) is work:
                del self._running[uri]
            if not work.done():
                work.cancel()
                await asyncio.wait({work})
        return None if work.cancelled() else work.result()

    async def _make(self, uri: str, document: Document, place: Place) -> str:
        line, index = document.locate(place)
        site = filters.Site(before=document.lines[line][:index], rest=document.rest_of_line(place))
        request = CompleteRequest(
            path="",
            language=document.language,
            prefix=document.before(place, PREFIX_CHARS),
            suffix=document.after(place, SUFFIX_CHARS),
        )
        path = self._locator.path_of(uri)
        root = await self._locator.root_of(path)
        request.root = None if root is None else str(root)
        request.path = _shown_path(uri, path, root)
        try:
            result = await self._service.complete(request)
        except EngineUnavailable:
            return ""  # the status says why; an error at each keystroke would help nobody
        return filters.apply(result.text, site)


def _shown_path(uri: str, path: Path | None, root: Path | None) -> str:
    if path is None:
        return uri.rpartition("/")[2] or uri
    if root is not None and path.is_relative_to(root):
        return path.relative_to(root).as_posix()
    return path.name


def _menu_item(document: Document, found: Suggestion) -> types.CompletionItem:
    """A menu item that survives the client's filter: it replaces the word before the cursor by itself."""
    line, index = document.locate(found.place)
    start = index
    while start > 0 and (document.lines[line][start - 1].isalnum() or document.lines[line][start - 1] == "_"):
        start -= 1
    text = document.lines[line][start:index] + found.text
    first = document.place(line, start)
    place = types.Range(types.Position(first.line, first.column), types.Position(found.place.line, found.place.column))
    return types.CompletionItem(
        label=text.strip().partition("\n")[0],
        kind=types.CompletionItemKind.Text,
        detail="laguna",
        sort_text="~",
        filter_text=text,
        insert_text_format=types.InsertTextFormat.PlainText,
        insert_text_mode=types.InsertTextMode.AsIs,
        text_edit=types.TextEdit(range=place, new_text=text),
        command=types.Command(title="Suggestion accepted", command=ACCEPTED, arguments=[found.id]),
    )
