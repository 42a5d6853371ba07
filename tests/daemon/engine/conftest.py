"""Fixtures of the engine's tests: hosts on the fake engine, as processes and in this one."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from laguna_daemon.config import EngineSettings, Settings
from laguna_daemon.engine.launch import Launch, build_launch
from laguna_daemon.engine.profile import load_profile
from laguna_daemon.engine.supervisor import EngineHost
from support.hosts import FAKE_ENGINE, HostProcess
from support.real_engine import real_engine  # noqa: F401 - a fixture


@pytest.fixture
def runtime() -> Iterator[Path]:
    """A private folder with a path short enough for sockets."""
    folder = Path(tempfile.mkdtemp(prefix="lg-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def user(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without settings, models or engines; the folder that holds everything of theirs."""
    for name in ("RUNTIME", "DATA", "CACHE", "STATE"):
        monkeypatch.setenv(f"LAGUNA_{name}_DIR", str(runtime / name.lower()))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(runtime / "config"))
    return runtime


@pytest.fixture
def fake(laguna_model: Path) -> Callable[..., dict[str, Any]]:
    """Engine settings for the fake engine; arguments go to its command line, keywords over the profile's flags."""

    def make(*args: object, **flags: object) -> dict[str, Any]:
        command = [sys.executable, str(FAKE_ENGINE), *map(str, args)]
        return {"command": command, "model": str(laguna_model), "args": flags}

    return make


@pytest.fixture
def host_process(fake: Callable[..., dict[str, Any]]) -> Iterator[Callable[..., HostProcess]]:
    """Starts hosts with a fake engine as processes; arguments as for `fake`."""
    hosts: list[HostProcess] = []

    def make(*args: object, runtime: Path | None = None, **flags: object) -> HostProcess:
        hosts.append(HostProcess(runtime, **fake(*args, **flags)))
        return hosts[-1]

    yield make
    for host in hosts:
        host.close()


@pytest.fixture
def fake_launch(user: Path, fake: Callable[..., dict[str, Any]]) -> Callable[..., Launch]:
    """Launches of the fake engine under the profile cpu, changed by keyword: `supervision={"wedge_seconds": 1}`."""

    def make(
        *args: object, start_timeout: float = 60, flags: Mapping[str, object] | None = None, **changes: dict[str, Any]
    ) -> Launch:
        profile = load_profile("cpu")
        parts = {name: getattr(profile, name).model_copy(update=change) for name, change in changes.items()}
        settings = Settings(engine=EngineSettings(**fake(*args, **flags or {}), start_timeout=start_timeout))
        return build_launch(profile.model_copy(update=parts), settings, None, user / "engine.sock")

    return make


@pytest.fixture
async def make_host(user: Path, fake_launch: Callable[..., Launch]) -> AsyncIterator[Callable[..., EngineHost]]:
    """Hosts in this process, on the fake engine, stopped at the end."""
    hosts: list[EngineHost] = []

    def make(*args: object, **changes: Any) -> EngineHost:
        launch = fake_launch(*args, **changes)
        hosts.append(EngineHost(launch, user, user / "engine.log", first_pause=0.05, check_every=0.05))
        return hosts[-1]

    yield make
    for host in hosts:
        await host.stop()
