"""The conversations of refactorings: kept in memory, so that a failed check goes on where the edits were made."""

from __future__ import annotations

import uuid
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path

from laguna_context.conversation import Conversation
from laguna_daemon.errors import UsageError

LIMIT = 16


@dataclass
class Talk:
    """One refactoring's append-only token state."""

    root: Path
    id: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    ids: Conversation = field(default_factory=Conversation)
    busy: bool = False

    def renew(self) -> None:
        """Begin again behind the repository's prefix: the turns so far have filled the context."""
        self.ids = Conversation()


class Talks:
    """The refactorings by id; the oldest unused one goes first."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._talks: OrderedDict[str, Talk] = OrderedDict()

    def open(self, id: str | None, root: Path) -> Talk:
        """The refactoring ``id``, or a new one; raises UsageError if it is unknown, busy or of another root."""
        if id is None:
            talk = Talk(root)
        else:
            found = self._talks.get(id)
            if found is None:
                raise UsageError(
                    f"There is no refactoring {id} to go on with; they end with the daemon.", "Begin a new one."
                )
            talk = found
        if talk.root != root:
            raise UsageError(f"The refactoring {talk.id} is about {talk.root}, not {root}.")
        if talk.busy:
            raise UsageError(f"The refactoring {talk.id} is still being worked on.", "Wait for it, or cancel it first.")
        self._talks[talk.id] = talk
        self._talks.move_to_end(talk.id)
        while len(self._talks) > self._limit:
            self._talks.popitem(last=False)
        return talk
