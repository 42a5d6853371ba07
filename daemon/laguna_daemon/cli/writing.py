"""Writing a refactoring's edits from the client: one edit in the history, however many rounds it took."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from laguna_daemon import edits
from laguna_daemon.api import client
from laguna_daemon.errors import EditsRefused
from laguna_daemon.paths import journal_dir
from laguna_daemon.schemas import UnsavedRequest
from laguna_daemon.service.refactoring.wire import compose


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C waits until every file is in its place: it would leave the rest to recovery."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Writer:
    """Applies sets of edits one on top of the other. ``edit`` is the id under which all of them can be undone."""

    def __init__(self, root: Path) -> None:
        self.edit: str | None = None
        self.changes: edits.ChangeSet | None = None
        self._root = root
        self._written = 0.0

    def apply(self, changes: edits.ChangeSet) -> str:
        """Write ``changes``, which were made for the files as they are now; the id of the edit.

        An earlier set of this writer is taken back and written again together with this one. Raises EditsRefused
        and its kinds; nothing of ``changes`` is written then.
        """
        self._refuse_unsaved(changes)
        with _uninterrupted():
            return self._apply(changes)

    def _apply(self, changes: edits.ChangeSet) -> str:
        if self.edit is None or self.changes is None:
            self.edit = edits.apply(changes, journal_dir())
            self.changes = changes
            self._written = time.time()
            return self.edit
        both = compose(self.changes, changes)
        if not both.changes:
            self._undo()
            raise EditsRefused("The last round takes all edits back.", "Nothing is changed.")
        self._await_next_second()
        earlier, self.edit = self.edit, None
        edits.undo(self._root, journal_dir(), earlier)
        self.edit = edits.apply(both, journal_dir())
        self.changes = both
        self._written = time.time()
        return self.edit

    def undo(self) -> bool:
        """Take everything back; False if nothing was written. Raises FilesChanged if files were changed since."""
        if self.edit is None:
            return False
        with _uninterrupted():
            self._undo()
        return True

    def _undo(self) -> None:
        self._await_next_second()
        edits.undo(self._root, journal_dir(), self.edit)
        self.edit = self.changes = None

    def _await_next_second(self) -> None:
        """Two versions of a file within one second look the same to what compares whole seconds and sizes: a check
        would run what Python has compiled from the first."""
        while int(time.time()) <= int(self._written):
            time.sleep(0.05)

    def _refuse_unsaved(self, changes: edits.ChangeSet) -> None:
        held = client.unsaved(UnsavedRequest(root=str(self._root), paths=list(changes.paths)))
        if held:
            raise EditsRefused(
                f"Unsaved in an editor: {', '.join(held)}. Nothing was written.",
                "Save them first, or take the edits in the editor.",
            )
