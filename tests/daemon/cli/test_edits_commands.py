"""``undo`` and ``edits list|show`` as a user runs them, without a daemon."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from laguna_daemon import edits
from laguna_daemon.cli import edits as commands
from support.edit_cases import git
from support.trees import planned, replace, write_tree


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAGUNA_STATE_DIR", str(tmp_path / "state"))
    root = tmp_path / "root"
    write_tree(root, {"a.txt": b"one\n", "b.txt": b"two\n"})
    git(root, "init", "-q")
    monkeypatch.chdir(root)
    return root


def run(*words: str) -> str:
    app = typer.Typer()
    app.command("undo")(commands.undo)
    app.add_typer(commands.app, name="edits")
    result = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def edit(root: Path) -> str:
    answer = replace("a.txt", "one", "1") + "<<<<<<< RENAME b.txt -> c.txt\n>>>>>>> END\n"
    return edits.apply(planned(root, answer), commands.journal_dir())


def test_undo_the_latest(root: Path) -> None:
    edit_id = edit(root)
    assert edit_id in run("undo")
    assert (root / "a.txt").read_text() == "one\n"
    assert (root / "b.txt").exists()


def test_undo_as_json(root: Path) -> None:
    edit_id = edit(root)
    told = json.loads(run("undo", edit_id, "--json"))
    assert told["undone"] == edit_id
    assert told["files"] == ["a.txt", "b.txt", "c.txt"]
    assert run("undo", told["id"]).startswith("Undone")
    assert (root / "a.txt").read_text() == "1\n"


def test_list(root: Path) -> None:
    assert run("edits", "list") == ""
    edit_id = edit(root)
    run("undo")
    listed = json.loads(run("edits", "list", "--json"))["edits"]
    assert [one["undone"] for one in listed] == [False, True]
    assert listed[0]["undoes"] == edit_id
    assert [(f["path"], f["kind"], f["renamed_from"]) for f in listed[1]["files"]] == [
        ("a.txt", "changed", None),
        ("c.txt", "renamed", "b.txt"),
    ]
    assert "undone" in run("edits", "list", "--repo", str(root))


def test_show(root: Path) -> None:
    edit_id = edit(root)
    shown = run("edits", "show", edit_id)
    assert "-one\n+1\n" in shown
    assert "2 files: 1 changed, 1 renamed; +1 -1" in shown
    patch = run("edits", "show", "--patch")
    git(root, "apply", "-R", data=patch.encode())
    assert (root / "a.txt").read_text() == "one\n"
    assert (root / "b.txt").exists()


def test_outside_git_a_root_must_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAGUNA_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(commands.RepositoryError, match="no repository"):
        run("edits", "list")
    run("edits", "list", "--repo", str(tmp_path))
