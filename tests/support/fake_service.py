"""The service as the language server sees it, scripted: known texts, and a record of what was asked and aborted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from laguna_daemon.errors import UsageError
from laguna_daemon.schemas import (
    AskRequest,
    CompleteRequest,
    CompleteResult,
    ContextRequest,
    ConversationSummary,
    ConversationTurn,
    EngineStatus,
    Event,
    NoticeEvent,
    ProgressEvent,
    Status,
    TextEvent,
    Usage,
    UsageEvent,
    WarmRequest,
    WorkspaceStatus,
)


class FakeBuffers:
    """Buffers by owner and path."""

    def __init__(self) -> None:
        self.held: dict[tuple[str, Path], tuple[str, int]] = {}

    def set(self, owner: str, path: Path, text: str, version: int) -> None:
        self.held[owner, path] = (text, version)

    def close(self, owner: str, path: Path) -> None:
        del self.held[owner, path]

    def drop(self, owner: str) -> None:
        self.held = {key: value for key, value in self.held.items() if key[0] != owner}

    def texts(self, path: Path) -> list[str]:
        """What the owners have of `path`."""
        return [text for (_, held), (text, _) in self.held.items() if held == path]


@dataclass
class FakeStored:
    """A conversation."""

    summary: ConversationSummary
    turns: list[ConversationTurn]


class FakeConversations:
    """Conversations in memory."""

    def __init__(self) -> None:
        self.held: dict[str, FakeStored] = {}

    async def listed(self, root: Path | None = None) -> list[ConversationSummary]:
        found = [stored.summary for stored in self.held.values()]
        return [summary for summary in found if root is None or summary.root == str(root)]

    async def read(self, id: str) -> FakeStored:
        if id not in self.held:
            raise UsageError(f"There is no conversation {id}.")
        return self.held[id]

    async def delete(self, id: str) -> None:
        await self.read(id)
        del self.held[id]


class FakeService:
    """Answers from a script. With `hold` set an answer stops before its end until it is released or aborted."""

    def __init__(self) -> None:
        self.buffers = FakeBuffers()
        self.conversations = FakeConversations()
        self.sessions = 0
        self.started = 0
        self.warmed: list[WarmRequest] = []
        self.shown: dict[str, str] = {}
        self.account: dict[str, Any] = {}
        self.described: list[ContextRequest] = []
        self.events: list[Event] = [
            TextEvent(text="Hello"),
            TextEvent(text=" world"),
            UsageEvent(usage=Usage(prompt_tokens=7, output_tokens=2), conversation="c1", text="Hello world"),
        ]
        self.completion = "pass"
        self.finish = "stop"
        self.error: Exception | None = None
        self.hold = False
        self.running = 0
        self.aborted = 0
        self.asked: list[AskRequest] = []
        self.completed: list[CompleteRequest] = []
        self._release = asyncio.Event()
        self._status = Status(version="0", pid=1, uptime_s=0, engine=EngineStatus(phase="ready"))
        self._watchers: set[asyncio.Queue[Status]] = set()

    def release(self) -> None:
        """Let held answers go on."""
        self._release.set()

    def set_engine(self, **engine: Any) -> None:
        """Change the engine's status and tell the watchers."""
        self._status = self._status.model_copy(update={"engine": EngineStatus(**engine)})
        for queue in self._watchers:
            queue.put_nowait(self._status)

    async def context(self, request: ContextRequest) -> dict[str, Any]:
        self.described.append(request)
        return self.account

    async def seen(self, root: str) -> dict[str, str]:
        return self.shown

    async def start_engine(self) -> None:
        self.started += 1

    async def ask(self, request: AskRequest) -> AsyncGenerator[Event, None]:
        self.asked.append(request)
        self.running += 1
        done = False
        try:
            for number, event in enumerate(self.events):
                if number == 1 and self.hold:
                    await self._release.wait()
                await asyncio.sleep(0)
                yield event
            if self.error is not None:
                raise self.error
            done = True
        finally:
            self.running -= 1
            self.aborted += not done

    async def warm(self, request: WarmRequest) -> AsyncGenerator[Event, None]:
        self.warmed.append(request)
        yield ProgressEvent(stage="prefill", message="Warm-up", done=96_000, total=190_000)
        yield NoticeEvent(message="warm")
        yield UsageEvent(usage=Usage(prompt_tokens=9))

    def set_workspaces(self, *workspaces: WorkspaceStatus) -> None:
        """Change the roots of the status and tell the watchers."""
        self._status = self._status.model_copy(update={"workspaces": list(workspaces)})
        for queue in self._watchers:
            queue.put_nowait(self._status)

    async def complete(self, request: CompleteRequest) -> CompleteResult:
        self.completed.append(request)
        self.running += 1
        done = False
        try:
            if self.hold:
                await self._release.wait()
            if self.error is not None:
                raise self.error
            done = True
            return CompleteResult(text=self.completion, usage=Usage(finish_reason=self.finish))
        finally:
            self.running -= 1
            self.aborted += not done

    def status(self) -> Status:
        return self._status

    async def watch_status(self) -> AsyncGenerator[Status, None]:
        queue: asyncio.Queue[Status] = asyncio.Queue()
        self._watchers.add(queue)
        try:
            while True:
                yield await queue.get()
        finally:
            self._watchers.discard(queue)


async def eventually(condition: object, what: str, tries: Iterable[int] = range(400)) -> None:
    """Wait until `condition()` is true."""
    assert callable(condition)
    for _ in tries:
        if condition():
            return
        await asyncio.sleep(0.025)
    raise AssertionError(f"never came true: {what}")
