"""Answers and repositories that mean harm: refused, and nothing written outside or by surprise."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from laguna_daemon import edits
from support.edit_cases import git, snapshot
from support.trees import planned, read_tree, refused, replace, write_tree

CREATE = "<<<<<<< CREATE {}\nx\n>>>>>>> END\n"


def test_devices_pipes_and_sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "root"
    write_tree(root, {"a.txt": b"x\n"})
    os.mkfifo(root / "pipe")
    monkeypatch.chdir(root)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        for path in ("pipe", "socket"):
            answer = replace(path, "x", "y") + f"<<<<<<< DELETE {path}\n>>>>>>> END\n" + CREATE.format(path)
            assert [r.code for r in refused(root, answer).refusals] == ["special file"] * 3
    assert refused(root, replace("/dev/null", "x", "y")).refusals[0].code == "outside"
    (root / "null").symlink_to("/dev/null")
    assert refused(root, replace("null", "x", "y")).refusals[0].code == "link"


def test_a_hundred_megabytes(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write_tree(root, {"a.txt": b"x\n"})
    with (root / "huge.txt").open("wb") as huge:
        huge.truncate(100_000_000)
    assert refused(root, replace("huge.txt", "x", "y")).refusals[0].code == "too large"
    created = refused(root, "<<<<<<< CREATE b.txt\n" + "x" * 9_000_000 + "\n>>>>>>> END\n")
    assert created.refusals[0].code == "too large"
    parser = edits.Parser()
    piece = "x" * 1_000_000
    for _ in range(100):
        parser.feed(piece)
    parser.finish()
    assert [problem.code for problem in parser.problems] == ["too large"]
    assert parser.blocks == []
    assert len(parser._rest) == 0


def test_many_small_edits_over_the_limit_of_a_set(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write_tree(root, {"a.txt": b"x\n"})
    answer = "".join(CREATE.format(f"n{number}.txt") for number in range(6))
    assert refused(root, answer, limits=edits.Limits(files=5)).refusals[0].code == "too large"
    assert refused(root, answer, limits=edits.Limits(set_bytes=5)).refusals[0].code == "too large"
    planned(root, answer)


@pytest.mark.parametrize("when", ["before apply", "while writing"])
def test_a_folder_becomes_a_link_after_planning(when: str, tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    write_tree(root, {"d/a.txt": b"x\n"})
    write_tree(outside, {"a.txt": b"x\n"})
    changes = planned(root, replace("d/a.txt", "x", "y") + CREATE.format("d/new.txt"))

    def swap(name: str = "commit") -> None:
        if name == "commit":
            (root / "d").rename(tmp_path / "moved")
            (root / "d").symlink_to(outside)

    if when == "before apply":
        swap()
    with pytest.raises(edits.FilesChanged if when == "before apply" else edits.WriteFailed):
        edits.apply(changes, tmp_path / "journal", step=swap if when == "while writing" else lambda name: None)
    assert read_tree(outside) == {"a.txt": (b"x\n", 0o644)}
    assert (root / "d").is_symlink()


def test_a_file_appears_where_one_is_created(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write_tree(root, {"a.txt": b"x\n"})
    changes = planned(root, replace("a.txt", "x", "y") + CREATE.format("b.txt"))

    def step(name: str) -> None:
        if name == "place b.txt":
            (root / "b.txt").write_bytes(b"the user's")

    with pytest.raises(edits.WriteFailed):
        edits.apply(changes, tmp_path / "journal", step=step)
    assert read_tree(root) == {"a.txt": (b"x\n", 0o644), "b.txt": (b"the user's", 0o644)}


def test_a_file_changes_between_plan_and_apply(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write_tree(root, {"a.txt": b"x\n", "b.txt": b"x\n"})
    changes = planned(root, replace("a.txt", "x", "y") + replace("b.txt", "x", "y"))
    (root / "b.txt").write_bytes(b"x\nmore\n")
    with pytest.raises(edits.FilesChanged) as caught:
        edits.apply(changes, tmp_path / "journal")
    assert caught.value.paths == ("b.txt",)
    assert (root / "a.txt").read_bytes() == b"x\n"


def test_configured_commands_are_never_run(tmp_path: Path) -> None:
    root, trace = tmp_path / "root", tmp_path / "trace"
    write_tree(root, {"a.txt": b"x\n", ".gitattributes": b"* filter=evil diff=evil\n"})
    git(root, "init", "-q")
    git(root, "add", "-A")
    command = f"touch {trace};"
    for key in ("core.fsmonitor", "filter.evil.clean", "filter.evil.smudge", "diff.evil.textconv", "diff.external"):
        git(root, "config", key, command)
    git(root, "config", "filter.evil.required", "true")
    for hook in ("post-index-change", "pre-commit"):
        (root / ".git/hooks").mkdir(exist_ok=True)
        (root / ".git/hooks" / hook).write_text(f"#!/bin/sh\n{command}\n")
        (root / ".git/hooks" / hook).chmod(0o755)
    changes = planned(root, replace("a.txt", "x", "y"))
    edits.apply(changes, tmp_path / "journal")
    assert "a.txt" in edits.dirty(root, ["a.txt"])
    edits.object_format(root)
    edits.undo(root, tmp_path / "journal")
    assert not trace.exists()


def test_tracked_files_are_edited_even_under_an_ignore_rule(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write_tree(root, {"build/kept.txt": b"x\n", "build/other.txt": b"x\n", ".gitignore": b"build/\n"})
    git(root, "init", "-q")
    git(root, "add", "-f", "build/kept.txt")
    planned(root, replace("build/kept.txt", "x", "y"))
    assert refused(root, replace("build/other.txt", "x", "y")).refusals[0].code == "ignored"


def test_a_diff_cannot_drive_the_terminal(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write_tree(root, {"a.txt": "x\n\x1b[2Jevil\u202e\n".encode()})
    shown = edits.render(planned(root, replace("a.txt", "x", "y\x1b]0;t\x07")))
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "\\x1b[2Jevil\\u202e" in shown


def test_a_refusal_never_shows_a_secret(tmp_path: Path) -> None:
    root = tmp_path / "root"
    secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
    write_tree(root, {"a.py": f'x = 1\nTOKEN = "{secret}"\ny = 1\n'.encode()})
    result = refused(root, replace("a.py", "x = 1\nTOKEN = 2\ny = 1", "z"))
    assert "y = 1" in result.message()
    assert "TOKEN" in result.message()
    assert secret not in result.message()


def test_dirty_says_what_was_uncommitted(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write_tree(root, {"a.txt": b"x\n", "b.txt": b"x\n", "d/c.txt": b"x\n"})
    git(root, "init", "-q")
    git(root, "add", "a.txt", "b.txt")
    git(root, "-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "-m", "m")
    (root / "a.txt").write_bytes(b"changed\n")
    assert edits.dirty(root, ["a.txt", "b.txt", "d/c.txt"]) == ("a.txt", "d/c.txt")
    assert edits.dirty(root / "d", ["c.txt"]) == ("c.txt",)
    assert edits.dirty(tmp_path, ["root/a.txt"]) == ()


def test_nothing_of_the_engine_stays_in_the_repository(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write_tree(root, {"a.txt": b"x\n"})
    git(root, "init", "-q")
    edits.apply(planned(root, replace("a.txt", "x", "y")), tmp_path / "journal")
    assert set(snapshot(root)) == {"a.txt"}
    journal = [path for path in (tmp_path / "journal").rglob("*")]
    assert journal
    assert all(path.stat().st_mode & 0o077 == 0 for path in journal)
