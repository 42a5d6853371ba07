"""The real engine behind the real daemon: pytest-lsp as an independent client, a real Neovim, the engine's metrics."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pytest_lsp import LanguageClient

from support.daemon import Home, repository, until
from support.engine_probe import Probe
from support.neovim import Neovim, neovim

FILES = {
    "lamp.py": "class Lamp:\n    def on(self):\n        self.lit = True\n\n    def off(self):\n",
    "README.md": "# Lamp\n\nA lamp that can be switched on and off.\n",
}
COMMAND = [sys.executable, "-m", "laguna_daemon.cli", "lsp"]
LONG = {"text": "Tell a very long story about a lamp.", "maxTokens": 800, "temperature": 0.0}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path / "lamp", FILES)


@pytest.fixture
def engine(real_home: Home) -> Probe:
    real_home.json("start", "--wait", "--json")
    return Probe(real_home.runtime / "engine.sock")


class Client(LanguageClient):
    """pytest-lsp's client, which cannot take progress values that are lists: ours are kept as they come."""

    def __init__(self) -> None:
        super().__init__()
        self.values: list[Any] = []
        self.progressed = asyncio.Event()


@pytest.fixture
async def client(real_home: Home, repo: Path) -> AsyncIterator[Client]:
    client = Client()

    @client.feature(types.PROGRESS)
    def take(params: types.ProgressParams) -> None:
        client.values.append(params.value)
        client.progressed.set()

    await client.start_io(*COMMAND, env=real_home.env)
    folder = types.WorkspaceFolder(uri=repo.as_uri(), name="lamp")
    capabilities = types.ClientCapabilities(
        general=types.GeneralClientCapabilities(position_encodings=[types.PositionEncodingKind.Utf8]),
        text_document=types.TextDocumentClientCapabilities(
            inline_completion=types.InlineCompletionClientCapabilities()
        ),
    )
    params = types.InitializeParams(capabilities=capabilities, workspace_folders=[folder])
    found = await client.initialize_session(params)
    assert found.server_info.name == "laguna-daemon"
    assert found.capabilities.position_encoding == "utf-8"
    assert found.capabilities.inline_completion_provider is not None
    yield client
    if not client.stopped:  # a test may have killed its bridge
        await client.shutdown_session()
        await client.stop()


async def ask(client: Client, **params: Any) -> Any:
    return await client.protocol.send_request_async("laguna/chat", {"text": "What is a lamp?", **params})


def opened(client: Client, repo: Path) -> str:
    uri = (repo / "lamp.py").as_uri()
    item = types.TextDocumentItem(uri=uri, language_id="python", version=1, text=FILES["lamp.py"] + "        ")
    client.text_document_did_open(types.DidOpenTextDocumentParams(text_document=item))
    return uri


def completion(uri: str) -> types.InlineCompletionParams:
    return types.InlineCompletionParams(
        text_document=types.TextDocumentIdentifier(uri=uri),
        position=types.Position(line=5, character=8),
        context=types.InlineCompletionContext(trigger_kind=types.InlineCompletionTriggerKind.Automatic),
    )


async def test_chat_and_completion(client, engine, repo):
    first = await ask(client, partialResultToken="chat", maxTokens=40)
    assert first.text
    assert first.usage.promptTokens == first.usage.cachedTokens + first.usage.prefilledTokens
    assert 0 < first.usage.outputTokens <= 40
    streamed = [value["text"] for value in client.values if value["kind"] == "text"]
    assert "".join(streamed) == first.text and len(streamed) > 1
    second = await ask(client, conversation=first.conversation, maxTokens=40)
    assert second.usage.cachedTokens > 0
    found = await client.text_document_inline_completion_async(completion(opened(client, repo)))
    assert isinstance(found, types.InlineCompletionList)
    until(lambda: engine.running() == 0, timeout=60)  # the suggestion behind it is prepared


@pytest.mark.parametrize("way", ["cancel", "exit", "kill"])
async def test_every_kind_of_abort_frees_the_engine(client, engine, way):
    asking = client.protocol.send_request("laguna/chat", {**LONG, "partialResultToken": "chat"}, msg_id="long")
    async with asyncio.timeout(120):
        while not any(value["kind"] == "text" for value in client.values):
            await client.progressed.wait()
            client.progressed.clear()
    assert engine.running() == 1
    began = time.monotonic()
    leave: dict[str, Callable[[], object]] = {
        "cancel": lambda: client.cancel_request(types.CancelParams(id="long")),
        "exit": client._server.stdin.close,
        "kill": client._server.kill,
    }
    leave[way]()
    await asyncio.to_thread(until, lambda: engine.running() == 0, timeout=30)
    print(f"{way}: the engine was free after {time.monotonic() - began:.2f} s")
    if way == "cancel":
        with pytest.raises(Exception, match="cancelled"):
            await asyncio.wrap_future(asking)
    else:
        asking.cancel()


def test_neovim_shows_ghost_text_and_a_chat_answer(real_home, engine, repo):
    editor = Neovim(neovim(), COMMAND, repo / "lamp.py", real_home.env)
    try:
        editor.until("v:lua.Ready()", lambda ready: ready is True)
        # In words this small model talks about the code, which is held back where code is wanted.
        editor.keys("Go        # This lamp ")
        assert editor.until("v:lua.Ghost()", bool)
        assert editor.value("v:lua.Chat('What can a lamp do?')") is True
        answer = editor.until("luaeval('_G.answer or false')", bool, seconds=180)
        assert answer["result"]["text"]
        assert answer["result"]["usage"]["outputTokens"] > 0
        assert [piece for piece in answer["pieces"] if piece["kind"] == "text"]
        assert editor.quit() == 0
    finally:
        editor.kill()
