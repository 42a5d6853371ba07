"""The engine as the rest of the service sees it: chosen, started, waited for, replaced."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

from laguna_daemon.config import Settings
from laguna_daemon.engine.client import EngineClient
from laguna_daemon.engine.install import installed
from laguna_daemon.engine.launch import build_launch
from laguna_daemon.engine.profile import Choice, choose_profile
from laguna_daemon.engine.supervisor import EngineHost, EngineState
from laguna_daemon.errors import EngineUnavailable, LagunaError
from laguna_daemon.paths import engine_socket, log_dir, runtime_dir
from laguna_daemon.schemas import EngineStatus, Event, ProgressEvent
from laguna_daemon.service.materials import Materials
from laguna_daemon.service.prefill import Pace, Resident
from laguna_daemon.service.stream import Emitter

_log = logging.getLogger(__name__)


class Hosting:
    """Holds the one engine, the materials of its model, and what is believed of its cache."""

    def __init__(self, settings: Settings, on_change: Callable[[], None]) -> None:
        self._settings = settings
        self._on_change = on_change
        self._host: EngineHost | None = None
        self._materials: Materials | None = None
        self._failure: LagunaError | None = None
        self._watching: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self.choice: Choice | None = None
        self.resident = Resident()
        self.pace = Pace()

    async def start(self) -> None:
        """Begin to load the engine; a failure is kept for whoever asks, since an install may mend it."""
        try:
            await self._ensure()
        except LagunaError as error:
            _log.warning("engine not started: %s", error)

    async def stop(self) -> None:
        """End the engine."""
        if self._watching is not None:
            self._watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watching
        if self._host is not None:
            await self._host.stop()

    async def materials(self) -> Materials:
        """Tokenizer, template, budget and sampling of the engine's model; raises EngineUnavailable."""
        await self._ensure()
        assert self._materials is not None
        return self._materials

    async def ready(self, emit: Emitter[Event]) -> EngineClient:
        """The engine's client once it serves, reporting its phases meanwhile; raises EngineUnavailable."""
        host = await self._ensure()
        if host.state.phase == "ready":
            return await host.ready()
        waiting = asyncio.create_task(host.ready())
        reporting = asyncio.create_task(_report(host, emit))
        try:
            return await waiting
        finally:
            for task in (waiting, reporting):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, LagunaError):
                    await task

    async def now(self) -> EngineClient:
        """The engine's client if it serves at this moment; raises EngineUnavailable if not."""
        host = self._host
        if host is None or host.state.phase != "ready":
            status = self.status()
            raise EngineUnavailable(f"The engine is not ready: {status.error or status.detail or status.phase}")
        return await host.ready()

    def status(self) -> EngineStatus:
        """The engine for ``status``."""
        profile = self.choice.profile if self.choice else None
        if self._host is None or profile is None:
            failure = self._failure
            return EngineStatus(
                phase="failed" if failure else "stopped",
                error=failure.what if failure else None,
                advice=failure.advice if failure else None,
                profile=profile.name if profile else "",
            )
        state = self._host.state
        return EngineStatus(
            phase=state.phase,
            detail=state.detail,
            since=state.since,
            pid=state.pid,
            restarts=state.restarts,
            error=state.error,
            advice=state.advice,
            profile=profile.name,
            model=profile.model.name,
            context=self._materials.budget.context if self._materials else 0,
        )

    async def _ensure(self) -> EngineHost:
        async with self._starting:
            if self._host is not None and self._host.state.phase != "failed":
                return self._host
            try:
                return await self._build()
            except LagunaError as error:
                self._failure = error
                self._on_change()
                raise

    async def _build(self) -> EngineHost:
        if self._host is not None:
            await self._host.stop()
            self._host = None
        self.choice = choose_profile(self._settings, [])
        profile = self.choice.profile
        home = None if profile.kind == "remote" else await asyncio.to_thread(installed, profile.kind)
        launch = await asyncio.to_thread(build_launch, profile, self._settings, home, engine_socket())
        self._materials = await asyncio.to_thread(Materials, launch)
        self.resident.forget()
        self._failure = None
        host = EngineHost(launch, runtime_dir(), log_dir() / "engine.log")
        await host.start()
        self._host = host
        self._watching = asyncio.create_task(self._watch(host))
        return host

    async def _watch(self, host: EngineHost) -> None:
        async for state in host.watch():
            if state.phase != "ready":
                self.resident.forget()
            self._on_change()


async def _report(host: EngineHost, emit: Emitter[Event]) -> None:
    async for state in host.watch():
        emit(ProgressEvent(stage="engine", message=describe(state)))


def describe(state: EngineState) -> str:
    """One line about an engine that is not ready yet."""
    return f"Engine: {state.detail or state.phase}"
