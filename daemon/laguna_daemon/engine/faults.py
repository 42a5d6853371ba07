"""What an engine's refusal or silence means to a user, as LagunaErrors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import httpx
import orjson

from laguna_daemon.errors import EngineUnavailable, LagunaError, OverBudget, ParameterRefused

_TOO_LONG = re.compile(r"maximum (?:context|model) length|exceeds model's maximum|max_model_len", re.IGNORECASE)
_LOG = "The reason is in its log: laguna-daemon logs"


def from_response(status: int, body: bytes) -> LagunaError:
    """The error of an HTTP answer that was no success."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        found = {}
    error = found.get("error", found) if isinstance(found, dict) else {}
    if not isinstance(error, Mapping):
        error = {"message": str(error)}
    return from_body({"code": status, **error}, status)


def from_body(error: Mapping[str, Any] | str, status: int | None = None) -> LagunaError:
    """The error of vLLM's error object, as sent in an answer or in the middle of a stream."""
    if isinstance(error, str):
        error = {"message": error}
    message = " ".join(str(error.get("message") or "no reason given").split())[:500]
    code = status if status is not None else _number(error.get("code"))
    if code in (400, 413, 422):
        return _refusal(message)
    if code in (401, 403):
        return EngineUnavailable(f"The engine refused the key: {message}", "Correct engine.api_key.")
    if code == 404:
        return EngineUnavailable(
            f"The engine does not know what was asked of it: {message}",
            "Check engine.url, and that it serves the profile's model.",
        )
    if code in (429, 503):
        return EngineUnavailable(f"The engine is not taking requests now: {message}", "Try again in a moment.")
    return EngineUnavailable(f"The engine failed while answering: {message}", _LOG)


def from_transport(error: httpx.TransportError) -> LagunaError:
    """The error of a connection that failed or broke off."""
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return EngineUnavailable(
            "The engine is not running, or not listening yet.", "See what it does: laguna-daemon status"
        )
    if isinstance(error, httpx.TimeoutException):
        return EngineUnavailable("The engine did not answer in time.", _LOG)
    return EngineUnavailable("The engine ended while it was answering; the answer is incomplete.", _LOG)


def _refusal(message: str) -> LagunaError:
    if _TOO_LONG.search(message):
        return OverBudget(
            f"The prompt is larger than the engine's context: {message}",
            "Leave files out, ask for less output, or use a profile with a larger context.",
        )
    return ParameterRefused(f"The engine refused the request: {message}", "Change the parameter it names.")


def _number(value: object) -> int:
    return int(value) if isinstance(value, int | str) and str(value).isdigit() else 500
