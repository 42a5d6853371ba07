"""The plan of files: a search by words, in any language, before the model is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from laguna_context.listing import Selection
from laguna_daemon.errors import UsageError
from laguna_daemon.service.refactoring import files
from laguna_daemon.service.refactoring.files import Plan, Scope
from support.daemon import repository

FILES = {
    "core.py": "def greet():\n    pass\n\ngreet()\n",
    "web/app.ts": "import { greet } from './core';\n",
    "docs/guide.md": "Call `greet`.\n",
    "other.py": "greeting = 1  # regreet\n",
    ".gitignore": "out/\n",
    "out/made.py": "greet()\n",
    ".env": "greet=1\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "root", FILES)


def find(root: Path, instruction: str, *globs: str, texts: dict[str, str] | None = None) -> Plan:
    return files.find(root, Selection(), Scope(globs), instruction, texts or {})


def test_every_language_and_nothing_ignored_or_secret(root: Path) -> None:
    plan = find(root, "Rename `greet` to `salute`")
    assert plan.names == ("greet",)
    assert [(one.path, one.lines) for one in plan.files] == [
        ("core.py", (0, 3)),
        ("docs/guide.md", (0,)),
        ("web/app.ts", (0,)),
    ]
    assert all(one.reason == "has greet" for one in plan.files)


def test_globs_limit_the_plan(root: Path) -> None:
    assert [one.path for one in find(root, "Rename `greet`", "*.ts", "core.py").files] == ["core.py", "web/app.ts"]
    with pytest.raises(UsageError, match="No file"):
        find(root, "Rename `greet`", "src/")


def test_unsaved_text_beats_the_disk(root: Path) -> None:
    plan = find(root, "Rename `greet`", texts={"core.py": "nothing\n", "other.py": "greet()\n"})
    assert [one.path for one in plan.files] == ["docs/guide.md", "other.py", "web/app.ts"]


def test_a_named_file_is_in_the_plan_without_any_word(root: Path) -> None:
    plan = find(root, "Tidy other.py up")
    assert [(one.path, one.reason, one.lines) for one in plan.files] == [("other.py", "named in the instruction", ())]
    assert find(root, "Tidy everything up") == Plan((), ())


def test_a_word_of_no_meaning_is_left_out_and_said(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_FILES", 2)
    plan = find(root, "Rename `greet` and `greeting`")
    assert plan.names == ("greeting",)
    assert [one.path for one in plan.files] == ["other.py"]
    assert "greet stands in 3 files" in plan.notes[0]


def test_a_file_that_may_not_be_shown_is_not_read(root: Path) -> None:
    assert files.read(root, ".env", Selection()) is None
    assert files.read(root, "out/made.py", Selection()) is None
    document = files.read(root, "core.py", Selection())
    assert document is not None
    assert document.text == FILES["core.py"]
