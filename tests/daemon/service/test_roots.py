"""Which folder a question is about, and how little a repository may say about it."""

from pathlib import Path

import pytest

from laguna_daemon.config import ContextSettings
from laguna_daemon.errors import RepositoryError
from laguna_daemon.service import roots
from support.daemon import repository


def test_an_unnamed_folder_stands_for_its_work_tree(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo", {"src/a.py": "1\n"})
    assert roots.find(repo / "src", named=False) == repo.resolve()
    assert roots.find(repo / "src", named=True) == (repo / "src").resolve()


def test_outside_git_a_folder_must_be_named(tmp_path: Path) -> None:
    with pytest.raises(RepositoryError, match="not inside a git repository"):
        roots.find(tmp_path, named=False)
    assert roots.find(tmp_path, named=True) == tmp_path.resolve()


def test_a_file_and_a_missing_folder_are_no_roots(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for wrong in ("file", "missing"):
        with pytest.raises(RepositoryError):
            roots.find(tmp_path / wrong, named=True)


def test_a_path_with_a_zero_byte_is_no_root(tmp_path: Path) -> None:
    with pytest.raises(RepositoryError, match="There is no folder"):
        roots.find(Path(f"{tmp_path}/a\0b"), named=True)


def test_home_and_the_whole_disk_need_force(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    for wide in (tmp_path, link, Path("/")):
        with pytest.raises(RepositoryError, match="Refusing"):
            roots.find(wide, named=True)
        assert roots.find(wide, named=True, force=True) == wide.resolve()


def test_a_repository_may_choose_files(tmp_path: Path) -> None:
    (tmp_path / ".laguna.toml").write_text('include = ["src/"]\nexclude = ["*.min.js"]\norder = ["README.md"]\n')
    chosen, notices = roots.selection(tmp_path, ContextSettings(exclude=["mine"]))
    assert chosen.include == ("src/",)
    assert chosen.exclude == ("mine", "*.min.js")
    assert chosen.order == ("README.md",)
    assert notices == ()


@pytest.mark.parametrize(
    "text",
    [
        'engine = { command = ["evil"] }',
        '[engine]\nurl = "http://elsewhere"',
        "secrets = false",
        'include = "not a list"',
        "include = [1]",
        "this is no TOML",
        "include = []\n" + "#" * 70_000,
    ],
)
def test_anything_else_is_ignored_and_said(tmp_path: Path, text: str) -> None:
    (tmp_path / ".laguna.toml").write_text(text)
    chosen, notices = roots.selection(tmp_path, ContextSettings())
    assert chosen == roots.selection(tmp_path / "nothing", ContextSettings())[0]
    assert len(notices) == 1


def test_a_linked_or_special_settings_file_is_not_read(tmp_path: Path) -> None:
    import os

    (tmp_path / "outside").write_text('exclude = ["everything"]')
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / ".laguna.toml").symlink_to(tmp_path / "outside")
    assert roots.selection(tmp_path / "repo", ContextSettings())[0].exclude == ()
    (tmp_path / "repo" / ".laguna.toml").unlink()
    os.mkfifo(tmp_path / "repo" / ".laguna.toml")
    chosen, notices = roots.selection(tmp_path / "repo", ContextSettings())
    assert chosen.exclude == ()
    assert "not a plain file" in notices[0]
