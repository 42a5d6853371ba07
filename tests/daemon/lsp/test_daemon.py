"""The language server inside the real daemon, through the real command, with a fake engine of known texts."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from support.daemon import FAKE_ENGINE, Home, alive, repository, until
from support.engine_probe import Probe
from support.fake_service import eventually
from support.lsp_client import LspClient, edit, encode, inline

FILES = {"lamp.py": "class Lamp:\n    def on(self):\n        self.lit = True\n", "README.md": "# Lamp\n"}
LONG = "one two three four five six seven eight nine ten " * 200
ABORTED_WITHIN = 1.0  # seconds, from the contract; the test allows more, for slow machines, but says so
CANCELLED = -32800

Editor = Callable[[Home], Awaitable[LspClient]]


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path / "my lamp é#1", FILES)


@pytest.fixture(scope="module")
def slow(laguna_model: Path) -> Iterator[Home]:
    """A home whose engine takes a minute for a long answer; one daemon for most tests here."""
    found = Home.create(
        LAGUNA_PROFILE="cpu",
        LAGUNA_ENGINE__COMMAND=json.dumps([sys.executable, str(FAKE_ENGINE), "--decode-speed", "50"]),
        LAGUNA_ENGINE__MODEL=str(laguna_model),
    )
    yield found
    found.remove()


@pytest.fixture
async def editor() -> AsyncIterator[Editor]:
    clients: list[LspClient] = []

    async def start(home: Home) -> LspClient:
        command = [sys.executable, "-m", "laguna_daemon.cli", "lsp"]
        clients.append(await LspClient.spawn(*command, env=home.env))
        return clients[-1]

    yield start
    for client in clients:
        if client.process.returncode is None:
            client.process.kill()
        await client.process.wait()


def probe(home: Home) -> Probe:
    return Probe(home.runtime / "engine.sock")


async def ready(client: LspClient) -> None:
    """Wait until the engine answers."""
    wanted = "laguna/didChangeStatus"
    await client.until(lambda m: m.get("method") == wanted and m["params"]["engine"]["phase"] == "ready")


async def test_an_editor_starts_the_daemon_and_gets_answers(home, editor, repo):
    client = await editor(home)
    await client.initialize(repo, textDocument={"inlineCompletion": {}}, window={"workDoneProgress": True})
    await ready(client)
    assert home.daemon_pid()
    probe(home).answers(
        {"when": "What is this?", "answer": "A lamp.\nYes."},
        {"when": "def off(self):", "answer": "\n        self.lit = False"},
    )
    result = await client.request("laguna/chat", {"text": "What is this?", "partialResultToken": "t"})
    assert result["text"] == "A lamp.\nYes."
    assert result["conversation"]
    usage = result["usage"]
    assert usage["promptTokens"] == usage["cachedTokens"] + usage["prefilledTokens"] > 0
    assert "".join(v["text"] for v in client.progress("t") if v["kind"] == "text") == "A lamp.\nYes."
    uri = (repo / "lamp.py").as_uri()
    client.open(uri, FILES["lamp.py"] + "    def off(self):\n        ")
    found = await client.request("textDocument/inlineCompletion", inline(uri, 4, 8))
    assert found["items"][0]["insertText"] == "self.lit = False"


async def test_a_conversation_goes_on_where_it_was(slow, editor, repo):
    client = await editor(slow)
    await client.initialize(repo)
    first = await client.request("laguna/chat", {"text": "What is this?"})
    again = {"text": "Why?", "conversation": first["conversation"]}
    second = await client.request("laguna/chat", again)
    assert second["conversation"] == first["conversation"]
    assert second["usage"]["promptTokens"] > first["usage"]["promptTokens"]
    answer = await client.answer(client.start("laguna/chat", {"text": "Why?", "conversation": "unknown"}))
    assert answer["error"]["data"]["exitCode"] == 2


async def test_unsaved_text_beats_the_disk_in_editor_and_shell(slow, editor, repo):
    client = await editor(slow)
    await client.initialize(repo)
    await ready(client)
    probe(slow).answers({"when": "colour_of_the_lamp", "answer": "seen"})
    uri = (repo / "lamp.py").as_uri()
    ask = {"text": "Q"}
    assert (await client.request("laguna/chat", ask))["text"] != "seen"
    client.open(uri, FILES["lamp.py"])
    client.change(uri, 2, edit((0, 0), (0, 0), "colour_of_the_lamp = 1\n"))
    found = await client.request("laguna/chat", ask)
    assert found["text"] == "seen"
    assert unsaved(found) == ["lamp.py"]
    done = await asyncio.to_thread(slow.run, "ask", "Q", cwd=repo)
    assert (done.returncode, done.stdout) == (0, "seen\n"), done.stderr
    assert "lamp.py" in done.stderr
    client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    assert unsaved(await client.request("laguna/chat", ask)) == []


async def test_a_killed_editor_takes_its_unsaved_text_along(slow, editor, repo):
    client, other = await editor(slow), await editor(slow)
    for each in (client, other):
        await each.initialize(repo)
    await ready(other)
    client.open((repo / "lamp.py").as_uri(), "colour_of_the_lamp = 1\n")
    await client.settle()
    assert unsaved(await other.request("laguna/chat", {"text": "Q"})) == ["lamp.py"]
    client.process.kill()
    await client.process.wait()
    await eventually(lambda: slow.json("status", "--json")["sessions"] == 1, "one session is left")
    assert unsaved(await other.request("laguna/chat", {"text": "Q"})) == []


def unsaved(result: dict[str, Any]) -> list[str]:
    """The files whose unsaved text an answer says it has used."""
    said = [notice.partition("editors was used: ")[2] for notice in result["notices"]]
    return [path for paths in said if paths for path in paths.split(", ")]


async def busy(home: Home, client: LspClient, repo: Path) -> int:
    """Let the engine work on a long answer; returns the request's id."""
    await client.initialize(repo)
    await ready(client)
    probe(home).answers({"when": "count", "answer": LONG})
    asked = client.start("laguna/chat", {"text": "count", "partialResultToken": "t"})
    await eventually(lambda: any(v["kind"] == "text" for v in client.progress("t")), "the answer streams")
    assert probe(home).running() == 1
    return asked


def idle(home: Home) -> None:
    """The engine's metrics say that it has stopped."""
    began = time.monotonic()
    until(lambda: probe(home).running() == 0, timeout=10 * ABORTED_WITHIN)
    print(f"aborted after {time.monotonic() - began:.2f} s")


async def test_cancel_reaches_the_engine(slow, editor, repo):
    client = await editor(slow)
    asked = await busy(slow, client, repo)
    client.notify("$/cancelRequest", {"id": asked})
    assert (await client.answer(asked))["error"]["code"] == CANCELLED
    idle(slow)
    # The conversation's answer was broken off, the server was not.
    probe(slow).answers({"when": "again", "answer": "Yes."})
    assert (await client.request("laguna/chat", {"text": "again"}))["text"] == "Yes."


async def test_request_and_cancel_in_one_write_reach_no_engine(slow, editor, repo):
    client = await editor(slow)
    await client.initialize(repo)
    await ready(client)
    probe(slow).answers({"when": "count", "answer": LONG})
    for number in range(500, 510):
        client.write(
            encode(
                {"id": number, "method": "laguna/chat", "params": {"text": "count"}},
                {"method": "$/cancelRequest", "params": {"id": number}},
            )
        )
    for number in range(500, 510):
        assert (await client.answer(number))["error"]["code"] == CANCELLED
    idle(slow)


@pytest.mark.parametrize("way", ["input closed", "bridge killed"])
async def test_lost_client_stops_the_engine(slow, editor, repo, way):
    client = await editor(slow)
    await busy(slow, client, repo)
    if way == "bridge killed":
        client.process.kill()
    else:
        client.writer.close()
    await client.process.wait()
    idle(slow)
    await eventually(lambda: slow.json("status", "--json")["sessions"] == 0, "the session is gone")


async def test_superseded_completions_stop_in_the_engine(slow, editor, repo):
    client = await editor(slow)
    await client.initialize(repo)
    await ready(client)
    probe(slow).answers({"when": "# lamp.py\nx = ", "answer": LONG})
    uri = (repo / "lamp.py").as_uri()
    client.open(uri, "x = ")
    ids = []
    for version in range(2, 8):
        end = 2 + version
        ids.append(client.start("textDocument/inlineCompletion", inline(uri, 0, end)))
        await eventually(lambda: probe(slow).running() == 1, "the engine works on the newest only")
        client.change(uri, version, edit((0, end), (0, end), "a"))
    for each in ids:
        assert (await client.answer(each))["result"] is None
    idle(slow)


@pytest.mark.parametrize("root", ["gone", "lamp.py", "home"])
async def test_a_root_that_cannot_be_read_is_named_and_suggestions_come(slow, editor, repo, root):
    client = await editor(slow)
    folder = slow.folder if root == "home" else repo / root
    await client.initialize(folder)
    await ready(client)
    asked = await client.answer(client.start("laguna/chat", {"text": "Q"}))
    assert asked["error"]["code"] == -32803 and asked["error"]["data"]["exitCode"] == 3
    assert str(folder) in asked["error"]["message"]
    probe(slow).answers({"when": "# new.py\nfrom lamp", "answer": "self.lit"})
    uri = (folder / "new.py").as_uri()
    client.open(uri, "from lamp import Lamp\nx = ")
    found = await client.request("textDocument/inlineCompletion", inline(uri, 1, 4))
    assert found["items"][0]["insertText"] == "self.lit"


async def test_killed_daemon_fails_its_bridges_and_leaves_no_engine(home, editor, repo):
    clients = [await editor(home), await editor(home)]
    for client in clients:
        await client.initialize(repo)
        await ready(client)
    engine = home.json("status", "--json")["engine"]["pid"]
    os.kill(home.daemon_pid(), signal.SIGKILL)
    for client in clients:
        assert await client.process.wait() == 1
        assert b"the daemon has gone away" in await client.process.stderr.read()
    until(lambda: not alive(engine))
    # The next editor starts another daemon.
    client = await editor(home)
    await client.initialize(repo)
    await ready(client)


async def test_two_editors_started_at_once_share_one_daemon(home, editor, repo):
    clients = await asyncio.gather(editor(home), editor(home))
    await asyncio.gather(*(client.initialize(repo) for client in clients))
    statuses = await asyncio.gather(*(client.request("laguna/chat", {"text": "Q"}) for client in clients))
    assert all(status["text"] for status in statuses)
    assert home.json("status", "--json")["sessions"] == 2
    daemons = [
        process.pid
        for process in psutil.process_iter(["cmdline", "environ"])
        if "laguna_daemon.process" in (process.info["cmdline"] or [])
        and (process.info["environ"] or {}).get("LAGUNA_RUNTIME_DIR") == str(home.runtime)
    ]
    assert daemons == [home.daemon_pid()]
