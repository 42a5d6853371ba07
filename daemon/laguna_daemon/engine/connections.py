"""HTTP/1.1 on an engine's Unix socket for answers that stream: kept connections, one write for a whole request.

A completion is short, and what httpx adds to it, two writes and a dozen turns of the event loop, can be felt in an
editor. Parsing is httptools'. Errors are httpx's, so that whoever asks need not know which of the two was used.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import httptools
import httpx

CONNECT_S = 5.0
KEPT = 8
REST_S = 1.0
"""Seconds that the last bytes of an answer may take, after everything of interest has come."""
_UNREAD = 1024 * 1024  # bytes that wait for a slow reader before the engine is no longer listened to
_FRAMES = (b"content-length", b"transfer-encoding")


class Connections:
    """The connections to one socket. One event loop's."""

    def __init__(self, path: Path, headers: Mapping[str, str]) -> None:
        self._path = str(path)
        self._head = "".join(f"{name}: {value}\r\n" for name, value in {"Host": "engine", **headers}.items())
        self._idle: list[_Connection] = []
        self._all: set[_Connection] = set()

    @asynccontextmanager
    async def post(self, path: str, body: bytes) -> AsyncIterator[Answer]:
        """Send a request and give its answer once the status is there; leaving before its end closes the connection.

        Raises httpx.TransportError, also while the answer is read.
        """
        head = f"POST {path} HTTP/1.1\r\n{self._head}Content-Length: {len(body)}\r\n\r\n"
        connection = await self._sent(head.encode("latin-1") + body)
        try:
            yield Answer(connection)
        finally:
            connection.leave()

    async def aclose(self) -> None:
        """Close everything; what is being read ends with an error."""
        for connection in tuple(self._all):
            connection.abort()

    async def _sent(self, request: bytes) -> _Connection:
        while self._idle:
            connection = self._idle.pop()
            try:
                await connection.exchange(request)
            except httpx.TransportError:
                if connection.heard:
                    raise
                continue  # servers close what has been idle for some seconds, and may do so at this moment
            return connection
        connection = await self._dial()
        await connection.exchange(request)
        return connection

    async def _dial(self) -> _Connection:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_S):
                connection = (await loop.create_unix_connection(lambda: _Connection(self._free), self._path))[1]
        except TimeoutError as error:
            raise httpx.ConnectTimeout("the engine does not accept connections") from error
        except OSError as error:
            raise httpx.ConnectError(str(error)) from error
        self._all.add(connection)
        return connection

    def _free(self, connection: _Connection, usable: bool) -> None:
        """A connection has no request any more, or is lost."""
        if usable and len(self._idle) < KEPT:
            self._idle.append(connection)
            return
        self._all.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        connection.abort()


class Answer:
    """One answer: its status, and its body as it comes."""

    def __init__(self, connection: _Connection) -> None:
        self._connection = connection
        self.status = connection.status

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body, in the pieces in which it arrives."""
        while (piece := await self._connection.piece()) is not None:
            yield piece

    async def read(self) -> bytes:
        """The rest of the body."""
        return b"".join([piece async for piece in self.chunks()])

    async def done(self) -> None:
        """What is still to come is of no interest, and so short that the connection can be used again."""
        self._connection.let_end()


class _Connection(asyncio.Protocol):
    """One connection, with at most one request at a time."""

    def __init__(self, free: Callable[[_Connection, bool], None]) -> None:
        self._free = free
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._ending: asyncio.TimerHandle | None = None
        self._reset()

    def _reset(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._answers = 0
        self._pieces: deque[bytes] = deque()
        self._unread = 0
        self._error: httpx.TransportError | None = None
        self._begun = self._framed = self._complete = self._usable = False
        self.heard = False  # anything of the answer
        self.status = 0

    # the one who asks --------------------------------------------------------------------------------------------

    async def exchange(self, request: bytes) -> None:
        """Send a request and wait for the status of its answer."""
        if self._transport is None:
            raise httpx.RemoteProtocolError("the connection was closed")
        self._reset()
        self._transport.write(request)
        try:
            while not self._begun:
                await self._news()
        except BaseException:
            self.abort()
            raise

    async def piece(self) -> bytes | None:
        """The next bytes of the body, None at its end."""
        while not self._pieces:
            if self._complete:
                return None
            await self._news()
        found = self._pieces.popleft()
        self._unread -= len(found)
        if self._transport is not None and not self._transport.is_reading() and self._unread < _UNREAD:
            self._transport.resume_reading()
        return found

    def let_end(self) -> None:
        """Read on in the background, for a moment."""
        if not self._complete and self._transport is not None:
            self._ending = asyncio.get_running_loop().call_later(REST_S, self.abort)

    def leave(self) -> None:
        """Nobody reads any more: the connection is free, or closed so that the engine stops."""
        self._pieces.clear()
        if self._complete:
            self._release()
        elif self._ending is None:
            self.abort()

    def abort(self) -> None:
        """Close at once, without sending what is still to be sent."""
        if self._transport is not None:
            self._transport.abort()

    async def _news(self) -> None:
        if self._error is not None:
            raise self._error
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _release(self) -> None:
        if self._ending is not None:
            self._ending.cancel()
            self._ending = None
        # One that was held back has something unread in it.
        self._free(self, self._transport is not None and self._transport.is_reading() and self._usable)

    # asyncio.Protocol --------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.heard = True
        if self._complete:
            self.abort()  # nothing was asked
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._error = httpx.RemoteProtocolError(f"not an answer in HTTP: {error}")
            self.abort()
        self._wake()
        if self._ending is not None:
            self._pieces.clear()
            if self._complete:
                self._release()
        elif self._unread > _UNREAD and self._transport is not None:
            self._transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._begun and not self._framed and exc is None:
            self._complete = True  # such a body ends with its connection
        elif not self._complete and self._error is None:
            self._error = httpx.RemoteProtocolError("the engine closed the connection before the answer was complete")
        if self._ending is not None:
            self._ending.cancel()
            self._ending = None
        self._free(self, False)
        self._wake()

    # httptools ---------------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._answers += 1  # a second one belongs to nobody

    def on_header(self, name: bytes, value: bytes) -> None:
        self._framed = self._framed or name.lower() in _FRAMES

    def on_headers_complete(self) -> None:
        if self._answers == 1:
            self.status = self._parser.get_status_code()
            self._begun = True

    def on_body(self, body: bytes) -> None:
        if self._answers == 1:
            self._pieces.append(body)
            self._unread += len(body)

    def on_message_complete(self) -> None:
        self._complete = True
        self._usable = self._parser.should_keep_alive() and self._answers == 1
