"""Errors a request can end with, by their codes in JSON-RPC 2.0 and the Language Server Protocol."""

from enum import IntEnum
from typing import Any

from laguna_daemon.errors import LagunaError


class Code(IntEnum):
    """Error codes a client can meet."""

    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603
    NOT_INITIALIZED = -32002
    REQUEST_CANCELLED = -32800
    CONTENT_MODIFIED = -32801
    REQUEST_FAILED = -32803


class ResponseError(Exception):
    """A request that gets an error response; the message is what the user reads."""

    def __init__(self, code: Code, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


def invalid_params(message: str) -> ResponseError:
    """The params are not what the method takes."""
    return ResponseError(Code.INVALID_PARAMS, message)


def response_error(error: BaseException) -> ResponseError:
    """The response for any exception of a handler: the cause the user can read, never a traceback."""
    if isinstance(error, ResponseError):
        return error
    if isinstance(error, LagunaError):
        data = {"advice": error.advice, "exitCode": int(error.exit_code)}
        return ResponseError(Code.REQUEST_FAILED, str(error), data)
    name = type(error).__name__
    return ResponseError(Code.INTERNAL_ERROR, f"Internal error ({name}); the daemon's log says more.")
