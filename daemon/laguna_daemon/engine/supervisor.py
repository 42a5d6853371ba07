"""The engine's host: starts it, watches it, starts it again, ends it, and says what it is doing.

Between the daemon and the engine stands a guard process (``guard.py``), so that no engine outlives the daemon.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from laguna_daemon.engine.child import Child
from laguna_daemon.engine.client import EngineClient
from laguna_daemon.engine.diagnosis import Diagnosis, diagnose
from laguna_daemon.engine.launch import Launch
from laguna_daemon.engine.phases import phase_of
from laguna_daemon.engine.sweep import sweep
from laguna_daemon.engine.wedge import WedgeWatch
from laguna_daemon.errors import EngineUnavailable, LagunaError

Phase = Literal["stopped", "starting", "ready", "backoff", "failed", "stopping"]

_TAIL = 400
_POLL = 0.1
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 60.0


@dataclass(frozen=True, slots=True)
class EngineState:
    """What the engine is doing. ``since`` is Unix time in seconds; ``restarts`` counts since the daemon's start.

    ``error`` and ``advice`` say why it last ended, and stay until it is ready again.
    """

    phase: Phase = "stopped"
    detail: str = ""
    since: float = 0.0
    pid: int | None = None
    restarts: int = 0
    error: str | None = None
    advice: str | None = None
    profile: str = ""


class EngineHost:
    """One supervised engine. All methods belong to one event loop.

    ``runtime`` holds the lock and the record of processes, ``log`` is the file of the engine's output.
    """

    def __init__(
        self,
        launch: Launch,
        runtime: Path,
        log: Path,
        *,
        first_pause: float = _FIRST_PAUSE,
        check_every: float = 2.0,
    ) -> None:
        self.launch = launch
        self._record = runtime / "engine.json"
        self._lock_path = runtime / "engine.lock"
        self._log = log
        self._first_pause = first_pause
        self._check_every = check_every
        self._state = EngineState(profile=launch.profile.name, since=time.time())
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._child: Child | None = None
        self._client: EngineClient | None = None
        self._lock: int | None = None
        self._stopping = False
        self._tail: deque[str] = deque(maxlen=_TAIL)
        self._failures: deque[float] = deque()

    @property
    def state(self) -> EngineState:
        """The state now."""
        return self._state

    async def watch(self) -> AsyncIterator[EngineState]:
        """The state now, and then each new one; states between two looks of a slow reader are passed over."""
        while True:
            changed, state = self._changed, self._state
            yield state
            if self._state == state:
                await changed.wait()

    async def start(self) -> None:
        """Begin starting the engine, and return at once; nothing happens if it runs already.

        Raises EngineUnavailable if another daemon's engine lives in the same runtime folder.
        """
        if self._task is not None and not self._task.done():
            return
        self._take_lock()
        self._stopping = False
        self._failures.clear()
        self._set(phase="starting", detail="starting", error=None, advice=None)
        self._task = asyncio.create_task(self._supervise(), name="engine host")

    async def stop(self, timeout: float = 8.0) -> None:  # noqa: ASYNC109 - the whole of it takes that long
        """End the engine: SIGTERM, then SIGKILL of all its processes, within ``timeout`` seconds."""
        self._stopping = True
        self._set(phase="stopping", detail="")
        child = self._child
        if child is not None:
            await child.stop(timeout)
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        await self._close_client()
        if self._lock is not None:  # the cancelled task may not have come to it
            self.launch.socket.unlink(missing_ok=True)
        self._drop_lock()
        self._set(phase="stopped", detail="", pid=None)

    async def ready(self) -> EngineClient:
        """Wait until the engine serves; raises EngineUnavailable, with the reason, once there is no hope of that."""
        while True:
            changed, state = self._changed, self._state
            if state.phase == "ready" and self._client is not None:
                return self._client
            if state.phase == "failed":
                raise EngineUnavailable(state.error or "The engine has failed.", state.advice or "")
            if state.phase in ("stopped", "stopping"):
                raise EngineUnavailable("The engine is stopped.", "Start it: laguna-daemon start")
            await changed.wait()

    def tail(self) -> tuple[str, ...]:
        """The last lines of the engine's log, this start's only."""
        return tuple(self._tail)

    async def _supervise(self) -> None:
        try:
            if self.launch.url is not None:
                await self._follow_remote()
                return
            while True:
                why = await self._one_life()
                if self._stopping:
                    return
                if self._gives_up(why):
                    self._set(phase="failed", detail="", error=why.what, advice=why.advice, pid=None)
                    return
                pause = min(self._first_pause * 2 ** (len(self._failures) - 1), _LONGEST_PAUSE)
                self._set(
                    phase="backoff",
                    detail=f"starting again in {pause:.0f} s",
                    error=why.what,
                    advice=why.advice,
                    restarts=self._state.restarts + 1,
                    pid=None,
                )
                await asyncio.sleep(pause)
        except LagunaError as error:
            self._set(phase="failed", detail="", error=error.what, advice=error.advice, pid=None)
        finally:
            await self._close_client()

    async def _one_life(self) -> Diagnosis:
        """Start the engine once and stay with it to its end; says why it ended."""
        self._set(phase="starting", detail="starting", pid=None)
        self._tail.clear()
        await asyncio.to_thread(sweep, self._record)
        self.launch.socket.unlink(missing_ok=True)
        child = self._child = await Child.spawn(self.launch, self._record, self._log, self._on_line)
        try:
            self._set(pid=child.pid)
            why = await self._until_ready(child)
            if why is None:
                why = await self._until_end(child)
            await child.stop(2.0)
            return why
        finally:
            await child.stop(2.0)
            self._child = None
            await self._close_client()
            self.launch.socket.unlink(missing_ok=True)

    async def _until_ready(self, child: Child) -> Diagnosis | None:
        """None when the engine serves, else why it never did."""
        client = self._new_client()
        deadline = time.monotonic() + self.launch.start_timeout
        try:
            while not child.ended.is_set():
                if self.launch.socket.exists() and await client.health():
                    await self._enter(client)
                    return None
                if time.monotonic() >= deadline:
                    return _never_healthy(self.launch.start_timeout, self._state.detail)
                await child.wait(_POLL)
            return diagnose(self._tail, child.code)
        finally:
            if self._client is not client:
                await client.aclose()

    async def _enter(self, client: EngineClient) -> None:
        """The engine serves: learn its version, and tell everyone."""
        version = await client.version()
        numbers = tuple(int(part) for part in version.split("+")[0].split(".")[:3] if part.isdigit())
        client.traits = replace(client.traits, version=numbers)
        self._client = client
        self._set(phase="ready", detail=f"vLLM {version}" if version else "", error=None, advice=None)

    async def _until_end(self, child: Child) -> Diagnosis:
        """Watch a serving engine until it ends or is found wedged."""
        watch = WedgeWatch(self.launch.profile.supervision.wedge_seconds)
        assert self._client is not None
        born = time.monotonic()
        while not child.ended.is_set():
            if await child.wait(self._check_every):
                break
            try:
                metrics = await self._client.metrics()
                healthy = await self._client.health()
                why = watch.look(metrics, time.monotonic()) or watch.health(healthy, time.monotonic())
            except LagunaError:
                why = watch.silence(time.monotonic())
            if why is not None:
                return why
            if time.monotonic() - born > self.launch.profile.supervision.restart_window:
                self._failures.clear()
        return diagnose(self._tail, child.code)

    async def _follow_remote(self) -> None:
        """An engine elsewhere is only looked at: reachable or not."""
        client = self._new_client()
        while True:
            reachable = await client.health()
            if reachable and self._state.phase != "ready":
                if client.model is None:
                    client.model = next((str(item.get("id")) for item in await client.models()), None)
                await self._enter(client)
            elif not reachable and self._state.phase != "backoff":
                self._set(
                    phase="backoff",
                    detail="waiting for it",
                    error=f"The vLLM at {self.launch.url} does not answer.",
                    advice="Check engine.url, the network, and that it runs.",
                )
            await asyncio.sleep(self._check_every)

    def _gives_up(self, why: Diagnosis) -> bool:
        rules = self.launch.profile.supervision
        now = time.monotonic()
        self._failures.append(now)
        while self._failures and now - self._failures[0] > rules.restart_window:
            self._failures.popleft()
        return why.permanent or len(self._failures) > rules.restarts

    def _on_line(self, line: str) -> None:
        self._tail.append(line)
        if self._state.phase == "starting" and (detail := phase_of(line)):
            self._set(detail=detail)

    def _new_client(self) -> EngineClient:
        profile = self.launch.profile
        remote = self.launch.url is not None
        return EngineClient(
            socket=None if remote else self.launch.socket,
            url=self.launch.url,
            api_key=self.launch.api_key,
            model=None if remote else profile.model.name,
            traits=self.launch.traits,
            priorities=profile.priority,
            dialect=profile.remote.dialect if remote else "vllm",
        )

    async def _close_client(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _take_lock(self) -> None:
        if self._lock is not None or self.launch.url is not None:
            return
        handle = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise EngineUnavailable(
                "Another daemon's engine lives in the same runtime folder.",
                "Use that daemon, or end it: laguna-daemon stop",
            ) from None
        self._lock = handle

    def _drop_lock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _set(self, **changes: object) -> None:
        state = replace(self._state, **changes)  # type: ignore[arg-type]
        if state == self._state:
            return
        if state.phase != self._state.phase:
            state = replace(state, since=time.time())
        self._state = state
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


def _never_healthy(seconds: float, detail: str) -> Diagnosis:
    return Diagnosis(
        "never healthy",
        f"The engine did not begin to serve within {seconds:.0f} s (last: {detail}).",
        "Its log says how far it came (laguna-daemon logs); a slow disk needs a larger engine.start_timeout.",
        False,
    )
