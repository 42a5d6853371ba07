"""Random clients: whatever they send, every request gets one answer and the server goes on."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from laguna_daemon.schemas import TextEvent
from support.fake_service import eventually
from support.lsp_client import edit, encode, inline

METHODS = [
    "codeAction/resolve",
    "initialize",
    "laguna/chat",
    "laguna/context",
    "laguna/conversations",
    "laguna/didPartiallyAcceptCompletion",
    "laguna/didShowCompletion",
    "laguna/status",
    "laguna/warm",
    "textDocument/codeAction",
    "textDocument/completion",
    "textDocument/didChange",
    "textDocument/didClose",
    "textDocument/didOpen",
    "textDocument/hover",
    "textDocument/inlineCompletion",
    "window/workDoneProgress/cancel",
    "workspace/didChangeWorkspaceFolders",
    "workspace/executeCommand",
    "$/cancelRequest",
    "$/progress",
    "",
]
VALUES: list[Any] = [None, True, 0, -1, 2**70, 1.5, "", "x", "\ud83d", "file:///tmp/a%20b", [], [[]], {}, {"id": 1}]
BLOCK = "<<<<<<< SEARCH a b.py\nword \n=======\nx\n>>>>>>> REPLACE\n"
TEXTS = ["", "\n", "\r", "\r\n", "😋", "é", "\x0c", "word ", "\ud83d", "\ude0b"]


def junk(chance: random.Random, depth: int = 0) -> Any:
    if depth < 3 and chance.random() < 0.4:
        names = ["textDocument", "position", "uri", "line", "character", "text", "id", "token", "range", "event"]
        return {chance.choice(names): junk(chance, depth + 1) for _ in range(chance.randrange(4))}
    return chance.choice(VALUES)


def place(chance: random.Random) -> tuple[int, int]:
    return chance.choice([0, 1, 2, 5, 10**6]), chance.choice([0, 1, 2, 3, 7, 10**6])


def position(chance: random.Random) -> dict[str, int]:
    line, character = place(chance)
    return {"line": line, "character": character}


def params(chance: random.Random, method: str, uri: str) -> Any:
    """Mostly sensible params, so that the interesting code is reached."""
    if chance.random() < 0.3:
        return junk(chance)
    text = "".join(chance.choices(TEXTS, k=chance.randrange(8)))
    if method == "textDocument/didOpen":
        return {"textDocument": {"uri": uri, "languageId": "x", "version": 1, "text": text}}
    if method == "textDocument/didChange":
        change = edit(place(chance), place(chance), text) if chance.random() < 0.8 else {"text": text}
        return {"textDocument": {"uri": uri, "version": chance.randrange(9)}, "contentChanges": [change] * 2}
    if method == "$/cancelRequest":
        return {"id": chance.randrange(1000, 1200)}
    if method == "laguna/chat":
        span = {"start": position(chance), "end": position(chance)}
        reference = {"uri": uri, "range": span, "symbol": chance.choice([None, text]), "diagnostics": []}
        mode, references = chance.choice(["ask", "edit"]), chance.choice([[], [reference]])
        return {"text": "why?", "partialResultToken": chance.choice(["a", 1]), "mode": mode, "references": references}
    if method in ("textDocument/codeAction", "codeAction/resolve"):
        span = {"start": position(chance), "end": position(chance)}
        complaint = {"range": span, "message": text}
        data = {"task": "fix", "uri": uri, "version": 1, "range": span}
        context = {"diagnostics": [complaint] * chance.randrange(3)}
        return {"textDocument": {"uri": uri}, "range": span, "context": context, "title": "x", "data": data}
    if method == "laguna/conversations":
        return {"action": chance.choice(["list", "read", "delete"]), "conversation": chance.choice([None, text])}
    command = chance.choice(["x", "laguna.edit", "laguna.warm", "laguna.didAcceptCompletion", "laguna.startEngine"])
    return {**inline(uri, *place(chance)), "command": command, "event": {"added": [], "removed": []}, "id": "c1"}


@pytest.mark.parametrize("seed", range(20))
async def test_no_answer_is_lost(connect, stand, tmp_path, seed):
    chance = random.Random(seed)
    stand.service.account = {"root": "/r"}
    stand.service.events.insert(0, TextEvent(text=chance.choice(["", BLOCK, BLOCK[:40], "<<<<<<< CREATE ../x\n"])))
    client = await connect()
    await client.initialize(tmp_path, window={"workDoneProgress": True})
    uri = (tmp_path / "a b.py").as_uri()
    asked = []
    for number in range(1000, 1200):
        method = chance.choice(METHODS)
        message = {"method": method, "params": params(chance, method, uri)}
        # A notification's method may come as a request and the other way round.
        if method != "$/cancelRequest" and chance.random() < 0.6:
            message["id"] = number
            asked.append(number)
        client.write(encode(message))
        if chance.random() < 0.1:
            client.write(b"Content-Length: 4\r\n\r\n" + chance.choice([b"{{{{", b"null", b"\xff\xff\xff\xff", b'"ab"']))
        if chance.random() < 0.05:
            stand.service.hold = not stand.service.hold
    stand.service.release()
    for number in asked:
        await client.answer(number)
    await client.settle()
    assert all(len(client.answers(number)) == 1 for number in asked)
    await eventually(lambda: stand.service.running == 0, "nothing runs on")
    for text, _ in stand.service.buffers.held.values():
        json.dumps(text, ensure_ascii=False).encode()  # valid Unicode at every moment


async def test_cancel_storm(connect, stand, tmp_path):
    stand.service.hold = True
    client = await connect()
    await client.initialize()
    uri = (tmp_path / "a").as_uri()
    client.open(uri, "x")
    numbers = range(1000, 1400)
    for number in numbers:
        params = inline(uri, 0, 1) | {"text": "why?"}
        method = "laguna/chat" if number % 2 else "textDocument/inlineCompletion"
        client.write(encode({"id": number, "method": method, "params": params}))
    for number in reversed(numbers):
        client.write(encode(*[{"method": "$/cancelRequest", "params": {"id": number}}] * 3))
    for number in numbers:
        await client.answer(number)
    await client.settle()
    assert all(len(client.answers(number)) == 1 for number in numbers)
    assert stand.service.running == 0


async def test_huge_documents(connect, stand, tmp_path):
    client = await connect()
    await client.initialize(tmp_path)
    uri = (tmp_path / "a.py").as_uri()
    for text in ("x" * 3_000_000, "\n" * 1_000_000, "def f(" * 100_000, "😋" * 500_000):
        client.open(uri, text)
        for line, character in ((0, 0), (0, 10**9), (10**9, 0), (500_000, 3)):
            params = inline(uri, line, character) | {"context": {"triggerKind": 1}}
            assert "error" not in await client.answer(client.start("textDocument/inlineCompletion", params))
        span = {"start": {"line": 0, "character": 0}, "end": {"line": 10**9, "character": 0}}
        params = {"textDocument": {"uri": uri}, "range": span, "context": {"diagnostics": [], "triggerKind": 1}}
        await client.request("textDocument/codeAction", params)
        client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    await client.settle()
