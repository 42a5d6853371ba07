"""A real Neovim 0.12 through the real bridge: ghost text, chat, and its ways to leave."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.fake_service import eventually
from support.lsp_client import bridge_command
from support.neovim import Neovim, neovim


@pytest.fixture(scope="module")
def binary() -> Path:
    return neovim()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    path = tmp_path / "my file é.py"
    path.write_text("def é():\n    return None\n")
    return path


@pytest.fixture
def editors() -> Iterator[list[Neovim]]:
    started: list[Neovim] = []
    yield started
    for editor in started:
        editor.kill()


async def start(stand, binary, file, editors) -> Neovim:
    editor = await asyncio.to_thread(Neovim, binary, bridge_command(stand.path), file)
    editors.append(editor)
    await asyncio.to_thread(editor.until, "v:lua.Ready()", lambda ready: ready is True)
    return editor


async def test_ghost_text_and_chat(stand, binary, file, editors):
    stand.service.completion = "f(\n    1)"
    editor = await start(stand, binary, file, editors)
    await asyncio.to_thread(editor.keys, "Goé = x = ")
    ghost = await asyncio.to_thread(editor.until, "v:lua.Ghost()", bool)
    assert ghost == "f(\n    1)"
    assert stand.service.buffers.texts(file) == ["def é():\n    return None\né = x = \n"]
    asked = [request for request in stand.service.completed if not request.background][-1]
    assert asked.prefix.endswith("é = x = ") and asked.root == str(file.parent)
    # Accepted, the text stands in the document, and the server hears of it.
    accept = "luaeval('vim.lsp.inline_completion.get()')"
    assert await asyncio.to_thread(editor.value, accept) is True
    await eventually(lambda: stand.service.buffers.texts(file)[0].endswith("é = x = f(\n    1)\n"), "the text is in")
    (session,) = stand.listener.sessions.values()
    await eventually(lambda: session.completion.counts["accepted"] == 1, "the server has heard")
    assert await asyncio.to_thread(editor.value, "v:lua.Chat('why?')") is True
    answer = await asyncio.to_thread(editor.until, "luaeval('_G.answer or false')", bool)
    assert answer["result"]["text"] == "Hello world"
    assert [piece["text"] for piece in answer["pieces"] if piece["kind"] == "text"] == ["Hello", " world"]


async def test_leaving_ends_the_session(stand, binary, file, editors):
    editor = await start(stand, binary, file, editors)
    assert len(stand.listener.sessions) == 1
    assert await asyncio.to_thread(editor.quit) == 0
    await eventually(lambda: not stand.listener.sessions, "the session is gone")
    assert not stand.service.buffers.held


async def test_killed_editor_ends_the_generation(stand, binary, file, editors):
    stand.service.hold = True
    editor = await start(stand, binary, file, editors)
    await asyncio.to_thread(editor.value, "v:lua.Chat('why?')")
    await eventually(lambda: stand.service.running == 1, "the engine is busy")
    await asyncio.to_thread(editor.kill)
    await eventually(lambda: stand.service.running == 0, "the engine has stopped")
    await eventually(lambda: not stand.listener.sessions, "the session is gone")
