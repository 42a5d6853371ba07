"""Opening a file without ever leaving its root, whatever is renamed or linked meanwhile."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import sys
from pathlib import Path

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_OPENAT2 = 437
_RESOLVE_NO_SYMLINKS = 0x04
_RESOLVE_BENEATH = 0x08
_TRIES = 8


class Refused(OSError):
    """The path leads through a symbolic link, or out of the root."""


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def open_beneath(root: Path, path: str) -> int:
    """A descriptor, for reading, of `path` (relative, posix) below `root`.

    The kernel resolves the path in one step that refuses links and leaving (`openat2(2)`, Linux 5.6); where
    it cannot, each folder is opened in turn without following links.

    Raises `Refused`, or the `OSError` of the failure.
    """
    parts = path.split("/")
    if "" in parts or ".." in parts or "." in parts or "\0" in path:
        raise Refused(errno.EXDEV, "not a plain relative path", path)
    top = os.open(root, _FOLDER)
    try:
        if _has_openat2():
            return _open_in_one(top, path)
        return _open_in_steps(top, parts)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EXDEV):
            raise Refused(error.errno, "leads through a link or out of the folder", path) from error
        raise
    finally:
        os.close(top)


def _open_in_one(top: int, path: str) -> int:
    how = _How(_FLAGS, 0, _RESOLVE_NO_SYMLINKS | _RESOLVE_BENEATH)
    name = os.fsencode(path)
    assert _syscall is not None
    for _ in range(_TRIES):
        descriptor: int = _syscall(_OPENAT2, top, name, ctypes.byref(how), ctypes.sizeof(how))
        if descriptor >= 0:
            return descriptor
        code = ctypes.get_errno()
        # EAGAIN: something was renamed during the resolution, and the kernel could not rule an escape out.
        if code not in (errno.EAGAIN, errno.EINTR):
            raise OSError(code, os.strerror(code), path)
    raise Refused(errno.EXDEV, "kept moving while it was opened", path)


def _open_in_steps(top: int, parts: list[str]) -> int:
    opened: list[int] = []
    try:
        folder = top
        for part in parts[:-1]:
            folder = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
            opened.append(folder)
        return os.open(parts[-1], _FLAGS, dir_fd=folder)
    except NotADirectoryError as error:
        raise Refused(errno.ELOOP, "leads through a link", "/".join(parts)) from error
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _load_syscall() -> ctypes._NamedFuncPointer | None:
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64", "riscv64"):
        return None
    return ctypes.CDLL(None, use_errno=True).syscall


_syscall = _load_syscall()
_known: list[bool] = []


def _has_openat2() -> bool:
    if not _known:
        _known.append(_probe())
    return _known[0]


def _probe() -> bool:
    if _syscall is None:
        return False
    how = _How(os.O_PATH | os.O_CLOEXEC, 0, _RESOLVE_BENEATH)
    top = os.open("/", _FOLDER)
    try:
        descriptor: int = _syscall(_OPENAT2, top, b".", ctypes.byref(how), ctypes.sizeof(how))
    finally:
        os.close(top)
    if descriptor >= 0:
        os.close(descriptor)
    return descriptor >= 0
