"""Folders that an installation fills: space, one writer at a time, all or nothing.

Everything lies under the data folder: ``engines/<kind>-<lock digest>``, ``models/<name>``, and ``downloads``
for what is under way. A name that starts with a dot is unfinished or on its way out and never taken for
anything else.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from laguna_daemon.errors import EngineUnavailable
from laguna_daemon.paths import data_dir

INSTALL_LOCK = ".install.lock"
DOWNLOAD_LOCK = ".download.lock"  # apart: a checkpoint can take hours
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class InstallFailed(EngineUnavailable):
    """An installation did not come to its end; what it has downloaded is kept for the next run."""


def engines_dir() -> Path:
    """Environments, one folder each."""
    return _folder("engines")


def models_dir() -> Path:
    """Models, one folder each."""
    return _folder("models")


def downloads_dir() -> Path:
    """What a running or interrupted installation has downloaded; empty once it is done."""
    return _folder("downloads")


def _folder(name: str) -> Path:
    folder = data_dir() / name
    with disk_guard(folder):
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder


@contextlib.contextmanager
def disk_guard(folder: Path) -> Iterator[None]:
    """Turn a full or unwritable disk into one clear message."""
    try:
        yield
    except OSError as error:
        if error.errno in DISK_FULL:
            raise disk_full(folder) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise InstallFailed(
                f"{folder} cannot be written: {error.strerror}.",
                "Make it writable, or set LAGUNA_DATA_DIR to a folder elsewhere.",
            ) from error
        raise


def disk_full(folder: Path) -> InstallFailed:
    """The error for a disk that ran full."""
    return InstallFailed(
        f"The disk that holds {folder} is full; the installation is not complete and nothing of it is used.",
        "Free some space, or set LAGUNA_DATA_DIR to a larger disk, then run the same command again: it continues.",
    )


def require_space(folder: Path, needed: int) -> None:
    """Raise InstallFailed unless ``needed`` bytes (and a little) are free where ``folder`` lies."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise InstallFailed(
            f"Not enough disk space: {gigabytes(needed)} are needed in {folder}, {gigabytes(free)} are free. "
            "Nothing was changed.",
            "Free some space, or set LAGUNA_DATA_DIR to a larger disk.",
        )


def gigabytes(count: int) -> str:
    """``2.6 GB``, or MB below one."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


def size_of(folder: Path) -> int:
    """Bytes on disk below ``folder``; hard links are counted once, symlinks not followed."""
    seen: set[tuple[int, int]] = set()
    total = 0
    stack = [folder]
    while stack:
        try:
            entries = list(os.scandir(stack.pop()))
        except (FileNotFoundError, NotADirectoryError):
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                stack.append(Path(entry.path))
                continue
            with contextlib.suppress(FileNotFoundError):
                found = entry.stat(follow_symlinks=False)
                if (found.st_dev, found.st_ino) not in seen:
                    seen.add((found.st_dev, found.st_ino))
                    total += found.st_blocks * 512
    return total


@contextlib.contextmanager
def one_at_a_time(waiting: Callable[[], None], lock: str = INSTALL_LOCK) -> Iterator[int]:
    """Hold a lock of the data folder; ``waiting`` is called once if someone else has it.

    Yields the descriptor. Children inherit it, so that after a SIGKILL of the installer its last child still
    keeps the next installation from writing to the same folders.
    """
    with disk_guard(data_dir()):
        handle = os.open(data_dir() / lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        told = False
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not told:
                    waiting()
                    told = True
                time.sleep(0.2)
        yield handle
    finally:
        os.close(handle)


def publish(staging: Path, final: Path) -> None:
    """Make a finished folder appear under its name, whole or not at all, also across a loss of power."""
    with disk_guard(final):
        for path in (*staging.rglob("*"), staging):
            if path.is_file() or path.is_dir():
                _sync(path)
        discard(final)
        staging.rename(final)
        _sync(final.parent)


def write_durably(path: Path, text: str) -> None:
    """Write a small file so that it is there whole or not at all."""
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    with disk_guard(path):
        try:
            part.write_text(text, encoding="utf-8")
            _sync(part)
            part.rename(path)
            _sync(path.parent)
        finally:
            part.unlink(missing_ok=True)


def discard(path: Path) -> int:
    """Remove a file, symlink or folder and return the bytes it held.

    A folder is renamed first: one that is half removed must not look whole.
    """
    if path.is_symlink() or path.is_file():
        size = path.lstat().st_blocks * 512
        path.unlink()
        return size
    if not path.exists():
        return 0
    size = size_of(path)
    doomed = path.with_name(f".discarded-{uuid.uuid4().hex[:8]}")
    path.rename(doomed)
    shutil.rmtree(doomed)
    return size


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
