"""An engine on a Unix socket and one behind a URL are reached in different ways, and behave alike."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import numpy as np
import pytest

from laguna_daemon.engine.client import EngineClient, Finish, Piece
from laguna_daemon.engine.sampling import Sampling
from laguna_daemon.errors import EngineUnavailable, OverBudget

PROMPT = np.arange(300, 310, dtype=np.uint32)
SAMPLING = Sampling(max_tokens=9)
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
TOO_LONG = b'{"error":{"message":"This model\'s maximum context length is 10","code":400}}'


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def said(text: str, more: str = "") -> bytes:
    return chunk(b'data: {"choices":[{"text":"%s","token_ids":[7]%s}]}\n\n' % (text.encode(), more.encode()))


class Engine:
    """Says what a test wants said, a list of bytes for each request, with a pause for each None."""

    def __init__(self) -> None:
        self.script: list[list[bytes | None]] = []
        self.connections = 0
        self.go_on = asyncio.Event()
        self.lost = asyncio.Event()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
                for part in self.script.pop(0):
                    if part is None:
                        await self.go_on.wait()
                    elif part == b"":
                        return
                    else:
                        writer.write(part)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.lost.set()
        finally:
            writer.close()


Reach = Callable[[Engine], Awaitable[EngineClient]]


@pytest.fixture(params=["socket", "url"])
async def reach(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Reach]:
    running = []

    async def start(engine: Engine) -> EngineClient:
        if request.param == "socket":
            listening = await asyncio.start_unix_server(engine, tmp_path / "s.sock")
            client = EngineClient(socket=tmp_path / "s.sock")
        else:
            listening = await asyncio.start_server(engine, "127.0.0.1", 0)
            client = EngineClient(url=f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1")
        running.append((listening, client))
        return client

    async with asyncio.timeout(30):
        yield start
        for listening, client in running:
            await client.aclose()
            listening.close()


async def collected(client: EngineClient) -> list[Piece | Finish]:
    return [item async for item in client.generate(PROMPT, SAMPLING)]


async def test_an_answer_and_the_connection_again(reach: Reach) -> None:
    usage = b'data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2}}\n\n'
    end = ',"finish_reason":"stop","stop_reason":7'
    answer: list[bytes | None] = [CHUNKED, said("one"), said(" two", end), chunk(usage + b"data: [DONE]\n\n")]
    engine = Engine()
    engine.script = [[*answer, b"0\r\n\r\n"] for _ in range(3)]
    client = await reach(engine)
    for _ in range(3):
        first, second, finish = await collected(client)
        assert (first, second) == (Piece((7,), "one"), Piece((), " two"))
        assert finish == Finish("stop", 10, 0, 2, 7)
    assert engine.connections == 1


@pytest.mark.parametrize("how", ["close", "cancel"])
async def test_leaving_ends_the_connection(reach: Reach, how: str) -> None:
    engine = Engine()
    engine.script = [[CHUNKED, said("one"), None]]
    client = await reach(engine)
    stream = client.generate(PROMPT, SAMPLING)
    assert await anext(stream) == Piece((7,), "one")
    if how == "close":
        await stream.aclose()
    else:
        task = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait({task})
    engine.go_on.set()
    await engine.lost.wait()


@pytest.mark.parametrize(
    ("answer", "kind", "text"),
    [
        ([CHUNKED, said("one"), b""], EngineUnavailable, "the answer is incomplete"),
        ([b""], EngineUnavailable, "the answer is incomplete"),
        ([b"nonsense\r\n\r\n", b""], EngineUnavailable, "the answer is incomplete"),
        ([CHUNKED, chunk(b'data: {"error":{"message":"dead","code":500}}\n\n'), None], EngineUnavailable, "dead"),
        ([CHUNKED, chunk(b"data: <html>\n\n"), None], EngineUnavailable, "not an OpenAI-compatible stream"),
        (
            [b"HTTP/1.1 400 Bad Request\r\nContent-Length: %d\r\n\r\n%s" % (len(TOO_LONG), TOO_LONG)],
            OverBudget,
            "larger than the engine's context",
        ),
        ([b"HTTP/1.1 503 Unavailable\r\nContent-Length: 0\r\n\r\n"], EngineUnavailable, "not taking requests"),
    ],
)
async def test_what_goes_wrong(reach: Reach, answer: list[bytes | None], kind: type[Exception], text: str) -> None:
    engine = Engine()
    engine.script = [answer]
    client = await reach(engine)
    with pytest.raises(kind, match=text):
        await collected(client)
    engine.go_on.set()
