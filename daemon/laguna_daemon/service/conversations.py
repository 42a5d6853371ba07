"""Conversations, kept in memory while the daemon lives; the oldest unused one goes first."""

from __future__ import annotations

import uuid
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path

from laguna_context.conversation import Conversation
from laguna_daemon.errors import UsageError

LIMIT = 64


@dataclass
class Talk:
    """A conversation about one root; ``ids`` is its append-only token state."""

    id: str
    root: Path
    ids: Conversation
    busy: bool = field(default=False)


class Conversations:
    """The conversations by id."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._talks: OrderedDict[str, Talk] = OrderedDict()

    def open(self, id: str | None, root: Path) -> Talk:
        """The conversation ``id``, or a new one; raises UsageError if it is unknown, busy or of another root."""
        if id is None:
            talk = Talk(uuid.uuid4().hex[:12], root, Conversation())
        else:
            found = self._talks.get(id)
            if found is None:
                raise UsageError(
                    f"There is no conversation {id}; conversations end with the daemon.",
                    "Ask again without a conversation.",
                )
            if found.root != root:
                raise UsageError(f"The conversation {id} is about {found.root}, not {root}.")
            talk = found
        if talk.busy:
            raise UsageError(f"The conversation {talk.id} is still being answered.", "Wait for it, or cancel it first.")
        return talk

    def keep(self, talk: Talk) -> None:
        """Make ``talk`` findable by its id, as the youngest."""
        self._talks[talk.id] = talk
        self._talks.move_to_end(talk.id)
        while len(self._talks) > self._limit:
            self._talks.popitem(last=False)

    def __len__(self) -> int:
        return len(self._talks)
