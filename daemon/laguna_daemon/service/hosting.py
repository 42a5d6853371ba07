"""The engine as the rest of the service sees it: chosen, started, waited for, replaced."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence

from laguna_daemon.config import Settings
from laguna_daemon.engine import checks
from laguna_daemon.engine.checks import Finding
from laguna_daemon.engine.client import EngineClient
from laguna_daemon.engine.gpus import find_gpus
from laguna_daemon.engine.install import EngineHome, installed
from laguna_daemon.engine.launch import build_launch
from laguna_daemon.engine.profile import Choice, Profile
from laguna_daemon.engine.supervisor import EngineHost, EngineState
from laguna_daemon.errors import EngineUnavailable, LagunaError
from laguna_daemon.paths import engine_socket, log_dir, runtime_dir
from laguna_daemon.residency.work import AdmittedClient, Work
from laguna_daemon.schemas import EngineStatus, Event, ProgressEvent
from laguna_daemon.service import chosen
from laguna_daemon.service.materials import Materials
from laguna_daemon.service.stream import Emitter

_log = logging.getLogger(__name__)


class Hosting:
    """Holds the one engine, the materials of its model, and what is believed of its cache."""

    def __init__(
        self,
        settings: Settings,
        on_change: Callable[[], None],
        on_other_model: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """``on_other_model`` is awaited when prompts made so far do not fit the engine any more."""
        self._settings = settings
        self._on_change = on_change
        self._on_other_model = on_other_model
        self._host: EngineHost | None = None
        self._materials: Materials | None = None
        self._failure: LagunaError | None = None
        self._watching: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._asked: str | None = None
        self._asleep = ""
        self._waking: asyncio.Task[None] | None = None
        self.used = time.monotonic()
        self.lives = 0
        self.findings: tuple[Finding, ...] = ()
        self.choice: Choice | None = None
        self.work = Work(settings, on_change)
        self.resident = self.work.residency
        self.pace = self.work.pace

    async def start(self) -> None:
        """Begin to load the engine; a failure is kept for whoever asks, since an install may mend it."""
        try:
            await self._ensure()
        except LagunaError as error:
            _log.warning("engine not started: %s", error)

    async def stop(self) -> None:
        """End the engine."""
        await self._end()

    async def use(self, name: str | None) -> None:
        """Change to the profile ``name`` (None: the one in use) and begin to load it; requests under way fail.

        What the checks refuse raises EngineUnavailable and leaves the engine that runs as it is.
        """
        async with self._starting:
            asked = name or self._asked
            choice, situation = await self._consider(asked)
            _refuse(await asyncio.to_thread(checks.look, situation))
            self._asked = asked
            # Named before the old engine ends: whoever is cut off is told what comes.
            self.choice = choice
            self.lives += 1
            await self._end()
            try:
                await self._build(choice)
            except LagunaError as error:
                self._failure = error
                raise
            finally:
                self._on_change()

    async def unload(self, why: str) -> None:
        """End the engine until somebody needs it; ``why`` is shown by ``status``."""
        async with self._starting:
            if self._host is not None and self._host.state.phase == "ready" and self._host.launch.url is None:
                self.lives += 1
                await self._end()
                self._asleep = why
                self._on_change()

    async def materials(self) -> Materials:
        """Tokenizer, template, budget and sampling of the engine's model; raises EngineUnavailable."""
        if not (self._asleep and self._materials):
            await self._ensure()
        assert self._materials is not None
        return self._materials

    async def ready(self, emit: Emitter[Event]) -> AdmittedClient:
        """The engine's client once it serves, reporting its phases meanwhile; raises EngineUnavailable."""
        self.used = time.monotonic()
        host = await self._ensure()
        if host.state.phase == "ready":
            return self.work.admitted(await host.ready())
        waiting = asyncio.create_task(host.ready())
        reporting = asyncio.create_task(_report(host, emit))
        try:
            return self.work.admitted(await waiting)
        finally:
            for task in (waiting, reporting):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, LagunaError):
                    await task

    async def now(self, *, wake: bool = False) -> AdmittedClient:
        """The engine's client if it serves at this moment; raises EngineUnavailable if not.

        With ``wake`` an engine that was unloaded begins to load again, for the next time.
        """
        if wake:
            self.used = time.monotonic()
            if self._asleep:
                self._waking = asyncio.create_task(self.start())
        host = self._host
        if host is None or host.state.phase != "ready":
            status = self.status()
            raise EngineUnavailable(f"The engine is not ready: {status.error or status.detail or status.phase}")
        return self.work.admitted(await host.ready())

    async def peek(self) -> EngineClient:
        """Like `now`, without starting anything and without counting as use."""
        host = self._host
        if host is None or host.state.phase != "ready":
            raise EngineUnavailable("The engine is not running.")
        return await host.ready()

    def status(self) -> EngineStatus:
        """The engine for ``status``."""
        profile = self.choice.profile if self.choice else None
        warnings = [str(finding) for finding in self.findings if finding.severity == "warning"]
        reason = self.choice.reason if self.choice else ""
        if self._host is None or profile is None:
            failure = self._failure
            return EngineStatus(
                phase="failed" if failure else "stopped",
                detail=self._asleep,
                error=failure.what if failure else None,
                advice=failure.advice if failure else None,
                profile=profile.name if profile else "",
                reason=reason,
                warnings=warnings,
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
            reason=reason,
            warnings=warnings,
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

    async def _build(self, choice: Choice | None = None) -> EngineHost:
        if self._host is not None:
            await self._end()
        self.choice, situation = await self._consider(self._asked, choice)
        profile = self.choice.profile
        self.findings = await asyncio.to_thread(checks.look, situation)
        _refuse(self.findings)
        home = await self._home(profile)
        launch = await asyncio.to_thread(build_launch, profile, self._settings, home, engine_socket())
        before, self._materials = self._materials, await asyncio.to_thread(Materials, launch)
        if before is not None and not before.fits(self._materials) and self._on_other_model:
            await self._on_other_model()
        self.resident.forget()
        self.work.begin(launch)
        self._failure = None
        self._asleep = ""
        host = EngineHost(launch, runtime_dir(), log_dir() / "engine.log")
        await host.start()
        self._host = host
        self._watching = asyncio.create_task(self._watch(host))
        return host

    async def _consider(self, asked: str | None, choice: Choice | None = None) -> tuple[Choice, checks.Situation]:
        """The profile to start, and what a start of it would meet on this machine."""
        gpus = await asyncio.to_thread(find_gpus)
        picked = choice
        if picked is None:
            picked = await asyncio.to_thread(chosen.choose, self._settings, gpus, asked)
        home = await self._home(picked.profile)
        runs = self._host is not None and self._host.state.phase in ("starting", "ready")
        situation = await asyncio.to_thread(
            lambda: checks.survey(picked.profile, self._settings, home, own_engine_runs=runs)
        )
        return picked, situation

    async def _home(self, profile: Profile) -> EngineHome | None:
        return None if profile.kind == "remote" else await asyncio.to_thread(installed, profile.kind)

    async def _end(self) -> None:
        watching, self._watching = self._watching, None
        if watching is not None:
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching
        host, self._host = self._host, None
        if host is not None:
            await host.stop()

    async def _watch(self, host: EngineHost) -> None:
        async for state in host.watch():
            if state.phase != "ready":
                self.resident.forget()
                self.work.begin(host.launch)
            self._on_change()


def _refuse(findings: Sequence[Finding]) -> None:
    """Raise EngineUnavailable for the gravest finding that forbids a start."""
    wrong = checks.errors(findings)
    if wrong:
        more = f" ({len(wrong) - 1} more: laguna-daemon doctor)" if len(wrong) > 1 else ""
        raise EngineUnavailable(f"{wrong[0]}{more}", wrong[0].fix)


async def _report(host: EngineHost, emit: Emitter[Event]) -> None:
    async for state in host.watch():
        emit(ProgressEvent(stage="engine", message=describe(state)))


def describe(state: EngineState) -> str:
    """One line about an engine that is not ready yet."""
    text = f"Engine: {state.detail or state.phase}"
    return f"{text} ({state.error})" if state.phase == "backoff" and state.error else text
