"""Names to entries: what is on disk, less the user's own exclusions."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from .entries import Entry, Kind, Named, Selection
from .ignoring import OWN_FILE, Globs, Ignorer

_FORMAT = 0o170000


class Sieve:
    """Turns names into entries: one `lstat` each, the selection's globs and the user's own ignore files
    applied."""

    def __init__(self, root: Path, selection: Selection, left_out: Counter[str]) -> None:
        self._prefix = os.fspath(root) + "/"
        self._include = Globs(selection.include)
        self._exclude = Globs(selection.exclude)
        self._left_out = left_out
        self._folders: dict[str, bool] = {"": True}
        self._own_rules = os.path.lexists(self._prefix + OWN_FILE)
        self._own = Ignorer(root, OWN_FILE)

    def sift(self, names: Iterable[Named]) -> list[Entry]:
        """The entries that remain; whatever does not is counted with its reason."""
        found = [entry for name in names if (entry := self._look(name)) is not None]
        if not (self._own_rules or self._include or self._exclude):
            return found
        return [entry for entry in found if self._wanted(entry)]

    def _look(self, name: Named) -> Entry | None:
        path, tracked, oid, _ = name
        folder = path.rstrip("/").rpartition("/")[0]
        known = self._folders.get(folder)
        if not (self._real_folder(folder) if known is None else known):
            self._left_out["behind a symlink"] += 1
            return None
        try:
            seen = os.lstat(self._prefix + path.rstrip("/"))
        except (OSError, ValueError):
            self._left_out["missing"] += 1
            return None
        mode = seen.st_mode
        kind = "file" if mode & _FORMAT == stat.S_IFREG else _kind(name, mode)
        if kind is None:
            self._left_out["missing"] += 1
            return None
        size, modified, changed, inode = seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_ino
        return Entry(path.rstrip("/"), kind, size, modified, changed, inode, mode, tracked, oid)

    def _real_folder(self, folder: str) -> bool:
        """Whether no part of the path is a symbolic link: git takes what is tracked behind one for
        deleted."""
        known = self._folders.get(folder)
        if known is None:
            known = self._folders[folder] = self._real_folder(folder.rpartition("/")[0]) and not _is_link(
                self._prefix + folder
            )
            if known and not self._own_rules:
                self._own_rules = os.path.lexists(self._prefix + folder + "/" + OWN_FILE)
        return known

    def _wanted(self, entry: Entry) -> bool:
        path = entry.path
        if self._own_rules and self._own.ignores(path, is_dir=entry.kind in ("submodule", "nested")):
            self._left_out[OWN_FILE] += 1
        elif self._include and not self._include.matches(path):
            self._left_out["not included"] += 1
        elif self._exclude and self._exclude.matches(path):
            self._left_out["excluded"] += 1
        else:
            return True
        return False


def _is_link(path: str) -> bool:
    try:
        return stat.S_ISLNK(os.lstat(path).st_mode)
    except OSError:
        return False


def _kind(name: Named, mode: int) -> Kind | None:
    if stat.S_ISDIR(mode):
        if name.gitlink:
            return "submodule"
        return None if name.tracked else "nested"
    return "symlink" if stat.S_ISLNK(mode) else "file"
