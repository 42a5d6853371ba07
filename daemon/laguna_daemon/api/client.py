"""The command line's side of the daemon's HTTP interface."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import httpx
import orjson
from pydantic import BaseModel, TypeAdapter
from pydantic_core import PydanticSerializationError

from laguna_daemon.errors import LagunaError, UsageError, error_for_code
from laguna_daemon.lifecycle import http_client
from laguna_daemon.schemas import (
    AskRequest,
    ErrorBody,
    ErrorEvent,
    Event,
    RefactorRequest,
    Status,
    UnsavedRequest,
    WarmRequest,
)

_events: TypeAdapter[Event] = TypeAdapter(Event)


def ask(request: AskRequest) -> Generator[Event, None, None]:
    """Stream the events of one answer; an error becomes an exception. Closing the iterator aborts the answer."""
    yield from _answer("/v1/ask", request)


def refactor(request: RefactorRequest) -> Generator[Event, None, None]:
    """Stream the events of one refactoring, as ``ask`` does; nothing is written by it."""
    yield from _answer("/v1/refactor", request)


def unsaved(request: UnsavedRequest) -> list[str]:
    """Those of the paths that an editor holds with other text than the disk's."""
    return [str(path) for path in post("/v1/unsaved", request)["paths"]]


def warm(request: WarmRequest) -> Generator[Event, None, None]:
    """Stream the events of one warm-up; it goes on when the iterator is closed."""
    yield from _answer("/v1/warm", request)


def watch_status() -> Generator[Status, None, None]:
    """The daemon's status, now and at every change."""
    for line in _lines("GET", "/v1/events", None):
        yield Status.model_validate_json(line)


def post(path: str, body: BaseModel) -> dict[str, Any]:
    """One request, one JSON object."""
    content = _dump(body)
    try:
        with http_client(timeout=None) as client:
            answer = client.post(path, content=content)
    except httpx.HTTPError as error:
        raise _gone(error) from error
    if not answer.is_success:
        raise _refusal(answer.content)
    found = orjson.loads(answer.content)
    assert isinstance(found, dict)
    return found


def _answer(path: str, request: BaseModel) -> Generator[Event, None, None]:
    for line in _lines("POST", path, request):
        event = _events.validate_json(line)
        if isinstance(event, ErrorEvent):
            raise error_for_code(event.exit_code, event.error, event.advice)
        yield event


def _lines(method: str, path: str, body: BaseModel | None) -> Generator[str, None, None]:
    content = _dump(body) if body is not None else None
    ended = False
    try:
        with http_client(timeout=None) as client, client.stream(method, path, content=content) as answer:
            if not answer.is_success:
                raise _refusal(answer.read())
            for line in answer.iter_lines():
                if line:
                    yield line
            ended = True
    except httpx.HTTPError as error:
        if not ended:
            raise _gone(error) from error


def _dump(body: BaseModel) -> str:
    try:
        return body.model_dump_json()
    except PydanticSerializationError as error:
        raise UsageError(
            "The question or a path holds bytes that are not UTF-8, so it cannot be sent to the daemon.",
            "Write it in UTF-8; a path that has no such spelling must be renamed.",
        ) from error


def _refusal(content: bytes) -> LagunaError:
    body = ErrorBody.model_validate_json(content)
    return error_for_code(body.exit_code, body.error, body.advice)


def _gone(error: Exception) -> LagunaError:
    return LagunaError(
        f"The daemon went away while answering ({error}).",
        "Ask again; if it happens twice, look at its log: laguna-daemon logs",
    )
