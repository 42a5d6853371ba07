"""SIGKILL at every step of writing, then recovery: all old or all new, never a mixture."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from laguna_daemon import edits
from support.trees import folders, killed_at, killed_at_call, mixed_edit, planned, read_tree, write_tree


class Stage:
    """A tree, a change set for it, and what it is to become."""

    def __init__(self, folder: Path, files: int) -> None:
        self.root, self.journal = folder / "root", folder / "journal"
        self.files, answer = mixed_edit(files)
        self.reset()
        self.changes = planned(self.root, answer)
        self.old, self.old_folders = read_tree(self.root), folders(self.root)
        edits.apply(self.changes, self.journal)
        self.new, self.new_folders = read_tree(self.root), folders(self.root)
        assert self.old != self.new

    def reset(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.rmtree(self.journal, ignore_errors=True)
        write_tree(self.root, self.files)

    def check(self, recovered: list[edits.Recovered]) -> str:
        """Which of the two states the tree is in, with nothing left over and the journal in agreement."""
        assert all(one.left == () for one in recovered)
        now = read_tree(self.root)
        outcome = "old" if now == self.old else "new"
        assert now == (self.old if outcome == "old" else self.new)
        assert folders(self.root) == (self.old_folders if outcome == "old" else self.new_folders)
        assert {one.outcome for one in recovered} <= {outcome}
        assert edits.recover(self.journal) == []
        assert len(edits.history(self.root, self.journal)) == (outcome == "new")
        return outcome


def test_kill_at_every_step_of_fifty_files(tmp_path: Path) -> None:
    stage = Stage(tmp_path, 50)
    outcomes, number = [], 0
    while True:
        stage.reset()
        if not killed_at(number, lambda step: edits.apply(stage.changes, stage.journal, step=step)):
            break
        outcomes.append(stage.check(edits.recover(stage.journal)))
        number += 1
    assert number > 100
    assert outcomes == sorted(outcomes, reverse=True), "once committed, never old again"
    assert {"old", "new"} == set(outcomes)


def test_kill_at_every_call_into_the_file_system(tmp_path: Path) -> None:
    stage = Stage(tmp_path, 16)
    outcomes, number = [], 0
    while True:
        stage.reset()
        if not killed_at_call(number, lambda: edits.apply(stage.changes, stage.journal)):
            break
        outcomes.append(stage.check(edits.recover(stage.journal)))
        number += 1
    assert number > 150
    assert outcomes == sorted(outcomes, reverse=True)
    assert {"old", "new"} == set(outcomes)


def test_recovery_itself_is_killed(tmp_path: Path) -> None:
    stage = Stage(tmp_path, 16)
    steps = 0
    while stage.reset() is None and killed_at(steps, lambda step: edits.apply(stage.changes, stage.journal, step=step)):
        steps += 1
    for first in (3, steps // 2, steps * 2 // 3, steps - 1):
        number = 0
        while True:
            stage.reset()
            assert killed_at(first, lambda step: edits.apply(stage.changes, stage.journal, step=step))
            if not killed_at_call(number, lambda: edits.recover(stage.journal)):
                break
            stage.check(edits.recover(stage.journal))
            number += 7


def test_kill_at_every_step_of_an_undo(tmp_path: Path) -> None:
    stage = Stage(tmp_path, 16)
    outcomes, number = [], 0
    while True:
        stage.reset()
        edits.apply(stage.changes, stage.journal)
        if not killed_at(number, lambda step: edits.undo(stage.root, stage.journal, step=step)):
            break
        edits.recover(stage.journal)
        now = read_tree(stage.root)
        assert now in (stage.old, stage.new)
        outcomes.append(now == stage.old)
        number += 1
    assert outcomes == sorted(outcomes)
    assert set(outcomes) == {False, True}


@pytest.mark.parametrize("kind", ["folder", "write", "commit", "remove", "place"])
def test_an_error_at_a_step_leaves_all_old(kind: str, tmp_path: Path) -> None:
    stage = Stage(tmp_path, 16)
    names: list[str] = []
    stage.reset()
    edits.apply(stage.changes, stage.journal, step=names.append)
    for target in [name for name in names if name.split()[0] == kind]:
        stage.reset()

        def step(name: str, target: str = target) -> None:
            if name == target:
                raise OSError(28, "No space left on device")

        with pytest.raises(edits.WriteFailed, match="No space left"):
            edits.apply(stage.changes, stage.journal, step=step)
        assert stage.check([]) == "old"


def test_the_next_apply_recovers_first(tmp_path: Path) -> None:
    stage = Stage(tmp_path, 16)
    stage.reset()
    names: list[str] = []
    edits.apply(stage.changes, stage.journal, step=names.append)
    stage.reset()
    at = names.index("commit") + 3
    assert killed_at(at, lambda step: edits.apply(stage.changes, stage.journal, step=step))
    with pytest.raises(edits.FilesChanged):
        edits.apply(stage.changes, stage.journal)
    assert stage.check([]) == "new"


def test_recovery_leaves_what_someone_else_changed(tmp_path: Path) -> None:
    stage = Stage(tmp_path, 16)
    stage.reset()
    names: list[str] = []
    edits.apply(stage.changes, stage.journal, step=names.append)
    last = names[-2].removeprefix("place ")
    stage.reset()
    assert killed_at(len(names) - 2, lambda step: edits.apply(stage.changes, stage.journal, step=step))
    target = stage.root / last
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(b"typed by the user after the crash")
    (recovered,) = edits.recover(stage.journal)
    assert recovered.outcome == "new"
    assert recovered.left == (last,)
    assert target.read_bytes() == b"typed by the user after the crash"
    assert {path: data for path, data in read_tree(stage.root).items() if path != last} == {
        path: data for path, data in stage.new.items() if path != last
    }


def test_a_living_writer_is_left_alone(tmp_path: Path) -> None:
    stage = Stage(tmp_path, 8)
    stage.reset()
    seen: list[list[edits.Recovered]] = []

    def step(name: str) -> None:
        if name == "commit":
            seen.append(edits.recover(stage.journal))

    edits.apply(stage.changes, stage.journal, step=step)
    assert seen == [[]]
    assert read_tree(stage.root) == stage.new
