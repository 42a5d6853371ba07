"""`laguna/context`, `laguna/conversations`, tasks, symbols, and the commands of a status."""

from __future__ import annotations

import pytest

from laguna_daemon.schemas import ConversationSummary, ConversationTurn
from support.fake_service import FakeStored
from support.lsp_client import encode

MANIFEST = {
    "root": "/r",
    "snapshot": "abc",
    "overlay_seq": 2,
    "identity": "i",
    "files": [
        {
            "path": "a.py",
            "tier": "full",
            "tokens": 5,
            "overlay_tokens": 0,
            "version": "00",
            "reason": "",
            "detail": "",
        }
    ],
    "findings": [{"kind": "key", "line": 3, "path": "a.py"}],
    "left_out": {"ignored": 2},
    "skipped": {},
    "tiers": {"full": 1},
    "prefix_tokens": 9,
    "snapshot_tokens": 5,
    "overlay_tokens": 0,
    "listing_tokens": 1,
    "budget": {"context": 8192},
    "notices": ["n"],
}
WHY = {
    "path": "b c.py",
    "included": False,
    "tier": "",
    "tokens": 0,
    "rule": "*.py",
    "source": ".gitignore",
    "line": 1,
    "reason": "ignored",
    "text": "b c.py is ignored.",
}


async def test_what_is_in_the_prompt(connect, stand, tmp_path):
    stand.service.account = MANIFEST
    client = await connect()
    await client.initialize(tmp_path)
    found = await client.request("laguna/context", {})
    assert found["prefixTokens"] == 9 and found["leftOut"] == {"ignored": 2} and found["notices"] == ["n"]
    assert found["files"][0]["overlayTokens"] == 0
    await client.request("laguna/context", {"root": "file:///tmp/my%20project%20%C3%A9%231"})
    assert [asked.root for asked in stand.service.described] == [str(tmp_path), "/tmp/my project é#1"]


async def test_why_a_path_is_in_or_out(connect, stand, tmp_path):
    stand.service.account = WHY
    client = await connect()
    await client.initialize(tmp_path)
    for why in ("b c.py", (tmp_path / "b c.py").as_uri(), str(tmp_path / "b c.py")):
        found = await client.request("laguna/context", {"why": why})
        assert found["text"] == "b c.py is ignored." and found["included"] is False
    assert [asked.why for asked in stand.service.described] == ["b c.py"] * 3
    elsewhere = {"root": str(tmp_path), "why": "file:///etc/hostname"}
    assert await client.refused("laguna/context", elsewhere) == -32602


async def test_context_needs_a_root(connect, stand):
    client = await connect()
    await client.initialize()
    assert await client.refused("laguna/context", {}) == -32602
    assert await client.refused("laguna/context", {"root": "relative"}) == -32602


async def test_conversations(connect, stand, tmp_path):
    summary = ConversationSummary(id="c1", root=str(tmp_path), title="Why?", created=1.0, used=2.0, turns=1)
    turn = ConversationTurn(question="Why?", answer="So.", thinking="hm")
    stand.service.conversations.held["c1"] = FakeStored(summary, [turn])
    client = await connect()
    await client.initialize(tmp_path)
    listed = await client.request("laguna/conversations", {})
    assert [found["title"] for found in listed["conversations"]] == ["Why?"]
    assert (await client.request("laguna/conversations", {"root": "/other"}))["conversations"] == []
    read = await client.request("laguna/conversations", {"action": "read", "conversation": "c1"})
    assert (read["turns"][0]["answer"], read["turns"][0]["thinking"]) == ("So.", "hm")
    assert await client.refused("laguna/conversations", {"action": "read"}) == -32602
    assert await client.refused("laguna/conversations", {"action": "burn", "conversation": "c1"}) == -32602
    assert (await client.request("laguna/conversations", {"action": "delete", "conversation": "c1"}))["deleted"]
    assert await client.refused("laguna/conversations", {"action": "delete", "conversation": "c1"}) == -32803


async def test_a_client_learns_what_is_offered(connect, stand):
    client = await connect()
    found = await client.initialize()
    assert "laguna/context" in found["experimental"]["laguna"]["methods"]
    assert found["experimental"]["laguna"]["chatModes"] == ["ask", "edit"]
    assert found["codeActionProvider"]["resolveProvider"] is True


async def test_a_task_needs_no_words(connect, stand, tmp_path):
    client = await connect()
    await client.initialize(tmp_path)
    await client.request("laguna/chat", {"task": "review"})
    assert (stand.service.asked[0].task, stand.service.asked[0].question) == ("review", "")
    assert await client.refused("laguna/chat", {"text": " "}) == -32602
    assert await client.refused("laguna/chat", {"task": "sing"}) == -32602


@pytest.mark.parametrize("opened", [True, False])
async def test_a_symbol_is_found_in_buffer_or_file(connect, stand, tmp_path, opened):
    text = "class A:\n    def on(self):\n        pass\n\nclass Lamp:\n    def on(self):\n        return 1\n"
    client = await connect()
    await client.initialize(tmp_path)
    uri = (tmp_path / "a.py").as_uri()
    if opened:
        client.open(uri, text)
    else:
        (tmp_path / "a.py").write_text(text)
    await client.request("laguna/chat", {"text": "why?", "references": [{"uri": uri, "symbol": "Lamp.on"}]})
    (found,) = stand.service.asked[0].references
    assert (found.first_line, found.last_line) == (6, 7)
    wrong = {"text": "why?", "references": [{"uri": uri, "symbol": "Lamp.off"}]}
    assert await client.refused("laguna/chat", wrong) == -32602


async def test_commands_of_a_status(connect, stand):
    client = await connect()
    await client.initialize()
    await client.request("workspace/executeCommand", {"command": "laguna.startEngine", "arguments": []})
    assert stand.service.started == 1
    assert await client.refused("workspace/executeCommand", {"command": "laguna.dance"}) == -32602


async def test_the_log_is_shown_or_named(connect, stand, monkeypatch, tmp_path):
    monkeypatch.setenv("LAGUNA_STATE_DIR", str(tmp_path))
    client = await connect()
    client.answer_requests = False
    await client.initialize()
    for refused in (False, True):
        asked = client.start("workspace/executeCommand", {"command": "laguna.openLog"})
        done = {m["id"] for m in client.received if m.get("method") == "window/showDocument"} if refused else set()
        call = await client.until(lambda m: m.get("method") == "window/showDocument" and m["id"] not in done)  # noqa: B023
        assert call["params"]["uri"] == (tmp_path / "logs" / "engine.log").as_uri()
        answer = {"error": {"code": -32601, "message": "no"}} if refused else {"result": {"success": True}}
        client.write(encode({"id": call["id"], **answer}))
        assert (await client.answer(asked))["result"] == {"success": not refused}
    shown = await client.until(lambda m: m.get("method") == "window/showMessage")
    assert "engine.log" in shown["params"]["message"]
