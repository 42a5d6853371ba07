"""Edits that a crash interrupted are brought to their end before anything looks at the tree again."""

from __future__ import annotations

import logging

from laguna_daemon import edits
from laguna_daemon.edits.safety import printable
from laguna_daemon.paths import journal_dir

_log = logging.getLogger(__name__)


def recover() -> list[str]:
    """Finish or take back interrupted edits of every root; what was done, a line each. A broken journal is logged."""
    try:
        recovered = edits.recover(journal_dir())
    except (edits.JournalBroken, OSError) as error:
        _log.error("the journal of edits cannot be read: %s", error)
        return [f"The journal of edits cannot be read: {error}"]
    lines = []
    for one in recovered:
        outcome = "finished" if one.outcome == "new" else "taken back"
        left = f" Left alone, changed meanwhile: {', '.join(map(printable, one.left))}." if one.left else ""
        lines.append(f"An interrupted edit of {one.root} ({one.id}) was {outcome}.{left}")
    for line in lines:
        _log.warning("%s", line)
    return lines
