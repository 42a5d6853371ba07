"""The one module that touches pygls: a JSON-RPC peer for each connection.

pygls 2.1.1 gives dispatch, the protocol's types and the capabilities. Everything else is replaced, because of
what was seen in that version: `exit` ends the process, malformed params and requests after `shutdown` get no
answer, the text store splits lines at form feeds, every outgoing body is logged, and a late reply to a
request that we have cancelled raises in the reader.
"""

import asyncio
import contextlib
import inspect
import itertools
import json
import logging
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, cast

import orjson
from lsprotocol import types
from pydantic import BaseModel, ValidationError
from pygls.capabilities import ServerCapabilitiesBuilder
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, default_converter

from laguna_daemon.lsp.errors import Code, ResponseError, invalid_params, response_error
from laguna_daemon.lsp.framing import BadFrame, frame, read_frame

_log = logging.getLogger(__name__)
# pygls logs whole bodies, source text included, at INFO and below.
logging.getLogger("pygls").setLevel(logging.WARNING)

MESSAGES_PER_TURN = 64
UNREAD_BYTES = 64 * 1024 * 1024
CLOSING_SECONDS = 5.0

MessageId = int | str
Handler = Callable[[Any], Any]

# Shared: it holds no state of a connection, and making one takes long.
_converter = default_converter()  # type: ignore[no-untyped-call]


class _Server(LanguageServer):
    """The owner that a pygls protocol needs; it never talks to the user on its own."""

    def report_server_error(self, error: Exception, source: Any) -> None:
        _log.debug("%s: %s", getattr(source, "__name__", source), type(error).__name__)


class _Protocol(LanguageServerProtocol):
    """Dispatch of one connection's messages."""

    def __init__(self, server: LanguageServer, converter: Any) -> None:
        super().__init__(server, converter)
        self.models: dict[str, type[BaseModel]] = {}
        self.notifications = {types.EXIT, types.CANCEL_REQUEST}  # what is served, but never as a request
        self.initialized = False
        self.exited = False
        self.calls: dict[MessageId, asyncio.Future[Any]] = {}
        self.send: Callable[[bytes], None] = lambda data: None

    # Own handlers instead of the built-in ones, which keep a second copy of every document

    def _register_builtin_features(self) -> None:
        self.fm.add_builtin_feature(types.SHUTDOWN, self._shut_down)
        self.fm.add_builtin_feature(types.EXIT, self._exit)

    def _shut_down(self, params: Any) -> None:
        for future in list(self._request_futures.values()):
            future.cancel()
        self._shutdown = True

    def _exit(self, params: Any) -> None:
        self.exited = True

    def _answers(self, method: str) -> bool:
        known = method in self.fm.features or method in self.fm.builtin_features
        return known and method not in self.notifications

    def receive(self, body: bytes) -> None:
        """Handle one message; every request among them gets exactly one answer."""
        try:
            message = _parsed(body)
        except (ValueError, RecursionError):
            self._fail(None, ResponseError(Code.PARSE_ERROR, "The message is not JSON."))
            return
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            self._fail(_id_of(message), ResponseError(Code.INVALID_REQUEST, "Not a JSON-RPC 2.0 message."))
        elif "method" not in message:
            self._take_response(message)
        elif not isinstance(message["method"], str):
            self._fail(_id_of(message), ResponseError(Code.INVALID_REQUEST, "The method is not a string."))
        elif "id" in message:
            self._take_request(message)
        else:
            self._take_notification(message["method"], message.get("params"))

    def _take_request(self, message: dict[str, Any]) -> None:
        msg_id, method = _id_of(message), message["method"]
        try:
            if msg_id is None or msg_id in self._request_futures:
                raise ResponseError(Code.INVALID_REQUEST, "The request's id is not a new number or string.")
            self._check_phase(method)
            params = self._structure(method, message.get("params"))
        except ResponseError as error:
            self._fail(msg_id, error)
            return
        self._handle_request(msg_id, method, params)

    def _check_phase(self, method: str) -> None:
        if self._shutdown:
            raise ResponseError(Code.INVALID_REQUEST, "The server has been shut down.")
        if method == types.INITIALIZE:
            if self.initialized:
                raise ResponseError(Code.INVALID_REQUEST, "The server is initialized already.")
        elif not self.initialized:
            raise ResponseError(Code.NOT_INITIALIZED, "The server is not initialized yet.")
        if not self._answers(method):
            raise ResponseError(Code.METHOD_NOT_FOUND, f"There is no method {method}.")

    def _take_notification(self, method: str, raw: Any) -> None:
        ready = self.initialized and not self._shutdown
        if method not in self.notifications or not (ready or method == types.EXIT):
            _log.debug("notification %s ignored", method)
            return
        try:
            params = self._structure(method, raw)
        except ResponseError as error:
            _log.warning("notification %s ignored: %s", method, error.message)
            return
        self._handle_notification(method, params)

    def _structure(self, method: str, raw: Any) -> Any:
        """Typed params of a known method; raises InvalidParams."""
        try:
            if method in self.models:
                return self.models[method].model_validate({} if raw is None else raw)
            kind: Any = types.METHOD_TO_TYPES[method][2] if method in types.METHOD_TO_TYPES else None
            return None if kind is None else self._converter.structure(raw, kind)
        except ValidationError as error:
            where = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()[:3])
            raise invalid_params(f"Malformed params of {method}: {where}") from error
        except Exception as error:  # cattrs and the validators of lsprotocol raise whatever they meet
            raise invalid_params(f"Malformed params of {method}.") from error

    def _take_response(self, message: dict[str, Any]) -> None:
        future = self.calls.pop(message["id"], None) if _id_of(message) is not None else None
        if future is None or future.done():
            _log.debug("a reply that nobody waits for")
        elif "error" in message:
            found = message["error"] if isinstance(message["error"], dict) else {}
            future.set_exception(ResponseError(Code.REQUEST_FAILED, str(found.get("message", "refused"))))
        else:
            future.set_result(message.get("result"))

    # Parts of pygls that log bodies, put tracebacks on the wire or count on a writer of its own

    def _execute_handler(
        self,
        msg_id: MessageId,
        handler: Handler,
        callback: Callable[["Future[Any]"], None],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        future: Any = Future()
        try:
            result = handler(*(args or ()))
        except Exception as error:
            future.set_exception(error)
        else:
            if inspect.isawaitable(result):
                future = self._request_futures[msg_id] = asyncio.ensure_future(result)  # type: ignore[assignment]
            else:
                future.set_result(result)
        future.add_done_callback(callback)

    def _handle_cancel_notification(self, msg_id: MessageId) -> None:
        # lsprotocol lets anything pass as an id.
        future = self._request_futures.pop(msg_id, None) if isinstance(msg_id, int | str) else None
        if future is not None:
            future.cancel()

    def _send_handler_result(self, future: "Future[Any]", *, msg_id: MessageId) -> None:
        self._request_futures.pop(msg_id, None)
        if future.cancelled():
            self._fail(msg_id, ResponseError(Code.REQUEST_CANCELLED, "The request was cancelled."))
        elif (error := future.exception()) is not None:
            self._fail(msg_id, self._explain(error))
        else:
            self._send_response(msg_id, result=future.result())

    def _check_handler_result(self, future: "Future[Any]") -> None:
        if not future.cancelled() and (error := future.exception()) is not None:
            self._explain(error)

    def _explain(self, error: BaseException) -> ResponseError:
        found = response_error(error)
        if found.code is Code.INTERNAL_ERROR:
            _log.error("a handler failed", exc_info=error)
        return found

    def _send_response(self, msg_id: MessageId | None, result: Any = None, error: Any = None) -> None:
        if error is not None:
            self._fail(msg_id, ResponseError(Code.INTERNAL_ERROR, error.message))
        else:
            self._send_data({"jsonrpc": "2.0", "id": msg_id, "result": self.plain(result)})

    def _fail(self, msg_id: MessageId | None, error: ResponseError) -> None:
        body = {"code": int(error.code), "message": error.message}
        if error.data is not None:
            body["data"] = error.data
        self._send_data({"jsonrpc": "2.0", "id": msg_id, "error": body})

    def _send_data(self, data: Any) -> None:
        self.send(frame(_written(data)))

    def plain(self, value: Any) -> Any:
        """`value` as JSON types: protocol types, our own models, or plain already."""
        if isinstance(value, BaseModel):
            return value.model_dump(mode="json", by_alias=True)
        return self._converter.unstructure(value)


class Peer:
    """The client at the other end of one stream."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, version: str) -> None:
        self._reader = reader
        self._writer = writer
        self._server = _Server("laguna-daemon", version, protocol_cls=_Protocol, converter_factory=lambda: _converter)
        protocol = self._server.protocol
        assert isinstance(protocol, _Protocol)
        self._protocol = protocol
        self._protocol.send = self._send
        self._ids = itertools.count(1)

    @property
    def methods(self) -> frozenset[str]:
        """Every method that is served."""
        return frozenset({*self._protocol.fm.features, *self._protocol.fm.builtin_features})

    def on_request(
        self, method: str, handler: Handler, model: type[BaseModel] | None = None, options: Any = None
    ) -> None:
        """Serve `method`: `handler` is called before the next message is looked at, and may return a coroutine.

        Params come as `model`, or as lsprotocol's type of a standard method.
        """
        if model is not None:
            self._protocol.models[method] = model

        def serve(params: Any) -> Any:  # pygls marks what it registers, and a method cannot be marked
            return handler(params)

        self._protocol.fm.feature(method, options)(serve)

    def on_notification(self, method: str, handler: Handler, model: type[BaseModel] | None = None) -> None:
        """Take notifications of `method`; see on_request."""
        self._protocol.notifications.add(method)
        self.on_request(method, handler, model)

    def on_initialize(
        self,
        handler: Callable[[types.InitializeParams, types.ServerCapabilities], None],
        commands: Sequence[str],
    ) -> None:
        """Serve `initialize`: `handler` may change the capabilities, computed from what is registered."""

        def serve(params: types.InitializeParams) -> types.InitializeResult:
            encoding = choose_encoding(params.capabilities)
            builder = ServerCapabilitiesBuilder(
                params.capabilities,
                set(self.methods),
                self._protocol.fm.feature_options,
                list(commands),
                types.TextDocumentSyncKind.Incremental,
                None,
                encoding,
            )
            capabilities: types.ServerCapabilities = builder.build()  # type: ignore[no-untyped-call]
            handler(params, capabilities)
            self._protocol.initialized = True
            info = types.ServerInfo(name=self._server.name, version=self._server.version)
            return types.InitializeResult(capabilities=capabilities, server_info=info)

        self._protocol.fm.feature(types.INITIALIZE)(serve)

    async def run(self) -> None:
        """Handle messages until the stream ends, the client says `exit`, or its framing breaks."""
        try:
            for number in itertools.count(1):
                body = await read_frame(self._reader)
                if body is None:
                    return
                self._protocol.receive(body)
                if self._protocol.exited:
                    return
                if number % MESSAGES_PER_TURN == 0:
                    await asyncio.sleep(0)  # a burst must not keep the loop from everyone else
        except BadFrame as error:
            _log.warning("connection closed: %s", error)
            said = f"What the editor sends is not the Language Server Protocol ({error}), so the connection is closed."
            self._protocol._fail(None, ResponseError(Code.PARSE_ERROR, said, {"closed": True}))
        except OSError:
            _log.debug("connection lost")

    @property
    def connection(self) -> socket.socket | None:
        """The stream's socket, if it has one."""
        found: socket.socket | None = self._writer.get_extra_info("socket")
        return found

    def abort(self) -> None:
        """Break the stream off: `run` ends."""
        self._writer.transport.abort()

    async def aclose(self) -> None:
        """Cancel what is running, wait until it has let go, and close the stream."""
        # Only what can be awaited is kept there, so these are tasks, whatever pygls declares.
        running = cast("list[asyncio.Task[Any]]", list(self._protocol._request_futures.values()))
        waiting: list[asyncio.Future[Any]] = [*running, *self._protocol.calls.values()]
        for future in waiting:
            future.cancel()
        if running and (await asyncio.wait(running, timeout=CLOSING_SECONDS))[1]:
            _log.warning("a request of a lost client did not end within %.0f s", CLOSING_SECONDS)
        self._writer.close()
        with contextlib.suppress(OSError, asyncio.TimeoutError):
            await asyncio.wait_for(self._writer.wait_closed(), 1.0)

    def notify(self, method: str, params: Any) -> None:
        """Send a notification; nothing happens if the client is gone."""
        self._protocol._send_data({"jsonrpc": "2.0", "method": method, "params": self._protocol.plain(params)})

    async def call(self, method: str, params: Any) -> Any:
        """Send a request and wait for the client's result (plain JSON); raises ResponseError."""
        msg_id = f"laguna-{next(self._ids)}"
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._protocol.calls[msg_id] = future
        self._protocol._send_data(
            {"jsonrpc": "2.0", "id": msg_id, "method": method, "params": self._protocol.plain(params)}
        )
        try:
            return await future
        finally:
            self._protocol.calls.pop(msg_id, None)

    async def drain(self) -> None:
        """Wait while the client reads slower than we write."""
        with contextlib.suppress(ConnectionError):
            await self._writer.drain()

    def _send(self, data: bytes) -> None:
        transport = self._writer.transport
        if transport.is_closing():
            return
        if transport.get_write_buffer_size() > UNREAD_BYTES:
            _log.warning("connection closed: the client has stopped reading")
            transport.abort()
            return
        self._writer.write(data)


def choose_encoding(capabilities: types.ClientCapabilities) -> types.PositionEncodingKind | str:
    """The client's first position encoding that we speak; utf-16 where it names none."""
    return ServerCapabilitiesBuilder.choose_position_encoding(capabilities)


def _parsed(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return json.loads(body)  # which also takes half a surrogate pair, as editors send one now and then


def _written(data: Any) -> bytes:
    try:
        return orjson.dumps(data)
    except TypeError:  # half a surrogate pair, an integer of more than 64 bits
        return json.dumps(data, separators=(",", ":")).encode()


def _id_of(message: Any) -> MessageId | None:
    found = message.get("id") if isinstance(message, dict) else None
    return found if isinstance(found, int | str) and not isinstance(found, bool) else None
