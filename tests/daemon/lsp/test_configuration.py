"""The editor's settings, however the editor hands them over; each affects its own session only."""

from __future__ import annotations

from typing import Any

import pytest

from support.fake_service import eventually
from support.lsp_client import LspClient, encode, inline

PULL = {"configuration": True, "didChangeConfiguration": {"dynamicRegistration": True}}


async def suggests(client: LspClient, uri: str) -> bool:
    found = await client.request("textDocument/inlineCompletion", inline(uri, 0, 1))
    return bool(found and found["items"])


async def becomes(wanted: bool, client: LspClient, uri: str) -> None:
    """Pulled settings take effect soon, not at once."""
    for _ in range(100):
        if await suggests(client, uri) is wanted:
            return
    raise AssertionError(f"suggestions never became {wanted}")


async def start(client: LspClient, uri: str, options: Any = None, **workspace: Any) -> None:
    params = {"processId": None, "rootUri": None, "capabilities": {"workspace": workspace}}
    await client.request("initialize", {**params, "initializationOptions": options})
    client.notify("initialized", {})
    client.open(uri, "x")


async def answer_pull(client: LspClient, number: int, settings: Any) -> None:
    """Answer the client's `number`-th question for its settings."""

    def questions() -> list[dict[str, Any]]:
        return [m for m in client.received if m.get("method") == "workspace/configuration"]

    await eventually(lambda: len(questions()) >= number, "the server asks")
    question = questions()[number - 1]
    assert question["params"]["items"] == [{"section": "laguna"}]
    client.write(encode({"id": question["id"], "result": [settings]}))


@pytest.fixture
def uri(tmp_path) -> str:
    return (tmp_path / "a.py").as_uri()


async def test_initialization_options(connect, stand, uri):
    off, on = await connect(), await connect()
    await start(off, uri, {"completion": {"enabled": False}, "thinking": True, "novel": 1})
    await start(on, uri, {"completion": {"maxTokens": 7}})
    assert not await suggests(off, uri)
    assert await suggests(on, uri)
    assert stand.service.completed[-1].max_tokens == 7
    await off.request("laguna/chat", {"text": "why?"})
    await off.request("laguna/chat", {"text": "why?", "thinking": False})
    await on.request("laguna/chat", {"text": "why?"})
    assert [asked.thinking for asked in stand.service.asked] == [True, False, None]


async def test_pushed_settings(connect, uri):
    client = await connect()
    await start(client, uri)
    assert await suggests(client, uri)
    settings = {"laguna": {"completion": {"enabled": False}}, "other": 1}
    client.notify("workspace/didChangeConfiguration", {"settings": settings})
    assert not await suggests(client, uri)
    client.notify("workspace/didChangeConfiguration", {"settings": {"laguna": {}}})
    assert await suggests(client, uri)


async def test_pulled_settings(connect, uri):
    client = await connect()
    client.answer_requests = False
    await start(client, uri, **PULL)
    wish = await client.until(lambda m: m.get("method") == "client/registerCapability")
    assert wish["params"]["registrations"][0]["method"] == "workspace/didChangeConfiguration"
    client.write(encode({"id": wish["id"], "result": None}))
    await answer_pull(client, 1, {"completion": {"enabled": False}})
    await becomes(False, client, uri)
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    await answer_pull(client, 2, {"completion": {"enabled": True}})
    await becomes(True, client, uri)
    assert sum(m.get("method") == "client/registerCapability" for m in client.received) == 1


@pytest.mark.parametrize("wrong", [{"completion": {"enabled": "perhaps"}}, {"completion": {"maxTokens": 0}}, [], 3])
async def test_wrong_settings_are_named_and_change_nothing(connect, uri, wrong):
    client = await connect()
    await start(client, uri, {"completion": {"enabled": False}})
    client.notify("workspace/didChangeConfiguration", {"settings": {"laguna": wrong}})
    shown = await client.until(lambda m: m.get("method") == "window/showMessage")
    assert "laguna" in shown["params"]["message"]
    assert not await suggests(client, uri)


async def test_client_that_refuses_to_give_settings(connect, uri):
    client = await connect()
    client.answer_requests = False
    await start(client, uri, configuration=True)
    question = await client.until(lambda m: m.get("method") == "workspace/configuration")
    client.write(encode({"id": question["id"], "error": {"code": -32601, "message": "no"}}))
    assert await suggests(client, uri)
