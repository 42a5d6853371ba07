"""The fake engine finds in its cache what the real one found: a recorded trace, replayed on both."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from laguna_daemon.engine.client import EngineClient
from support import trace
from support.hosts import HostProcess

RECORDED = trace.requests()


def compare(found: list[int]) -> None:
    wanted = [request["cached_tokens"] for request in RECORDED]
    wrong = [
        (request["what"], f"recorded {right}, found {cached}")
        for request, right, cached in zip(RECORDED, wanted, found, strict=True)
        if right != cached
    ]
    assert not wrong


def test_the_trace_says_something() -> None:
    cached = [request["cached_tokens"] for request in RECORDED]
    assert len(RECORDED) > 30
    assert all(tokens % 128 == 0 for tokens in cached if tokens >= 0)  # -1: aborted
    assert len(set(cached)) > 6


async def test_replayed_on_the_fake(host_process: Callable[..., HostProcess]) -> None:
    host = host_process("--blocks", 23, max_model_len=2048, max_num_seqs=4)
    host.await_state("ready")
    client = EngineClient(socket=host.socket)
    compare(await trace.replay(client, RECORDED))
    await client.aclose()


@pytest.mark.timeout(900)
async def test_replayed_on_the_real_engine(real_engine: HostProcess) -> None:
    client = EngineClient(socket=real_engine.socket)
    compare(await trace.replay(client, RECORDED))
    await client.aclose()


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.engine)])
async def client(request: pytest.FixtureRequest) -> AsyncIterator[EngineClient]:
    """A client of the fake engine, and of the real one: both must answer alike."""
    if request.param == "real":
        host = request.getfixturevalue("real_engine")
    else:
        host = request.getfixturevalue("host_process")("--blocks", 23, max_model_len=2048)
        host.await_state("ready")
    found = EngineClient(socket=host.socket)
    yield found
    await found.aclose()


REFUSALS: list[tuple[dict[str, Any], str, str | None]] = [
    ({"prompt": [300] * 2100}, "maximum context length is 2048 tokens", "input_tokens"),
    ({"prompt": [300] * 2048, "max_tokens": 9}, "max_tokens must be at least 1, got 0", "max_tokens"),
    ({"prompt": [300], "max_tokens": 3000}, "cannot be greater than max_model_len=2048", "max_tokens"),
    ({"prompt": [300], "max_tokens": 0}, "max_tokens must be at least 1", "max_tokens"),
    ({"prompt": []}, "You must pass at least one prompt", None),
    ({"prompt": [300, 99_999_999]}, "Token id 99999999 is out of vocabulary", None),
    ({"prompt": [300], "model": "other"}, "The model `other` does not exist", "model"),
]


@pytest.mark.parametrize(("body", "message", "parameter"), REFUSALS, ids=[text for _, text, _ in REFUSALS])
async def test_refuses_in_the_same_words(
    client: EngineClient, body: dict[str, Any], message: str, parameter: str | None
) -> None:
    answer = await client._http.post("/v1/completions", json={"max_tokens": 1, **body})
    error = answer.json()["error"]
    assert answer.status_code == error["code"] == (404 if body.get("model") else 400)
    assert message in error["message"]
    assert error["param"] == parameter
    assert set(error) == {"message", "type", "param", "code"}


async def test_an_answer_ends_where_the_context_does(client: EngineClient) -> None:
    body = {"prompt": [300] * 2040, "max_tokens": 20, "ignore_eos": True}
    answer = (await client._http.post("/v1/completions", json=body)).json()
    assert answer["usage"]["completion_tokens"] == 8
    assert answer["choices"][0]["finish_reason"] == "length"
