"""The host's states on the fake engine: start, backoff, giving up, wedges, stop. Real processes throughout."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laguna_daemon.config import EngineSettings, Settings
from laguna_daemon.engine.client import EngineClient
from laguna_daemon.engine.launch import Launch, build_launch
from laguna_daemon.engine.profile import load_profile
from laguna_daemon.engine.sampling import Sampling
from laguna_daemon.engine.supervisor import EngineHost, EngineState
from laguna_daemon.errors import EngineUnavailable
from support.hosts import HostProcess, gone

Hosts = Callable[..., EngineHost]
LOGS = Path(__file__).parents[2] / "cases" / "engine" / "logs"


async def until(host: EngineHost, phase: str, **wanted: Any) -> EngineState:
    async for state in host.watch():
        if state.phase == phase and all(getattr(state, name) == value for name, value in wanted.items()):
            return state
    raise AssertionError("unreachable")


async def test_from_stopped_to_ready_and_back(make_host: Hosts, user: Path) -> None:
    host = make_host("--start-log", LOGS / "cpu-start.txt", "--start-seconds", 0.5)
    assert host.state.phase == "stopped"
    with pytest.raises(EngineUnavailable, match="stopped"):
        await host.ready()
    details: list[str] = []

    async def follow() -> None:
        async for state in host.watch():
            details.append(state.detail)

    following = asyncio.create_task(follow())
    await host.start()
    await host.start()
    client = await host.ready()
    assert await client.health()
    assert (host.state.phase, host.state.restarts, host.state.error) == ("ready", 0, None)
    assert client.traits.version == (0, 32, 0)
    assert client.traits.context == 8192
    assert "vLLM 0.32.0" in host.state.detail
    pid = host.state.pid
    assert pid
    await host.stop()
    following.cancel()
    assert host.state.phase == "stopped"
    assert host.state.pid is None
    assert gone([pid], 1)
    assert not (user / "engine.sock").exists()
    assert "starting" in details
    with pytest.raises(EngineUnavailable):
        await host.ready()


async def test_it_can_be_started_again(make_host: Hosts) -> None:
    host = make_host()
    for _ in range(2):
        await host.start()
        await host.ready()
        await host.stop()
    await host.start()
    assert await (await host.ready()).health()


async def test_stop_while_starting(make_host: Hosts) -> None:
    host = make_host("--start-seconds", 60)
    await host.start()
    waiting = asyncio.create_task(host.ready())
    while (pid := host.state.pid) is None:  # noqa: ASYNC110 - any state with a pid
        await asyncio.sleep(0.01)
    await host.stop()
    assert gone([pid], 1)
    with pytest.raises(EngineUnavailable):
        await waiting


async def test_stop_right_after_start(make_host: Hosts) -> None:
    host = make_host()
    await host.start()
    await host.stop()
    assert host.state.phase == "stopped"


async def test_a_crash_is_told_and_mended(make_host: Hosts) -> None:
    host = make_host()
    await host.start()
    await host.ready()
    assert host.state.pid
    os.kill(host.state.pid, signal.SIGSEGV)
    state = await until(host, "backoff")
    assert state.error is not None
    assert "SIGSEGV" in state.error
    assert state.advice
    assert await (await host.ready()).health()
    assert (host.state.phase, host.state.restarts, host.state.error) == ("ready", 1, None)


async def test_it_gives_up_with_the_reason(make_host: Hosts) -> None:
    host = make_host("--start-exit", 3, supervision={"restarts": 2})
    await host.start()
    with pytest.raises(EngineUnavailable, match="exit code 3") as caught:
        await host.ready()
    assert caught.value.exit_code == 4
    assert (host.state.phase, host.state.restarts) == ("failed", 2)


async def test_what_cannot_mend_itself_is_not_tried_again(make_host: Hosts) -> None:
    host = make_host("--start-log", LOGS / "flag-unknown.txt", "--start-exit", 2)
    await host.start()
    with pytest.raises(EngineUnavailable, match="--no-such-flag") as caught:
        await host.ready()
    assert "engine.args" in caught.value.advice
    assert host.state.restarts == 0


async def test_a_command_that_does_not_exist(user: Path, laguna_model: Path) -> None:
    settings = Settings(engine=EngineSettings(command=["/nowhere/engine"], model=laguna_model))
    launch = build_launch(load_profile("cpu"), settings, None, user / "engine.sock")
    host = EngineHost(launch, user, user / "engine.log")
    await host.start()
    with pytest.raises(EngineUnavailable, match="/nowhere/engine: No such file"):
        await host.ready()
    await host.stop()


async def test_one_that_never_becomes_healthy(make_host: Hosts) -> None:
    host = make_host("--unhealthy", start_timeout=1.5, supervision={"restarts": 0})
    await host.start()
    with pytest.raises(EngineUnavailable, match="did not begin to serve") as caught:
        await host.ready()
    assert "engine.start_timeout" in caught.value.advice


async def test_no_room_for_the_record(user: Path, fake_launch: Callable[..., Launch]) -> None:
    (user / "engine.new").mkdir()  # a record cannot be written, as on a full disk
    host = EngineHost(fake_launch(), user, user / "engine.log")
    await host.start()
    with pytest.raises(EngineUnavailable, match="guard process cannot be started"):
        await host.ready()
    await host.stop()


async def work(client: EngineClient, tokens: int, max_tokens: int) -> None:
    prompt = np.full(tokens, 300, dtype=np.uint32)
    async for _ in client.generate(prompt, Sampling(max_tokens=max_tokens, ignore_eos=True)):
        pass


async def test_a_wedged_engine_is_started_again(make_host: Hosts) -> None:
    host = make_host("--decode-speed", 100, supervision={"wedge_seconds": 0.6})
    await host.start()
    client = await host.ready()
    asking = asyncio.create_task(work(client, 100, 5000))
    while not (await client.metrics()).generated_tokens:  # noqa: ASYNC110 - another process has no event
        await asyncio.sleep(0.01)
    await client._http.post("/control/wedge", json=True)
    state = await until(host, "backoff")
    assert state.error is not None
    assert "1 running" in state.error
    with pytest.raises(EngineUnavailable):
        await asking
    await host.ready()


async def test_a_stopped_process_counts_as_wedged(make_host: Hosts) -> None:
    host = make_host(supervision={"wedge_seconds": 0.5})
    await host.start()
    await host.ready()
    assert host.state.pid
    os.kill(host.state.pid, signal.SIGSTOP)
    state = await until(host, "backoff")
    assert state.error is not None
    assert "did not answer" in state.error
    await host.ready()


async def test_an_engine_that_says_it_is_dead_is_started_again(make_host: Hosts) -> None:
    host = make_host(supervision={"wedge_seconds": 0.5})
    await host.start()
    client = await host.ready()
    await client._http.post("/control/health", json=False)
    state = await until(host, "backoff")
    assert state.error is not None
    assert "cannot serve" in state.error
    await host.ready()


async def test_a_long_prefill_is_not_a_wedge(make_host: Hosts) -> None:
    # Two seconds of prefill, and a wedge would be called after 0.6: only the KV usage moves meanwhile.
    host = make_host("--prefill-speed", 2000, "--max-num-batched-tokens", 128, supervision={"wedge_seconds": 0.6})
    await host.start()
    client = await host.ready()
    await work(client, 4000, 2)
    assert (host.state.phase, host.state.restarts) == ("ready", 0)


async def test_an_idle_engine_is_not_wedged(make_host: Hosts) -> None:
    host = make_host(supervision={"wedge_seconds": 0.2})
    await host.start()
    await host.ready()
    await asyncio.sleep(1)
    assert (host.state.phase, host.state.restarts) == ("ready", 0)


async def test_a_remote_engine_is_only_looked_at(
    user: Path, host_process: Callable[..., HostProcess], laguna_model: Path
) -> None:
    engine = host_process()
    engine.await_state("ready")
    address = await _forward(engine.socket)
    settings = Settings(engine=EngineSettings(url=address, model=laguna_model))
    launch = build_launch(load_profile("remote"), settings, None, user / "engine.sock")
    host = EngineHost(launch, user, user / "engine.log", check_every=0.05)
    await host.start()
    client = await host.ready()
    assert client.model == "SmolLM2-135M-Instruct"
    await work(client, 100, 3)
    engine.kill()
    state = await until(host, "backoff")
    assert state.error is not None
    assert "does not answer" in state.error
    await host.stop()


async def _forward(socket: Path) -> str:
    """A TCP port in front of a Unix socket."""

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_unix_connection(socket)
        except OSError:
            writer.close()
            return
        await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer), return_exceptions=True)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    return f"http://{host}:{port}"
