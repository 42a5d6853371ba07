"""The service as the language server sees it, scripted: known texts, and a record of what was asked and aborted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path

from laguna_daemon.schemas import (
    AskRequest,
    CompleteRequest,
    CompleteResult,
    EngineStatus,
    Event,
    Status,
    TextEvent,
    Usage,
    UsageEvent,
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


class FakeService:
    """Answers from a script. With `hold` set an answer stops before its end until it is released or aborted."""

    def __init__(self) -> None:
        self.buffers = FakeBuffers()
        self.sessions = 0
        self.events: list[Event] = [
            TextEvent(text="Hello"),
            TextEvent(text=" world"),
            UsageEvent(usage=Usage(prompt_tokens=7, output_tokens=2), conversation="c1", text="Hello world"),
        ]
        self.completion = "pass"
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

    def set_engine(self, **engine: str) -> None:
        """Change the engine's status and tell the watchers."""
        self._status = self._status.model_copy(update={"engine": EngineStatus(**engine)})
        for queue in self._watchers:
            queue.put_nowait(self._status)

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
            return CompleteResult(text=self.completion, usage=Usage())
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
