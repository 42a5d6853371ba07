"""A folder that is in no git repository."""

from __future__ import annotations

from pathlib import Path

from support.trees import planned, refused, replace, write_tree


def test_ignore_files_count_outside_git_too(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write_tree(root, {"a.txt": b"x\n", "b.log": b"x\n", ".gitignore": b"*.log\n"})
    planned(root, replace("a.txt", "x", "y"))
    assert refused(root, replace("b.log", "x", "y")).refusals[0].code == "ignored"
    planned(root, replace("b.log", "x", "y"), allow_ignored=True)
    planned(root, "<<<<<<< CREATE new/c.txt\nx\n>>>>>>> END\n")
