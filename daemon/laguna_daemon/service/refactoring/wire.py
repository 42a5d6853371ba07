"""A change set on its way from the daemon, which computes it, to the client, which writes it."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from pathlib import Path

from laguna_daemon import edits
from laguna_daemon.edits.tree import Tree
from laguna_daemon.edits.working import new_mode, with_execution
from laguna_daemon.schemas import DoneFile, ProposedFile


def to_wire(changes: edits.ChangeSet) -> list[ProposedFile]:
    """Every change, with the new bytes and the hash of the old ones."""
    return [
        ProposedFile(
            path=change.path,
            source=change.source,
            before=change.before.digest if change.before else None,
            after=base64.b64encode(change.after.data).decode() if change.after else None,
            executable=change.after.executable if change.after else False,
            encoding=change.encoding,
        )
        for change in changes.changes
    ]


def from_wire(root: Path, files: Sequence[ProposedFile]) -> edits.ChangeSet:
    """The change set again, against the files as they are now. New files get modes from this process' umask.

    Raises FilesChanged if a file is no longer the one that the proposal was made for.
    """
    changes: list[edits.FileChange] = []
    changed: list[str] = []
    with Tree(root) as tree:
        for file in files:
            there = file.source or file.path
            before = _read(tree, there)
            if (before.digest if before else None) != file.before:
                changed.append(there)
            changes.append(edits.FileChange(file.path, before, _after(file, before), file.source, file.encoding))
    if changed:
        raise edits.FilesChanged(
            tuple(changed), f"Changed meanwhile: {', '.join(changed)}. Nothing was written.", "Refactor again."
        )
    return edits.ChangeSet(root, tuple(changes))


def compose(first: edits.ChangeSet, then: edits.ChangeSet) -> edits.ChangeSet:
    """Two sets, the second made on top of the first, as the one that has the effect of both."""
    one, two = first.states(), then.states()
    states = {
        path: (one[path][0] if path in one else two[path][0], two[path][1] if path in two else one[path][1])
        for path in sorted({*one, *two})
    }
    sources = {change.path: change.source for change in first.changes if change.source}
    for change in then.changes:
        if change.source:
            sources[change.path] = sources.pop(change.source, change.source)
    encodings = {change.path: change.encoding for change in (*first.changes, *then.changes)}
    renamed = {
        path: source
        for path, source in sources.items()
        if path != source
        and states[path][1] is not None
        and states[source][0] is not None
        and states[source][1] is None
    }
    changes = []
    for path, (before, after) in states.items():
        if path in renamed:
            old = states[renamed[path]][0]
            changes.append(edits.FileChange(path, old, after, renamed[path], encodings.get(path)))
        elif path not in renamed.values() and before != after:
            changes.append(edits.FileChange(path, before, after, None, encodings.get(path)))
    return edits.ChangeSet(first.root, tuple(changes))


def described(changes: Iterable[edits.FileChange]) -> list[DoneFile]:
    """The files of a set with their counts of lines, for a report."""
    found = []
    for change in changes:
        counts = edits.count(change)
        found.append(
            DoneFile(
                path=change.path,
                change=change.kind,
                source=change.source,
                added=counts.added if counts else None,
                removed=counts.removed if counts else None,
            )
        )
    return found


def _read(tree: Tree, path: str) -> edits.FileState | None:
    try:
        return tree.read(path)
    except OSError:
        return None


def _after(file: ProposedFile, before: edits.FileState | None) -> edits.FileState | None:
    if file.after is None:
        return None
    mode = new_mode(file.executable) if before is None else before.mode
    if before is not None and before.executable != file.executable:
        mode = with_execution(mode, file.executable)
    return edits.FileState(base64.b64decode(file.after), mode)
