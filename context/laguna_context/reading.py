"""Bytes to text, or the reason why not."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .confined import Refused, open_beneath
from .encodings import Undecodable, decode_text
from .entries import Entry
from .notebooks import without_outputs


@dataclass(frozen=True, slots=True)
class Limits:
    """Caps per file: `size` in bytes of text, `notebook` in bytes on disk before outputs are taken away."""

    size: int = 1 << 20
    notebook: int = 32 << 20


@dataclass(frozen=True, slots=True)
class Document:
    """A file as text, line ends kept. `newline` is "\\n", "\\r\\n", "\\r", or "mixed"; `sha256` (hex) and
    `size` are of the raw bytes. `settled` is false if the file was not, before and after reading, the one
    the entry was made from: its text is then right, but must not be remembered under the entry's stat data.
    `note` says what the text leaves out."""

    path: str
    text: str
    encoding: str
    newline: str
    bom: bool
    sha256: str
    size: int
    settled: bool = True
    note: str = ""


@dataclass(frozen=True, slots=True)
class Skip:
    """A file that has no text. `reason` is one of "symlink", "submodule", "nested", "fifo", "device",
    "socket", "folder", "missing", "unreadable", "outside", "empty", "too large", "binary", "encoding"."""

    path: str
    reason: str
    detail: str


_BLOCK = 4096

_KINDS = {
    "symlink": "symbolic links are listed, never followed",
    "submodule": "a repository of its own; select submodules to read it",
    "nested": "a repository of its own inside this one",
}
_SPECIAL = (
    (stat.S_ISFIFO, "fifo", "a pipe"),
    (stat.S_ISSOCK, "socket", "a socket"),
    (stat.S_ISCHR, "device", "a character device"),
    (stat.S_ISBLK, "device", "a block device"),
    (stat.S_ISDIR, "folder", "a folder"),
    (stat.S_ISLNK, "symlink", _KINDS["symlink"]),
)


def read_file(root: Path, entry: Entry, limits: Limits = Limits()) -> Document | Skip:
    """Read one listed file. No symbolic link is followed in any part of its path, and nothing outside
    `root` is read."""
    listed = _as_listed(entry, limits)
    if listed is not None:
        return listed
    cap = _cap(entry.path, limits)
    found = _read_raw(root, entry, lambda descriptor: _read_opened(descriptor, entry, cap))
    if isinstance(found, Skip):
        return found
    raw, settled = found
    return to_document(entry.path, raw, limits, settled=settled)


def probe(root: Path, entry: Entry, limits: Limits = Limits()) -> Skip | None:
    """Why a listed file will have no text, judged by its stat data and its first block; None if it looks like text.

    Much cheaper than reading: for accounts of files that no prompt needs.
    """
    listed = _as_listed(entry, limits)
    if listed is not None:
        return listed
    if not entry.size:
        return _empty(entry.path)
    found = _read_raw(root, entry, lambda descriptor: (os.read(descriptor, _BLOCK), True))
    if isinstance(found, Skip):
        return found
    head = found[0][: len(found[0]) & ~3]
    decoded = decode(head) if b"\0" in head else None
    return Skip(entry.path, decoded.reason, decoded.detail) if isinstance(decoded, Undecodable) else None


def to_document(path: str, raw: bytes, limits: Limits = Limits(), *, settled: bool = True) -> Document | Skip:
    """The document of raw bytes that were read from `path`."""
    if not raw:
        return _empty(path)
    decoded = decode(raw)
    if isinstance(decoded, Undecodable):
        return Skip(path, decoded.reason, decoded.detail)
    text, encoding, bom = decoded
    note = ""
    if path.endswith(".ipynb"):
        text, note = without_outputs(text)
        if len(text) > limits.size:
            return _too_large(path, len(text), limits.size)
    digest = hashlib.sha256(raw).hexdigest()
    return Document(path, text, encoding, _newline(text), bom, digest, len(raw), settled, note)


def decode(raw: bytes) -> tuple[str, str, bool] | Undecodable:
    """Text, encoding's name, and whether a byte order mark was taken off; or the reason why this is no
    text."""
    return decode_text(raw)


def _newline(text: str) -> str:
    returns = text.count("\r")
    if not returns:
        return "\n"
    pairs = text.count("\r\n")
    lines = text.count("\n")
    if pairs == returns == lines:
        return "\r\n"
    return "\r" if not lines else "mixed"


def _as_listed(entry: Entry, limits: Limits) -> Skip | None:
    """Why a file has no text, as far as its stat data tell."""
    if entry.kind in _KINDS:
        return Skip(entry.path, entry.kind, _KINDS[entry.kind])
    special = _special(entry.path, entry.mode)
    if special is not None:
        return special
    cap = _cap(entry.path, limits)
    return _too_large(entry.path, entry.size, cap) if entry.size > cap else None


def _cap(path: str, limits: Limits) -> int:
    return limits.notebook if path.endswith(".ipynb") else limits.size


def _empty(path: str) -> Skip:
    return Skip(path, "empty", "no content")


def _too_large(path: str, size: int, cap: int) -> Skip:
    return Skip(path, "too large", f"{size:,} bytes, over the cap of {cap:,}")


def _special(path: str, mode: int) -> Skip | None:
    if stat.S_ISREG(mode):
        return None
    for is_kind, reason, detail in _SPECIAL:
        if is_kind(mode):
            return Skip(path, reason, detail)
    return Skip(path, "unreadable", "not a plain file")


def _read_raw(root: Path, entry: Entry, read: Callable[[int], tuple[bytes, bool] | Skip]) -> tuple[bytes, bool] | Skip:
    try:
        descriptor = open_beneath(root, entry.path)
        try:
            return read(descriptor)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        return Skip(entry.path, "missing", "gone since it was listed")
    except Refused:
        return Skip(entry.path, "outside", "its path leads through a symbolic link or out of the folder")
    except OSError as error:
        return Skip(entry.path, "unreadable", error.strerror or str(error))


def _read_opened(descriptor: int, entry: Entry, cap: int) -> tuple[bytes, bool] | Skip:
    before = os.fstat(descriptor)
    special = _special(entry.path, before.st_mode)
    if special is not None:
        return special
    raw = _read_all(descriptor, before.st_size, cap)
    if len(raw) > cap:
        return _too_large(entry.path, max(before.st_size, len(raw)), cap)
    settled = len(raw) == entry.size and _same(entry, before) and _same(entry, os.fstat(descriptor))
    return raw, settled


def _read_all(descriptor: int, expected: int, cap: int) -> bytes:
    first = os.read(descriptor, min(expected, cap) + 1)
    if len(first) == expected <= cap:
        return first
    parts = [first]
    size = len(first)
    while parts[-1] and size <= cap:
        parts.append(os.read(descriptor, 1 << 20))
        size += len(parts[-1])
    return b"".join(parts)


def _same(entry: Entry, seen: os.stat_result) -> bool:
    return (
        seen.st_size == entry.size
        and seen.st_mtime_ns == entry.mtime_ns
        and seen.st_ctime_ns == entry.ctime_ns
        and seen.st_ino == entry.inode
    )
