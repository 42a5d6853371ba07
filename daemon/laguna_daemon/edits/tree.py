"""Reading and writing files below one root through folder descriptors, so that no link is ever followed.

Whatever was a folder when an edit was planned and is a link when it is written makes the write fail.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from laguna_daemon.edits.changes import FileState

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Tree:
    """An open root. All paths are relative and normalised; errors are OSError."""

    def __init__(self, root: Path) -> None:
        self._fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        os.close(self._fd)

    @contextlib.contextmanager
    def folder(self, path: str) -> Iterator[int]:
        """A descriptor of a folder, every part of its path opened without following links."""
        held = os.dup(self._fd)
        try:
            for part in path.split("/") if path else ():
                below = os.open(part, _FOLDER, dir_fd=held)
                os.close(held)
                held = below
            yield held
        finally:
            os.close(held)

    @contextlib.contextmanager
    def parent(self, path: str) -> Iterator[tuple[int, str]]:
        """The folder of a file and the file's name."""
        folder, _, name = path.rpartition("/")
        with self.folder(folder) as held:
            yield held, name

    def read(self, path: str) -> FileState | None:
        """The regular file at a path; None if nothing is there. OSError for anything that is not a regular file."""
        try:
            with self.parent(path) as (folder, name):
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
            with self.parent(path) as (folder, name):
                found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_mode

    def make_folder(self, path: str) -> None:
        """Make one folder, unless it is there."""
        with self.parent(path) as (folder, name), contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=folder)

    def remove_folder(self, path: str) -> bool:
        """Remove a folder if it is empty; whether it is gone now."""
        try:
            with self.parent(path) as (folder, name):
                os.rmdir(name, dir_fd=folder)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True

    def write_new(self, path: str, state: FileState, like: str | None = None) -> None:
        """Write a file that must not exist, flushed to the disk; ``like`` is the file whose owner and attributes it
        takes over where the system allows it."""
        with self.parent(path) as (folder, name):
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
        with self.parent(like) as (folder, name), contextlib.suppress(OSError):
            old = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
            try:
                _copy_attributes(old, descriptor)
            finally:
                os.close(old)

    def replace(self, temporary: str, path: str) -> None:
        """Put a file into the place of another in the same folder, in one step."""
        with self.parent(path) as (folder, name):
            os.rename(_name(temporary), name, src_dir_fd=folder, dst_dir_fd=folder)

    def place(self, temporary: str, path: str) -> None:
        """Give a file its name in the same folder. FileExistsError if the name is taken by then."""
        with self.parent(path) as (folder, name):
            try:
                os.link(_name(temporary), name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
            except (PermissionError, NotImplementedError, OSError) as error:
                if isinstance(error, FileExistsError | FileNotFoundError):
                    raise
                # No hard links on this file system: a rename, which cannot refuse, after a last look.
                if self.stamp(path) is not None:
                    raise FileExistsError(f"{path} has appeared meanwhile") from None
                os.rename(_name(temporary), name, src_dir_fd=folder, dst_dir_fd=folder)
                return
            os.unlink(_name(temporary), dir_fd=folder)

    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""
        with contextlib.suppress(FileNotFoundError), self.parent(path) as (folder, name):
            os.unlink(name, dir_fd=folder)

    def flush_folder(self, path: str) -> None:
        """Make the names in a folder durable; a folder that is gone has nothing to flush."""
        with contextlib.suppress(FileNotFoundError), self.folder(path) as folder:
            os.fsync(folder)


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
