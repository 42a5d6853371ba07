"""What stands around it: commands, status, context, health, help."""

from __future__ import annotations

import shutil

import pytest

from support.neovims import PLUGIN
from support.nvim_screen import NvimError


def test_commands_complete_themselves(edit, lamp):
    nvim = edit(lamp)
    names = nvim.call("nvim_call_function", "getcompletion", ["Laguna ", "cmdline"])
    for name in ("ask", "chat", "context", "explain", "fix", "refactor", "status", "stop", "warm"):
        assert name in names
    assert nvim.call("nvim_call_function", "getcompletion", ["5,6Laguna e", "cmdline"]) == ["edit", "explain"]
    assert nvim.call("nvim_call_function", "getcompletion", ["Laguna context no", "cmdline"]) == ["notes.md"]
    with pytest.raises(NvimError, match="there is no :Laguna nothing"):
        nvim.command("Laguna nothing")


def test_status_in_the_line_and_in_words(edit, desk, lamp):
    nvim = edit(lamp)
    assert "Laguna: ready" in nvim.text()
    nvim.command("Laguna status")
    nvim.shows("profile cpu")
    nvim.keys("<CR>")
    desk.probe.answers({"when": "Sleep", "answer": "On and on. " * 2000})
    nvim.command("Laguna ask Sleep")
    nvim.shows("Laguna: working")
    nvim.command("Laguna stop")
    nvim.shows("Laguna: ready")
    nvim.command("enew")
    nvim.until(lambda: "Laguna: " not in nvim.text().splitlines()[-2], "no status in another buffer")


def test_the_context_and_why(edit, lamp):
    (lamp.parent / ".gitignore").write_text("*.log\n")
    (lamp.parent / "a.log").write_text("1\n")
    nvim = edit(lamp)
    nvim.command("Laguna context a.log")
    nvim.shows("*.log")
    nvim.keys("<CR>")
    nvim.command("Laguna context")
    nvim.shows("What stands in front of every question")
    lines = nvim.buffer()
    assert any(line.endswith("full      lamp.py") for line in lines), lines


def test_the_repository_is_read_ahead(edit, lamp):
    nvim = edit(lamp)
    nvim.command("Laguna warm")
    nvim.shows("tokens")


def test_health_is_clean(edit, lamp):
    nvim = edit(lamp)
    nvim.command("checkhealth laguna")
    report = "\n".join(nvim.buffer())
    assert "laguna" in report and "ERROR" not in report and "WARNING" not in report, report
    assert "answers" in report and "Ready" in report


def test_health_says_what_is_wrong(edit, lamp):
    nvim = edit(
        lamp, "vim.g.laguna = { keys = { acept = '<Tab>' } }", LAGUNA_TEST_COMMAND='["no-such"]', connected=False
    )
    nvim.keys("<CR>")
    nvim.command("checkhealth laguna")
    report = "\n".join(nvim.buffer())
    assert "keys.acept is not an option" in report
    assert "no-such cannot be executed" in report


def test_help_is_found(edit, lamp, tmp_path, nvim_binary):
    plugin = tmp_path / "plugin"
    shutil.copytree(PLUGIN, plugin)
    nvim = edit(lamp, LAGUNA_TEST_PLUGIN=str(plugin))
    assert nvim.command(f"helptags {str(plugin / 'doc').replace(' ', chr(92) + ' ')}") == ""
    tags = (plugin / "doc" / "tags").read_text()
    for name in nvim.lua("return require('laguna.command').names()"):
        assert f":Laguna-{name}\t" in tags, f"{name} is not documented"
    nvim.command("help laguna")
    assert nvim.call("nvim_buf_get_name", 0).endswith("laguna.txt")


def test_a_folder_without_git_is_served(edit, tmp_path):
    folder = tmp_path / "loose"
    folder.mkdir()
    (folder / "a.txt").write_text("text\n")
    nvim = edit(folder / "a.txt")
    assert nvim.lua("return vim.lsp.get_clients({ bufnr = 0 })[1].root_dir == nil")


@pytest.mark.parametrize("setting", ["{ enabled = false }", "{ languages = { python = false } }"])
def test_suggestions_are_off_where_the_settings_say_so(edit, desk, lamp, setting):
    desk.probe.answers({"when": "def off", "answer": "(self): pass"})
    nvim = edit(lamp, f"vim.lsp.config('laguna', {{ settings = {{ laguna = {{ completion = {setting} }} }} }})")
    nvim.keys("Go    def off")
    nvim.lua("vim.wait(600)")
    assert "(self): pass" not in nvim.text()
