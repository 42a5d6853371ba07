"""Edit mode and code actions: an answer's blocks become a WorkspaceEdit of the documents as they are, or nothing."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from laguna_daemon.edits import Position, TextEdit
from laguna_daemon.schemas import TextEvent, Usage, UsageEvent
from support.editor import apply_to_text
from support.lsp_client import LspClient, edit

LAMP = "class Lamp:\n    def on(self):\n        self.lit = True\n\n    def off(self):\n        pass\n"
TURN_OFF = """\
Here it is.

<<<<<<< SEARCH lamp.py
    def off(self):
        pass
=======
    def off(self):
        self.lit = False
>>>>>>> REPLACE
"""
ABLE = {
    "workspace": {
        "applyEdit": True,
        "workspaceEdit": {
            "documentChanges": True,
            "resourceOperations": ["create", "rename", "delete"],
            "changeAnnotationSupport": {},
        },
    },
    "textDocument": {
        "codeAction": {
            "codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix", "refactor"]}},
            "dataSupport": True,
            "resolveSupport": {"properties": ["edit"]},
        }
    },
}


def says(stand: Any, text: str) -> None:
    stand.service.events = [TextEvent(text=text), UsageEvent(usage=Usage(), conversation="c1", text=text)]


def applied(text: str, edits: list[dict[str, Any]]) -> str:
    def position(place: dict[str, int]) -> Position:
        return Position(place["line"], place["character"])

    found = [TextEdit(position(e["range"]["start"]), position(e["range"]["end"]), e["newText"]) for e in edits]
    return apply_to_text(text, found, "utf-16")


async def opened(connect: Any, folder: Path, text: str = LAMP, able: dict[str, Any] = ABLE) -> tuple[LspClient, str]:
    client = await connect()
    await client.initialize(folder, **able)
    uri = (folder / "lamp.py").as_uri()
    client.open(uri, text, version=4)
    return client, uri


async def test_an_edit_of_an_unsaved_document(connect, stand, tmp_path):
    says(stand, TURN_OFF)
    client, uri = await opened(connect, tmp_path, "# 😋 unsaved\n" + LAMP)
    result = await client.request("laguna/chat", {"text": "Turn it off", "mode": "edit"})
    (asked,) = stand.service.asked
    assert asked.mode == "edit"
    (change,) = result["edit"]["documentChanges"]
    assert change["textDocument"] == {"uri": uri, "version": 4}
    after = applied("# 😋 unsaved\n" + LAMP, change["edits"])
    assert after == "# 😋 unsaved\n" + LAMP.replace("        pass\n", "        self.lit = False\n")
    annotation = result["edit"]["changeAnnotations"][change["edits"][0]["annotationId"]]
    assert annotation["label"] == "Edit lamp.py" and annotation["needsConfirmation"] is False
    assert result["refusals"] == []


async def test_a_document_that_changed_while_the_model_answered(connect, stand, tmp_path):
    says(stand, TURN_OFF)
    stand.service.hold = True
    client, uri = await opened(connect, tmp_path)
    asked = client.start("laguna/chat", {"text": "Turn it off", "mode": "edit", "partialResultToken": 1})
    await client.until(lambda m: m.get("method") == "$/progress")
    client.change(uri, 5, edit((0, 0), (0, 0), "import os\n"))
    await client.settle()
    stand.service.release()
    result = (await client.answer(asked))["result"]
    (change,) = result["edit"]["documentChanges"]
    assert change["textDocument"]["version"] == 5
    after = applied("import os\n" + LAMP, change["edits"])
    assert after == "import os\n" + LAMP.replace("        pass\n", "        self.lit = False\n")


async def test_an_ambiguous_block_is_refused(connect, stand, tmp_path):
    says(stand, "<<<<<<< SEARCH lamp.py\n        pass\n=======\n        return\n>>>>>>> REPLACE\n")
    client, _ = await opened(connect, tmp_path, LAMP + "\n    def dim(self):\n        pass\n")
    result = await client.request("laguna/chat", {"text": "x", "mode": "edit"})
    assert result["edit"] is None
    (refusal,) = result["refusals"]
    assert (refusal["path"], refusal["code"]) == ("lamp.py", "ambiguous")
    assert refusal["places"]
    assert refusal["message"] in result["notices"][-1]


async def test_files_are_created_renamed_and_deleted(connect, stand, tmp_path):
    (tmp_path / "old.py").write_text("a = 1\n")
    (tmp_path / "gone.py").write_text("b = 1\n")
    says(
        stand,
        "<<<<<<< CREATE new.py\nc = 1\n>>>>>>> END\n<<<<<<< RENAME old.py -> moved.py\n>>>>>>> END\n"
        "<<<<<<< DELETE gone.py\n>>>>>>> END\n",
    )
    client, _ = await opened(connect, tmp_path)
    result = await client.request("laguna/chat", {"text": "x", "mode": "edit"})
    changes = result["edit"]["documentChanges"]
    kinds = [(change.get("kind"), change.get("uri") or change.get("newUri")) for change in changes if "kind" in change]
    named = {name: (tmp_path / name).as_uri() for name in ("new.py", "moved.py", "gone.py")}
    assert sorted(kinds) == [("create", named["new.py"]), ("delete", named["gone.py"]), ("rename", named["moved.py"])]
    texts = [change for change in changes if "edits" in change]
    assert [applied("", change["edits"]) for change in texts] == ["c = 1\n"]
    notes = result["edit"]["changeAnnotations"]
    assert all(notes[change["annotationId"]]["needsConfirmation"] for change in changes if "kind" in change)
    assert (tmp_path / "old.py").exists() and not (tmp_path / "new.py").exists()


async def test_an_editor_that_cannot_create_files_gets_none(connect, stand, tmp_path):
    says(stand, "<<<<<<< CREATE new.py\nc = 1\n>>>>>>> END\n" + TURN_OFF)
    client, uri = await opened(connect, tmp_path, able={})
    result = await client.request("laguna/chat", {"text": "x", "mode": "edit"})
    assert result["edit"] is None and result["refusals"][0]["code"] == "editor"
    says(stand, TURN_OFF)
    result = await client.request("laguna/chat", {"text": "x", "mode": "edit"})
    assert applied(LAMP, result["edit"]["changes"][uri]) == LAMP.replace("        pass\n", "        self.lit = False\n")


@pytest.mark.parametrize(("shown", "fits"), [(True, True), (False, False)])
async def test_only_a_file_that_the_model_has_seen_whole_is_rewritten(connect, stand, tmp_path, shown, fits):
    says(stand, "<<<<<<< DELETE lamp.py\n>>>>>>> END\n<<<<<<< CREATE lamp.py\nnew = 1\n>>>>>>> END\n")
    (tmp_path / "lamp.py").write_text(LAMP)
    stand.service.shown = {"lamp.py": hashlib.sha256(LAMP.encode()).hexdigest()} if shown else {}
    client, _ = await opened(connect, tmp_path)
    result = await client.request("laguna/chat", {"text": "x", "mode": "edit"})
    assert bool(result["edit"]) is fits
    if fits:
        (change,) = result["edit"]["documentChanges"]
        assert applied(LAMP, change["edits"]) == "new = 1\n"


async def test_an_answer_without_blocks_is_no_edit(connect, stand, tmp_path):
    client, _ = await opened(connect, tmp_path)
    result = await client.request("laguna/chat", {"text": "x", "mode": "edit"})
    assert result["edit"] is None and result["refusals"] == []
    assert "The answer holds no edit." in result["notices"]


async def test_edit_mode_needs_a_root(connect, stand):
    client = await connect()
    await client.initialize()
    assert await client.refused("laguna/chat", {"text": "x", "mode": "edit"}) == -32602


# Code actions


def actions(uri: str, first: int, last: int, wrong: list[Any] = [], kind: int = 1) -> dict[str, Any]:  # noqa: B006
    span = {"start": {"line": first, "character": 0}, "end": {"line": last, "character": 0}}
    return {"textDocument": {"uri": uri}, "range": span, "context": {"diagnostics": wrong, "triggerKind": kind}}


def complaint(line: int, message: str) -> dict[str, Any]:
    span = {"start": {"line": line, "character": 8}, "end": {"line": line, "character": 12}}
    return {"range": span, "message": message, "severity": 2, "source": "lint"}


async def test_a_fix_is_made_when_it_is_chosen(connect, stand, tmp_path):
    says(stand, TURN_OFF)
    client, uri = await opened(connect, tmp_path)
    params = actions(uri, 5, 5, [complaint(5, "off() does nothing")], kind=2)
    (offered,) = await client.request("textDocument/codeAction", params)
    assert offered["title"] == "Laguna: Fix: off() does nothing" and offered["kind"] == "quickfix"
    assert "edit" not in offered and stand.service.asked == []
    resolved = await client.request("codeAction/resolve", offered)
    (change,) = resolved["edit"]["documentChanges"]
    assert change["textDocument"] == {"uri": uri, "version": 4}
    (asked,) = stand.service.asked
    assert (asked.task, asked.mode, asked.record) == ("fix", "edit", False)
    assert (asked.references[0].first_line, asked.references[0].last_line) == (5, 6)
    (found,) = asked.diagnostics
    assert (found.path, found.line, found.message) == ("lamp.py", 6, "off() does nothing")
    assert (found.severity, found.source) == ("warning", "lint")


async def test_what_is_offered(connect, stand, tmp_path):
    client, uri = await opened(connect, tmp_path)

    async def titles(params: dict[str, Any]) -> list[str]:
        return [offered["title"] for offered in await client.request("textDocument/codeAction", params)]

    assert await titles(actions(uri, 1, 1, kind=2)) == []
    assert await titles(actions(uri, 1, 1, kind=1)) == ["Laguna: Write the documentation", "Laguna: Write tests"]
    assert len(await titles(actions(uri, 1, 3, kind=2))) == 2
    two = [complaint(2, "a"), complaint(5, "b")]
    assert await titles(actions(uri, 2, 2, two, kind=2)) == [
        "Laguna: Fix: a",
        "Laguna: Fix: b",
        "Laguna: Fix all 2 problems here",
    ]
    only = actions(uri, 1, 3)
    only["context"]["only"] = ["refactor"]
    assert len(await titles(only)) == 2
    only["context"]["only"] = ["source"]
    assert await titles(only) == []
    assert await titles(actions((tmp_path / "other.py").as_uri(), 0, 0)) == []


async def test_an_action_of_an_older_version_is_refused(connect, stand, tmp_path):
    client, uri = await opened(connect, tmp_path)
    offered = (await client.request("textDocument/codeAction", actions(uri, 1, 3)))[0]
    client.change(uri, 5, edit((0, 0), (0, 0), "x"))
    assert await client.refused("codeAction/resolve", offered) == -32801
    assert stand.service.asked == []


async def test_an_action_that_fits_nowhere_says_why(connect, stand, tmp_path):
    says(stand, "<<<<<<< SEARCH lamp.py\nnowhere\n=======\nx\n>>>>>>> REPLACE\n")
    client, uri = await opened(connect, tmp_path)
    offered = (await client.request("textDocument/codeAction", actions(uri, 1, 3)))[0]
    answer = await client.answer(client.start("codeAction/resolve", offered))
    assert answer["error"]["code"] == -32803 and "lamp.py" in answer["error"]["message"]


async def test_clients_that_cannot_resolve_have_the_edit_applied(connect, stand, tmp_path):
    says(stand, TURN_OFF)
    able = {**ABLE, "textDocument": {"codeAction": {}}}
    client, uri = await opened(connect, tmp_path, able=able)
    offered = (await client.request("textDocument/codeAction", actions(uri, 4, 6)))[0]
    assert offered["command"] == "laguna.edit"
    params = {"command": offered["command"], "arguments": offered["arguments"]}
    await client.request("workspace/executeCommand", params)
    sent = await client.until(lambda m: m.get("method") == "workspace/applyEdit")
    (change,) = sent["params"]["edit"]["documentChanges"]
    assert applied(LAMP, change["edits"]) == LAMP.replace("        pass\n", "        self.lit = False\n")


async def test_actions_can_be_turned_off(connect, stand, tmp_path):
    client, uri = await opened(connect, tmp_path)
    client.notify("workspace/didChangeConfiguration", {"settings": {"laguna": {"codeActions": False}}})
    assert await client.request("textDocument/codeAction", actions(uri, 1, 3)) == []


async def test_data_that_is_not_ours(connect, stand, tmp_path):
    client, _ = await opened(connect, tmp_path)
    for data in ({}, 1, {"task": "rm"}, []):
        assert await client.refused("codeAction/resolve", {"title": "x", "data": data}) == -32602
    params = {"command": "laguna.edit", "arguments": []}
    assert await client.refused("workspace/executeCommand", params) == -32602
