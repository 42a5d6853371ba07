"""Which root serves a document."""

from __future__ import annotations

import subprocess
from pathlib import Path

from laguna_context.git import find_root
from laguna_daemon.lsp.workspaces import Workspaces


def nowhere(path: Path) -> None:
    return None


def test_nearest_folder_wins(tmp_path):
    outer, inner = tmp_path / "outer", tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    workspaces = Workspaces(nowhere)
    workspaces.add(inner)
    workspaces.add(outer)
    assert workspaces.root_of(inner / "deep" / "a.py") == inner
    assert workspaces.root_of(outer / "innermost.py") == outer
    workspaces.remove(inner)
    assert workspaces.root_of(inner / "a.py") == outer


def test_a_name_that_starts_alike_is_another_folder(tmp_path):
    (tmp_path / "app").mkdir()
    (tmp_path / "app2").mkdir()
    workspaces = Workspaces(nowhere)
    workspaces.add(tmp_path / "app")
    assert workspaces.root_of(tmp_path / "app2" / "a.py") is None


def test_nobody_means_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    project = tmp_path / "project"
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    workspaces = Workspaces(find_root)
    for folder in (tmp_path, Path("/")):
        workspaces.add(folder)
    assert workspaces.root_of(project / "a.py") == project
    assert workspaces.root_of(tmp_path / "notes.txt") is None
    assert workspaces.root_of(None) == tmp_path  # whoever asks about it is told why it is refused


def test_links_are_followed(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    workspaces = Workspaces(nowhere)
    workspaces.add(link)
    assert workspaces.folders == (real,)
    assert workspaces.root_of(link / "a.py") == real
    workspaces.remove(real)
    assert workspaces.folders == ()


def test_without_a_document_the_first_folder(tmp_path):
    workspaces = Workspaces(nowhere)
    assert workspaces.root_of(None) is None
    workspaces.add(tmp_path / "b")
    workspaces.add(tmp_path / "a")
    assert workspaces.root_of(None) == tmp_path / "b"


def test_outside_every_folder_the_git_root(tmp_path):
    repository = tmp_path / "repository"
    (repository / "sub").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    (tmp_path / "plain").mkdir()
    asked: list[Path] = []

    def find(path: Path) -> Path | None:
        asked.append(path)
        return find_root(path)

    workspaces = Workspaces(find)
    workspaces.add(tmp_path / "elsewhere")
    assert workspaces.root_of(repository / "sub" / "a.py") == repository
    assert workspaces.root_of(repository / "sub" / "b.py") == repository
    assert asked == [repository / "sub"]
    assert workspaces.root_of(tmp_path / "plain" / "a.py") is None
    assert workspaces.root_of(tmp_path / "not there" / "a.py") is None
