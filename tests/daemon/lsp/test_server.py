"""The server over its real socket: life cycle, sync, completion, chat, cancellation, loss."""

from __future__ import annotations

import asyncio
import logging
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from laguna_daemon.errors import EngineUnavailable, OverBudget
from laguna_daemon.schemas import NoticeEvent, ProgressEvent, TextEvent, ThinkingEvent, Usage, UsageEvent
from support.fake_service import eventually
from support.lsp_client import LspClient, edit, encode, inline

INVALID_PARAMS = -32602
CANCELLED = -32800

# Life cycle


async def test_socket_is_private(stand):
    assert stat.S_IMODE(stand.path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        (None, "utf-16"),
        (["utf-8", "utf-16"], "utf-8"),
        (["utf-32"], "utf-32"),
        (["utf-7", "utf-16"], "utf-16"),
        ([], "utf-16"),
    ],
)
async def test_position_encoding_is_negotiated(connect, offered, chosen):
    client = await connect()
    found = await client.initialize(general={} if offered is None else {"positionEncodings": offered})
    assert found["positionEncoding"] == chosen


async def test_capabilities(connect):
    client = await connect()
    found = await client.initialize(textDocument={"inlineCompletion": {}})
    assert found["textDocumentSync"] == {"openClose": True, "change": 2, "save": False}
    assert found["inlineCompletionProvider"] == {}
    assert "completionProvider" not in found
    assert found["workspace"]["workspaceFolders"] == {"supported": True, "changeNotifications": True}
    assert found["executeCommandProvider"]["commands"][0] == "laguna.didAcceptCompletion"


async def test_menu_completion_is_offered_to_clients_without_ghost_text(connect):
    client = await connect()
    assert "completionProvider" in await client.initialize()


async def test_requests_out_of_phase_are_refused(connect):
    client = await connect()
    assert await client.refused("laguna/status") == -32002
    await client.initialize()
    assert await client.refused("initialize", {"capabilities": {}, "processId": None, "rootUri": None}) == -32600
    assert await client.request("shutdown") is None
    assert await client.refused("laguna/status") == -32600


async def test_exit_ends_one_connection_only(connect, stand):
    leaving, staying = await connect(), await connect()
    await leaving.initialize()
    await staying.initialize()
    assert stand.service.sessions == 2
    await leaving.request("shutdown")
    leaving.notify("exit")
    await leaving.gone()
    await staying.settle()
    await eventually(lambda: len(stand.listener.sessions) == 1, "one session is left")
    assert stand.service.sessions == 1


async def test_unknown_methods(connect):
    client = await connect()
    await client.initialize()
    client.notify("$/unheardOf", {"a": 1})
    client.notify("textDocument/unheardOf", None)
    assert await client.refused("textDocument/hover", {}) == -32601


# Malformed input


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("textDocument/inlineCompletion", {}),
        ("textDocument/inlineCompletion", None),
        ("textDocument/inlineCompletion", [1]),
        (
            "textDocument/inlineCompletion",
            {
                "textDocument": {"uri": "file:///a"},
                "position": {"line": -1, "character": 0},
                "context": {"triggerKind": 1},
            },
        ),
        (
            "textDocument/inlineCompletion",
            {
                "textDocument": {"uri": "file:///a"},
                "position": {"line": 0, "character": "x"},
                "context": {"triggerKind": 1},
            },
        ),
        ("textDocument/completion", {"textDocument": 3, "position": {"line": 0, "character": 0}}),
        ("laguna/chat", {}),
        ("laguna/chat", {"text": 5}),
        ("laguna/chat", {"text": "  "}),
        ("laguna/chat", {"text": "why", "mode": "sing"}),
        ("laguna/chat", {"text": "why", "root": "relative/path"}),
        ("laguna/chat", {"text": "why", "references": [{"uri": "untitled:1"}]}),
        ("workspace/executeCommand", {"command": "rm"}),
        ("workspace/executeCommand", {"command": "laguna.didAcceptCompletion", "arguments": []}),
    ],
)
async def test_malformed_params_get_invalid_params(connect, method, params):
    client = await connect()
    await client.initialize()
    assert await client.refused(method, params) == INVALID_PARAMS
    await client.settle()


async def test_messages_that_are_no_requests(connect):
    client = await connect()
    await client.initialize()
    client.write(b"Content-Length: 3\r\n\r\n{a}")
    client.write(b"content-length: 2\r\nContent-Type: x\r\n\r\n[]")
    client.write(encode({"id": True, "method": "laguna/status"}, {"id": 9, "method": 4}))
    await client.settle()
    codes = [message["error"]["code"] for message in client.received if "error" in message]
    assert codes == [-32700, -32600, -32600, -32600]


async def test_broken_framing_ends_the_connection_only(connect, stand):
    client, other = await connect(), await connect()
    client.write(b"Content-Length: many\r\n\r\n")
    await client.gone()
    await other.initialize()


async def test_malformed_notifications_do_no_harm(connect):
    client = await connect()
    await client.initialize()
    client.notify("textDocument/didOpen", {"textDocument": 1})
    client.notify(
        "textDocument/didChange", {"textDocument": {"uri": "file:///never/opened", "version": 1}, "contentChanges": []}
    )
    client.notify("$/cancelRequest", {})
    client.notify("$/cancelRequest", {"id": "unknown"})
    await client.settle()


# Documents


async def test_unsaved_text_reaches_the_buffers(connect, stand, tmp_path):
    folder = tmp_path / "my project é#1"
    folder.mkdir()
    path = folder / "a.py"
    uri = path.as_uri()
    assert "%20" in uri and "%23" in uri
    client = await connect()
    await client.initialize(folder)
    client.open(uri, "one\ntwo\n")
    await client.settle()
    assert stand.service.buffers.texts(path) == ["one\ntwo\n"]
    client.change(uri, 2, edit((1, 0), (1, 3), "zwei"), edit((0, 0), (0, 0), "# "))
    await client.settle()
    assert stand.service.buffers.texts(path) == ["# one\nzwei\n"]
    client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    await client.settle()
    assert stand.service.buffers.texts(path) == []


async def test_form_feed_does_not_shift_lines(connect, stand, tmp_path):
    client = await connect()
    await client.initialize()
    path = tmp_path / "f.txt"
    client.open(path.as_uri(), "a\x0cb\nsecond line\n")
    client.change(path.as_uri(), 2, edit((1, 0), (1, 6), "THIRD"))
    await client.settle()
    assert stand.service.buffers.texts(path) == ["a\x0cb\nTHIRD line\n"]


async def test_columns_count_in_the_negotiated_encoding(connect, stand, tmp_path):
    for encoding, column in (("utf-8", 4), ("utf-16", 2), ("utf-32", 1)):
        client = await connect()
        await client.initialize(general={"positionEncodings": [encoding]})
        path = tmp_path / encoding
        client.open(path.as_uri(), "😋\n😋😋\n")
        client.change(path.as_uri(), 2, edit((1, column), (1, column), "x"))
        await client.settle()
        assert stand.service.buffers.texts(path) == ["😋\n😋x😋\n"]


async def test_lost_client_loses_its_buffers(connect, stand, tmp_path):
    client, other = await connect(), await connect()
    for each in (client, other):
        await each.initialize()
        each.open((tmp_path / "a").as_uri(), "text")
        await each.settle()
    assert len(stand.service.buffers.held) == 2
    client.writer.transport.abort()
    await eventually(lambda: len(stand.service.buffers.held) == 1, "one buffer is left")


# Completion


async def test_inline_completion(connect, stand, tmp_path):
    client = await connect()
    await client.initialize(tmp_path, textDocument={"inlineCompletion": {}})
    path = tmp_path / "sub" / "a.py"
    client.open(path.as_uri(), "def f():\n    \n# end\n")
    found = await client.request("textDocument/inlineCompletion", inline(path.as_uri(), 1, 4))
    (item,) = found["items"]
    assert item["insertText"] == "pass"
    assert item["range"] == {"start": {"line": 1, "character": 4}, "end": {"line": 1, "character": 4}}
    (asked,) = stand.service.completed
    assert (asked.prefix, asked.suffix) == ("def f():\n    ", "\n# end\n")
    assert (asked.root, asked.path, asked.language) == (str(tmp_path), "sub/a.py", "python")
    assert (
        await client.request(
            "workspace/executeCommand",
            {"command": item["command"]["command"], "arguments": item["command"]["arguments"]},
        )
        is None
    )
    (session,) = stand.listener.sessions.values()
    assert session.completion.counts["accepted"] == 1


async def test_menu_completion(connect, stand, tmp_path):
    client = await connect()
    await client.initialize(tmp_path)
    uri = (tmp_path / "a.py").as_uri()
    client.open(uri, "x = val")
    stand.service.completion = "ue + 1"
    position = {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 7}}
    found = await client.request("textDocument/completion", position)
    (item,) = found["items"]
    assert found["isIncomplete"] is True
    assert item["label"] == "value + 1"
    assert item["textEdit"]["newText"] == "value + 1"
    assert item["textEdit"]["range"]["start"] == {"line": 0, "character": 4}


async def test_brackets_are_not_doubled(connect, stand, tmp_path):
    client = await connect()
    await client.initialize()
    uri = (tmp_path / "a.py").as_uri()
    client.open(uri, "numpy.array()")
    stand.service.completion = "x)"
    found = await client.request("textDocument/inlineCompletion", inline(uri, 0, 12))
    assert found["items"][0]["insertText"] == "x"


async def test_new_request_supersedes_the_old(connect, stand, tmp_path):
    client = await connect()
    await client.initialize()
    uri = (tmp_path / "a.py").as_uri()
    client.open(uri, "x = ")
    stand.service.hold = True
    ids = [client.start("textDocument/inlineCompletion", inline(uri, 0, 4)) for _ in range(20)]
    await eventually(lambda: len(stand.service.completed) >= 1, "one is being made")
    for old in ids[:-1]:
        assert (await client.answer(old))["result"] is None
    await eventually(lambda: stand.service.running == 1, "only the last is being made")
    stand.service.release()
    assert (await client.answer(ids[-1]))["result"]["items"][0]["insertText"] == "pass"


async def test_answer_for_an_old_version_is_dropped(connect, stand, tmp_path):
    client = await connect()
    await client.initialize()
    uri = (tmp_path / "a.py").as_uri()
    client.open(uri, "x = ")
    stand.service.hold = True
    asked = client.start("textDocument/inlineCompletion", inline(uri, 0, 4))
    await eventually(lambda: stand.service.running == 1, "the engine is busy")
    client.change(uri, 2, edit((0, 4), (0, 4), "1"))
    assert (await client.answer(asked))["result"] is None
    assert stand.service.running == 0
    assert stand.service.aborted == 1


async def test_requests_are_taken_as_they_come(connect, stand, tmp_path):
    """What stands in one write is one read of the server: no task runs in between."""
    client = await connect()
    await client.initialize()
    uri = (tmp_path / "a.py").as_uri()
    client.open(uri, "x = ")
    await client.settle()

    def ask(number: int, column: int) -> dict[str, object]:
        return {"id": number, "method": "textDocument/inlineCompletion", "params": inline(uri, 0, column)}

    document = {"uri": uri, "version": 2}
    change = {"textDocument": document, "contentChanges": [edit((0, 4), (0, 4), "10")]}
    client.write(
        encode(
            *(ask(number, 4) for number in range(100, 110)),
            {"method": "textDocument/didChange", "params": change},
            *(ask(number, 6) for number in range(110, 120)),
        )
    )
    results = [(await client.answer(number))["result"] for number in range(100, 120)]
    assert results[:-1] == [None] * 19
    assert results[-1]["items"][0]["insertText"] == "pass"
    assert [asked.prefix for asked in stand.service.completed] == ["x = 10"]


async def test_no_suggestion_without_engine_or_document(connect, stand, tmp_path):
    client = await connect()
    await client.initialize()
    uri = (tmp_path / "a.py").as_uri()
    assert await client.request("textDocument/inlineCompletion", inline(uri, 0, 1)) == {"items": []}
    client.open(uri, "")
    stand.service.error = EngineUnavailable("not ready")
    assert await client.request("textDocument/inlineCompletion", inline(uri, 0, 1)) == {"items": []}
    stand.service.error, stand.service.completion = None, " \n"
    assert await client.request("textDocument/inlineCompletion", inline(uri, 0, 1)) == {"items": []}


# Chat


async def test_chat_streams_and_repeats_the_whole(connect, stand, tmp_path):
    stand.service.events = [
        ProgressEvent(stage="prefill", message="Prefill", done=96_000, total=190_000),
        ThinkingEvent(text="hm"),
        NoticeEvent(message="Unsaved text was used"),
        TextEvent(text="Hel"),
        TextEvent(text="lo"),
        UsageEvent(usage=Usage(prompt_tokens=7, cached_tokens=5), conversation="c9", text="Hello"),
    ]
    client = await connect()
    await client.initialize(tmp_path)
    result = await client.request(
        "laguna/chat",
        {"text": "why?", "partialResultToken": "part", "workDoneToken": "work", "conversation": "c9", "novel": 1},
    )
    assert result["text"] == "Hello"
    assert result["thinking"] == "hm"
    assert result["usage"]["promptTokens"] == 7 and result["usage"]["cachedTokens"] == 5
    assert result["conversation"] == "c9"
    assert result["notices"] == ["Unsaved text was used"]
    kinds = [value["kind"] for value in client.progress("part")]
    assert kinds == ["progress", "thinking", "notice", "text", "text", "usage"]
    bar = client.progress("work")
    assert [value["kind"] for value in bar] == ["begin", "end"]
    assert bar[0]["message"] == "Prefill 96K of 190K tokens" and bar[0]["percentage"] == 50
    (asked,) = stand.service.asked
    assert (asked.root, asked.conversation, asked.keep) == (str(tmp_path), "c9", True)


async def test_chat_without_token_only_answers(connect, stand):
    client = await connect()
    await client.initialize()
    result = await client.request("laguna/chat", {"text": "why?"})
    assert result["text"] == "Hello world"
    assert result["notices"]  # no folder: the answer knows nothing of a repository, and says so
    assert stand.service.asked[0].no_context
    assert not [m for m in client.received if m.get("method") == "$/progress"]


async def test_chat_references_become_lines(connect, stand, tmp_path):
    client = await connect()
    await client.initialize(tmp_path)
    uri = (tmp_path / "a.py").as_uri()
    span = {"start": {"line": 1, "character": 0}, "end": {"line": 3, "character": 0}}
    await client.request("laguna/chat", {"text": "why?", "references": [{"uri": uri, "range": span}, {"uri": uri}]})
    whole = stand.service.asked[0].references[1]
    part = stand.service.asked[0].references[0]
    assert (part.path, part.first_line, part.last_line) == ("a.py", 2, 3)
    assert (whole.path, whole.first_line, whole.last_line) == ("a.py", None, None)


async def test_chat_serves_from_the_root_that_contains_the_document(connect, stand, tmp_path):
    outer, inner, elsewhere = tmp_path / "outer", tmp_path / "outer" / "inner", tmp_path / "elsewhere"
    inner.mkdir(parents=True)
    elsewhere.mkdir()
    await asyncio.to_thread(subprocess.run, ["git", "init", "-q", str(elsewhere)], check=True)
    client = await connect()
    await client.initialize(outer)

    async def root_for(path: Path) -> str | None:
        await client.request("laguna/chat", {"text": "why?", "references": [{"uri": path.as_uri()}]})
        return stand.service.asked[-1].root

    assert await root_for(inner / "a") == str(outer)
    event = {"added": [{"uri": inner.as_uri(), "name": "inner"}], "removed": []}
    client.notify("workspace/didChangeWorkspaceFolders", {"event": event})
    assert await root_for(inner / "a") == str(inner)
    event = {"added": [], "removed": event["added"]}
    client.notify("workspace/didChangeWorkspaceFolders", {"event": event})
    assert await root_for(inner / "a") == str(outer)
    assert await root_for(elsewhere / "a") == str(elsewhere)


FOREIGN = [
    "untitled:x",
    "vscode-vfs://github/owner/repo",
    "file://server/share",
    "file:relative",
    "",
    "%",
    "file:///a%00b",
]


@pytest.mark.parametrize(
    ("roots", "expected"),
    [
        ({"workspaceFolders": None, "rootUri": None, "rootPath": None}, "git"),
        ({"workspaceFolders": None}, "git"),
        ({"workspaceFolders": []}, "git"),
        ({"workspaceFolders": FOREIGN}, "git"),
        ({"rootUri": "untitled:x", "workspaceFolders": None}, "git"),
        ({"rootPath": "relative", "workspaceFolders": None}, "git"),
        ({"rootUri": "{sub}", "workspaceFolders": []}, "sub"),
        ({"rootUri": "{sub}"}, "sub"),
        ({"rootPath": "{path}"}, "sub"),
        ({"rootUri": "{top}", "workspaceFolders": ["{sub}/"]}, "sub"),
        ({"workspaceFolders": ["{top}", "{sub}", "{sub}/", *FOREIGN]}, "sub"),
        ({"workspaceFolders": ["{sub}/gone", "{sub}/a.py", "{top}"]}, "top"),
    ],
)
async def test_roots_as_clients_give_them(connect, stand, tmp_path, roots, expected):
    top = tmp_path / "a b é#1"
    sub = top / "sub"
    sub.mkdir(parents=True)
    (sub / "a.py").write_text("")
    await asyncio.to_thread(subprocess.run, ["git", "init", "-q", str(top)], check=True)

    def filled(value: Any) -> Any:
        if isinstance(value, list):
            return [{"uri": filled(each), "name": "n"} for each in value]
        return value and value.format(top=top.as_uri(), sub=sub.as_uri(), path=sub)

    client = await connect()
    given = {name: filled(value) for name, value in roots.items()}
    await client.request("initialize", {"processId": None, "rootUri": None, "capabilities": {}, **given})
    client.notify("initialized", {})
    uri = (sub / "other.py").as_uri()
    client.open(uri, "x = ")
    await client.request("textDocument/inlineCompletion", inline(uri, 0, 4))
    root = sub if expected == "sub" else top
    assert stand.service.completed[-1].root == str(root)
    assert stand.service.completed[-1].path == (sub / "other.py").relative_to(root).as_posix()
    await client.request("laguna/chat", {"text": "why?", "references": [{"uri": uri}]})
    assert stand.service.asked[-1].root == str(root)


async def test_failure_says_what_to_do(connect, stand):
    stand.service.events = []
    stand.service.error = OverBudget("The prompt is too large.", "Exclude some folders.")
    client = await connect()
    await client.initialize()
    answer = await client.answer(client.start("laguna/chat", {"text": "why?"}))
    assert answer["error"]["message"] == "The prompt is too large.\nExclude some folders."
    assert answer["error"]["data"] == {"advice": "Exclude some folders.", "exitCode": 5}


async def test_unexpected_failure_shows_no_traceback(connect, stand, caplog):
    stand.service.events = []
    stand.service.error = RuntimeError("secret")
    client = await connect()
    await client.initialize()
    answer = await client.answer(client.start("laguna/chat", {"text": "why?"}))
    assert answer["error"]["code"] == -32603
    assert "secret" not in str(answer)
    await client.settle()


# Cancellation and loss


async def test_cancelled_chat_is_aborted(connect, stand):
    stand.service.hold = True
    client = await connect()
    await client.initialize()
    asked = client.start("laguna/chat", {"text": "why?", "partialResultToken": 1})
    await eventually(lambda: client.progress(1), "the answer streams")
    client.notify("$/cancelRequest", {"id": asked})
    assert (await client.answer(asked))["error"]["code"] == CANCELLED
    assert (stand.service.running, stand.service.aborted) == (0, 1)


@pytest.mark.parametrize(
    "method", ["laguna/chat", "textDocument/inlineCompletion", "laguna/status", "textDocument/hover"]
)
async def test_request_and_cancel_in_one_write_get_one_answer(connect, stand, tmp_path, method):
    stand.service.hold = True
    client = await connect()
    await client.initialize()
    uri = (tmp_path / "a").as_uri()
    client.open(uri, "x")
    params = inline(uri, 0, 1) | {"text": "why?"}
    for number in range(100, 150):
        client.write(
            encode(
                {"id": number, "method": method, "params": params},
                {"method": "$/cancelRequest", "params": {"id": number}},
            )
        )
    for number in range(100, 150):
        await client.answer(number)
    stand.service.release()
    await client.settle()
    assert all(len(client.answers(number)) == 1 for number in range(100, 150))
    assert stand.service.running == 0


async def test_closed_stream_aborts(connect, stand, tmp_path):
    stand.service.hold = True
    client = await connect()
    await client.initialize()
    uri = (tmp_path / "a").as_uri()
    client.open(uri, "x")
    client.start("laguna/chat", {"text": "why?"})
    client.start("textDocument/inlineCompletion", inline(uri, 0, 1))
    await eventually(lambda: stand.service.running == 2, "the engine is busy")
    client.writer.close()
    await eventually(lambda: stand.service.running == 0, "the engine has stopped")
    await eventually(lambda: not stand.listener.sessions, "the session is gone")


async def test_shutdown_aborts(connect, stand):
    stand.service.hold = True
    client = await connect()
    await client.initialize()
    asked = client.start("laguna/chat", {"text": "why?"})
    await eventually(lambda: stand.service.running == 1, "the engine is busy")
    await client.request("shutdown")
    assert (await client.answer(asked))["error"]["code"] == CANCELLED
    assert stand.service.running == 0


async def test_closed_progress_bar_cancels(connect, stand):
    stand.service.hold = True
    stand.service.events.insert(0, ProgressEvent(stage="engine", message="Loading"))
    client = await connect()
    await client.initialize()
    asked = client.start("laguna/chat", {"text": "why?", "workDoneToken": 5})
    await eventually(lambda: client.progress(5), "the bar is shown")
    client.notify("window/workDoneProgress/cancel", {"token": 5})
    assert (await client.answer(asked))["error"]["code"] == CANCELLED
    assert client.progress(5)[-1]["kind"] == "end"


async def test_two_clients_at_once(connect, stand, tmp_path):
    clients: list[LspClient] = [await connect() for _ in range(2)]
    for number, client in enumerate(clients):
        await client.initialize(tmp_path)
        client.open((tmp_path / "a").as_uri(), f"text {number}")
    results = await asyncio.gather(
        *(client.request("laguna/chat", {"text": "why?", "partialResultToken": 1}) for client in clients)
    )
    assert [result["text"] for result in results] == ["Hello world"] * 2
    assert [len(client.progress(1)) for client in clients] == [3, 3]
    assert sorted(stand.service.buffers.texts(tmp_path / "a")) == ["text 0", "text 1"]


# Status


async def test_status_and_its_notification(connect, stand):
    client = await connect()
    await client.initialize()
    first = await client.until(lambda m: m.get("method") == "laguna/didChangeStatus")
    assert first["params"]["kind"] == "Normal" and first["params"]["busy"] is False
    stand.service.set_engine(phase="failed", error="There is no GPU.", advice="Choose the cpu profile")
    told = await client.until(lambda m: m.get("method") == "laguna/didChangeStatus" and m["params"]["kind"] == "Error")
    assert told["params"]["message"] == "The engine cannot be started. There is no GPU. Choose the cpu profile"
    assert (await client.request("laguna/status")) == told["params"]


async def test_engine_loading_shows_a_progress_bar(connect, stand):
    stand.service.set_engine(phase="starting", detail="loading weights")
    client = await connect()
    await client.initialize(window={"workDoneProgress": True})
    made = await client.until(lambda m: m.get("method") == "window/workDoneProgress/create")
    token = made["params"]["token"]
    await eventually(lambda: client.progress(token), "the bar is shown")
    stand.service.set_engine(phase="starting", detail="compiling")
    stand.service.set_engine(phase="ready")
    await eventually(lambda: client.progress(token)[-1]["kind"] == "end", "the bar is gone")
    values = client.progress(token)
    assert [value["kind"] for value in values] == ["begin", "report", "end"]
    assert values[0]["message"] == "loading weights"


async def test_late_reply_to_a_progress_request_is_survived(connect, stand):
    stand.service.set_engine(phase="starting", detail="loading weights")
    client = await connect()
    client.answer_requests = False
    await client.initialize(window={"workDoneProgress": True})
    made = await client.until(lambda m: m.get("method") == "window/workDoneProgress/create")
    stand.service.set_engine(phase="ready")
    await client.until(lambda m: m.get("method") == "laguna/didChangeStatus" and not m["params"]["busy"])
    client.write(encode({"id": made["id"], "result": None}, {"id": made["id"], "error": {"code": 1, "message": ""}}))
    await client.settle()
    assert not client.progress(made["params"]["token"])
    assert not [m for m in client.received if m.get("method") == "window/showMessage"]


async def test_bodies_are_not_logged(connect, caplog, tmp_path):
    caplog.set_level(logging.INFO)
    client = await connect()
    await client.initialize(tmp_path)
    client.open((tmp_path / "a.py").as_uri(), "TOPSECRET = 1\n")
    client.notify("textDocument/didOpen", {"textDocument": {"text": "TOPSECRET"}})
    await client.refused("laguna/chat", {"text": "TOPSECRET", "mode": "x"})
    await client.request("laguna/chat", {"text": "TOPSECRET"})
    await client.settle()
    assert "TOPSECRET" not in caplog.text
    assert tmp_path.name not in caplog.text
