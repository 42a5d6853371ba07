"""docs/refactoring.md names every option of the command and every kind of event."""

from __future__ import annotations

import re
import typing
from pathlib import Path

import typer

from laguna_daemon import schemas
from laguna_daemon.cli import refactor

TEXT = (Path(__file__).parents[3] / "docs" / "refactoring.md").read_text()
ANSWER = {"progress", "text", "thinking", "notice", "usage", "error"}


def test_every_option_is_in_the_table() -> None:
    app = typer.Typer()
    app.command()(refactor.refactor)
    command = typer.main.get_command(app)
    options = {name for one in command.params for name in (*one.opts, *one.secondary_opts) if name.startswith("--")}
    rows = re.findall(r"^\| (`--.*?) \|", TEXT, re.MULTILINE)
    named = set(re.findall(r"--[a-z-]+", " ".join(rows)))
    assert named == options - {"--help", "--install-completion", "--show-completion"}


def test_every_kind_of_event_is_in_the_table() -> None:
    (union, *_) = typing.get_args(schemas.Event)
    kinds = {model.model_fields["kind"].default for model in typing.get_args(union)} - ANSWER
    assert kinds == set(re.findall(r"^\| `(\w+)` \|", TEXT, re.MULTILINE))
