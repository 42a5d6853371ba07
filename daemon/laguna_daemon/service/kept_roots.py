"""Which roots are pinned, and which was used last: kept in the state folder for the daemons to come."""

from __future__ import annotations

import contextlib
import json
import logging
from pathlib import Path

from laguna_daemon.paths import state_dir

_log = logging.getLogger(__name__)


class KeptRoots:
    """A small file; a damaged one counts as empty."""

    def __init__(self) -> None:
        self._pinned: set[str] = set()
        self._last = ""
        with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):
            found = json.loads(self._file().read_text(encoding="utf-8"))
            self._pinned = {str(path) for path in found.get("pinned", ())}
            self._last = str(found.get("last", ""))

    def pinned(self, root: Path) -> bool:
        """Whether the root is pinned."""
        return str(root) in self._pinned

    def pin(self, root: Path, yes: bool) -> None:
        """Pin the root, or no longer."""
        (self._pinned.add if yes else self._pinned.discard)(str(root))
        self._write()

    def used(self, root: Path) -> None:
        """A user asked about this root."""
        if self._last != str(root):
            self._last = str(root)
            self._write()

    def wanted(self) -> list[Path]:
        """What a new daemon should open: the pinned ones, then the one used last."""
        return [Path(path) for path in dict.fromkeys([*sorted(self._pinned), self._last]) if path]

    def _write(self) -> None:
        text = json.dumps({"pinned": sorted(self._pinned), "last": self._last})
        part = self._file().with_suffix(".new")
        try:
            part.write_text(text, encoding="utf-8")
            part.replace(self._file())
        except (OSError, UnicodeError) as error:
            _log.warning("the roots to open again were not written: %s", error)

    @staticmethod
    def _file() -> Path:
        return state_dir() / "roots.json"
