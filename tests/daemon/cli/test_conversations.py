"""Conversations across commands, editors and restarts of the daemon, on a fake engine."""

from __future__ import annotations

import json
from pathlib import Path

from support.daemon import Home, repository

FILES = {"lamp.py": "class Lamp:\n    def on(self):\n        self.lit = True\n"}


def test_a_conversation_goes_on_after_a_restart(home: Home, tmp_path: Path):
    root = repository(tmp_path / "lamp", FILES)
    first = home.json("ask", "What is\nthis?", "--json", cwd=root)
    home.run("stop")
    second = home.json("ask", "And why?", "--conversation", first["conversation"], "--json", cwd=root)
    assert second["conversation"] == first["conversation"]
    assert second["usage"]["prompt_tokens"] > first["usage"]["prompt_tokens"] + first["usage"]["output_tokens"]
    assert not [notice for notice in second["notices"] if "moved" in notice]  # the very ids, on the same prefix
    listed = home.json("conversations", "list", "--json")["conversations"]
    assert [(found["id"], found["title"], found["turns"]) for found in listed] == [
        (first["conversation"], "What is", 2)
    ]
    assert home.json("conversations", "list", "--repo", str(tmp_path), "--json")["conversations"] == []
    shown = home.json("conversations", "show", first["conversation"], "--json")
    assert [turn["question"] for turn in shown["turns"]] == ["What is\nthis?", "And why?"]
    assert [turn["answer"] for turn in shown["turns"]] == [first["text"], second["text"]]
    text = home.run("conversations", "show", first["conversation"]).stdout
    assert text.startswith("> What is\n> this?\n\n" + first["text"])
    assert first["conversation"] in home.run("conversations", "list").stdout
    assert home.run("conversations", "delete", first["conversation"]).returncode == 0
    assert home.json("conversations", "list", "--json")["conversations"] == []
    gone = home.run("ask", "More?", "--conversation", first["conversation"], cwd=root)
    assert gone.returncode == 2 and "There is no conversation" in gone.stderr
    assert home.run("conversations", "show", "nothing").returncode == 2
    assert home.run("conversations", "delete", "nothing").returncode == 2


def test_a_conversation_without_a_repository(home: Home):
    first = home.json("ask", "Hello?", "--no-context", "--json")
    again = ["ask", "Again?", "--no-context", "--conversation", first["conversation"], "--json"]
    second = home.json(*again)
    assert second["usage"]["prompt_tokens"] > first["usage"]["prompt_tokens"]
    assert second["usage"]["cached_tokens"] > 0
    found = json.loads(home.run("conversations", "list", "--json").stdout)["conversations"]
    assert [each["root"] for each in found] == [""]
