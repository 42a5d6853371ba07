"""The bridge as a real process between pipes and a real socket, with real editors' deaths."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import textwrap
from pathlib import Path

import pytest

from laguna_daemon.lsp.listener import Listener
from support.fake_service import eventually
from support.lsp_client import LspClient, bridge_command, encode, inline


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with contextlib.suppress(OSError):
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    return False


async def test_full_session_through_the_bridge(stand, tmp_path):
    client = await LspClient.spawn(*bridge_command(stand.path))
    await client.initialize(tmp_path)
    uri = (tmp_path / "a.py").as_uri()
    client.open(uri, "x = ")
    found = await client.request("textDocument/inlineCompletion", inline(uri, 0, 4))
    assert found["items"][0]["insertText"] == "pass"
    result = await client.request("laguna/chat", {"text": "why?", "partialResultToken": 1})
    assert result["text"] == "Hello world"
    assert len(client.progress(1)) == 3
    await client.request("shutdown")
    client.notify("exit")
    assert await client.process.wait() == 0
    assert not await client.process.stderr.read()


async def test_exit_without_shutdown_is_a_failure(stand):
    client = await LspClient.spawn(*bridge_command(stand.path))
    await client.initialize()
    client.notify("exit")
    assert await client.process.wait() == 1


async def test_a_document_that_says_exit_is_not_an_exit(stand, tmp_path):
    client = await LspClient.spawn(*bridge_command(stand.path))
    await client.initialize()
    client.open((tmp_path / "a").as_uri(), '{"method":"shutdown"} {"method": "exit"}')
    await client.settle()
    await stand.listener.aclose()
    assert await client.process.wait() == 1
    assert b"daemon" in await client.process.stderr.read()


async def test_closed_input_ends_the_bridge_and_the_session(stand):
    client = await LspClient.spawn(*bridge_command(stand.path))
    await client.initialize()
    assert len(stand.listener.sessions) == 1
    client.writer.close()
    assert await client.process.wait() == 0
    await eventually(lambda: not stand.listener.sessions, "the session is gone")


async def test_answers_still_come_after_the_input_has_ended(stand):
    process = await asyncio.create_subprocess_exec(
        *bridge_command(stand.path), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    initialize = {"capabilities": {}, "processId": None, "rootUri": None}
    output, _ = await process.communicate(encode({"id": 1, "method": "initialize", "params": initialize}))
    assert b'"positionEncoding":"utf-16"' in output
    assert process.returncode == 0


async def test_daemon_that_goes_away_fails_the_bridge(stand):
    client = await LspClient.spawn(*bridge_command(stand.path))
    await client.initialize()
    await stand.listener.aclose()
    assert await client.process.wait() == 1
    assert b"the daemon has gone away" in await client.process.stderr.read()


@pytest.mark.parametrize(
    "said", [b"Content-Length: many\r\n\r\n{}", b"hello\r\n" * 40, b"Content-Length: 99999999\r\n\r\n"]
)
async def test_an_editor_that_does_not_speak_the_protocol_is_told_so(stand, said):
    client, other = [await LspClient.spawn(*bridge_command(stand.path)) for _ in range(2)]
    await client.initialize()
    client.writer.write(said)
    assert await client.process.wait() == 1
    told = (await client.process.stderr.read()).decode()
    assert "is not the Language Server Protocol" in told and "gone away" not in told
    assert client.received[-1]["error"]["code"] == -32700 and client.received[-1]["id"] is None
    await other.initialize()
    await other.close()


async def test_a_connection_that_is_closed_by_a_living_daemon(stand):
    client = await LspClient.spawn(*bridge_command(stand.path))
    await client.initialize()
    (task,) = stand.listener._tasks
    task.cancel()
    assert await client.process.wait() == 1
    told = await client.process.stderr.read()
    assert b"the daemon runs" in told and b"gone away" not in told


async def test_editor_that_speaks_over_a_socket_pair(stand):
    # As Node does: one socket is the bridge's standard input and output.
    ours, theirs = socket.socketpair()
    process = await asyncio.create_subprocess_exec(*bridge_command(stand.path), stdin=theirs, stdout=theirs)
    theirs.close()
    client = LspClient(*await asyncio.open_connection(sock=ours))
    await client.initialize()
    await client.request("laguna/chat", {"text": "why?"})
    client.writer.close()
    assert await process.wait() == 0
    await eventually(lambda: not stand.listener.sessions, "the session is gone")


async def test_interrupt_ends_the_bridge_quietly(stand):
    client = await LspClient.spawn(*bridge_command(stand.path))
    await client.initialize()
    client.process.send_signal(signal.SIGINT)
    assert await client.process.wait() == 130
    assert not await client.process.stderr.read()


async def test_bridge_killed_with_sigkill(stand):
    stand.service.hold = True
    client = await LspClient.spawn(*bridge_command(stand.path))
    await client.initialize()
    client.start("laguna/chat", {"text": "why?"})
    await eventually(lambda: stand.service.running == 1, "the engine is busy")
    client.process.kill()
    await eventually(lambda: stand.service.running == 0, "the engine has stopped")
    await eventually(lambda: not stand.listener.sessions, "the session is gone")
    assert stand.service.aborted == 1


# An editor that starts the bridge, asks a question, says where the bridge is, and waits to be killed. A second process
# holds the bridge's input open, as a shell or a plugin host may: the pipe alone would not tell of the editor's death.
# With a wrapper, the bridge's parent lives on, too: the editor says which process it is.
EDITOR = """
    import os, subprocess, sys, time
    reading, writing = os.pipe()
    wrapper = ["sh", "-c", '"$@"; true', "sh"] if sys.argv[1] == "wrapped" else []
    bridge = subprocess.Popen([*wrapper, *sys.argv[2:]], stdin=reading, stdout=subprocess.PIPE)
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "pass_fds": [writing]}
    holder = subprocess.Popen(["sleep", "60"], **quiet) if sys.argv[1] != "closed" else None
    with open(writing, "wb", closefd=False) as pipe:
        pipe.write(sys.stdin.buffer.read().replace(b"1234567", b"%7d" % os.getpid()))
    print(bridge.pid, holder.pid if holder else 0, flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("pipe", ["closed", "held", "wrapped"])
async def test_editor_killed_with_sigkill(stand, pipe):
    stand.service.hold = True
    initialize = {"capabilities": {}, "processId": 1234567, "rootUri": None}
    messages = encode(
        {"id": 1, "method": "initialize", "params": initialize},
        {"method": "initialized", "params": {}},
        {"id": 2, "method": "laguna/chat", "params": {"text": "why?"}},
    )
    editor = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        textwrap.dedent(EDITOR),
        pipe,
        *bridge_command(stand.path),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    editor.stdin.write(messages)
    editor.stdin.close()
    bridge_pid, holder_pid = map(int, (await editor.stdout.readline()).split())
    try:
        await eventually(lambda: stand.service.running == 1, "the engine is busy")
        editor.kill()
        await editor.wait()
        await eventually(lambda: not is_alive(bridge_pid), "the bridge has ended")
        await eventually(lambda: stand.service.running == 0, "the engine has stopped")
        assert not stand.listener.sessions
    finally:
        if holder_pid:
            os.kill(holder_pid, signal.SIGKILL)


async def test_a_process_that_is_not_the_editor_is_not_watched(stand):
    other = await asyncio.create_subprocess_exec("sleep", "60")
    client = await LspClient.spawn(*bridge_command(stand.path))
    await client.request("initialize", {"processId": other.pid, "rootUri": None, "capabilities": {}})
    other.kill()
    await other.wait()
    client.notify("initialized", {})
    await client.settle()
    await client.close()


async def test_starts_the_daemon_when_nobody_listens(stand, tmp_path):
    await stand.listener.aclose()
    marker = tmp_path / "started"
    client = await LspClient.spawn(*bridge_command(stand.path, start=f"Path({str(marker)!r}).touch()"))
    await eventually(marker.exists, "the bridge asked for a daemon")
    late = Listener(stand.service, stand.path)
    await late.start()
    await client.initialize()
    await client.close()
    await late.aclose()


async def test_stale_socket_counts_as_nobody(stand, tmp_path):
    await stand.listener.aclose()
    marker = tmp_path / "started"
    script = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1])"
    stale = await asyncio.create_subprocess_exec(sys.executable, "-c", script, str(stand.path))
    await stale.wait()
    assert stand.path.exists()
    start = f"(Path({str(marker)!r}).touch(), sys.exit(7))"
    client = await LspClient.spawn(*bridge_command(stand.path, start=start))
    await client.process.wait()
    assert marker.exists()


async def test_daemon_that_cannot_be_started_is_explained(stand):
    await stand.listener.aclose()
    failing = "__import__('laguna_daemon.errors').errors.error_for_code(4, 'No engine.', 'Install one.')"
    client = await LspClient.spawn(*bridge_command(stand.path, start=f"(_ for _ in ()).throw({failing})"))
    assert await client.process.wait() == 4
    assert b"No engine." in await client.process.stderr.read()


async def test_slow_reader_does_not_stop_the_other_direction(stand, tmp_path):
    client = await LspClient.spawn(*bridge_command(stand.path))
    await client.initialize()
    path = tmp_path / "big"
    client.open(path.as_uri(), "")
    stand.service.completion = "x" * 300_000
    # The editor does not read: megabytes of answers wait, more than pipe and socket hold.
    client.process.stdout._transport.pause_reading()
    asked = [client.start("textDocument/inlineCompletion", inline(path.as_uri(), 0, 11)) for _ in range(1)]
    for _ in range(15):
        asked.append(client.start("laguna/status"))
    client.change(path.as_uri(), 2, {"text": "typed on"})
    await eventually(lambda: stand.service.buffers.texts(path) == ["typed on"], "what was typed arrives")
    client.process.stdout._transport.resume_reading()
    for each in asked:
        await client.answer(each)
    await client.close()


async def test_big_messages_both_ways(stand, tmp_path):
    client = await LspClient.spawn(*bridge_command(stand.path))
    await client.initialize()
    path = tmp_path / "big"
    text = "0123456789é\n" * 500_000
    client.open(path.as_uri(), text)
    stand.service.completion = "é" * 2_000_000
    found = await client.request("textDocument/inlineCompletion", inline(path.as_uri(), 0, 11))
    assert found["items"][0]["insertText"] == "é" * 2_000_000
    assert stand.service.buffers.texts(path) == [text]
    await client.close()


async def test_bridge_imports_nothing_heavy():
    script = "import sys; import laguna_daemon.lsp.bridge; print(*sys.modules)"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    loaded = {name.partition(".")[0] for name in output.decode().split()}
    assert loaded.isdisjoint({"pygls", "lsprotocol", "pydantic", "asyncio", "httpx", "typer", "numpy", "logging"})
