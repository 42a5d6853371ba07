"""Messages on a stream, whole or not."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laguna_daemon.lsp.framing import BODY_BYTES, BadFrame, frame, read_frame


async def read_all(data: bytes) -> list[bytes]:
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    bodies = []
    while (body := await read_frame(reader)) is not None:
        bodies.append(body)
    return bodies


@given(st.lists(st.binary(max_size=200)))
def test_every_body_survives(bodies):
    assert asyncio.run(read_all(b"".join(map(frame, bodies)))) == bodies


@pytest.mark.parametrize(
    "data",
    [
        b"content-length: 2\r\n\r\nok",
        b"Content-Type: x\r\nContent-Length:2\r\n\r\nok",
        b"Content-Length: 2\n\nok",
        b"\r\nContent-Length: 2\r\n\r\nok",
    ],
)
async def test_headers_as_clients_write_them(data):
    assert await read_all(data) == [b"ok"]


@pytest.mark.parametrize("data", [b"", b"Content-Length: 5\r\n", b"Content-Length: 5\r\n\r\nabc", b"Content-Le"])
async def test_stream_that_ends_early_is_the_end(data):
    assert await read_all(data) == []


@pytest.mark.parametrize(
    "data",
    [
        b"Content-Length: x\r\n\r\n",
        b"Content-Length: -1\r\n\r\n",
        b"Content-Length: %d\r\n\r\n" % (BODY_BYTES + 1),
        b"no header\r\n" * 40,
        b"x" * 100_000,
    ],
)
async def test_stream_without_messages_is_refused(data):
    with pytest.raises(BadFrame):
        await read_all(data)
