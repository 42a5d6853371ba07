"""HTTP on a Unix socket, against a server that says exactly what a test wants said."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import httpx
import pytest

from laguna_daemon.engine import connections
from laguna_daemon.engine.connections import Connections

CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"
PATIENCE = 20

Script = Callable[["Server", asyncio.StreamReader, asyncio.StreamWriter, int], Awaitable[None]]


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


async def request_of(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Head and body of one request; raises IncompleteReadError at the end of the connection."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    return head, await reader.readexactly(length)


class Server:
    """Runs a script for each connection; counts connections, and those that were closed under it."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.connections = 0
        self.requests: list[tuple[bytes, bytes]] = []
        self.lost = asyncio.Event()
        self.go_on = asyncio.Event()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await self.script(self, reader, writer, self.connections)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.lost.set()
        finally:
            writer.close()


@pytest.fixture
async def serve(tmp_path: Path) -> AsyncIterator[Callable[[Script], Awaitable[tuple[Server, Connections]]]]:
    running = []

    async def start(script: Script) -> tuple[Server, Connections]:
        server = Server(script)
        listening = await asyncio.start_unix_server(server, tmp_path / "s.sock", limit=1 << 20)
        client = Connections(tmp_path / "s.sock", {"Authorization": "Bearer k"})
        running.append((listening, client))
        return server, client

    async with asyncio.timeout(PATIENCE):
        yield start
        for listening, client in running:
            await client.aclose()
            listening.close()


async def whole(client: Connections, body: bytes = b"{}") -> bytes:
    async with client.post("/v1/completions", body) as answer:
        return await answer.read()


async def echoing(server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
    while True:
        server.requests.append(await request_of(reader))
        writer.write(CHUNKED + chunk(b"%d bytes" % len(server.requests[-1][1])) + END)


async def test_one_connection_serves_one_request_after_the_other(serve) -> None:
    server, client = await serve(echoing)
    assert [await whole(client, b"x" * size) for size in (2, 3_000_000)] == [b"2 bytes", b"3000000 bytes"]
    assert server.connections == 1
    assert server.requests[0][0].startswith(b"POST /v1/completions HTTP/1.1\r\nHost: engine\r\n")
    assert b"\r\nAuthorization: Bearer k\r\n" in server.requests[0][0]


async def test_requests_at_once_have_connections_of_their_own(serve) -> None:
    async def slow(server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        await request_of(reader)
        if number == 3:
            server.go_on.set()
        await server.go_on.wait()
        writer.write(CHUNKED + chunk(b"x") + END)
        await request_of(reader)

    server, client = await serve(slow)
    assert await asyncio.gather(*(whole(client) for _ in range(3))) == [b"x"] * 3
    assert server.connections == 3


async def test_the_rest_is_read_in_the_background(serve) -> None:
    async def late(server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        while True:
            await request_of(reader)
            writer.write(CHUNKED + chunk(b"[DONE]"))
            await server.go_on.wait()
            writer.write(END)
            await writer.drain()

    server, client = await serve(late)
    async with client.post("/", b"") as answer:
        async for piece in answer.chunks():
            assert piece == b"[DONE]"
            break
        await answer.done()
    server.go_on.set()
    while not client._idle:  # noqa: ASYNC110 - nothing else tells
        await asyncio.sleep(0.01)
    assert await whole(client) == b"[DONE]"
    assert server.connections == 1


async def test_a_rest_that_does_not_come_is_not_waited_for(serve, monkeypatch) -> None:
    async def never(server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        await request_of(reader)
        writer.write(CHUNKED + chunk(b"[DONE]"))
        await request_of(reader)

    monkeypatch.setattr(connections, "REST_S", 0.05)
    server, client = await serve(never)
    async with client.post("/", b"") as answer:
        await answer.done()
    await server.lost.wait()


@pytest.mark.parametrize("how", ["leave", "cancel", "cancel before the status", "close"])
async def test_leaving_closes_the_connection(serve, how: str) -> None:
    async def endless(server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        await request_of(reader)
        if "status" not in how:
            writer.write(CHUNKED + chunk(b"x"))
        server.go_on.set()
        await request_of(reader)

    server, client = await serve(endless)
    reading = asyncio.Event()

    async def read() -> None:
        async with client.post("/", b"") as answer:
            async for _ in answer.chunks():
                reading.set()
                if how == "leave":
                    return

    task = asyncio.create_task(read())
    await (server.go_on if "status" in how else reading).wait()
    if how == "close":
        await client.aclose()
        with pytest.raises(httpx.RemoteProtocolError):
            await task
    else:
        task.cancel()
        await asyncio.wait({task})
    await server.lost.wait()
    assert not client._idle and not client._all


async def test_a_connection_that_was_closed_while_idle_is_replaced(serve) -> None:
    async def once(server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        await request_of(reader)
        writer.write(CHUNKED + chunk(b"%d" % number) + END)

    _, client = await serve(once)
    assert await whole(client) == b"1"
    # Whether the end has been noticed or comes with the request, nobody is troubled with it.
    assert await whole(client) == b"2"
    await asyncio.sleep(0.05)
    assert not client._idle
    assert await whole(client) == b"3"


async def test_the_server_says_that_it_closes(serve) -> None:
    async def last(server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        await request_of(reader)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno")
        await request_of(reader)

    server, client = await serve(last)
    async with client.post("/", b"") as answer:
        assert (answer.status, await answer.read()) == (400, b"no")
    await server.lost.wait()
    assert not client._all


async def test_a_body_without_a_length_ends_with_its_connection(serve) -> None:
    async def plain(server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        await request_of(reader)
        writer.write(b"HTTP/1.0 200 OK\r\n\r\nall of it")

    _, client = await serve(plain)
    assert await whole(client) == b"all of it"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (b"", "before the answer was complete"),
        (CHUNKED + chunk(b"x"), "before the answer was complete"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx", "before the answer was complete"),
        (b"SSH-2.0-OpenSSH\r\n", "not an answer in HTTP"),
        (CHUNKED + b"zz\r\n", "not an answer in HTTP"),
    ],
)
async def test_what_is_no_answer(serve, said: bytes, expected: str) -> None:
    async def broken(server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        await request_of(reader)
        writer.write(said)

    _, client = await serve(broken)
    with pytest.raises(httpx.RemoteProtocolError, match=expected):
        await whole(client)
    assert not client._idle


async def test_unasked_words_end_a_connection(serve) -> None:
    async def talkative(server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, n: int) -> None:
        await request_of(reader)
        old = CHUNKED + chunk(b"old") + END
        writer.write(CHUNKED + chunk(b"%d" % n) + END + (old if n == 2 else b""))
        await server.go_on.wait()
        writer.write(old if n == 1 else b"")
        await request_of(reader)

    server, client = await serve(talkative)
    assert await whole(client) == b"1"
    server.go_on.set()
    await server.lost.wait()
    assert [await whole(client) for _ in range(2)] == [b"2", b"3"]


async def test_a_slow_reader_holds_the_engine_back(serve, monkeypatch) -> None:
    async def flood(server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        await request_of(reader)
        writer.write(CHUNKED)
        for _ in range(200):
            writer.write(chunk(b"x" * 100_000))
            await writer.drain()
        writer.write(END)
        await request_of(reader)

    monkeypatch.setattr(connections, "_UNREAD", 500_000)
    _, client = await serve(flood)
    async with client.post("/", b"") as answer:
        await asyncio.sleep(0.2)
        held = sum(map(len, answer._connection._pieces))
        assert 0 < held < 2_000_000
        assert len(await answer.read()) == 20_000_000
    assert len(client._idle) == 1


async def test_nobody_listens(tmp_path: Path) -> None:
    client = Connections(tmp_path / "none.sock", {})
    with pytest.raises(httpx.ConnectError):
        await whole(client)


async def test_a_connection_that_was_held_back_and_left_is_not_used_again(serve, monkeypatch) -> None:
    async def much(server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        while True:
            await request_of(reader)
            writer.write(CHUNKED + chunk(b"x" * 1000) + END)

    monkeypatch.setattr(connections, "_UNREAD", 500)
    server, client = await serve(much)
    for finish in (False, True):
        async with client.post("/", b"") as answer:
            while not answer._connection._complete:  # noqa: ASYNC110 - nothing else tells
                await asyncio.sleep(0.01)
            if finish:
                await answer.done()
        async with asyncio.timeout(PATIENCE):
            assert await whole(client) == b"x" * 1000
    assert server.connections == 3, "what was read to its end is used again"
