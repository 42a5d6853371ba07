"""Ghost text on the screen: shown, kept while typing, accepted by word, line and whole."""

from __future__ import annotations

import pytest

GROUPS = ("LagunaGhost", "ComplHint")
OFF = "def off(self):"
BODY = "\n        self.lit = False\n        return self"


@pytest.fixture
def nvim(edit, desk, lamp):
    """An editor that shows a suggestion after `def off(self):`."""
    desk.probe.answers({"when": OFF, "answer": BODY})
    nvim = edit(lamp)
    nvim.keys("Go<C-u>    " + OFF)
    nvim.until(lambda: nvim.marked(*GROUPS), "a suggestion")
    return nvim


def tail(nvim, lines: int) -> list[str]:
    return nvim.buffer()[-lines:]


def test_a_suggestion_is_seen_and_not_in_the_text(nvim):
    assert nvim.marked(*GROUPS) == "        self.lit = False\n        return self"
    assert tail(nvim, 1) == ["    def off(self):"]


def test_all_of_it_is_accepted_and_undone_in_one_step(nvim):
    nvim.keys("<Tab>")
    nvim.until(lambda: tail(nvim, 1) == ["        return self"], "the text")
    assert tail(nvim, 3) == ["    def off(self):", "        self.lit = False", "        return self"]
    nvim.keys("<Esc>u")
    nvim.until(lambda: tail(nvim, 1) == ["    def off(self):"], "what was typed")
    nvim.keys("<C-r>")
    nvim.until(lambda: len(nvim.buffer()) == 9, "all of it again")


def test_words_and_lines_leave_the_rest_on_the_screen(nvim):
    nvim.keys("<M-Right>")
    nvim.until(lambda: tail(nvim, 1) == ["        self"], "the first word")
    nvim.until(lambda: nvim.marked(*GROUPS) == ".lit = False\n        return self", "the rest")
    nvim.keys("<M-C-Right>")
    nvim.until(lambda: tail(nvim, 1) == ["        self.lit = False"], "the rest of the line")
    nvim.until(lambda: nvim.marked(*GROUPS) == "        return self", "the last line")
    nvim.keys("<Tab>")
    nvim.until(lambda: tail(nvim, 1) == ["        return self"], "the end")


def test_typing_what_it_says_keeps_it(edit, desk, lamp):
    desk.probe.answers({"when": "self.lit = ", "answer": "not self.lit"})
    nvim = edit(lamp)
    nvim.keys("Go<C-u>        self.lit = ")
    nvim.until(lambda: nvim.marked(*GROUPS) == "not self.lit", "a suggestion")
    desk.probe.answers({"when": "self.lit = n", "answer": "ever", "delay": 20})
    nvim.keys("not")
    nvim.until(lambda: nvim.marked(*GROUPS) == " self.lit", "the rest of it")
    nvim.keys("<Tab>")
    nvim.until(lambda: tail(nvim, 1) == ["        self.lit = not self.lit"], "the text once")


def test_typing_something_else_takes_it_away(nvim, desk):
    desk.probe.answers({"when": "off(self):", "answer": ""})
    nvim.keys("x")
    nvim.until(lambda: not nvim.marked(*GROUPS), "nothing")


def test_it_can_be_dismissed(nvim):
    nvim.keys("<C-]>")
    nvim.until(lambda: not nvim.marked(*GROUPS), "nothing")
    assert tail(nvim, 1) == ["    def off(self):"]


def test_without_a_suggestion_the_key_is_the_users_own(edit, desk, lamp):
    desk.probe.answers({"when": "", "answer": ""})
    nvim = edit(lamp, "vim.keymap.set('i', '<Tab>', function() return 'mine' end, { expr = true })")
    nvim.keys("Go<C-u><Tab>")
    nvim.until(lambda: tail(nvim, 1) == ["mine"], "the user's mapping")


def test_the_server_hears_what_became_of_it(nvim):
    told = nvim.lua("""
        told = {}
        local client = vim.lsp.get_clients({ name = 'laguna' })[1]
        local notify, run = client.notify, client.exec_cmd
        client.notify = function(self, method, params)
          if vim.startswith(method, 'laguna/') then table.insert(told, { method, params }) end
          return notify(self, method, params)
        end
        client.exec_cmd = function(self, command, ...)
          table.insert(told, { command.command })
          return run(self, command, ...)
        end
        return told
    """)
    assert told == []
    nvim.keys("<M-C-Right>")
    nvim.until(lambda: nvim.marked(*GROUPS) == "        return self", "the rest")
    nvim.keys("<Tab>")
    nvim.until(lambda: ["laguna.didAcceptCompletion"] in nvim.lua("return told"), "the end is told")
    partial = [params for method, *params in nvim.lua("return told") if method.endswith("PartiallyAcceptCompletion")]
    assert partial[0][0]["acceptedLength"] == len("\n        self.lit = False")


def test_it_can_be_turned_off(nvim):
    nvim.keys("<Esc>")
    nvim.command("Laguna toggle")
    nvim.keys("o<C-u>    def off(self):")
    nvim.until(lambda: nvim.buffer()[-1] == "    def off(self):", "the text")
    nvim.lua("vim.wait(600)")
    assert not nvim.marked(*GROUPS)
