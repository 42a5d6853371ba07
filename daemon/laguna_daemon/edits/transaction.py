"""Writing a set of files so that after any interruption either all of them are old or all of them are new.

The order is: record everything in the journal; write every new file beside its place; mark the record
``committed``; put the files into their places; mark it ``done``. Before ``committed`` nothing that existed has
been touched, and recovery removes what was written beside. After it, recovery finishes the work from the journal.
An error while files are being put into place (not a crash) goes the other way: the record is marked
``rolled-back`` and the old files are restored. A file that is neither as it was nor as it should become has been
changed by someone else meanwhile: it is left alone, and reported.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from laguna_daemon.edits.changes import ChangeSet, FileState
from laguna_daemon.edits.journal import Journal, JournalBusy, Known, Record, Touched, journals
from laguna_daemon.edits.tree import Tree
from laguna_daemon.errors import EditsRefused, LagunaError

Step = Callable[[str], None]
"""Called with a name before every step that changes the disk. Tests kill the process there."""


class FilesChanged(EditsRefused):
    """Files are not as the edit needs them; ``paths`` are those. Nothing was written."""

    def __init__(self, paths: tuple[str, ...], what: str, advice: str) -> None:
        super().__init__(what, advice)
        self.paths = paths


class WriteFailed(LagunaError):
    """The system refused a write; every file is as it was before, except those in ``left``."""

    def __init__(self, what: str, advice: str, left: tuple[str, ...] = ()) -> None:
        super().__init__(what, advice)
        self.left = left


@dataclass(frozen=True, slots=True)
class Recovered:
    """What became of an interrupted edit; ``left`` are files that someone else had changed meanwhile."""

    id: str
    root: Path
    outcome: Literal["old", "new"]
    left: tuple[str, ...] = ()


def apply(changes: ChangeSet, journal_dir: Path, *, step: Step = lambda name: None) -> str:
    """Write a change set to the disk; the id of the edit.

    Raises FilesChanged if a file is not as it was when the set was planned, WriteFailed if the system refuses (all
    is as before then), JournalBusy if another process is writing the same root.
    """
    if changes.buffers:
        raise EditsRefused(
            f"Unsaved in an editor: {', '.join(sorted(changes.buffers))}.",
            "Save them first, or take the edits in the editor.",
        )
    renames = tuple((change.source, change.path) for change in changes.changes if change.source is not None)
    return write_states(changes.root, changes.states(), journal_dir, renames=renames, step=step)


def write_states(
    root: Path,
    states: Mapping[str, tuple[FileState | None, FileState | None]],
    journal_dir: Path,
    *,
    renames: tuple[tuple[str, str], ...] = (),
    undoes: str | None = None,
    step: Step = lambda name: None,
) -> str:
    """Bring every path from its first state to its second, all or nothing; the id of the record."""
    journal = Journal(journal_dir, root)
    if not states:
        raise EditsRefused("There is nothing to write.")
    with journal.locked(), Tree(journal.root) as tree:
        _recover_all(journal, tree)
        stamps = _verify(tree, states)
        step("journal")
        record = journal.write(states, renames, undoes)
        _Writer(tree, record, step).run(stamps)
        journal.prune()
        return record.id


def recover(journal_dir: Path) -> list[Recovered]:
    """Bring every interrupted edit to its end. Edits that a living process is writing are left to it."""
    recovered: list[Recovered] = []
    for journal in journals(journal_dir):
        unavailable = contextlib.suppress(JournalBusy, FileNotFoundError)
        with unavailable, journal.locked(timeout=0), Tree(journal.root) as tree:
            recovered += _recover_all(journal, tree)
    return recovered


def _recover_all(journal: Journal, tree: Tree) -> list[Recovered]:
    return [_Writer(tree, record).recover() for record in journal.unfinished()]


def _verify(
    tree: Tree, states: Mapping[str, tuple[FileState | None, FileState | None]]
) -> dict[str, tuple[int, ...] | None]:
    """A stamp for every file, each of which is as it has to be. Raises FilesChanged."""
    stamps, changed = {}, []
    for path, (before, _) in states.items():
        stamps[path] = _stamp(tree, path)
        if _known(tree, path) != Known.of(before):
            changed.append(path)
    if changed:
        shown = ", ".join(changed[:10]) + (" ..." if len(changed) > 10 else "")
        raise FilesChanged(
            tuple(changed), f"Changed meanwhile: {shown}. Nothing was written.", "Look at the files and try again."
        )
    return stamps


def _stamp(tree: Tree, path: str) -> tuple[int, ...] | None:
    try:
        return tree.stamp(path)
    except OSError:
        return (0,)


_ELSE = Known("something that is not a regular file", -1, -1)


def _known(tree: Tree, path: str) -> Known | None:
    try:
        return Known.of(tree.read(path))
    except OSError:
        return _ELSE


class _Writer:
    """Carries out one record."""

    def __init__(self, tree: Tree, record: Record, step: Step = lambda name: None) -> None:
        self._tree, self._record, self._step = tree, record, step

    def run(self, stamps: Mapping[str, tuple[int, ...] | None]) -> None:
        try:
            self._stage()
            for touched in self._record.touched:
                if _stamp(self._tree, touched.path) != stamps[touched.path]:
                    raise OSError(f"{touched.path} has changed meanwhile")
            self._step("commit")
            self._record.mark("committed")
            self._tree.renew()
            self._put(stamps)
        except OSError as error:
            left = self._roll_back()
            raise WriteFailed(
                f"Writing failed: {error}. All files are as they were"
                + (f", except {', '.join(left)}, changed by someone else." if left else "."),
                "Remove the cause (space, permissions) and try again.",
                left,
            ) from error
        self._finish(self._record.touched)

    def recover(self) -> Recovered:
        """End an interrupted edit, forwards or backwards as far as it had come."""
        record = self._record
        if record.has("committed") and not record.has("rolled-back"):
            self._make_folders("after")
            left = self._move(record.touched, "after")
            self._finish(record.touched)
            return Recovered(record.id, record.root, "new", left)
        return Recovered(record.id, record.root, "old", self._roll_back())

    def _stage(self) -> None:
        self._make_folders("after")
        for index, touched in enumerate(self._record.touched):
            if (state := self._record.state(touched, "after")) is not None:
                self._step(f"write {touched.path}")
                like = touched.path if touched.before is not None else None
                self._tree.write_new(self._temporary(index), state, like)

    def _put(self, stamps: Mapping[str, tuple[int, ...] | None]) -> None:
        """The files into their places; what has to go goes first, so that a name differing by case is free."""
        for touched in self._record.touched:
            if touched.after is None:
                self._check(touched, stamps)
                self._step(f"remove {touched.path}")
                self._tree.remove(touched.path)
        for index, touched in enumerate(self._record.touched):
            if touched.after is not None:
                self._check(touched, stamps)
                self._step(f"place {touched.path}")
                swap = self._tree.place if touched.before is None else self._tree.replace
                swap(self._temporary(index), touched.path)

    def _check(self, touched: Touched, stamps: Mapping[str, tuple[int, ...] | None]) -> None:
        if _stamp(self._tree, touched.path) != stamps[touched.path]:
            raise OSError(f"{touched.path} has changed meanwhile")

    def _move(self, chosen: Iterable[Touched], side: Literal["before", "after"]) -> tuple[str, ...]:
        """Bring every file to one side from the other, whichever it is at; those that are at neither are left."""
        left = []
        for touched in sorted(chosen, key=lambda one: getattr(one, side) is not None):
            goal = touched.after if side == "after" else touched.before
            other = touched.before if side == "after" else touched.after
            now = _known(self._tree, touched.path)
            if now == goal:
                continue
            if now != other:
                left.append(touched.path)
                continue
            self._set(touched, self._record.state(touched, side))
        return tuple(left)

    def _set(self, touched: Touched, state: FileState | None) -> None:
        if state is None:
            self._tree.remove(touched.path)
            return
        temporary = self._temporary(self._record.touched.index(touched))
        self._tree.remove(temporary)
        there = touched.path if self._tree.stamp(touched.path) is not None else None
        self._tree.write_new(temporary, state, there)
        (self._tree.place if there is None else self._tree.replace)(temporary, touched.path)

    def _roll_back(self) -> tuple[str, ...]:
        left: tuple[str, ...] = ()
        if self._record.has("committed"):
            self._record.mark("rolled-back")
            self._make_folders("before")
            left = self._move(self._record.touched, "before")
        self._clear()
        self._prune_folders(touched.path for touched in self._record.touched if touched.before is None)
        self._flush()
        self._record.forget()
        return left

    def _finish(self, touched: Iterable[Touched]) -> None:
        self._clear()
        self._prune_folders(one.path for one in touched if one.after is None)
        self._flush()
        self._step("done")
        self._record.mark("done")

    def _clear(self) -> None:
        for index in range(len(self._record.touched)):
            with contextlib.suppress(OSError):
                self._tree.remove(self._temporary(index))

    def _flush(self) -> None:
        for folder in {_folder(touched.path) for touched in self._record.touched}:
            with contextlib.suppress(OSError):
                self._tree.flush_folder(folder)

    def _make_folders(self, side: Literal["before", "after"]) -> None:
        needed: dict[str, None] = {}
        for touched in self._record.touched:
            if getattr(touched, side) is not None:
                parts = touched.path.split("/")[:-1]
                needed |= dict.fromkeys("/".join(parts[: end + 1]) for end in range(len(parts)))
        for folder in needed:
            if _stamp(self._tree, folder) is None:
                self._step(f"folder {folder}")
                self._tree.make_folder(folder)

    def _prune_folders(self, paths: Iterable[str]) -> None:
        """Remove folders that the edit has emptied, as git does: it knows none without files."""
        for path in sorted(paths, reverse=True):
            folder = _folder(path)
            while folder and self._tree.remove_folder(folder):
                folder = _folder(folder)

    def _temporary(self, index: int) -> str:
        folder = _folder(self._record.touched[index].path)
        name = f".laguna-{self._record.id}-{index}.tmp"
        return f"{folder}/{name}" if folder else name


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
