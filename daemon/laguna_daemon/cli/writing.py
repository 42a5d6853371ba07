"""Writing a refactoring's edits from the client: one edit in the history, however many rounds it took."""

from __future__ import annotations

from pathlib import Path

from laguna_daemon import edits
from laguna_daemon.api import client
from laguna_daemon.errors import EditsRefused
from laguna_daemon.schemas import UnsavedRequest
from laguna_daemon.service.refactoring.recovery import journal_dir
from laguna_daemon.service.refactoring.wire import compose


class Writer:
    """Applies sets of edits one on top of the other. ``edit`` is the id under which all of them can be undone."""

    def __init__(self, root: Path) -> None:
        self.edit: str | None = None
        self.changes: edits.ChangeSet | None = None
        self._root = root

    def apply(self, changes: edits.ChangeSet) -> str:
        """Write ``changes``, which were made for the files as they are now; the id of the edit.

        An earlier set of this writer is taken back and written again together with this one. Raises EditsRefused
        and its kinds; nothing of ``changes`` is written then.
        """
        self._refuse_unsaved(changes)
        if self.edit is None or self.changes is None:
            self.edit = edits.apply(changes, journal_dir())
            self.changes = changes
            return self.edit
        both = compose(self.changes, changes)
        if not both.changes:
            self.undo()
            raise EditsRefused("The last round takes all edits back.", "Nothing is changed.")
        earlier, self.edit = self.edit, None
        edits.undo(self._root, journal_dir(), earlier)
        self.edit = edits.apply(both, journal_dir())
        self.changes = both
        return self.edit

    def undo(self) -> bool:
        """Take everything back; False if nothing was written. Raises FilesChanged if files were changed since."""
        if self.edit is None:
            return False
        edits.undo(self._root, journal_dir(), self.edit)
        self.edit = self.changes = None
        return True

    def _refuse_unsaved(self, changes: edits.ChangeSet) -> None:
        held = client.unsaved(UnsavedRequest(root=str(self._root), paths=list(changes.paths)))
        if held:
            raise EditsRefused(
                f"Unsaved in an editor: {', '.join(held)}. Nothing was written.",
                "Save them first, or take the edits in the editor.",
            )
