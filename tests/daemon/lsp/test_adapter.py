"""What the adapter counts on in pygls, and that nothing else counts on it."""

from __future__ import annotations

import ast
import asyncio
import importlib.metadata
import tomllib
from pathlib import Path

import pygls.workspace
import pytest
from lsprotocol import types
from pygls.protocol import LanguageServerProtocol

import laguna_daemon
from laguna_daemon.lsp import adapter
from laguna_daemon.lsp.errors import Code, ResponseError
from laguna_daemon.lsp.framing import frame

PACKAGE = Path(laguna_daemon.__file__).parent


def test_versions_are_the_ones_the_adapter_was_written_for():
    wanted = {"pygls": "2.1.1", "lsprotocol": "2025.0.0"}
    assert {name: importlib.metadata.version(name) for name in wanted} == wanted
    project = tomllib.loads((PACKAGE.parents[1] / "pyproject.toml").read_text())
    assert {f"{name}=={version}" for name, version in wanted.items()} <= set(project["project"]["dependencies"])


def test_pygls_is_imported_in_one_module():
    importing = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(name.partition(".")[0] == "pygls" for name in names):
                importing.add(path.relative_to(PACKAGE).as_posix())
    assert importing == {"lsp/adapter.py"}


@pytest.mark.parametrize(
    "name",
    [
        "_register_builtin_features",
        "_execute_handler",
        "_handle_cancel_notification",
        "_send_handler_result",
        "_check_handler_result",
        "_send_response",
        "_send_data",
    ],
)
def test_overridden_methods_still_exist(name):
    assert callable(getattr(LanguageServerProtocol, name))


def test_reason_for_a_text_store_of_our_own_still_holds():
    # If this fails, pygls has learned what a line is, and documents.py can be looked at again.
    lines = pygls.workspace.TextDocument("file:///a", "a\x0cb\nsecond line\n").lines
    assert len(lines) == 3


class Ends:
    """A peer and the two ends of its stream, without a socket."""

    def __init__(self) -> None:
        self.reader = asyncio.StreamReader()
        self.written: list[bytes] = []
        self.transport = Transport(self.written)
        protocol = asyncio.StreamReaderProtocol(self.reader)
        writer = asyncio.StreamWriter(self.transport, protocol, self.reader, asyncio.get_running_loop())
        self.peer = adapter.Peer(self.reader, writer, "1")


class Transport(asyncio.Transport):
    def __init__(self, written: list[bytes]) -> None:
        super().__init__()
        self.written, self.unread, self.aborted = written, 0, False

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def is_closing(self) -> bool:
        return self.aborted

    def get_write_buffer_size(self) -> int:
        return self.unread

    def abort(self) -> None:
        self.aborted = True


async def test_client_that_never_reads_is_dropped():
    ends = Ends()
    ends.peer.notify("laguna/didChangeStatus", {})
    assert len(ends.written) == 1
    ends.transport.unread = adapter.UNREAD_BYTES + 1
    ends.peer.notify("laguna/didChangeStatus", {})
    assert ends.transport.aborted
    ends.peer.notify("laguna/didChangeStatus", {})
    assert len(ends.written) == 1


async def test_refused_call_raises_and_late_replies_are_ignored():
    ends = Ends()
    running = asyncio.create_task(ends.peer.run())
    call = asyncio.create_task(ends.peer.call("window/workDoneProgress/create", {"token": 1}))
    await asyncio.sleep(0)
    ends.reader.feed_data(frame(b'{"jsonrpc":"2.0","id":"laguna-1","error":{"code":1,"message":"no bars"}}'))
    with pytest.raises(ResponseError, match="no bars") as caught:
        await call
    assert caught.value.code is Code.REQUEST_FAILED
    second = asyncio.create_task(ends.peer.call("window/workDoneProgress/create", {"token": 2}))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    ends.reader.feed_data(frame(b'{"jsonrpc":"2.0","id":"laguna-2","result":null}') * 2)
    ends.reader.feed_eof()
    await running


async def test_lost_client_ends_calls_to_it():
    ends = Ends()
    call = asyncio.create_task(ends.peer.call("window/workDoneProgress/create", {"token": 1}))
    await asyncio.sleep(0)
    closing = asyncio.create_task(ends.peer.aclose())
    await asyncio.gather(call, return_exceptions=True)
    assert call.cancelled()
    closing.cancel()


@pytest.mark.parametrize("method", [types.INITIALIZE, types.TEXT_DOCUMENT_INLINE_COMPLETION, types.PROGRESS])
def test_the_protocol_types_are_found_where_the_adapter_looks(method):
    assert types.METHOD_TO_TYPES[method][2].__name__.endswith("Params")
