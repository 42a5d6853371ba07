"""Conversations: opened for one question at a time, kept on disk, listed, read and deleted."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np

from laguna_context import frames
from laguna_context.conversation import Conversation, Turn
from laguna_daemon.errors import UsageError
from laguna_daemon.schemas import ConversationSummary, ConversationTurn
from laguna_daemon.service.materials import Materials
from laguna_daemon.service.talkstore import Stored, TalkStore

T = TypeVar("T")
_log = logging.getLogger(__name__)
_TITLE = 80
REENCODED = "The model is another one than before: the conversation's earlier turns were written anew for it."


@dataclass
class Talk:
    """A conversation while a question of it is answered; ``ids`` is its append-only token state.

    ``root`` is None for one without a repository. ``notices`` are what the user should know about its resumption.
    """

    id: str
    root: Path | None
    ids: Conversation
    fingerprint: str
    texts: list[ConversationTurn] = field(default_factory=list)
    created: float = field(default_factory=time.time)
    new: bool = True
    notices: list[str] = field(default_factory=list)

    def answered(self, turn: ConversationTurn) -> None:
        """Note a turn's text; its ids have been appended to ``ids``."""
        turn.created = time.time()
        self.texts.append(turn)

    def stored(self) -> Stored:
        """As it is kept."""
        root = "" if self.root is None else str(self.root)
        first = self.texts[0]
        title = _title(first.question) or (first.task or "").capitalize()
        shown = root.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        summary = ConversationSummary(
            id=self.id, root=shown, title=title, created=self.created, used=time.time(), turns=len(self.texts)
        )
        return Stored(summary, root, self.fingerprint, self.ids, list(self.texts))


class Conversations:
    """All conversations of the user. The file belongs to one thread of our own, so calls happen in their order."""

    def __init__(self, make_store: Callable[[], TalkStore] = TalkStore.standard) -> None:
        self._make_store = make_store
        self._made: TalkStore | None = None
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="conversations")
        self._busy: set[str] = set()

    @asynccontextmanager
    async def turn(self, id: str | None, root: Path | None, materials: Materials) -> AsyncGenerator[Talk, None]:
        """The conversation ``id``, or a new one, for one question; it is nobody else's meanwhile.

        Raises UsageError if it is unknown, busy or about another root.
        """
        if id is None:
            id = uuid.uuid4().hex[:12]
            yield Talk(id, root, Conversation(id=id), fingerprint(materials))
            return
        if id in self._busy:
            raise UsageError(f"The conversation {id} is still being answered.", "Wait for it, or cancel it first.")
        self._busy.add(id)
        try:
            yield await self._open(id, root, materials)
        finally:
            self._busy.discard(id)

    def keep(self, talk: Talk) -> None:
        """Write the conversation, behind the caller's back: a full disk must not cost an answer that is there."""
        stored, new = talk.stored(), talk.new
        talk.new = False
        self._pool.submit(lambda: self._store.keep(stored, new=new)).add_done_callback(_log_failure)

    async def listed(self, root: Path | None = None) -> list[ConversationSummary]:
        """All conversations, or those about ``root``, latest used first."""
        return await self._in_thread(lambda: self._store.listed(root))

    async def read(self, id: str) -> Stored:
        """One conversation whole; raises UsageError if it is unknown."""
        found = await self._in_thread(lambda: self._store.read(id))
        if found is None:
            raise _unknown(id)
        return found

    async def delete(self, id: str) -> None:
        """Forget one conversation; raises UsageError if it is unknown."""
        if not await self._in_thread(lambda: self._store.delete(id)):
            raise _unknown(id)

    async def close(self) -> None:
        """Wait for what is being written, and let go of the file."""
        await self._in_thread(self._let_go)
        self._pool.shutdown(wait=False)

    async def _open(self, id: str, root: Path | None, materials: Materials) -> Talk:
        stored = await self.read(id)
        if stored.root != ("" if root is None else str(root)):
            about = stored.summary.root or "no repository"
            raise UsageError(f"The conversation {id} is about {about}, not {root or 'none'}.")
        talk = Talk(id, root, stored.ids, stored.fingerprint, stored.turns, stored.summary.created, new=False)
        if talk.fingerprint != fingerprint(materials):
            _reencode(talk, materials)
            talk.notices.append(REENCODED)
        return talk

    def _let_go(self) -> None:
        if self._made is not None:
            self._made.close()

    @property
    def _store(self) -> TalkStore:
        if self._made is None:
            self._made = self._make_store()
        return self._made

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)


def fingerprint(materials: Materials) -> str:
    """Names what ids of a conversation depend on: tokenizer and template."""
    return f"{materials.tokenizer.fingerprint} {materials.template.fingerprint}"


def _reencode(talk: Talk, materials: Materials) -> None:
    """The turns' ids for another model, from their text; what stood before them is built anew."""
    encode, template = materials.tokenizer.encode, materials.template
    turns = [
        Turn(np.concatenate([encode(frames.task(text.question)), template.tail(False)]), encode(text.answer), False)
        for text in talk.texts
    ]
    talk.ids = Conversation(id=talk.id, turns=turns, rebased=talk.ids.rebased)
    talk.fingerprint = fingerprint(materials)


def _title(question: str) -> str:
    line = next((line.strip() for line in question.splitlines() if line.strip()), "")
    return line if len(line) <= _TITLE else line[: _TITLE - 1] + "…"


def _unknown(id: str) -> UsageError:
    return UsageError(f"There is no conversation {id}.", "laguna-daemon conversations list shows those there are.")


def _log_failure(done: Future[None]) -> None:
    if not done.cancelled() and (error := done.exception()) is not None:
        _log.error("a conversation was not kept: %s", error)
