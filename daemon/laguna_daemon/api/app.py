"""The HTTP interface on the daemon's private socket.

| method and path     | body -> answer                                             |
|---------------------|------------------------------------------------------------|
| GET  /v1/status     | -> Status                                                  |
| GET  /v1/events     | -> a stream of Status, one JSON object a line, at changes  |
| POST /v1/ask        | AskRequest -> a stream of events, one JSON object a line   |
| POST /v1/complete   | CompleteRequest -> CompleteResult                          |
| POST /v1/refactor   | RefactorRequest -> events, the last ones proposal, report  |
| POST /v1/unsaved    | UnsavedRequest -> {"paths": those unsaved in an editor}    |
| POST /v1/context    | ContextRequest -> the manifest, or why a path is in or out |
| POST /v1/warm       | WarmRequest -> a stream of events, as for ask              |
| POST /v1/engine     | EngineRequest -> EngineStatus: another profile, a restart  |
| POST /v1/examine    | -> Proof: whether the engine works as it should            |
| POST /v1/shutdown   | {"when": "now" or "idle"} -> 202, or 409 when in use       |

Errors are ErrorBody with the exit code of the command line.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from laguna_daemon.errors import ExitCode, LagunaError, UsageError
from laguna_daemon.schemas import (
    AskRequest,
    CompleteRequest,
    ContextRequest,
    EngineRequest,
    ErrorBody,
    ErrorEvent,
    Event,
    RefactorRequest,
    UnsavedRequest,
    WarmRequest,
)
from laguna_daemon.service.service import Service

_log = logging.getLogger(__name__)
Body = TypeVar("Body", bound=BaseModel)
_HTTP = {
    ExitCode.USAGE: 400,
    ExitCode.PARAMETER: 400,
    ExitCode.REPOSITORY: 404,
    ExitCode.BUDGET: 413,
    ExitCode.ENGINE: 503,
}
_MOST_BODY_BYTES = 64 * 1024 * 1024


def create_app(service: Service, stopping: asyncio.Event) -> Starlette:
    """The application; setting ``stopping`` ends the daemon."""

    async def status(request: Request) -> Response:
        return _json(service.status())

    async def events(request: Request) -> Response:
        return StreamingResponse(_status_lines(service), media_type="application/x-ndjson")

    async def ask(request: Request) -> Response:
        wanted = await _body(request, AskRequest)
        return StreamingResponse(_answer_lines(service.ask(wanted), stopping), media_type="application/x-ndjson")

    async def refactor(request: Request) -> Response:
        wanted = await _body(request, RefactorRequest)
        return StreamingResponse(_answer_lines(service.refactor(wanted), stopping), media_type="application/x-ndjson")

    async def unsaved(request: Request) -> Response:
        return JSONResponse({"paths": await service.unsaved(await _body(request, UnsavedRequest))})

    async def complete(request: Request) -> Response:
        return _json(await service.complete(await _body(request, CompleteRequest)))

    async def context(request: Request) -> Response:
        found = await service.context(await _body(request, ContextRequest))
        return Response(orjson.dumps(_unicode(found)), media_type="application/json")

    async def shutdown(request: Request) -> Response:
        when = (await _object(request)).get("when", "now")
        if when == "idle" and not service.idle():
            return JSONResponse({"stopping": False}, 409)
        stopping.set()
        return JSONResponse({"stopping": True}, 202)

    def guarded(
        handler: Callable[[Request], Awaitable[Response]],
    ) -> Callable[[Request], Awaitable[Response]]:
        async def run(request: Request) -> Response:
            try:
                return await handler(request)
            except LagunaError as error:
                body = ErrorBody(error=error.what, advice=error.advice, exit_code=error.exit_code)
                return JSONResponse(body.model_dump(), _HTTP.get(error.exit_code, 500))
            except Exception as error:
                _log.exception("%s failed", request.url.path)
                return JSONResponse(_internal(error).model_dump(), 500)

        return run

    return Starlette(
        routes=[
            Route("/v1/status", guarded(status)),
            Route("/v1/events", guarded(events)),
            Route("/v1/ask", guarded(ask), methods=["POST"]),
            Route("/v1/refactor", guarded(refactor), methods=["POST"]),
            Route("/v1/unsaved", guarded(unsaved), methods=["POST"]),
            Route("/v1/complete", guarded(complete), methods=["POST"]),
            Route("/v1/context", guarded(context), methods=["POST"]),
            *(
                Route(path, guarded(handler), methods=["POST"])
                for path, handler in _about_the_engine(service, stopping)
            ),
            Route("/v1/shutdown", guarded(shutdown), methods=["POST"]),
        ]
    )


def _about_the_engine(
    service: Service, stopping: asyncio.Event
) -> tuple[tuple[str, Callable[[Request], Awaitable[Response]]], ...]:
    async def engine(request: Request) -> Response:
        return _json(await service.use_engine(await _body(request, EngineRequest)))

    async def examine(request: Request) -> Response:
        return _json(await service.examine())

    async def warm(request: Request) -> Response:
        wanted = await _body(request, WarmRequest)
        return StreamingResponse(_answer_lines(service.warm(wanted), stopping), media_type="application/x-ndjson")

    return ("/v1/engine", engine), ("/v1/examine", examine), ("/v1/warm", warm)


async def _answer_lines(answer: AsyncGenerator[Event, None], stopping: asyncio.Event) -> AsyncIterator[bytes]:
    try:
        async with aclosing(answer) as events:
            async for event in events:
                yield _line(event)
    except LagunaError as error:
        yield _line(ErrorEvent(error=error.what, advice=error.advice, exit_code=error.exit_code))
    except Exception as error:
        if stopping.is_set():
            body = ErrorBody(
                error="The daemon is ending; the answer is incomplete.",
                advice="Ask again.",
                exit_code=ExitCode.INTERNAL,
            )
        else:
            _log.exception("an answer failed")
            body = _internal(error)
        yield _line(ErrorEvent(error=body.error, advice=body.advice, exit_code=body.exit_code))


async def _status_lines(service: Service) -> AsyncIterator[bytes]:
    async with aclosing(service.watch_status()) as statuses:
        async for status in statuses:
            yield _line(status)


def _internal(error: Exception) -> ErrorBody:
    if isinstance(error, OSError) and error.strerror:
        place = f": {error.filename}" if error.filename else ""
        return ErrorBody(
            error=f"The system refused the daemon a file or folder: {error.strerror}{place}",
            advice="Free the space or mend the rights there, then try again. The log has more: laguna-daemon logs",
            exit_code=ExitCode.INTERNAL,
        )
    return ErrorBody(
        error=f"Something went wrong inside the daemon ({type(error).__name__}: {error}).",
        advice="The log has the details: laguna-daemon logs",
        exit_code=ExitCode.INTERNAL,
    )


def _json(body: BaseModel) -> Response:
    return Response(_dump(body), media_type="application/json")


def _line(body: BaseModel) -> bytes:
    return _dump(body) + b"\n"


def _dump(body: BaseModel) -> bytes:
    try:
        return body.model_dump_json().encode()
    except PydanticSerializationError:
        return orjson.dumps(_unicode(body.model_dump()))


def _unicode(value: Any) -> Any:
    """``value`` with the undecodable bytes of file names escaped: JSON cannot carry them."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_unicode(key): _unicode(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_unicode(item) for item in value]
    return value


async def _object(request: Request) -> dict[str, object]:
    raw = bytearray()
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > _MOST_BODY_BYTES:
            raise UsageError(f"The request is over {_MOST_BODY_BYTES // 2**20} MiB.")
    try:
        found = orjson.loads(bytes(raw) or b"{}")
    except orjson.JSONDecodeError as error:
        raise UsageError(f"The request is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise UsageError("The request must be a JSON object.")
    return found


async def _body(request: Request, model: type[Body]) -> Body:
    try:
        return model.model_validate(await _object(request))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise UsageError(f"The request's {name} is wrong: {first['msg']}") from error
