"""The journal of edits: what was there before and after, kept outside every repository.

One folder per root, named by the hash of its real path, holding a lock and one folder per edit::

    <journal>/<root>/lock
    <journal>/<root>/<edit id>/manifest.json   what is touched, with sizes, hashes and modes
                               blobs           the bytes before and after, one behind the other
                               committed       from here on a crash ends in "all new"
                               rolled-back     from here on a crash ends in "all old" again
                               done            every file is as ``manifest`` says it is after the edit

A record is written under a temporary name, flushed, and only then gets its name, so that a record that can be seen
is whole. Marks are empty files; the folder is flushed after each.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias

from laguna_daemon.edits.changes import FileState
from laguna_daemon.errors import LagunaError

Mark: TypeAlias = Literal["committed", "rolled-back", "done"]

_VERSION = 1
_KEPT_EDITS = 200
_KEPT_BYTES = 512 * 1024 * 1024
_UNNAMED = ".part"


class JournalBusy(LagunaError):
    """Another process is writing edits of the same root."""


class JournalBroken(LagunaError):
    """A record of the journal cannot be read."""


@dataclass(frozen=True, slots=True)
class Known:
    """A file's state without its bytes: enough to recognise it."""

    digest: str
    mode: int
    size: int

    @classmethod
    def of(cls, state: FileState | None) -> Known | None:
        """The state of a file, None for no file."""
        return None if state is None else cls(state.digest, state.mode, len(state.data))


@dataclass(frozen=True, slots=True)
class Touched:
    """One path of an edit. The offsets say where its bytes are in ``blobs``."""

    path: str
    before: Known | None
    after: Known | None
    before_at: int = 0
    after_at: int = 0


@dataclass(frozen=True, slots=True)
class Record:
    """One edit: id, root, time (seconds since the epoch), paths, renames (old, new), and the edit it undoes."""

    id: str
    root: Path
    time: float
    touched: tuple[Touched, ...]
    renames: tuple[tuple[str, str], ...]
    undoes: str | None
    folder: Path

    def has(self, mark: Mark) -> bool:
        """Whether the edit has come this far."""
        return (self.folder / mark).exists()

    def mark(self, mark: Mark) -> None:
        """Note, durably, that the edit has come this far."""
        (self.folder / mark).touch(mode=0o600)
        flush_folder(self.folder)

    def state(self, touched: Touched, side: Literal["before", "after"]) -> FileState | None:
        """Bytes and mode of one side. Raises JournalBroken if they are not what was written."""
        known, at = (touched.before, touched.before_at) if side == "before" else (touched.after, touched.after_at)
        if known is None:
            return None
        with (self.folder / "blobs").open("rb") as blobs:
            blobs.seek(at)
            state = FileState(blobs.read(known.size), known.mode)
        if state.digest != known.digest:
            raise JournalBroken(f"The journal's copy of {touched.path} (edit {self.id}) is damaged.")
        return state

    def forget(self) -> None:
        """Remove the record."""
        shutil.rmtree(self.folder, ignore_errors=True)


class Journal:
    """The journal of one root."""

    def __init__(self, journal: Path, root: Path) -> None:
        self.root = Path(os.path.realpath(root))
        name = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:24]
        self.folder = journal / name

    @contextlib.contextmanager
    def locked(self, timeout: float = 10.0) -> Iterator[None]:
        """Hold the root's lock. Raises JournalBusy if another process keeps it for ``timeout`` seconds."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _lock(descriptor, timeout, self.root)
            self._clear_parts()
            yield
        finally:
            os.close(descriptor)

    def _clear_parts(self) -> None:
        for part in self.folder.glob(f"*{_UNNAMED}"):
            shutil.rmtree(part, ignore_errors=True)

    def write(
        self,
        states: Mapping[str, tuple[FileState | None, FileState | None]],
        renames: tuple[tuple[str, str], ...] = (),
        undoes: str | None = None,
    ) -> Record:
        """Write a new record, durably. The lock must be held."""
        now = time.time()
        stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%d-%H%M%S-%f")
        edit_id = f"{stamp}-{secrets.token_hex(2)}"
        part = self.folder / f"{edit_id}{_UNNAMED}"
        part.mkdir(mode=0o700)
        touched = _write_blobs(part / "blobs", states)
        record = Record(edit_id, self.root, now, touched, renames, undoes, self.folder / edit_id)
        _write_flushed(part / "manifest.json", json.dumps(_to_json(record), indent=1).encode())
        flush_folder(part)
        part.rename(record.folder)
        flush_folder(self.folder)
        return record

    def records(self) -> list[Record]:
        """All records, oldest first."""
        return [_read(folder) for folder in self._folders()]

    def unfinished(self) -> list[Record]:
        """The records of edits that were interrupted, or that are being written now; oldest first."""
        return [_read(folder) for folder in self._folders() if not (folder / "done").exists()]

    def prune(self) -> None:
        """Drop the oldest finished records beyond the number and size that are kept; never the latest."""
        size = 0
        for kept, folder in enumerate(reversed(self._folders())):
            size += (folder / "blobs").stat().st_size
            over = kept >= _KEPT_EDITS or size > _KEPT_BYTES
            if kept and over and (folder / "done").exists():
                shutil.rmtree(folder, ignore_errors=True)

    def _folders(self) -> list[Path]:
        if not self.folder.is_dir():
            return []
        return sorted(path for path in self.folder.iterdir() if path.is_dir() and path.suffix != _UNNAMED)


def journals(journal: Path) -> list[Journal]:
    """The journals of every root that has records."""
    found: dict[Path, Journal] = {}
    for folder in sorted(journal.iterdir()) if journal.is_dir() else []:
        manifest = next(iter(sorted(folder.glob("*/manifest.json"))), None)
        if manifest is not None and manifest.parent.suffix != _UNNAMED:
            root = _read(manifest.parent).root
            found.setdefault(root, Journal(journal, root))
    return list(found.values())


def flush_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, timeout: float, root: Path) -> None:
    deadline = time.monotonic() + timeout
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise JournalBusy(
                    f"Another process is writing edits of {root}.", "Try again when it has finished."
                ) from None
            time.sleep(0.02)


def _write_blobs(path: Path, states: Mapping[str, tuple[FileState | None, FileState | None]]) -> tuple[Touched, ...]:
    touched, at = [], 0
    with _private(path) as blobs:
        for name, (before, after) in states.items():
            offsets = []
            for state in (before, after):
                offsets.append(at)
                at += blobs.write(state.data) if state is not None else 0
            touched.append(Touched(name, Known.of(before), Known.of(after), *offsets))
        blobs.flush()
        os.fsync(blobs.fileno())
    return tuple(touched)


def _private(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")


def _write_flushed(path: Path, data: bytes) -> None:
    with _private(path) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _to_json(record: Record) -> dict[str, Any]:
    def known(state: Known | None) -> list[Any] | None:
        return None if state is None else [state.digest, state.mode, state.size]

    files = [[t.path, known(t.before), known(t.after), t.before_at, t.after_at] for t in record.touched]
    return {
        "version": _VERSION,
        "id": record.id,
        "root": os.fspath(record.root),
        "time": record.time,
        "files": files,
        "renames": record.renames,
        "undoes": record.undoes,
    }


def _read(folder: Path) -> Record:
    try:
        data = json.loads((folder / "manifest.json").read_bytes())
        if data["version"] != _VERSION:
            raise ValueError(f"version {data['version']}")
        touched = tuple(
            Touched(path, Known(*before) if before else None, Known(*after) if after else None, before_at, after_at)
            for path, before, after, before_at, after_at in data["files"]
        )
        renames = tuple((old, new) for old, new in data["renames"])
        return Record(data["id"], Path(data["root"]), data["time"], touched, renames, data["undoes"], folder)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise JournalBroken(
            f"The record {folder.name} of the edit journal cannot be read: {error}.",
            f"If you do not need to undo it, remove {folder}.",
        ) from error
