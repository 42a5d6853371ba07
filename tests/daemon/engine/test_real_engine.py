"""The same promises on real vLLM: nothing left behind whoever is killed, movement during a prefill, aborts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from laguna_daemon.engine.client import EngineClient, Finish, Piece
from laguna_daemon.engine.metrics import Metrics
from laguna_daemon.engine.sampling import Sampling, Traits
from laguna_daemon.errors import OverBudget, ParameterRefused
from support.hosts import HostProcess, eventually, gone, kill, status
from support.real_engine import real_options
from support.trace import FLAGS

# Four starts of the engine in one test: on a busy machine of two cores one can take two minutes.
pytestmark = [pytest.mark.engine, pytest.mark.timeout(1200)]

LONG = [300 + number % 5000 for number in range(1900)]


@pytest.fixture
async def client(real_engine: HostProcess) -> AsyncIterator[EngineClient]:
    found = EngineClient(socket=real_engine.socket, priorities=True)
    yield found
    await found.aclose()


async def test_an_answer_and_its_account(client: EngineClient) -> None:
    ids = await client.tokenize([{"role": "user", "content": "What is the capital of France?"}])
    for cached in (0, 0):  # shorter than a block: never cached
        items = [item async for item in client.generate(ids, Sampling(max_tokens=12, stop_token_ids=(2,)), priority=3)]
        *pieces, finish = items
        assert isinstance(finish, Finish)
        assert (finish.prompt_tokens, finish.cached_tokens) == (len(ids), cached)
        tokens = [token for piece in pieces if isinstance(piece, Piece) for token in piece.token_ids]
        assert len(tokens) + (finish.reason == "stop") == finish.output_tokens
        assert 2 not in tokens


async def test_a_stop_id_and_a_stop_text(client: EngineClient) -> None:
    prompt = LONG[:40]
    first = [item async for item in client.generate(prompt, Sampling(max_tokens=8, ignore_eos=True))]
    tokens = [token for piece in first if isinstance(piece, Piece) for token in piece.token_ids]
    assert len(tokens) == 8
    stopped = [item async for item in client.generate(prompt, Sampling(max_tokens=8, stop_token_ids=(tokens[3],)))]
    assert isinstance(stopped[-1], Finish)
    assert (stopped[-1].reason, stopped[-1].stopped_by) == ("stop", tokens[3])
    kept = [token for piece in stopped if isinstance(piece, Piece) for token in piece.token_ids]
    assert kept == tokens[: tokens.index(tokens[3])]


@pytest.mark.parametrize("sampling", [Sampling(max_tokens=12, ignore_eos=True), Sampling(max_tokens=30, stop=(" a",))])
async def test_a_long_prompts_answer_has_the_same_ids(
    client: EngineClient, monkeypatch: pytest.MonkeyPatch, sampling: Sampling
) -> None:
    answers = []
    for least in (1 << 30, 1):
        monkeypatch.setattr("laguna_daemon.engine.client.LONG_PROMPT", least)
        items = [item async for item in client.generate(LONG[:300], sampling)]
        pieces = [item for item in items if isinstance(item, Piece)]
        answers.append(
            ([t for piece in pieces for t in piece.token_ids], "".join(piece.text for piece in pieces), items[-1])
        )
    assert answers[0][0]
    assert answers[0][:2] == answers[1][:2]
    assert (answers[0][2].reason, answers[0][2].stopped_by) == (answers[1][2].reason, answers[1][2].stopped_by)


async def test_leaving_aborts(client: EngineClient) -> None:
    stream = client.generate(LONG[:50], Sampling(max_tokens=1500, ignore_eos=True))
    async for _ in stream:
        break
    assert (await client.metrics()).running == 1
    await stream.aclose()
    while (await client.metrics()).running:  # noqa: ASYNC110 - another process has no event
        await asyncio.sleep(0.05)
    assert (await client.metrics()).generated_tokens < 1500


async def test_refusals(client: EngineClient) -> None:
    with pytest.raises(OverBudget):
        _ = [item async for item in client.generate(LONG * 2, Sampling(max_tokens=1))]
    with pytest.raises(ParameterRefused, match="out of vocabulary"):
        _ = [item async for item in client.generate([49_999], Sampling(max_tokens=1))]
    client.traits = Traits(vocabulary=49_152)
    with pytest.raises(ParameterRefused, match="stop_token_ids"):
        _ = [item async for item in client.generate([300], Sampling(max_tokens=1, stop_token_ids=(49_152,)))]


@pytest.fixture
def real_hosts(runtime: Path) -> Iterator[list[HostProcess]]:
    hosts: list[HostProcess] = []
    yield hosts
    for host in hosts:
        host.close()


def start(hosts: list[HostProcess], runtime: Path) -> HostProcess:
    # Small batches, so that a prefill takes several steps.
    hosts.append(HostProcess(runtime, **real_options(), args={**FLAGS, "max-num-batched-tokens": 256}))
    return hosts[-1]


def test_killed_while_it_starts(real_hosts: list[HostProcess], runtime: Path) -> None:
    host = start(real_hosts, runtime)
    host.await_state("starting", detail="loading weights", timeout=600)
    family = host.family()
    assert len(family) >= 4, "guard, server, core, worker"
    host.kill()
    assert gone(family, 30), [pid for pid in family if status(pid) is not None]


async def test_killed_while_it_works(real_hosts: list[HostProcess], runtime: Path) -> None:
    host = start(real_hosts, runtime)
    await asyncio.to_thread(host.await_state, "ready", timeout=600)
    client = EngineClient(socket=host.socket)
    family = host.family()
    seen = await _prefill_and_look(client)
    assert len({metrics.movement for metrics in seen}) >= 3, "a prefill moves something at every step"
    await _until_decoding(client)
    core = _children_of(_engine(host))[0]
    kill(core)
    await asyncio.to_thread(host.await_state, "backoff", timeout=60)
    assert gone(family, 1), [pid for pid in family if status(pid) is not None]
    await asyncio.to_thread(host.await_state, "ready", restarts=1, timeout=600)
    await _until_decoding(client)
    family = host.family()
    guard = family[0]
    host.kill()
    kill(guard)
    after = start(real_hosts, runtime)
    await asyncio.to_thread(after.await_state, "starting")
    assert await asyncio.to_thread(gone, family, 30), [pid for pid in family if status(pid) is not None]
    await client.aclose()


async def _prefill_and_look(client: EngineClient) -> list[Metrics]:
    """Prefill a long prompt; readings from before its first token."""
    asking = asyncio.create_task(_first_piece(client, LONG, 1))
    seen: list[Metrics] = []
    while not asking.done():
        reading = await client.metrics()
        if reading.running and not reading.generated_tokens:
            seen.append(reading)
        await asyncio.sleep(0.05)
    await asking
    return seen


async def _until_decoding(client: EngineClient) -> None:
    """Returns while the engine is decoding; the request is left to its fate."""
    task = asyncio.create_task(_first_piece(client, LONG[:30], 1500))
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    start_tokens = (await client.metrics()).generated_tokens
    while (await client.metrics()).generated_tokens < start_tokens + 2:  # noqa: ASYNC110 - another process
        await asyncio.sleep(0.05)


async def _first_piece(client: EngineClient, prompt: list[int], tokens: int) -> None:
    async for _ in client.generate(prompt, Sampling(max_tokens=tokens, ignore_eos=True)):
        pass


def _engine(host: HostProcess) -> int:
    guard = host.family()[0]
    assert eventually(lambda: _children_of(guard))
    return _children_of(guard)[0]


def _children_of(pid: int) -> list[int]:
    """Children, those that compute first: the resource tracker of multiprocessing is one of them."""
    found = [child for child in _all() if status(child) == pid]
    return sorted(found, key=lambda child: b"resource_tracker" in Path(f"/proc/{child}/cmdline").read_bytes())


def _all() -> list[int]:
    return [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit()]
