"""The service: everything a transport may ask for."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from laguna_daemon import __version__
from laguna_daemon.config import Settings
from laguna_daemon.schemas import (
    AskRequest,
    CompleteRequest,
    CompleteResult,
    ContextRequest,
    EngineRequest,
    EngineStatus,
    Event,
    Proof,
    RefactorRequest,
    ReportEvent,
    Status,
    UnsavedRequest,
    Usage,
    UsageEvent,
    WarmRequest,
)
from laguna_daemon.service import refactoring, roots, upkeep
from laguna_daemon.service.ask import ask
from laguna_daemon.service.buffers import Buffers
from laguna_daemon.service.complete import complete
from laguna_daemon.service.conversations import Conversations
from laguna_daemon.service.hosting import Hosting
from laguna_daemon.service.stream import stream
from laguna_daemon.service.warm import warm
from laguna_daemon.service.warming import Warmer
from laguna_daemon.service.wording import why_text
from laguna_daemon.service.workspaces import Workspaces


class Service:
    """One per daemon; all methods are for the event loop's thread."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.buffers = Buffers()
        self.conversations = Conversations()
        self.hosting = Hosting(settings, self.changed, self._other_model)
        self.workspaces = Workspaces(settings, self.changed)
        self.traffic = self.hosting.work.traffic
        self.warmer = Warmer(self)
        self.refactorings = refactoring.Talks()
        self.sessions = 0
        self._began = time.monotonic()
        self._totals: Counter[str] = Counter()
        self._change = asyncio.Condition()
        self._changes = 0
        self._sleeping: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """End what a crash left half written, and begin to load the engine in the background."""
        await asyncio.to_thread(refactoring.recover)
        self._loading = asyncio.create_task(self.hosting.start())
        self.warmer.start()
        if self.settings.daemon.idle_unload:
            self._sleeping = asyncio.create_task(upkeep.unload_when_idle(self, self.settings.daemon.idle_unload))

    async def stop(self) -> None:
        """End the engine and close every root."""
        self._loading.cancel()
        if self._sleeping is not None:
            self._sleeping.cancel()
        await self.warmer.stop()
        await asyncio.gather(self.hosting.stop(), self.workspaces.close(), self.conversations.close())

    async def ask(self, request: AskRequest) -> AsyncGenerator[Event, None]:
        """Answer a question; closing the generator aborts the generation in the engine."""
        async with self.traffic.coming(), aclosing(stream(lambda emit: ask(self, request, emit))) as events:
            async for event in upkeep.one_life(self, events):
                if isinstance(event, UsageEvent):
                    self._count(event.usage)
                yield event

    async def refactor(self, request: RefactorRequest) -> AsyncGenerator[Event, None]:
        """Work out a refactoring; ends with its proposal, if there is one, and the report. Nothing is written."""
        async with aclosing(stream(lambda emit: refactoring.publish(self, request, emit))) as events:
            async for event in events:
                if isinstance(event, ReportEvent):
                    self._count(event.usage)
                yield event

    async def propose(self, request: RefactorRequest, report: Callable[[Event], None]) -> refactoring.Outcome:
        """Work out a refactoring as a change set, for an editor to take; events go to ``report`` meanwhile."""
        outcome = await refactoring.collect(self, request, report)
        self._count(outcome.report.usage)
        return outcome

    async def unsaved(self, request: UnsavedRequest) -> list[str]:
        """Those of the paths that an editor holds with other text than the disk's."""
        root = Path(request.root)
        held = self.buffers.under(root)
        asked = {path: held[path].text for path in request.paths if path in held}
        return sorted(await asyncio.to_thread(refactoring.unsaved, root, asked))

    async def complete(self, request: CompleteRequest) -> CompleteResult:
        """Complete the text at a cursor; cancelling aborts the generation in the engine."""
        self._totals["completions"] += 1
        return await complete(self, request)

    async def context(self, request: ContextRequest) -> dict[str, Any]:
        """The manifest of a root's prompt, or why one path is in it or not, as plain data."""
        root = await asyncio.to_thread(roots.find, Path(request.root), True, request.force)
        materials = await self.hosting.materials()
        opened = await self.workspaces.get(root, materials, lambda stage, done, total: None)
        await opened.settle()
        if request.why is not None:
            why = await asyncio.to_thread(opened.workspace.why, request.why)
            return {**asdict(why), "text": why_text(why)}
        manifest = await asyncio.to_thread(opened.workspace.manifest)
        return {**manifest.as_dict(), "notices": list(opened.notices)}

    async def start_engine(self) -> None:
        """Try to start an engine that is not running; a failure shows in the status."""
        await self.hosting.start()
        self.changed()

    async def seen(self, root: str) -> dict[str, str]:
        """For every file of a root's prompt the sha256 (hex) of what the model is shown of it; whole texts only."""
        manifest = await self.context(ContextRequest(root=root, force=True))
        shown = ("full", "overlay")
        return {file["path"]: file["version"] for file in manifest["files"] if file["tier"] in shown}

    async def use_engine(self, request: EngineRequest) -> EngineStatus:
        """Change the engine's profile, or start it again; requests under way fail. Raises what a start would."""
        await upkeep.use(self, request.profile)
        return self.hosting.status()

    async def examine(self) -> Proof:
        """Try the running engine: prefix cache, draft, abort; raises EngineUnavailable if it does not serve."""
        return await upkeep.examine(self)

    async def warm(self, request: WarmRequest) -> AsyncGenerator[Event, None]:
        """Read a root into the engine ahead of its questions, pin it, or leave it alone."""
        async with aclosing(stream(lambda emit: warm(self, request, emit))) as events:
            async for event in events:
                yield event

    def thinking(self, request: AskRequest) -> bool:
        """Whether the model is to reason first: the request's wish, the settings', the profile's."""
        for wish in (request.thinking, self.settings.thinking):
            if wish is not None:
                return wish
        choice = self.hosting.choice
        return choice is not None and choice.profile.thinking.default

    def idle(self) -> bool:
        """Whether nobody would miss the daemon."""
        return self.traffic.running == 0 and self.sessions == 0

    def status(self) -> Status:
        """Everything ``status`` shows."""
        return Status(
            version=__version__,
            pid=os.getpid(),
            uptime_s=round(time.monotonic() - self._began, 1),
            engine=self.hosting.status(),
            workspaces=[self.warmer.shown(found) for found in self.workspaces.statuses()],
            sessions=self.sessions,
            busy=self.traffic.running,
            totals=dict(self._totals),
        )

    async def watch_status(self) -> AsyncGenerator[Status, None]:
        """The status now and after each change of the engine or a root."""
        seen = -1
        while True:
            async with self._change:
                await self._change.wait_for(lambda: self._changes != seen)  # noqa: B023 - read while waiting
                seen = self._changes
            yield self.status()

    def changed(self) -> None:
        """Tell those who watch the status; may be called from the event loop only."""
        self._changes += 1
        self.warmer.poke()
        task = asyncio.ensure_future(self._notify())
        task.add_done_callback(lambda done: done.exception())

    async def _other_model(self) -> None:
        await self.workspaces.forget()

    async def _notify(self) -> None:
        async with self._change:
            self._change.notify_all()

    def _count(self, usage: Usage) -> None:
        self._totals["answers"] += 1
        for name in ("prompt_tokens", "cached_tokens", "prefilled_tokens", "output_tokens"):
            self._totals[name] += getattr(usage, name)
