"""What the language server needs of the product: the part of `laguna_daemon.service` it talks to."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Protocol

from laguna_daemon.schemas import AskRequest, CompleteRequest, CompleteResult, Event, Status


class BuffersPort(Protocol):
    """The text of open documents, by owner; every question asked anywhere sees it."""

    def set(self, owner: str, path: Path, text: str, version: int) -> None:
        """Take over the text that `owner` has of `path` (a real path)."""

    def close(self, owner: str, path: Path) -> None:
        """Forget one document."""

    def drop(self, owner: str) -> None:
        """Forget everything of an owner that is gone."""


class ServicePort(Protocol):
    """What the product does, free of transport."""

    sessions: int
    """How many editors are connected; the listener keeps it."""

    @property
    def buffers(self) -> BuffersPort:
        """The open documents of all editors."""

    def ask(self, request: AskRequest) -> AsyncGenerator[Event, None]:
        """Events of one answer; closing the generator aborts the generation in the engine."""

    async def complete(self, request: CompleteRequest) -> CompleteResult:
        """One completion; cancelling aborts the generation in the engine."""

    def status(self) -> Status:
        """The daemon as it is now."""

    def watch_status(self) -> AsyncGenerator[Status, None]:
        """The status after each change."""
