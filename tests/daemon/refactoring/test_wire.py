"""Change sets over the wire, and two sets as one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from laguna_daemon import edits
from laguna_daemon.service.refactoring.wire import compose, described, from_wire, to_wire
from support.daemon import repository
from support.edit_cases import snapshot
from support.trees import replace

RENAME = "<<<<<<< RENAME a.txt -> b.txt\n>>>>>>> END\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = repository(tmp_path / "root", {"a.txt": "one\ntwo\n", "c.txt": "three\n", "run.sh": "echo\n"})
    (root / "c.txt").write_bytes(b"\xef\xbb\xbfthree\r\nfour")
    (root / "run.sh").chmod(0o755)
    return root


def plan(root: Path, answer: str) -> edits.ChangeSet:
    made = edits.plan(root, edits.parse(answer).blocks)
    assert isinstance(made, edits.ChangeSet), made
    return made


EVERYTHING = (
    RENAME
    + replace("b.txt", "one", "1")
    + replace("c.txt", "three", "drei")
    + replace("run.sh", "echo", "echo hello")
    + "<<<<<<< CREATE new/x.txt\ntext\n>>>>>>> END\n"
)


def test_the_set_comes_out_as_it_went_in(root: Path) -> None:
    made = plan(root, EVERYTHING)
    again = from_wire(root, to_wire(made))
    assert again.states() == made.states()
    assert [(one.path, one.source, one.encoding) for one in again.changes] == [
        (one.path, one.source, one.encoding) for one in made.changes
    ]


def test_new_files_get_the_modes_of_the_one_who_writes(root: Path) -> None:
    files = to_wire(plan(root, EVERYTHING))
    before = os.umask(0o027)
    try:
        modes = {one.path: one.after.mode for one in from_wire(root, files).changes if one.after}
    finally:
        os.umask(before)
    assert modes["new/x.txt"] == 0o640
    assert modes["run.sh"] == 0o755


def test_a_file_that_changed_on_the_way_is_refused(root: Path) -> None:
    files = to_wire(plan(root, EVERYTHING))
    (root / "a.txt").write_text("else\n")
    (root / "new").mkdir()
    (root / "new/x.txt").write_text("there\n")
    with pytest.raises(edits.FilesChanged) as caught:
        from_wire(root, files)
    assert set(caught.value.paths) == {"a.txt", "new/x.txt"}


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (replace("a.txt", "one", "1"), replace("a.txt", "two", "2") + replace("c.txt", "four", "vier")),
        (RENAME, replace("b.txt", "one", "1")),
        (RENAME, "<<<<<<< RENAME b.txt -> d.txt\n>>>>>>> END\n"),
        (RENAME, "<<<<<<< DELETE b.txt\n>>>>>>> END\n"),
        (RENAME + replace("b.txt", "one", "1"), "<<<<<<< CREATE a.txt\nnew\n>>>>>>> END\n"),
        ("<<<<<<< CREATE x\ny\n>>>>>>> END\n", "<<<<<<< RENAME x -> z\n>>>>>>> END\n"),
        ("<<<<<<< CREATE x\ny\n>>>>>>> END\n" + replace("a.txt", "one", "1"), "<<<<<<< DELETE x\n>>>>>>> END\n"),
        ("<<<<<<< DELETE a.txt\n>>>>>>> END\n", "<<<<<<< CREATE a.txt\nnew\n>>>>>>> END\n"),
    ],
)
def test_two_sets_as_one(root: Path, tmp_path: Path, first: str, then: str) -> None:
    before = snapshot(root)
    one = plan(root, first)
    one_id = edits.apply(one, tmp_path / "journal")
    two = plan(root, then)
    edits.apply(two, tmp_path / "journal")
    wanted = snapshot(root)
    edits.undo(root, tmp_path / "journal")
    edits.undo(root, tmp_path / "journal", one_id)
    assert snapshot(root) == before
    both = edits.apply(compose(one, two), tmp_path / "journal")
    assert snapshot(root) == wanted
    edits.undo(root, tmp_path / "journal", both)
    assert snapshot(root) == before


def test_a_set_taken_back_is_nothing(root: Path, tmp_path: Path) -> None:
    one = plan(root, replace("a.txt", "one", "1"))
    edits.apply(one, tmp_path / "journal")
    two = plan(root, replace("a.txt", "1", "one"))
    assert compose(one, two).changes == ()


def test_the_report_counts_lines(root: Path) -> None:
    found = {one.path: one for one in described(plan(root, EVERYTHING).changes)}
    assert (found["b.txt"].change, found["b.txt"].source) == ("renamed", "a.txt")
    assert (found["new/x.txt"].added, found["new/x.txt"].removed) == (1, 0)
