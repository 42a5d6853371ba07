"""Files and lines that a question points at."""

from pathlib import Path

import pytest

from laguna_context.listing import Selection
from laguna_daemon.cli.ask import reference
from laguna_daemon.errors import RepositoryError
from laguna_daemon.schemas import Reference
from laguna_daemon.service.references import resolve
from support.daemon import repository


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    (tmp_path / "outside.txt").write_text("outside")
    made = repository(tmp_path / "repo", {"a.py": "one\ntwo\nthree\nfour\n", ".gitignore": "ignored.py\n"})
    (made / "ignored.py").write_text("ignored")
    (made / "link.txt").symlink_to(tmp_path / "outside.txt")
    (made / ".env").write_text("PASSWORD=hunter2")
    return made


def one(repo: Path, texts: dict[str, str] | None = None, **fields: object) -> tuple[str, str]:
    return resolve(repo, [Reference.model_validate(fields)], texts or {}, Selection())[0]


def test_a_whole_file_and_some_of_its_lines(repo: Path) -> None:
    assert one(repo, path="a.py") == ("a.py", "one\ntwo\nthree\nfour\n")
    assert one(repo, path="a.py", first_line=2, last_line=3) == ("a.py:2-3", "two\nthree\n")
    assert one(repo, path=str(repo / "a.py"), first_line=4, last_line=99) == ("a.py:4-4", "four\n")


def test_lines_are_those_that_editors_count(repo: Path) -> None:
    held = {"a.py": "one\x0cstill one\r\ntwo\x85\u2028\rthree"}
    assert one(repo, held, path="a.py", first_line=2, last_line=2) == ("a.py:2-2", "two\x85\u2028\r")
    assert one(repo, held, path="a.py", first_line=1, last_line=1) == ("a.py:1-1", "one\x0cstill one\r\n")
    assert one(repo, {"a.py": ""}, path="a.py", first_line=1, last_line=1)[1] == ""


@pytest.mark.parametrize(("first", "last"), [(5, 9), (3, 2)])
def test_lines_that_a_file_does_not_have_are_refused(repo: Path, first: int, last: int) -> None:
    with pytest.raises(RepositoryError, match=r"a\.py has 4 lines"):
        one(repo, path="a.py", first_line=first, last_line=last)


def test_an_open_editors_text_comes_first(repo: Path) -> None:
    assert one(repo, {"a.py": "unsaved\n"}, path="a.py") == ("a.py", "unsaved\n")


@pytest.mark.parametrize(
    "path", ["ignored.py", "missing.py", "link.txt", ".env", "../outside.txt", "/etc/hostname", ""]
)
def test_what_may_not_be_shown_is_refused_by_name(repo: Path, path: str) -> None:
    with pytest.raises(RepositoryError):
        one(repo, path=path)


def test_the_command_lines_spelling() -> None:
    assert reference("a.py") == Reference(path="a.py")
    assert reference("a.py:7") == Reference(path="a.py", first_line=7, last_line=7)
    assert reference("a.py:7-9") == Reference(path="a.py", first_line=7, last_line=9)
    assert reference("odd:name.py") == Reference(path="odd:name.py")
