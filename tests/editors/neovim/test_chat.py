"""Questions and answers: streamed into the chat, stopped, gone on with, and what is said when they fail."""

from __future__ import annotations

import os
import signal

from support.daemon import alive, until

WHY = "Why is the lamp never switched off?"


def test_an_answer_streams_into_the_chat(edit, desk, lamp):
    answer = "Nothing calls off(). " + "It stays lit. " * 150 + "Good night."
    desk.probe.answers({"when": WHY, "answer": answer})
    nvim = edit(lamp)
    nvim.command(f"Laguna ask {WHY}")
    nvim.shows("Nothing calls off()")
    assert desk.probe.running() == 1, "it came all at once"
    nvim.shows("Good night.", 60)
    nvim.shows("tokens read")
    nvim.shows("from the cache")
    chat = nvim.lua("return vim.api.nvim_buf_get_lines(vim.fn.bufnr('laguna://chat'), 0, -1, false)")
    assert chat[:5] == ["## You", "", WHY, "", "## Laguna"]
    assert answer in chat
    assert nvim.call("nvim_buf_get_name", 0).endswith("lamp.py"), "the cursor stays where it was"


def test_a_question_is_written_below_the_chat_and_goes_on(edit, desk, lamp):
    desk.probe.answers({"when": WHY, "answer": "First."}, {"when": "And then?", "answer": "Second."})
    nvim = edit(lamp)
    nvim.command("Laguna chat")
    nvim.shows("Question")
    nvim.keys(WHY + "<C-s>")
    nvim.shows("First.")
    nvim.shows("tokens read")
    nvim.keys("iAnd @notes.md?<CR>And then?<Esc><CR>")
    nvim.shows("Second.")
    nvim.shows("about notes.md")
    nvim.shows("tokens read")
    (conversation,) = nvim.lua("""
        local client = vim.lsp.get_clients({ name = 'laguna' })[1]
        local params = { root = vim.uri_from_fname(client.root_dir) }
        return client:request_sync('laguna/conversations', params, 5000).result.conversations
    """)
    assert conversation["turns"] == 2


def test_a_selection_goes_along(edit, desk, lamp):
    desk.probe.answers({"when": "Explain lamp.py:5-6", "answer": "It turns it on."})
    nvim = edit(lamp)
    nvim.command("5,6Laguna explain")
    nvim.shows("It turns it on.")
    nvim.shows("about lamp.py:5-6")


def test_it_can_be_stopped(edit, desk, lamp):
    desk.probe.answers({"when": WHY, "answer": "On and on. " * 2000})
    nvim = edit(lamp)
    nvim.command(f"Laguna ask {WHY}")
    nvim.shows("On and on.")
    assert desk.probe.running() == 1
    nvim.command("Laguna stop")
    nvim.shows("Stopped.")
    until(lambda: desk.probe.running() == 0)


def test_text_that_is_not_saved_is_read(edit, desk, lamp):
    desk.probe.answers({"when": "A line that no disk has", "answer": "I see it."})
    nvim = edit(lamp)
    nvim.keys("ggO# A line that no disk has<Esc>")
    nvim.command("Laguna ask What do you see?")
    nvim.shows("I see it.")
    nvim.shows("lamp.py")


def test_a_failure_says_what_to_do(edit, lamp):
    nvim = edit(lamp)
    nvim.lua("vim.lsp.get_clients()[1].root_dir = '/nowhere/at/all'")
    nvim.command(f"Laguna ask {WHY}")
    nvim.shows("/nowhere/at/all")


def test_killed_in_the_middle_nothing_stays_behind(edit, desk, lamp):
    desk.probe.answers({"when": WHY, "answer": "On and on. " * 2000})
    nvim = edit(lamp)
    nvim.command(f"Laguna ask {WHY}")
    nvim.shows("On and on.")
    bridges = nvim.call("nvim_get_proc_children", nvim.process.pid)
    assert bridges and desk.sessions() == 1 and desk.probe.running() == 1
    os.kill(nvim.process.pid, signal.SIGKILL)
    until(lambda: desk.probe.running() == 0)
    until(lambda: desk.sessions() == 0)
    until(lambda: not any(alive(bridge) for bridge in bridges))


def test_leaving_ends_the_session(edit, desk, lamp):
    nvim = edit(lamp)
    nvim.keys(":qall!<CR>")
    assert nvim.process.wait(30) == 0
    until(lambda: desk.sessions() == 0)


def test_a_bridge_that_dies_is_started_again(edit, desk, lamp):
    nvim = edit(lamp)
    (bridge,) = nvim.call("nvim_get_proc_children", nvim.process.pid)
    os.kill(bridge, signal.SIGKILL)
    nvim.shows("quit with exit code")  # Neovim's own words, longer than the screen is wide
    nvim.keys("<CR>")
    nvim.until(lambda: "started again" in nvim.command("messages"), "the plugin's words")
    nvim.until(lambda: len(nvim.call("nvim_get_proc_children", nvim.process.pid)) == 1, "a new bridge")
    nvim.keys("<CR>")
    # The status line may still show what the dead client said: wait for the new one to be connected.
    connected = (
        "local c = vim.lsp.get_clients({ name = 'laguna', bufnr = 0 })[1]; return c ~= nil and c.initialized == true"
    )
    nvim.until(lambda: nvim.call("nvim_exec_lua", connected, []), "a connected client")
    nvim.shows("Laguna: ready")
    desk.probe.answers({"when": WHY, "answer": "Still here."})
    nvim.command(f"silent Laguna ask {WHY}")
    nvim.shows("Still here.")


def test_conversations_are_listed_resumed_and_deleted(edit, desk, lamp):
    desk.probe.answers({"when": WHY, "answer": "First."})
    nvim = edit(lamp, "vim.ui.select = function(items, options, done) done(items[1], 1) end")
    nvim.command(f"Laguna ask {WHY}")
    nvim.shows("tokens read")
    nvim.command("Laguna new")
    nvim.until(lambda: WHY not in nvim.text(), "an empty chat")
    nvim.command("wincmd p | Laguna history")
    nvim.shows(WHY)
    nvim.shows("First.")
    nvim.command("wincmd p | Laguna delete")
    nvim.shows("deleted:")
