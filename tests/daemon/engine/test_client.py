"""The client against a real process that speaks vLLM's HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import numpy as np
import pytest

from laguna_daemon.engine.client import EngineClient, Finish, Piece, _Tally
from laguna_daemon.engine.faults import from_body, from_response
from laguna_daemon.engine.sampling import Sampling, Traits
from laguna_daemon.engine.sse import events
from laguna_daemon.errors import EngineUnavailable, LagunaError, OverBudget, ParameterRefused
from support.hosts import HostProcess

PROMPT = np.arange(300, 600, dtype=np.uint32)


@pytest.fixture
def engine(host_process: Callable[..., HostProcess]) -> HostProcess:
    host = host_process("--decode-speed", 200)
    host.await_state("ready")
    return host


@pytest.fixture
async def client(engine: HostProcess) -> AsyncIterator[EngineClient]:
    found = EngineClient(socket=engine.socket, priorities=True)
    yield found
    await found.aclose()


async def control(client: EngineClient, action: str, body: Any = None) -> Any:
    return (await client._http.post(f"/control/{action}", json=body)).json()


async def collect(client: EngineClient, sampling: Sampling, prompt: Any = PROMPT) -> tuple[list[Piece], Finish]:
    pieces: list[Piece] = []
    async for item in client.generate(prompt, sampling):
        if isinstance(item, Finish):
            return pieces, item
        pieces.append(item)
    raise AssertionError("a stream without an end")


async def test_an_answer(client: EngineClient) -> None:
    await control(client, "answers", [{"when": "", "answer": "Two words.\u2028And\x0cmore: λ→😋"}])
    pieces, finish = await collect(client, Sampling(max_tokens=100, stop_token_ids=(24,)))
    assert "".join(piece.text for piece in pieces) == "Two words.\u2028And\x0cmore: λ→😋"
    assert finish == Finish("stop", 300, 0, sum(len(piece.token_ids) for piece in pieces) + 1, 2)
    again = (await collect(client, Sampling(max_tokens=100)))[1]
    assert again.cached_tokens == 256


async def test_the_end_is_not_part_of_the_answer(client: EngineClient) -> None:
    ids = [400, 401, 24, 402]
    await control(client, "answers", [{"when": "", "ids": ids}])
    pieces, finish = await collect(client, Sampling(max_tokens=9, stop_token_ids=(24,)))
    assert [token for piece in pieces for token in piece.token_ids] == [400, 401]
    assert (finish.reason, finish.stopped_by, finish.output_tokens) == ("stop", 24, 3)
    pieces, finish = await collect(client, Sampling(max_tokens=2, stop_token_ids=(24,)))
    assert [token for piece in pieces for token in piece.token_ids] == [400, 401]
    assert (finish.reason, finish.stopped_by, finish.output_tokens) == ("length", None, 2)


async def test_a_stop_text_keeps_its_ids(client: EngineClient) -> None:
    await control(client, "answers", [{"when": "", "answer": "one two three"}])
    pieces, finish = await collect(client, Sampling(max_tokens=50, stop=("two",)))
    assert "".join(piece.text for piece in pieces) == "one "
    assert (finish.reason, finish.stopped_by) == ("stop", "two")


async def test_every_sampling_field_is_sent() -> None:
    client = EngineClient(url="http://nowhere")
    bias = {7: 1.5}
    sampling = Sampling(max_tokens=5, seed=3, logit_bias=bias, structured={"regex": "a+"}, cache_salt="s")
    body = client._request(PROMPT, sampling, 4)
    for name in (
        "max_tokens",
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "seed",
        "stop_token_ids",
        "stop",
        "min_tokens",
    ):
        assert name in body
    for name in ("repetition_penalty", "presence_penalty", "frequency_penalty", "ignore_eos", "add_special_tokens"):
        assert name in body
    assert (body["return_token_ids"], body["stream"], body["stream_options"]) == (True, True, {"include_usage": True})
    assert (body["logit_bias"], body["structured_outputs"], body["cache_salt"]) == ({"7": 1.5}, {"regex": "a+"}, "s")
    assert body["priority"] == 0, "an engine without priority scheduling refuses any other"
    await client.aclose()


@pytest.mark.parametrize("least", [1, 1 << 30])
async def test_a_long_prompt_is_not_sent_back(engine: HostProcess, monkeypatch: pytest.MonkeyPatch, least: int) -> None:
    monkeypatch.setattr("laguna_daemon.engine.client.LONG_PROMPT", least)
    seen: list[dict[str, Any]] = []
    plain = _Tally.add
    monkeypatch.setattr(_Tally, "add", lambda self, event: seen.append(event) or plain(self, event))
    client = EngineClient(socket=engine.socket)
    pieces, finish = await collect(client, Sampling(max_tokens=50))
    ids = [token for piece in pieces for token in piece.token_ids]
    assert len(ids) + (finish.reason == "stop") == finish.output_tokens
    back = [choice for event in seen for choice in event["choices"] if "prompt_token_ids" in choice]
    assert bool(back) == (least > 1)
    await client.aclose()


async def test_openai_dialect_sends_nothing_else_and_reads_text_alone(engine: HostProcess) -> None:
    client = EngineClient(socket=engine.socket, dialect="openai")
    known = {"model", "prompt", "stream", "stream_options", "max_tokens", "temperature", "top_p", "presence_penalty"}
    known |= {"frequency_penalty", "seed", "stop", "logit_bias", "n", "echo"}
    assert set(client._request(PROMPT, Sampling(max_tokens=5), 4)) <= known
    pieces, finish = await collect(client, Sampling(max_tokens=50))
    assert "".join(piece.text for piece in pieces).startswith("The prompt has 300 tokens")
    assert all(piece.token_ids == () for piece in pieces)
    assert finish.prompt_tokens == 300
    assert finish.output_tokens > 10
    assert await client.health()
    await client.aclose()


@pytest.mark.parametrize("how", ["close", "cancel", "close the client"])
async def test_leaving_aborts_in_the_engine(client: EngineClient, engine: HostProcess, how: str) -> None:
    observer = EngineClient(socket=engine.socket)
    stream = client.generate(PROMPT, Sampling(max_tokens=2000, ignore_eos=True))
    started = asyncio.Event()

    async def read() -> None:
        async for _ in stream:
            started.set()

    task = asyncio.create_task(read())
    await started.wait()
    assert (await observer.metrics()).running == 1
    if how == "close the client":
        await client.aclose()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    if how == "close":
        await stream.aclose()
    while (await observer.metrics()).running:  # noqa: ASYNC110 - another process has no event
        await asyncio.sleep(0.02)
    assert (await observer.metrics()).kv_usage == 0
    assert (await control(observer, "requests"))[-1]["finish"] == "abort"
    await observer.aclose()


async def test_an_engine_that_dies_in_the_middle(client: EngineClient) -> None:
    await control(client, "answers", [{"when": "", "answer": "one two three", "crash": True}])
    with pytest.raises(EngineUnavailable, match="incomplete") as caught:
        await collect(client, Sampling(max_tokens=50))
    assert caught.value.exit_code == 4


async def test_no_engine(runtime: Any) -> None:
    client = EngineClient(socket=runtime / "none.sock")
    assert not await client.health()
    assert await client.version() == ""
    with pytest.raises(EngineUnavailable, match="not running"):
        await collect(client, Sampling(max_tokens=5))
    with pytest.raises(EngineUnavailable):
        await client.metrics()
    await client.aclose()


async def test_refused_before_it_is_sent(client: EngineClient) -> None:
    client.traits = Traits(context=310)
    with pytest.raises(OverBudget):
        await collect(client, Sampling(max_tokens=11))
    with pytest.raises(ParameterRefused):
        await collect(client, Sampling(max_tokens=5, top_p=0))
    assert await control(client, "requests") == []


async def test_the_engines_own_refusals(client: EngineClient) -> None:
    with pytest.raises(OverBudget, match="larger than the engine's context"):
        await collect(client, Sampling(max_tokens=5), [300] * 9000)
    with pytest.raises(ParameterRefused, match="out of vocabulary"):
        await collect(client, Sampling(max_tokens=5), [4_000_000])
    client.model = "other"
    with pytest.raises(EngineUnavailable, match="does not know") as caught:
        await collect(client, Sampling(max_tokens=5))
    assert "engine.url" in caught.value.advice


async def test_tokenize_renders_the_template(client: EngineClient) -> None:
    messages = [{"role": "user", "content": "Hello <think> λ"}]
    ids = await client.tokenize(messages)
    thinking = await client.tokenize(messages, chat_template_kwargs={"enable_thinking": True})
    assert (ids[0], ids[-1], thinking[-1]) == (2, 19, 18)
    assert ids[:-1] == thinking[:-1]
    text = await client.tokenize_text("Hello <think> λ")
    assert text == ids[ids.index(text[0]) :][: len(text)]


async def test_what_it_is(client: EngineClient) -> None:
    assert await client.health()
    assert await client.version() == "0.32.0"
    assert (await client.models())[0]["max_model_len"] == 8192
    assert await client.reset_prefix_cache()


async def test_priority_orders_what_waits(host_process: Callable[..., HostProcess]) -> None:
    host = host_process("--decode-speed", 50, max_num_seqs=1)
    host.await_state("ready")
    client = EngineClient(socket=host.socket, priorities=True)
    order: list[str] = []

    async def one(name: str, priority: int) -> None:
        async for item in client.generate(PROMPT, Sampling(max_tokens=10, ignore_eos=True), priority=priority):
            if isinstance(item, Finish):
                order.append(name)

    tasks = [asyncio.create_task(one("first", 0))]
    while not (await client.metrics()).running:  # noqa: ASYNC110 - another process has no event
        await asyncio.sleep(0.01)
    for waiting, (name, priority) in enumerate((("question", 10), ("completion", -10)), start=1):
        tasks.append(asyncio.create_task(one(name, priority)))
        while (await client.metrics()).waiting < waiting:  # noqa: ASYNC110 - the same
            await asyncio.sleep(0.01)
    await asyncio.gather(*tasks)
    assert order == ["first", "completion", "question"]
    await client.aclose()


@pytest.mark.parametrize(
    ("status", "body", "kind", "text"),
    [
        (400, b'{"error":{"message":"min_p is bad","code":400}}', ParameterRefused, "min_p is bad"),
        (422, b'{"detail":"x"}', ParameterRefused, "no reason given"),
        (401, b'{"error":"Unauthorized"}', EngineUnavailable, "refused the key"),
        (404, b'{"error":{"message":"The model `m` does not exist."}}', EngineUnavailable, "does not exist"),
        (503, b"", EngineUnavailable, "not taking requests"),
        (500, b"<html>", EngineUnavailable, "failed while answering"),
        (400, b'{"error":{"message":"This model\'s maximum context length is 10"}}', OverBudget, "larger than"),
    ],
)
def test_http_errors(status: int, body: bytes, kind: type[LagunaError], text: str) -> None:
    error = from_response(status, body)
    assert type(error) is kind
    assert text in error.what
    assert error.advice


def test_errors_in_the_middle_of_a_stream() -> None:
    assert isinstance(from_body({"message": "EngineCore died", "code": 500}), EngineUnavailable)
    assert isinstance(from_body("plain"), EngineUnavailable)


async def stream_of(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
async def test_events_however_they_are_cut(size: int) -> None:
    comment, first = b": keep-alive\r\n\r\nevent: x\n", b'data: {"a":"\xe2\x80\xa8\\f"}\n\n'
    raw = comment + first + b'data:{"b":2}\r\n\r\ndata: [DONE]\n\ndata: {}\n\n'
    chunks = [raw[start : start + size] for start in range(0, len(raw), size)]
    assert [event async for event in events(stream_of(*chunks))] == [{"a": "\u2028\x0c"}, {"b": 2}]


async def test_a_page_that_is_no_stream() -> None:
    with pytest.raises(EngineUnavailable, match="not an OpenAI-compatible stream"):
        [event async for event in events(stream_of(b"data: <html>\n\n"))]


async def test_the_key_goes_with_every_request() -> None:
    client = EngineClient(url="http://box:8000/v1/", api_key="secret")
    assert client._http.headers["Authorization"] == "Bearer secret"
    assert client._http.base_url == httpx.URL("http://box:8000")
    await client.aclose()
