"""Which root a document belongs to: the client's folders, or else the git root of the file."""

import os
from collections.abc import Callable
from pathlib import Path

from laguna_daemon.service.roots import is_too_wide

REMEMBERED = 1024
FindRoot = Callable[[Path], Path | None]


class Workspaces:
    """The workspace folders of one client, changed live; real paths throughout."""

    def __init__(self, find_root: FindRoot) -> None:
        self._find_root = find_root
        self._folders: dict[str, Path] = {}  # real path as text -> folder
        self._found: dict[str, Path | None] = {}  # folder outside every root -> its git root
        self._holders: dict[Path, Path | None] = {}  # asked at every keystroke; finding a real path reads the disk

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders in the order in which the client named them."""
        return tuple(self._folders.values())

    def add(self, folder: Path) -> None:
        """Take a folder; a folder already known stays where it is."""
        real = os.path.realpath(folder)
        self._folders.setdefault(real, Path(real))
        self._holders.clear()

    def remove(self, folder: Path) -> None:
        """Forget a folder; an unknown one is no error (the client may be late)."""
        self._folders.pop(os.path.realpath(folder), None)
        self._holders.clear()

    def containing(self, path: Path) -> Path | None:
        """The nearest folder that contains `path` (real paths), or None; never the home folder or `/`."""
        if path not in self._holders:
            if len(self._holders) >= REMEMBERED:
                self._holders.clear()
            self._holders[path] = self._holder(path)
        return self._holders[path]

    def _holder(self, path: Path) -> Path | None:
        real = Path(os.path.realpath(path))
        holders = [folder for folder in self._folders.values() if real.is_relative_to(folder)]
        # An editor may be opened in the home folder: that is where somebody works, not what is to be read.
        holders = [folder for folder in holders if not is_too_wide(folder)]
        return max(holders, key=lambda folder: len(folder.parts), default=None)

    def root_of(self, path: Path | None) -> Path | None:
        """The root to serve a request about `path` from.

        The nearest folder that contains it; outside every folder the git root of the file (blocking:
        it may call git once for each folder); without a path the first folder.
        """
        if path is None:
            return next(iter(self._folders.values()), None)
        folder = self.containing(path)
        return folder if folder is not None else self._git_root(path)

    def _git_root(self, path: Path) -> Path | None:
        parent = os.path.realpath(path.parent)
        if parent not in self._found:
            found = self._find_root(Path(parent)) if Path(parent).is_dir() else None
            self._found[parent] = None if found is None else Path(os.path.realpath(found))
        return self._found[parent]
