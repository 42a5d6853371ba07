"""Undo, history and the journal."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from laguna_daemon import edits
from laguna_daemon.edits import journal as journal_module
from laguna_daemon.edits.journal import Journal
from support.trees import mixed_edit, planned, read_tree, replace, write_tree


class Repository:
    """A root with two files, and a journal."""

    def __init__(self, folder: Path) -> None:
        self.root, self.journal = folder / "root", folder / "journal"
        write_tree(self.root, {"a.txt": b"one\n", "b.txt": b"two\n"})

    def edit(self, path: str, old: str, new: str) -> str:
        return edits.apply(planned(self.root, replace(path, old, new)), self.journal)

    def undo(self, edit_id: str | None = None) -> str:
        return edits.undo(self.root, self.journal, edit_id)

    def text(self, path: str) -> str:
        return (self.root / path).read_text()


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_undo_refuses_where_a_file_has_changed_since(repository: Repository) -> None:
    answer = replace("a.txt", "one", "1") + replace("b.txt", "two", "2")
    edit_id = edits.apply(planned(repository.root, answer), repository.journal)
    (repository.root / "b.txt").write_text("2\nmore\n")
    with pytest.raises(edits.FilesChanged, match=r"b\.txt") as caught:
        repository.undo(edit_id)
    assert caught.value.paths == ("b.txt",)
    assert (repository.text("a.txt"), repository.text("b.txt")) == ("1\n", "2\nmore\n")


def test_undo_refuses_where_the_mode_has_changed_since(repository: Repository) -> None:
    repository.edit("a.txt", "one", "1")
    (repository.root / "a.txt").chmod(0o755)
    with pytest.raises(edits.FilesChanged):
        repository.undo()


def test_undo_without_an_id_takes_one_after_the_other(repository: Repository) -> None:
    repository.edit("a.txt", "one", "1")
    repository.edit("a.txt", "1", "eins")
    repository.undo()
    assert repository.text("a.txt") == "1\n"
    repository.undo()
    assert repository.text("a.txt") == "one\n"
    with pytest.raises(edits.UnknownEdit):
        repository.undo()


def test_an_undo_can_be_undone_and_done_again(repository: Repository) -> None:
    first = repository.edit("a.txt", "one", "1")
    undoing = repository.undo(first)
    with pytest.raises(edits.UnknownEdit, match="undone already"):
        repository.undo(first)
    repository.undo(undoing)
    assert repository.text("a.txt") == "1\n"
    records = edits.history(repository.root, repository.journal)
    assert edits.undone(records) == {undoing}
    repository.undo(first)
    assert repository.text("a.txt") == "one\n"


def test_an_older_edit_of_other_files_can_be_undone(repository: Repository) -> None:
    older = repository.edit("a.txt", "one", "1")
    repository.edit("b.txt", "two", "2")
    repository.undo(older)
    assert (repository.text("a.txt"), repository.text("b.txt")) == ("one\n", "2\n")


def test_an_edit_is_found_by_an_unambiguous_beginning(repository: Repository) -> None:
    first, second = repository.edit("a.txt", "one", "1"), repository.edit("a.txt", "1", "eins")
    assert edits.find(repository.root, repository.journal, second[:-1]).id == second
    with pytest.raises(edits.UnknownEdit, match="More than one"):
        edits.find(repository.root, repository.journal, first[:3])
    with pytest.raises(edits.UnknownEdit, match="no edit nonsense"):
        repository.undo("nonsense")


def test_a_finished_edit_shows_as_it_was_planned(tmp_path: Path) -> None:
    root, journal = tmp_path / "root", tmp_path / "journal"
    tree, answer = mixed_edit(16)
    write_tree(root, tree)
    changes = planned(root, answer)
    edits.apply(changes, journal)
    shown = edits.as_changes(edits.find(root, journal))
    assert edits.render(shown) == edits.render(changes)
    assert edits.to_patch(shown) == edits.to_patch(changes)


def test_roots_do_not_share_history(repository: Repository, tmp_path: Path) -> None:
    repository.edit("a.txt", "one", "1")
    other = tmp_path / "other"
    write_tree(other, {"a.txt": b"one\n"})
    assert edits.history(other, repository.journal) == []
    link = tmp_path / "link"
    link.symlink_to(repository.root)
    assert len(edits.history(link, repository.journal)) == 1


def test_two_writers_of_one_root_take_turns(repository: Repository) -> None:
    changes = planned(repository.root, replace("a.txt", "one", "1"))
    journal = Journal(repository.journal, repository.root)
    journal.folder.mkdir(parents=True)
    with (journal.folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(edits.JournalBusy), journal.locked(timeout=0.05):
            raise AssertionError("the lock was not held")
        assert repository.text("a.txt") == "one\n"
    edits.apply(changes, repository.journal)
    assert repository.text("a.txt") == "1\n"


def test_a_damaged_copy_is_noticed_before_anything_is_written(repository: Repository) -> None:
    edit_id = repository.edit("a.txt", "one", "1")
    blobs = Journal(repository.journal, repository.root).folder / edit_id / "blobs"
    blobs.write_bytes(b"x" * blobs.stat().st_size)
    with pytest.raises(edits.JournalBroken, match="damaged"):
        repository.undo()
    assert repository.text("a.txt") == "1\n"


def test_an_unreadable_record_says_what_to_do(repository: Repository) -> None:
    edit_id = repository.edit("a.txt", "one", "1")
    folder = Journal(repository.journal, repository.root).folder / edit_id
    (folder / "manifest.json").write_text("{")
    with pytest.raises(edits.JournalBroken) as caught:
        edits.history(repository.root, repository.journal)
    assert str(folder) in caught.value.advice


def test_old_records_are_dropped(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "_KEPT_EDITS", 3)
    text = "one"
    for number in range(6):
        repository.edit("a.txt", text, f"n{number}")
        text = f"n{number}"
    assert len(edits.history(repository.root, repository.journal)) == 3
    monkeypatch.setattr(journal_module, "_KEPT_BYTES", 1)
    repository.edit("a.txt", text, "last")
    assert len(edits.history(repository.root, repository.journal)) == 1


def test_an_edit_of_an_unsaved_file_is_not_written(repository: Repository) -> None:
    changes = planned(repository.root, replace("a.txt", "typed", "x"), buffers={"a.txt": "typed\n"})
    with pytest.raises(edits.EditsRefused, match="Unsaved"):
        edits.apply(changes, repository.journal)
    assert repository.text("a.txt") == "one\n"
    (file,) = edits.text_edits(changes)
    assert (file.unsaved, file.base, file.kind) == (True, None, "changed")


def test_a_buffer_of_a_file_that_is_not_there(repository: Repository) -> None:
    changes = planned(repository.root, replace("new.txt", "😋 typed", "x"), buffers={"new.txt": "😋\n😋 typed"})
    (file,) = edits.text_edits(changes)
    assert file.kind == "changed"
    assert file.edits == (edits.TextEdit(edits.Position(1, 0), edits.Position(1, 8), "x"),)


def test_hard_links_and_attributes(repository: Repository) -> None:
    """The other name of a hard link keeps the old text: an edit changes the file in the repository, nothing else."""
    (repository.root / "other.txt").hardlink_to(repository.root / "a.txt")
    before = read_tree(repository.root)["other.txt"]
    repository.edit("a.txt", "one", "1")
    assert read_tree(repository.root)["other.txt"] == before
