"""A workspace is a repository, or a folder the user named, and never a whole home by accident."""

from __future__ import annotations

from pathlib import Path

import pytest

from laguna_context.errors import RootRefused
from laguna_context.roots import choose_root
from support.repositories import repository, write


def test_the_worktree_around_a_folder(tmp_path: Path) -> None:
    root = repository(tmp_path / "r", {"src/a.py": "x"})
    assert choose_root(root / "src") == root
    assert choose_root(root, root / "src") == root / "src"


def test_outside_git_a_folder_must_be_named(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "x"})
    with pytest.raises(RootRefused, match="in no git repository"):
        choose_root(tmp_path)
    assert choose_root(tmp_path, tmp_path) == tmp_path
    with pytest.raises(RootRefused, match="not a folder"):
        choose_root(tmp_path, tmp_path / "a.txt")


@pytest.mark.parametrize("inside", [True, False])
def test_the_home_folder_and_the_top_need_force(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside: bool) -> None:
    if inside:
        repository(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    for named in (tmp_path, link, Path("/")):
        with pytest.raises(RootRefused, match="far more"):
            choose_root(tmp_path, named)
    assert choose_root(tmp_path, link, force=True) == tmp_path
