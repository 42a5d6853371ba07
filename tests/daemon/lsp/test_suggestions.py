"""Suggestions as an editor meets them: typed along, prepared, not wanted, bounded, and with pieces of other files."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import pytest

from laguna_daemon.errors import OverBudget
from laguna_daemon.lsp.inline import related
from support.fake_service import eventually
from support.lsp_client import LspClient, edit, inline

INVOKED = {"context": {"triggerKind": 1}}


async def opened(connect: Any, folder: Path, text: str, **settings: Any) -> tuple[LspClient, str]:
    client = await connect()
    params = {
        "processId": None,
        "rootUri": None,
        "capabilities": {},
        "workspaceFolders": [{"uri": folder.as_uri(), "name": "w"}],
        "initializationOptions": {"completion": {"debounce": "off", "prefetch": False, **settings}},
    }
    await client.request("initialize", params)
    client.notify("initialized", {})
    uri = (folder / "a.py").as_uri()
    client.open(uri, text)
    return client, uri


async def suggested(client: LspClient, uri: str, line: int, character: int, **more: Any) -> str:
    found = await client.request("textDocument/inlineCompletion", {**inline(uri, line, character), **more})
    return found["items"][0]["insertText"] if found and found["items"] else ""


async def test_a_suggestion_lives_while_the_user_types_what_it_says(connect, stand, tmp_path):
    stand.service.completion = "value + 1"
    client, uri = await opened(connect, tmp_path, "x = ")
    assert await suggested(client, uri, 0, 4) == "value + 1"
    ids = set()
    for count, character in enumerate("value", 1):
        client.change(uri, 1 + count, edit((0, 3 + count), (0, 3 + count), character))
        found = await client.request("textDocument/inlineCompletion", inline(uri, 0, 4 + count))
        (item,) = found["items"]
        assert item["insertText"] == "value + 1"[count:]
        assert item["range"]["start"] == item["range"]["end"] == {"line": 0, "character": 4 + count}
        ids.add(item["command"]["arguments"][0])
    assert len(ids) == 1 and len(stand.service.completed) == 1
    client.change(uri, 9, edit((0, 9), (0, 9), "!"))
    stand.service.completion = "other"
    assert await suggested(client, uri, 0, 10) == "other"
    assert len(stand.service.completed) == 2


@pytest.mark.parametrize("part", ["value", "value + 1", "value + 1\n    y = 2"], ids=["word", "line", "whole"])
async def test_what_is_left_after_a_part_was_accepted(connect, stand, tmp_path, part):
    whole = "value + 1\n    y = 2"
    stand.service.completion = f"    x = {whole}"
    client, uri = await opened(connect, tmp_path, "def f():\n    x = ")
    assert await suggested(client, uri, 1, 8) == "value + 1"
    # At a fresh line a suggestion may have several lines.
    client.change(uri, 2, {"text": "def f():\n    "})
    assert await suggested(client, uri, 1, 4) == f"x = {whole}"
    taken = f"x = {part}"
    client.change(uri, 3, {"text": f"def f():\n    {taken}"})
    client.notify("laguna/didPartiallyAcceptCompletion", {"id": "c2", "acceptedLength": len(taken)})
    line, character = 1 + taken.count("\n"), len(f"    {taken}".rpartition("\n")[2])
    stand.service.completion = ""
    assert await suggested(client, uri, line, character) == whole[len(part) :]
    (session,) = stand.listener.sessions.values()
    assert session.completion.counts["partially accepted"] == 1


async def test_a_closing_bracket_of_the_editor_is_not_doubled(connect, stand, tmp_path):
    stand.service.completion = "(x, y)"
    client, uri = await opened(connect, tmp_path, "print")
    assert await suggested(client, uri, 0, 5) == "(x, y)"
    client.change(uri, 2, edit((0, 5), (0, 5), "()"))
    assert await suggested(client, uri, 0, 6) == "x, y"
    assert len(stand.service.completed) == 1


async def test_what_is_picked_in_the_menu_counts_as_written(connect, stand, tmp_path):
    stand.service.completion = "(value)"
    client, uri = await opened(connect, tmp_path, "😋 pri")
    picked = {"range": edit((0, 3), (0, 6), "")["range"], "text": "println"}
    context = {"triggerKind": 2, "selectedCompletionInfo": picked}
    found = await client.request("textDocument/inlineCompletion", {**inline(uri, 0, 6), "context": context})
    (item,) = found["items"]
    assert (item["insertText"], item["range"]) == ("println(value)", picked["range"])
    (asked,) = stand.service.completed
    assert (asked.prefix, asked.suffix) == ("😋 println", "")
    # Once it is accepted, the rest is there at once.
    client.change(uri, 2, edit((0, 3), (0, 6), "println"))
    assert await suggested(client, uri, 0, 10) == "(value)"
    assert len(stand.service.completed) == 1


@pytest.mark.parametrize("start", [(0, 3), (1, 3), (7, 7)])
async def test_a_pick_elsewhere_is_passed_over(connect, stand, tmp_path, start):
    client, uri = await opened(connect, tmp_path, "x\nab")
    context = {
        "triggerKind": 2,
        "selectedCompletionInfo": {"range": edit(start, start, "")["range"], "text": "println"},
    }
    found = await client.request("textDocument/inlineCompletion", {**inline(uri, 1, 1), "context": context})
    assert found["items"] == [] and stand.service.completed == []
    found = await client.request("textDocument/inlineCompletion", {**inline(uri, 1, 2), "context": context})
    assert found["items"][0]["range"]["end"] == {"line": 1, "character": 2}


async def test_the_next_suggestion_is_prepared(connect, stand, tmp_path):
    stand.service.completion = "1"
    client, uri = await opened(connect, tmp_path, "x = ", prefetch=True)
    assert await suggested(client, uri, 0, 4) == "1"
    stand.service.completion = "\ny = 2"
    (session,) = stand.listener.sessions.values()
    await eventually(lambda: session.completion.counts["prepared"] == 1, "the next one is there")
    assert stand.service.completed[-1].prefix == "x = 1" and stand.service.completed[-1].background
    client.change(uri, 2, edit((0, 4), (0, 4), "1"))
    before = len(stand.service.completed)
    assert await suggested(client, uri, 0, 5) == "\ny = 2"
    assert len(stand.service.completed) == before


async def test_what_is_being_prepared_ends_with_a_change(connect, stand, tmp_path):
    stand.service.completion = "1"
    client, uri = await opened(connect, tmp_path, "x = ", prefetch=True)
    assert await suggested(client, uri, 0, 4) == "1"
    stand.service.hold = True
    await eventually(lambda: stand.service.running == 1, "the next one is being made")
    client.change(uri, 2, edit((0, 0), (0, 0), "# "))
    await eventually(lambda: stand.service.running == 0, "nothing runs any more")
    assert stand.service.aborted == 1


@pytest.mark.parametrize(("text", "character"), [("x = more()", 4), ("name", 2)])
async def test_no_automatic_suggestion_before_text(connect, stand, tmp_path, text, character):
    client, uri = await opened(connect, tmp_path, text)
    assert await suggested(client, uri, 0, character) == ""
    assert stand.service.completed == []
    assert await suggested(client, uri, 0, character, **INVOKED) == "pass"


async def test_languages_are_switched(connect, stand, tmp_path):
    client, uri = await opened(connect, tmp_path, "x = ", languages={"python": False})
    assert await suggested(client, uri, 0, 4) == ""
    assert await suggested(client, uri, 0, 4, **INVOKED) == "pass"


async def test_a_fixed_debounce_waits_and_superseded_requests_cost_nothing(connect, stand, tmp_path):
    client, uri = await opened(connect, tmp_path, "x = ", debounce=150)
    asked = []
    for version in range(2, 12):
        asked.append(client.start("textDocument/inlineCompletion", inline(uri, 0, 2 + version)))
        client.change(uri, version, edit((0, 2 + version), (0, 2 + version), "1"))
        await asyncio.sleep(0.01)
    asked.append(client.start("textDocument/inlineCompletion", inline(uri, 0, 14)))
    results = [(await client.answer(number))["result"] for number in asked]
    assert results[:-1] == [None] * 10 and results[-1]["items"]
    assert [request.prefix for request in stand.service.completed] == ["x = 1111111111"]


async def test_pieces_of_other_files(connect, stand, tmp_path):
    (tmp_path / "lamp.py").write_text("class Lamp:\n    def on(self):\n        pass\n")
    client, uri = await opened(connect, tmp_path, "from lamp import Lamp\nx = ")
    (tmp_path / "other.py").write_text("")
    other = (tmp_path / "other.py").as_uri()
    client.open(other, "def helper():\n    return 1\ny = ")
    await suggested(client, other, 2, 4)
    await suggested(client, uri, 1, 4)
    last = stand.service.completed[-1]
    assert [snippet.path for snippet in last.snippets] == ["other.py", "lamp.py"]
    assert last.snippets[0].text.startswith("def helper():")
    assert last.snippets[1].text == "class Lamp:\n    def on(self):"
    client.change(other, 2, {"text": "changed"})
    client.change(uri, 2, edit((1, 4), (1, 4), "1"))
    await suggested(client, uri, 1, 5)
    assert stand.service.completed[-1].snippets == last.snippets  # what was left is as it was left
    client.notify("textDocument/didClose", {"textDocument": {"uri": other}})
    client.change(uri, 3, edit((1, 5), (1, 5), "2"))
    await suggested(client, uri, 1, 6)
    assert [snippet.path for snippet in stand.service.completed[-1].snippets] == ["lamp.py"]


async def test_pieces_are_looked_for_again_behind_the_users_back(connect, stand, tmp_path, monkeypatch):
    lamp = tmp_path / "lamp.py"
    lamp.write_text("class Lamp:\n    def on(self):\n        pass\n")
    client, uri = await opened(connect, tmp_path, "from lamp import Lamp\nx = ")
    version = 1

    async def shown() -> str:
        nonlocal version
        version += 1
        client.change(uri, version, edit((1, 2 + version), (1, 2 + version), "1"))
        await suggested(client, uri, 1, 3 + version)
        return "".join(snippet.text for snippet in stand.service.completed[-1].snippets)

    assert "on" in await shown()
    lamp.write_text("class Lamp:\n    def dim(self):\n        pass\n")
    monkeypatch.setattr(related, "FRESH", 0.0)
    monkeypatch.setattr(related, "PATIENCE", 0.0)  # nothing is waited for any more
    assert "on" in await shown()
    async with asyncio.timeout(20):
        while "dim" not in await shown():  # noqa: ASYNC110 - it is the asking that finds it
            await asyncio.sleep(0.02)
    monkeypatch.setattr(related, "USABLE", 0.0)
    assert await shown() == ""


async def test_an_import_that_is_typed_counts_at_once(connect, stand, tmp_path):
    (tmp_path / "lamp.py").write_text("class Lamp:\n    pass\ndef off():\n    pass\n")
    client, uri = await opened(connect, tmp_path, "from lamp import Lamp\nx = ")
    await suggested(client, uri, 1, 4)
    client.change(uri, 2, edit((0, 21), (0, 21), ", off"))
    await suggested(client, uri, 1, 4)
    (snippet,) = stand.service.completed[-1].snippets
    assert snippet.text == "class Lamp:\ndef off():"


async def test_no_pieces_when_they_are_turned_off(connect, stand, tmp_path):
    (tmp_path / "lamp.py").write_text("class Lamp:\n    pass\n")
    client, uri = await opened(connect, tmp_path, "from lamp import Lamp\nx = ", related=False, context="repository")
    await suggested(client, uri, 1, 4)
    (asked,) = stand.service.completed
    assert asked.snippets == [] and asked.scope == "repository"


async def test_a_broken_off_text_ends_at_a_line(connect, stand, tmp_path):
    stand.service.completion = "a = 1\n    b = "
    stand.service.finish = "timeout"
    client, uri = await opened(connect, tmp_path, "def f():\n    ")
    assert await suggested(client, uri, 1, 4) == "a = 1"


async def test_cases_of_the_contract(connect, stand, tmp_path):
    stand.service.completion = "x)"
    client, uri = await opened(connect, tmp_path, "numpy.array()")
    assert await suggested(client, uri, 0, 12) == "x"
    stand.service.completion = "return 1;\n  }"
    client.change(uri, 2, {"text": "class A {\n  f() {\n    "})
    assert await suggested(client, uri, 2, 4) == "return 1;\n  }"


async def test_files_that_a_model_may_not_see_stay_out(connect, stand, tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    (root / ".gitignore").write_text("ignored.py\n")
    await asyncio.to_thread(subprocess.run, ["git", "init", "-q", str(root)], check=True)
    client, uri = await opened(connect, root, "x = ")
    elsewhere = tmp_path / "other"
    elsewhere.mkdir()
    event = {"added": [{"uri": elsewhere.as_uri(), "name": "o"}], "removed": []}
    client.notify("workspace/didChangeWorkspaceFolders", {"event": event})
    for path in (root / "ignored.py", root / ".env", elsewhere / "b.py"):
        path.write_text("secret = 1\n")
        client.open(path.as_uri(), "secret = 1\ny = ")
        await suggested(client, path.as_uri(), 1, 4)
    before = len(stand.service.completed)
    assert ".env" not in [asked.path for asked in stand.service.completed]
    await suggested(client, uri, 0, 4)
    assert len(stand.service.completed) == before + 1
    assert stand.service.completed[-1].snippets == []


async def test_a_full_queue_shows_nothing(connect, stand, tmp_path):
    stand.service.error = OverBudget("The queue is full.")
    client, uri = await opened(connect, tmp_path, "x = ")
    assert await suggested(client, uri, 0, 4) == ""
