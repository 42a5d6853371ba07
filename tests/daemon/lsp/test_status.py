"""The status: every phase and every degraded mode with its cause and with something to do about it."""

from __future__ import annotations

from typing import Any

import pytest

from laguna_daemon.lsp.features.status import editor_status
from laguna_daemon.schemas import EngineStatus, Status, WorkspaceStatus
from support.fake_service import eventually

WELL = WorkspaceStatus(root="/home/me/lamp", state="open", residency="resident")


def status(engine: dict[str, Any], *roots: WorkspaceStatus, busy: int = 0) -> Status:
    return Status(version="0", pid=1, uptime_s=0, engine=EngineStatus(**engine), workspaces=list(roots), busy=busy)


@pytest.mark.parametrize(
    ("engine", "kind", "command", "said"),
    [
        ({"phase": "starting", "detail": "Loading weights"}, "Normal", "laguna.openLog", "Loading weights"),
        ({"phase": "ready"}, "Normal", None, "Ready"),
        ({"phase": "backoff", "error": "It was killed."}, "Warning", "laguna.openLog", "It was killed"),
        ({"phase": "failed", "error": "No GPU.", "advice": "Use cpu."}, "Error", "laguna.startEngine", "Use cpu"),
        ({"phase": "stopped"}, "Inactive", "laguna.startEngine", "not running"),
        ({"phase": "stopping"}, "Inactive", None, "stopping"),
        ({"phase": "ready", "warnings": ["The draft is of another revision."]}, "Warning", "laguna.openLog", "draft"),
    ],
)
def test_the_engine(engine, kind, command, said):
    found = editor_status(status(engine, WELL))
    assert found.kind == kind and said in found.message
    assert (found.command.command if found.command else None) == command
    assert found.busy is (engine["phase"] == "starting")


@pytest.mark.parametrize(
    ("change", "kind", "command", "said", "busy"),
    [
        ({}, "Normal", None, "Ready", False),
        ({"state": "reading"}, "Normal", None, "Reading lamp", True),
        (
            {"residency": "warming", "warm_tokens": 96_000, "prefix_tokens": 190_000},
            "Normal",
            None,
            "Reading lamp: 96K of 190K tokens",
            True,
        ),
        ({"residency": "evicted"}, "Warning", "laguna.warm", "pushed out", False),
        ({"residency": "cold", "waits_for": "on battery"}, "Normal", None, "on battery", False),
        ({"state": "changes are no longer followed"}, "Warning", "laguna.warm", "no longer followed", False),
    ],
)
def test_the_roots(change, kind, command, said, busy):
    found = editor_status(status({"phase": "ready"}, WELL.model_copy(update=change)))
    assert found.kind == kind and said in found.message and found.busy is busy
    assert (found.command.command if found.command else None) == command
    if command:
        assert found.command.arguments == ["/home/me/lamp"]


def test_answering():
    found = editor_status(status({"phase": "ready"}, WELL, busy=1))
    assert (found.message, found.busy) == ("Answering", True)


async def test_a_warm_up_shows_a_bar(connect, stand):
    client = await connect()
    await client.initialize(window={"workDoneProgress": True})
    await client.settle()
    warming = WELL.model_copy(update={"residency": "warming", "warm_tokens": 16_384, "prefix_tokens": 190_000})
    stand.service.set_workspaces(warming)
    made = await client.until(lambda m: m.get("method") == "window/workDoneProgress/create")
    token = made["params"]["token"]
    await eventually(lambda: client.progress(token), "the bar is shown")
    stand.service.set_workspaces(warming.model_copy(update={"warm_tokens": 95_000}))
    stand.service.set_workspaces(WELL)
    await eventually(lambda: client.progress(token)[-1]["kind"] == "end", "the bar is gone")
    values = client.progress(token)
    assert [value["kind"] for value in values] == ["begin", "report", "end"]
    assert values[0]["message"] == "16K of 190K tokens" and values[1]["percentage"] == 50


async def test_warm(connect, stand, tmp_path):
    client = await connect()
    await client.initialize(tmp_path)
    found = await client.request("laguna/warm", {"workDoneToken": "bar"})
    assert found["notices"] == ["warm"] and found["usage"]["promptTokens"] == 9
    assert client.progress("bar")[0]["message"] == "Warm-up 96K of 190K tokens"
    arguments = {"command": "laguna.warm", "arguments": ["/home/me/lamp"]}
    await client.request("workspace/executeCommand", arguments)
    assert [asked.root for asked in stand.service.warmed] == [str(tmp_path), "/home/me/lamp"]
    assert await client.refused("workspace/executeCommand", {"command": "laguna.warm", "arguments": [1]}) == -32602
