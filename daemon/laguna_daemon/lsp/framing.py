"""Messages on a stream: a `Content-Length` header and a body (LSP 3.18, "Base Protocol")."""

import asyncio

BODY_BYTES = 64 * 1024 * 1024
HEADER_LINES = 32


class BadFrame(Exception):
    """The stream is not a sequence of messages; there is no way to find the next one."""


async def read_frame(reader: asyncio.StreamReader) -> bytes | None:
    """The next message's body, None at the end of the stream; raises BadFrame."""
    length: int | None = None
    for _ in range(HEADER_LINES):
        try:
            line = await reader.readline()
        except ValueError as error:
            raise BadFrame("a header line is too long") from error
        if not line.endswith(b"\n"):
            return None
        if line.strip():
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length":
                length = _length(value)
        elif length is not None:
            return await _body(reader, length)
    raise BadFrame("a message has no Content-Length")


def frame(body: bytes) -> bytes:
    """`body` with its header."""
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def _length(value: bytes) -> int:
    if not value.strip().isdigit():
        raise BadFrame("a Content-Length is not a number")
    length = int(value)
    if length > BODY_BYTES:
        raise BadFrame(f"a message of {length} bytes is over the limit of {BODY_BYTES}")
    return length


async def _body(reader: asyncio.StreamReader, length: int) -> bytes | None:
    try:
        return await reader.readexactly(length)
    except asyncio.IncompleteReadError:
        return None
