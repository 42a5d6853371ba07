"""What stands, what was refused, what is missing: over several answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from laguna_daemon.service.refactoring.answer import Answer
from laguna_daemon.service.refactoring.files import Planned, Scope
from laguna_daemon.service.refactoring.ledger import Ledger
from support.daemon import repository
from support.trees import replace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "root", {"a.txt": "one\ntwo\n", "b.txt": "two\n", "c.txt": "three\n"})


def answer(text: str) -> Answer:
    found = Answer(lambda event: None)
    found.feed(text)
    found.finish()
    return found


def seen(root: Path) -> dict[str, str]:
    from laguna_daemon.edits.files import sha256

    return {path.name: sha256(path.read_bytes()) for path in root.glob("*.txt")}


def test_the_good_blocks_are_kept_while_the_bad_one_is_written_again(root: Path) -> None:
    ledger = Ledger(root, Scope(()))
    ledger.expect([Planned("a.txt", ""), Planned("b.txt", ""), Planned("c.txt", "")])
    ledger.take(answer(replace("a.txt", "one", "1") + replace("b.txt", "nowhere", "2")), seen(root))
    (refusal,) = ledger.plan(seen(root), {})
    assert (refusal.code, refusal.path) == ("no match", "b.txt")
    assert ledger.changes is None
    assert ledger.kept == 1
    assert [one.path for one in ledger.missing] == ["c.txt"]
    assert ledger.open == "refused blocks, files passed over"
    ledger.take(answer(replace("b.txt", "two", "2") + "SKIP c.txt: another three\n"), seen(root))
    assert ledger.plan(seen(root), {}) == []
    assert ledger.open == ""
    assert ledger.changes is not None
    assert ledger.changes.paths == ("a.txt", "b.txt")
    assert ledger.skipped == {"c.txt": "another three"}


def test_a_refusal_that_nobody_answers_stays(root: Path) -> None:
    ledger = Ledger(root, Scope(()))
    ledger.take(answer(replace("a.txt", "one", "1") + replace("b.txt", "nowhere", "2")), seen(root))
    ledger.plan(seen(root), {})
    ledger.take(answer("Done.\n"), seen(root))
    assert ledger.plan(seen(root), {}) == []
    assert [refusal.path for refusal in ledger.refused] == ["b.txt"]


def test_a_wrong_path_is_settled_by_the_right_one(root: Path) -> None:
    ledger = Ledger(root, Scope(()))
    ledger.take(answer(replace("src/a.txt", "one", "1")), seen(root))
    (refusal,) = ledger.plan(seen(root), {})
    assert refusal.code == "no file"
    ledger.take(answer(replace("a.txt", "one", "1")), seen(root))
    ledger.plan(seen(root), {})
    assert ledger.open == ""


def test_fewer_corrections_than_refusals_are_said(root: Path) -> None:
    ledger = Ledger(root, Scope(()))
    ledger.take(answer(replace("a.txt", "x", "1") + replace("a.txt", "y", "2")), seen(root))
    ledger.plan(seen(root), {})
    ledger.take(answer(replace("a.txt", "one", "1")), seen(root))
    ledger.plan(seen(root), {})
    assert ledger.open == ""
    assert ledger.notes == ["a.txt: 2 blocks were refused, 1 written again."]


def test_a_kept_block_of_a_file_that_changes_meanwhile_is_refused(root: Path) -> None:
    ledger = Ledger(root, Scope(()))
    ledger.take(answer(replace("a.txt", "one", "1") + replace("b.txt", "nowhere", "2")), seen(root))
    ledger.plan(seen(root), {})
    (root / "a.txt").write_text("zero\none\ntwo\n")
    ledger.take(answer(replace("b.txt", "two", "2")), seen(root))
    (refusal,) = ledger.plan(seen(root), {})
    assert (refusal.code, refusal.path) == ("stale", "a.txt")
    ledger.take(answer(replace("a.txt", "one", "1")), seen(root))
    assert ledger.plan(seen(root), {}) == []
    assert ledger.changes is not None
    assert dict(ledger.changes.states())["a.txt"][1].data == b"zero\n1\ntwo\n"


def test_files_out_of_scope_are_refused(root: Path) -> None:
    ledger = Ledger(root, Scope(["a.*"]))
    ledger.take(answer(replace("a.txt", "one", "1") + replace("b.txt", "two", "2")), seen(root))
    (refusal,) = ledger.plan(seen(root), {})
    assert refusal.path == "b.txt"
    assert "a.*" in refusal.message
    assert (root / "b.txt").read_text() == "two\n"


def test_what_the_model_names_is_expected_of_it(root: Path) -> None:
    ledger = Ledger(root, Scope(["*.txt"]))
    ledger.take(answer("FILE a.txt\nFILE new.txt\nFILE x.py\n" + replace("a.txt", "one", "1")), seen(root))
    ledger.plan(seen(root), {})
    assert [one.path for one in ledger.missing] == ["new.txt"]


def test_an_ignored_path_takes_its_blocks_with_it(root: Path) -> None:
    (root / ".gitignore").write_text("*.log\n")
    ledger = Ledger(root, Scope(()))
    created = "<<<<<<< CREATE x.log\ntext\n>>>>>>> END\n"
    ledger.take(answer(replace("a.txt", "one", "1") + created), seen(root))
    (refusal,) = ledger.plan(seen(root), {})
    assert (refusal.code, refusal.path) == ("ignored", "x.log")
    ledger.take(answer("SKIP x.log: not needed\n"), seen(root))
    assert ledger.plan(seen(root), {}) == []
    assert ledger.changes is not None
    assert ledger.changes.paths == ("a.txt",)
