"""Reading and writing files below one root through folder descriptors, so that no link is ever followed.

Whatever was a folder when an edit was planned and is a link when it is written makes the write fail. Folders stay
open between calls, so that a file is reached through the very folder that was looked at.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from types import TracebackType
from typing import Self

from laguna_daemon.edits.changes import FileState

_HELD = 200  # descriptors; a process has 1,024 by default
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Tree:
    """An open root. All paths are relative and normalised; errors are OSError."""

    def __init__(self, root: Path) -> None:
        self._held = {"": os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._let_go()
        os.close(self._held[""])

    def folder(self, path: str) -> int:
        """A descriptor of a folder, every part of its path opened without following links; held until ``renew``."""
        if path in self._held:
            return self._held[path]
        if len(self._held) > _HELD:
            self._let_go()
        parent, _, name = path.rpartition("/")
        self._held[path] = os.open(name, _FOLDER, dir_fd=self.folder(parent))
        return self._held[path]

    def renew(self) -> None:
        """Look folders up again from here on: what was a folder may have been replaced."""
        self._let_go()

    def _let_go(self) -> None:
        for path in [path for path in self._held if path]:
            os.close(self._held.pop(path))

    def parent(self, path: str) -> tuple[int, str]:
        """The folder of a file and the file's name."""
        folder, _, name = path.rpartition("/")
        return self.folder(folder), name

    def read(self, path: str) -> FileState | None:
        """The regular file at a path; None if nothing is there. OSError for anything that is not a regular file."""
        try:
            folder, name = self.parent(path)
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
            descriptor = os.open(name, flags, dir_fd=folder)
        except FileNotFoundError:
            return None
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise OSError(f"{path} is not a regular file")
            return FileState(file.read(), stat.S_IMODE(found.st_mode))

    def stamp(self, path: str) -> tuple[int, ...] | None:
        """What tells cheaply that a file is still the one that was read; None if nothing is there."""
        try:
            folder, name = self.parent(path)
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_mode

    def make_folder(self, path: str) -> None:
        """Make one folder, unless it is there."""
        folder, name = self.parent(path)
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=folder)

    def remove_folder(self, path: str) -> bool:
        """Remove a folder if it is empty; whether it is gone now."""
        try:
            folder, name = self.parent(path)
            os.rmdir(name, dir_fd=folder)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        self.renew()
        return True

    def write_new(self, path: str, state: FileState, like: str | None = None) -> None:
        """Write a file that must not exist, flushed to the disk; ``like`` is the file whose owner and attributes it
        takes over where the system allows it."""
        folder, name = self.parent(path)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(name, flags, 0o600, dir_fd=folder)
        with os.fdopen(descriptor, "wb") as file:
            file.write(state.data)
            file.flush()
            if like is not None:
                self._take_over(descriptor, like)
            os.fchmod(descriptor, state.mode)
            os.fsync(descriptor)

    def _take_over(self, descriptor: int, like: str) -> None:
        with contextlib.suppress(OSError):
            folder, name = self.parent(like)
            old = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
            try:
                _copy_attributes(old, descriptor)
            finally:
                os.close(old)

    def replace(self, temporary: str, path: str) -> None:
        """Put a file into the place of another in the same folder, in one step."""
        folder, name = self.parent(path)
        os.rename(_name(temporary), name, src_dir_fd=folder, dst_dir_fd=folder)

    def place(self, temporary: str, path: str) -> None:
        """Give a file its name in the same folder. FileExistsError if the name is taken by then."""
        folder, name = self.parent(path)
        try:
            os.link(_name(temporary), name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except (FileExistsError, FileNotFoundError):
            raise
        except OSError:
            # No hard links on this file system: a rename, which cannot refuse, after a last look.
            if self.stamp(path) is not None:
                raise FileExistsError(f"{path} has appeared meanwhile") from None
            os.rename(_name(temporary), name, src_dir_fd=folder, dst_dir_fd=folder)
            return
        os.unlink(_name(temporary), dir_fd=folder)

    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""
        with contextlib.suppress(FileNotFoundError):
            folder, name = self.parent(path)
            os.unlink(name, dir_fd=folder)

    def flush_folder(self, path: str) -> None:
        """Make the names in a folder durable; a folder that is gone has nothing to flush."""
        with contextlib.suppress(FileNotFoundError):
            os.fsync(self.folder(path))


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _copy_attributes(old: int, new: int) -> None:
    """Owner and extended attributes, as far as this user may set them."""
    was, now = os.fstat(old), os.fstat(new)
    if (was.st_uid, was.st_gid) != (now.st_uid, now.st_gid):
        with contextlib.suppress(OSError):
            os.fchown(new, was.st_uid, was.st_gid)
    if hasattr(os, "listxattr"):
        for key in os.listxattr(old):
            with contextlib.suppress(OSError):
                os.setxattr(new, key, os.getxattr(old, key))
