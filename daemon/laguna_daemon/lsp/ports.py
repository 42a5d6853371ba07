"""What the language server needs of the product: the part of `laguna_daemon.service` it talks to."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, Protocol

from laguna_daemon.schemas import (
    AskRequest,
    CompleteRequest,
    CompleteResult,
    ContextRequest,
    ConversationSummary,
    ConversationTurn,
    Event,
    Status,
    WarmRequest,
)


class BuffersPort(Protocol):
    """The text of open documents, by owner; every question asked anywhere sees it."""

    def set(self, owner: str, path: Path, text: str, version: int) -> None:
        """Take over the text that `owner` has of `path` (a real path)."""

    def close(self, owner: str, path: Path) -> None:
        """Forget one document."""

    def drop(self, owner: str) -> None:
        """Forget everything of an owner that is gone."""


class ConversationsPort(Protocol):
    """The user's conversations; an unknown id raises UsageError."""

    async def listed(self, root: Path | None = None) -> list[ConversationSummary]:
        """All, or those about a root."""

    async def read(self, id: str) -> StoredPort:
        """One, whole."""

    async def delete(self, id: str) -> None:
        """Forget one."""


class StoredPort(Protocol):
    """A conversation as it is kept."""

    @property
    def summary(self) -> ConversationSummary:
        """What a list shows of it."""

    @property
    def turns(self) -> list[ConversationTurn]:
        """Its questions and answers."""


class ServicePort(Protocol):
    """What the product does, free of transport."""

    sessions: int
    """How many editors are connected; the listener keeps it."""

    @property
    def buffers(self) -> BuffersPort:
        """The open documents of all editors."""

    @property
    def conversations(self) -> ConversationsPort:
        """The conversations of all editors and shells."""

    async def context(self, request: ContextRequest) -> dict[str, Any]:
        """The manifest of a root's prompt, or why a path is in it; plain data under the schemas' own names."""

    async def seen(self, root: str) -> dict[str, str]:
        """For every file of a root's prompt the sha256 (hex) of what the model is shown; whole texts only."""

    async def start_engine(self) -> None:
        """Try to start an engine that is not running; a failure shows in the status."""

    def ask(self, request: AskRequest) -> AsyncGenerator[Event, None]:
        """Events of one answer; closing the generator aborts the generation in the engine."""

    def warm(self, request: WarmRequest) -> AsyncGenerator[Event, None]:
        """Events of a warm-up, which goes on when the generator is closed."""

    async def complete(self, request: CompleteRequest) -> CompleteResult:
        """One completion; cancelling aborts the generation in the engine."""

    def status(self) -> Status:
        """The daemon as it is now."""

    def watch_status(self) -> AsyncGenerator[Status, None]:
        """The status after each change."""
