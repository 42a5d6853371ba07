"""Undo and history: an edit is undone by an edit in the other direction, so undo can be undone."""

from __future__ import annotations

from pathlib import Path

from laguna_daemon.edits.changes import ChangeSet, FileChange
from laguna_daemon.edits.journal import Journal, Record
from laguna_daemon.edits.transaction import FilesChanged, Step, write_states
from laguna_daemon.errors import EditsRefused


class UnknownEdit(EditsRefused):
    """There is no such edit, or none that can be undone."""


def history(root: Path, journal_dir: Path) -> list[Record]:
    """The finished edits of a root, newest first."""
    records = [record for record in Journal(journal_dir, root).records() if record.has("done")]
    return records[::-1]


def undone(records: list[Record]) -> frozenset[str]:
    """The ids of edits whose effect an undo (itself not undone) has taken back."""
    gone: set[str] = set()
    for record in records:  # newest first: what undid an undo is known before the undo is looked at
        if record.undoes is not None and record.id not in gone:
            gone.add(record.undoes)
    return frozenset(gone)


def find(root: Path, journal_dir: Path, edit_id: str | None = None) -> Record:
    """An edit by its id or an unambiguous beginning of it; without one, the latest that is not undone.

    Raises UnknownEdit.
    """
    records = history(root, journal_dir)
    if edit_id is None:
        gone = undone(records)
        found = [record for record in records if record.undoes is None and record.id not in gone][:1]
    else:
        found = [record for record in records if record.id.startswith(edit_id)]
    if len(found) != 1:
        which = f" {edit_id}" if edit_id else ""
        problem = f"More than one edit begins with {edit_id}" if found else f"There is no edit{which} to undo"
        raise UnknownEdit(f"{problem} in {root}.", "See: laguna-daemon edits list")
    return found[0]


def undo(root: Path, journal_dir: Path, edit_id: str | None = None, *, step: Step = lambda name: None) -> str:
    """Bring every file of an edit back to what it was; the id of the undoing edit.

    Raises FilesChanged, naming the files, if any of them is no longer as the edit left it; nothing is written then.
    """
    record = find(root, journal_dir, edit_id)
    if record.id in undone(history(root, journal_dir)):
        raise UnknownEdit(f"The edit {record.id} is undone already.", "See: laguna-daemon edits list")
    states = {
        touched.path: (record.state(touched, "after"), record.state(touched, "before")) for touched in record.touched
    }
    renames = tuple((new, old) for old, new in record.renames)
    try:
        return write_states(record.root, states, journal_dir, renames=renames, undoes=record.id, step=step)
    except FilesChanged as error:
        raise FilesChanged(
            error.paths,
            f"Changed since the edit {record.id}: {', '.join(error.paths)}. Nothing was undone.",
            "Undo later edits first, or take those files back by hand (laguna-daemon edits show).",
        ) from error


def as_changes(record: Record) -> ChangeSet:
    """A finished edit as the change set it was, to be shown."""
    sources = {new: old for old, new in record.renames}
    before = {touched.path: record.state(touched, "before") for touched in record.touched}
    changes = []
    for touched in record.touched:
        if touched.after is None and touched.path in sources.values():
            continue
        source = sources.get(touched.path)
        was = before[source or touched.path]
        changes.append(FileChange(touched.path, was, record.state(touched, "after"), source))
    return ChangeSet(record.root, tuple(changes))
