"""Ghost text: `textDocument/inlineCompletion`, and `textDocument/completion` for clients without it."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Awaitable
from dataclasses import dataclass

from lsprotocol import types

from laguna_daemon.completion import acceptance, trigger
from laguna_daemon.completion.debounce import Debounce
from laguna_daemon.completion.filters.brackets import without_doubled_closers
from laguna_daemon.completion.suggestions import Suggestions
from laguna_daemon.lsp.configuration import Configuration
from laguna_daemon.lsp.inline.suggesting import Question, Suggester
from laguna_daemon.lsp.text.documents import Documents, Place
from laguna_daemon.lsp.text.positions import to_column
from laguna_daemon.schemas import CompletionEvent

ACCEPTED = "laguna.didAcceptCompletion"
"""Command that an editor runs when a suggestion was accepted; its argument is the suggestion's id."""

PREPARE_AFTER = 0.2
"""Seconds that a suggestion stays before the next one is prepared: while one types along nothing is begun in vain."""


@dataclass(frozen=True, slots=True)
class _Suggested:
    id: str
    text: str


class Completion:
    """One client's completions: for each document at most one is being made.

    A document's turn changes with every request and every change of its text; an answer counts only in the turn
    of its request. Requests are taken when they come, not when their task first runs: a change may stand right
    behind them in the same read.
    """

    def __init__(self, documents: Documents, configuration: Configuration, suggester: Suggester) -> None:
        self._documents = documents
        self._configuration = configuration
        self._suggester = suggester
        self._running: dict[str, asyncio.Task[_Suggested]] = {}
        self._preparing: dict[str, asyncio.Task[None]] = {}
        self._turns: dict[str, int] = {}
        self._numbers = itertools.count(1)
        self._kept: dict[str, Suggestions] = {}
        self._debounce = Debounce()
        self.counts: Counter[str] = Counter()  # shown, accepted, ...: kept here and nowhere else

    def inline(self, params: types.InlineCompletionParams) -> Awaitable[types.InlineCompletionList | None]:
        """One suggestion; an empty list if there is none or none is wanted; None if the text has moved on.

        Neovim takes an empty list as "show nothing", and None as "leave what is shown".
        """
        context = params.context
        automatic = context.trigger_kind == types.InlineCompletionTriggerKind.Automatic
        picked = None
        if (info := context.selected_completion_info) is not None and "\n" not in info.text:
            picked = Place(info.range.start.line, info.range.start.character), info.text
        return self._inline(self._take(params.text_document.uri, params.position, automatic, picked))

    def listed(self, params: types.CompletionParams) -> Awaitable[types.CompletionList]:
        """The same suggestion as an item of the editor's completion menu."""
        return self._listed(self._take(params.text_document.uri, params.position, True))

    def changed(self, uri: str) -> None:
        """The document is another one now: what is being made for it is of no use."""
        self._turns.pop(uri, None)
        running = self._running.pop(uri, None)
        if running is not None:
            running.cancel()
            self.counts["superseded"] += 1
        preparing = self._preparing.pop(uri, None)
        if preparing is not None:
            preparing.cancel()

    def typed(self, uri: str) -> None:
        """A change by the user's keys: as `changed`, and a beat of the rhythm of typing."""
        self._debounce.typed(time.monotonic())
        self.changed(uri)

    def closed(self, uri: str) -> None:
        """The document is closed: nothing of it is kept."""
        self.changed(uri)
        self._kept.pop(uri, None)
        self._suggester.related.closed(uri)

    def close(self) -> None:
        """The client is gone."""
        for task in [*self._running.values(), *self._preparing.values()]:
            task.cancel()
        self._suggester.related.close()

    def shown(self, event: CompletionEvent) -> None:
        """`laguna/didShowCompletion`."""
        self.counts["shown"] += 1

    def accepted(self, event: CompletionEvent) -> None:
        """`laguna/didAcceptCompletion`."""
        self.counts["accepted"] += 1

    def partially_accepted(self, event: CompletionEvent) -> None:
        """`laguna/didPartiallyAcceptCompletion`."""
        self.counts["partially accepted"] += 1
        for kept in self._kept.values():
            suggestion = kept.get(event.id)
            if suggestion is not None and event.accepted_length is not None:
                self.counts[f"accepted by {acceptance.part_of(suggestion.text, event.accepted_length)}"] += 1

    def _take(
        self, uri: str, position: types.Position, automatic: bool, picked: tuple[Place, str] | None = None
    ) -> Question | None:
        document = self._documents.get(uri)
        settings = self._configuration.settings.completion
        if document is None or not settings.enabled:
            return None
        self.changed(uri)  # a new request supersedes the one before: not every client cancels it
        turn = self._turns[uri] = next(self._numbers)
        place = Place(position.line, position.character)
        question = self._suggester.question(document, place, turn, automatic, picked)
        site = question.site
        if automatic and not trigger.wanted(site.before, site.rest, document.language, settings.languages):
            self.counts["not wanted"] += 1
            return None
        return question

    async def _inline(self, question: Question | None) -> types.InlineCompletionList | None:
        found = None if question is None else await self._suggestion(question)
        if question is None:
            return types.InlineCompletionList(items=[])
        if found is None:
            return None
        if not found.text:
            return types.InlineCompletionList(items=[])
        start, end = (types.Position(place.line, place.column) for place in (question.start, question.place))
        text = question.selected + found.text  # an editor shows nothing that does not begin with what is picked
        item = types.InlineCompletionItem(insert_text=text, range=types.Range(start, end), command=_on_accept(found))
        return types.InlineCompletionList(items=[item])

    async def _listed(self, question: Question | None) -> types.CompletionList:
        found = None if question is None else await self._suggestion(question)
        items = [_menu_item(question, found)] if question is not None and found is not None and found.text else []
        return types.CompletionList(is_incomplete=True, items=items)

    async def _suggestion(self, question: Question) -> _Suggested | None:
        """What to insert, "" if there is nothing; None if superseded. Cancelling waits until the engine has let go."""
        if self._turns.get(question.uri) != question.turn:
            return None
        found = self._remembered(question)
        if found is None:
            found = await self._made(question)
        if found is not None and found.text:
            self._prepare(question, found)
        return found

    async def _made(self, question: Question) -> _Suggested | None:
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

    async def _make(self, question: Question) -> _Suggested:
        """Wait for the next keystroke while retrieval runs; then ask, and remember the answer."""
        setting = self._configuration.settings.completion.debounce
        until = time.monotonic() + self._debounce.wait(setting, question.automatic)
        request = await self._suggester.request(question)
        began = time.monotonic()
        if began < until:
            await asyncio.sleep(until - began)
            began = time.monotonic()
        text = await self._suggester.text(question, request)
        self._debounce.answered(time.monotonic() - began)
        found = _Suggested(f"c{question.turn}", text)
        if text:
            kept = self._kept.setdefault(question.uri, Suggestions())
            kept.keep(found.id, question.prefix, question.suffix, text)
        return found

    def _remembered(self, question: Question) -> _Suggested | None:
        """A suggestion that the user is typing along, as far as it is not typed yet."""
        kept = self._kept.get(question.uri)
        found = None if kept is None else kept.find(question.prefix, question.suffix)
        if found is None:
            return None
        self.counts["remembered"] += 1
        suggestion, rest = found
        return _Suggested(suggestion.id, without_doubled_closers(rest, question.site))

    def _prepare(self, question: Question, found: _Suggested) -> None:
        """Make the suggestion that will be wanted when this one has been accepted whole."""
        if not self._configuration.settings.completion.prefetch or self._preparing.get(question.uri) is not None:
            return
        kept = self._kept.setdefault(question.uri, Suggestions())
        if kept.find(question.prefix + found.text, question.suffix) is not None:
            return
        task = asyncio.create_task(self._prepared(question, found.text, kept))
        self._preparing[question.uri] = task
        task.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def _prepared(self, question: Question, accepted: str, kept: Suggestions) -> None:
        try:
            await asyncio.sleep(PREPARE_AFTER)
            following = self._suggester.after(question, accepted)
            request = await self._suggester.request(following)
            text = await self._suggester.text(following, request.model_copy(update={"background": True}))
            if text:
                kept.keep(f"c{next(self._numbers)}", following.prefix, following.suffix, text)
                self.counts["prepared"] += 1
        finally:
            if self._preparing.get(question.uri) is asyncio.current_task():
                del self._preparing[question.uri]


def _on_accept(found: _Suggested) -> types.Command:
    return types.Command(title="Suggestion accepted", command=ACCEPTED, arguments=[found.id])


def _menu_item(question: Question, found: _Suggested) -> types.CompletionItem:
    """A menu item that survives the client's filter: it replaces the word before the cursor by itself."""
    before = question.site.before
    start = len(before)
    while start > 0 and (before[start - 1].isalnum() or before[start - 1] == "_"):
        start -= 1
    text = before[start:] + found.text
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
        command=_on_accept(found),
    )
