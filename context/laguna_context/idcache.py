"""What is worth keeping between runs, in one small database of the user's cache folder.

`ids`: token ids by sha256 of (tokenizer, frame version, rendered bytes), capped in size, least recently used out first.
`files`: what a file with given stat data reads as, so that an unchanged tree is not opened again. `snapshots`,
`entries`: the frozen prefix of a root and the overlay behind it. Losing the database costs time, never exactness.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import threading
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from laguna_context.frames import FRAME_VERSION
from laguna_context.secrets import Finding
from laguna_context.tokens import Ids

_DAY = 86_400
_SNAPSHOTS = 64
"""How many roots' snapshots are kept (about 0.7 MB each at 165,000 tokens), the newest."""
_SCHEMA_VERSION = 1
_SCHEMA = """
CREATE TABLE ids (key BLOB PRIMARY KEY, data BLOB NOT NULL, used INTEGER NOT NULL);
CREATE TABLE files (
  scope TEXT, path BLOB, size INTEGER, mtime INTEGER, ctime INTEGER, inode INTEGER, mode INTEGER,
  key BLOB, frame TEXT, digest TEXT, version TEXT, tokens INTEGER, skip TEXT, detail TEXT, findings TEXT,
  PRIMARY KEY (scope, path)) WITHOUT ROWID;
CREATE TABLE snapshots (state TEXT PRIMARY KEY, body BLOB NOT NULL, ids BLOB NOT NULL, used INTEGER NOT NULL);
CREATE TABLE entries (state TEXT, seq INTEGER, body BLOB NOT NULL, ids BLOB NOT NULL, PRIMARY KEY (state, seq));
CREATE TABLE notes (key TEXT PRIMARY KEY, body BLOB NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class Stat:
    """Stat data of a file; equal data means equal content, for a settled file."""

    size: int
    mtime: int
    ctime: int
    inode: int
    mode: int


@dataclass(frozen=True, slots=True)
class FileInfo:
    """What a file reads as. `key`: of its rendered frame in the id cache; `frame`: that frame's id; `digest`: sha256 of
    the text as the model may see it; `version`: of the raw bytes; `tokens`: of its document frame, -1 while not
    counted; `skip`: why it has no text, else empty."""

    stat: Stat
    key: bytes
    frame: str
    digest: str
    version: str
    tokens: int
    skip: str
    detail: str
    findings: tuple[Finding, ...]


def frame_key(fingerprint: str, rendered: bytes) -> bytes:
    """The cache key of a rendered frame, 32 bytes."""
    return hashlib.sha256(f"{fingerprint} {FRAME_VERSION}\0".encode() + rendered).digest()


class Store:
    """The database. Every method is safe from any thread; none raises for a cache that cannot be used."""

    def __init__(self, folder: Path, *, cap: int = 1 << 30) -> None:
        """`cap`: bytes of token ids kept."""
        self._lock = threading.RLock()
        self._cap = cap
        self._path = folder / "ids.sqlite"
        self._db = self._open(folder)

    def close(self) -> None:
        """Write out what is pending and drop what is over the cap."""
        with self._lock, contextlib.suppress(sqlite3.Error):
            self._trim()
            self._db.commit()
            self._db.close()

    # ids -------------------------------------------------------------------------------------------------------

    def get_ids(self, keys: Sequence[bytes]) -> dict[bytes, Ids]:
        """The ids known for these keys."""
        today = int(time.time()) // _DAY
        found: dict[bytes, Ids] = {}
        stale: list[bytes] = []
        for some in _chunks(keys):
            marks = ",".join("?" * len(some))
            for key, data, used in self._rows(f"SELECT key, data, used FROM ids WHERE key IN ({marks})", some):
                found[key] = np.frombuffer(data, dtype=np.uint32)
                if used != today:
                    stale.append(key)
        self._write("UPDATE ids SET used = ? WHERE key = ?", [(today, key) for key in stale])
        return found

    def put_ids(self, items: Mapping[bytes, Ids]) -> None:
        """Keep the ids of rendered frames."""
        today = int(time.time()) // _DAY
        rows = [(key, ids.astype(np.uint32, copy=False).tobytes(), today) for key, ids in items.items()]
        self._write("INSERT OR REPLACE INTO ids VALUES (?, ?, ?)", rows)

    # files -----------------------------------------------------------------------------------------------------

    def get_files(self, scope: str) -> dict[str, FileInfo]:
        """Everything known about the files of one root under one reading policy."""
        query = (
            "SELECT path, size, mtime, ctime, inode, mode, key, frame, digest, version, tokens, skip, detail, findings "
            "FROM files WHERE scope = ?"
        )
        out: dict[str, FileInfo] = {}
        for row in self._rows(query, (scope,)):
            path, size, mtime, ctime, inode, mode, key, frame, *rest = row
            digest, version, tokens, skip, detail, found = rest
            name = os.fsdecode(path)
            findings = tuple(Finding(kind, line, name) for kind, line in json.loads(found)) if found else ()
            stat = Stat(size, mtime, ctime, inode, mode)
            out[name] = FileInfo(stat, key, frame, digest, version, tokens, skip, detail, findings)
        return out

    def put_files(self, scope: str, items: Mapping[str, FileInfo]) -> None:
        """Remember files whose content cannot change any more without their stat data changing."""
        rows = []
        for path, info in items.items():
            stat = info.stat
            found = json.dumps([(f.kind, f.line) for f in info.findings]) if info.findings else ""
            rows.append(
                (
                    *(scope, os.fsencode(path), stat.size, stat.mtime, stat.ctime, stat.inode, stat.mode),
                    *(info.key, info.frame, info.digest, info.version, info.tokens, info.skip, info.detail, found),
                )
            )
        self._write(f"INSERT OR REPLACE INTO files VALUES ({','.join('?' * 15)})", rows)

    def forget_files(self, scope: str, paths: Iterable[str]) -> None:
        """Drop files that are listed no more."""
        self._write("DELETE FROM files WHERE scope = ? AND path = ?", [(scope, os.fsencode(path)) for path in paths])

    # snapshots -------------------------------------------------------------------------------------------------

    def get_snapshot(self, state: str) -> tuple[Any, Ids, list[tuple[Any, Ids]]] | None:
        """The kept snapshot of a state, its ids, and the overlay entries behind it in order."""
        rows = list(self._rows("SELECT body, ids FROM snapshots WHERE state = ?", (state,)))
        if not rows:
            return None
        try:
            body = _unpack(rows[0][0])
            behind = self._rows("SELECT body, ids FROM entries WHERE state = ? ORDER BY seq", (state,))
            entries = [(_unpack(entry), np.frombuffer(ids, dtype=np.uint32)) for entry, ids in behind]
        except (ValueError, zlib.error):
            return None
        return body, np.frombuffer(rows[0][1], dtype=np.uint32), entries

    def put_snapshot(self, state: str, body: Any, ids: Ids) -> None:
        """Replace the snapshot of a state; its overlay starts empty."""
        self._write("DELETE FROM entries WHERE state = ?", [(state,)])
        row = (state, _pack(body), ids.tobytes(), int(time.time()))
        self._write("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?)", [row])
        kept = f"SELECT state FROM snapshots ORDER BY used DESC LIMIT {_SNAPSHOTS}"
        with self._lock, contextlib.suppress(sqlite3.Error), self._db:
            for table in ("entries", "snapshots"):
                self._db.execute(f"DELETE FROM {table} WHERE state NOT IN ({kept})")
            self._trim()

    def put_entries(self, state: str, items: Sequence[tuple[int, Any, Ids]]) -> None:
        """Append overlay entries (sequence number, body, ids)."""
        rows = [(state, seq, _pack(body), ids.tobytes()) for seq, body, ids in items]
        self._write("INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?)", rows)

    def get_note(self, key: str) -> Any:
        """A small kept object, or None."""
        for (body,) in self._rows("SELECT body FROM notes WHERE key = ?", (key,)):
            with contextlib.suppress(ValueError, zlib.error):
                return _unpack(body)
        return None

    def put_note(self, key: str, body: Any) -> None:
        """Keep a small object."""
        self._write("INSERT OR REPLACE INTO notes VALUES (?, ?)", [(key, _pack(body))])

    # the database ----------------------------------------------------------------------------------------------

    def _open(self, folder: Path) -> sqlite3.Connection:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
            try:
                return _connect(str(self._path))
            except sqlite3.DatabaseError:
                self._path.unlink()
                os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
                return _connect(str(self._path))
        except (OSError, sqlite3.Error):  # no cache folder to be had: work without one
            return _connect(":memory:")

    def _rows(self, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        with self._lock:
            try:
                return self._db.execute(query, values).fetchall()
            except sqlite3.Error:
                return []

    def _write(self, query: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if not rows:
            return
        with self._lock, contextlib.suppress(sqlite3.Error), self._db:
            self._db.executemany(query, rows)

    def _trim(self) -> None:
        (total,) = self._db.execute("SELECT coalesce(sum(length(data)), 0) FROM ids").fetchone()
        if total <= self._cap:
            return
        gone = []
        for key, size in self._db.execute("SELECT key, length(data) FROM ids ORDER BY used, rowid"):
            gone.append((key,))
            total -= size
            if total <= self._cap * 3 // 4:
                break
        self._write("DELETE FROM ids WHERE key = ?", gone)


def _connect(path: str) -> sqlite3.Connection:
    db = sqlite3.connect(path, check_same_thread=False, timeout=5)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = OFF")  # a lost or torn database costs one cold start
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version != _SCHEMA_VERSION:
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            db.execute(f"DROP TABLE {name}")
        db.executescript(_SCHEMA + f"PRAGMA user_version = {_SCHEMA_VERSION};")
    return db


def _chunks(keys: Sequence[bytes], size: int = 500) -> Iterator[Sequence[bytes]]:
    for start in range(0, len(keys), size):
        yield keys[start : start + size]


def _pack(body: Any) -> bytes:
    return zlib.compress(json.dumps(body).encode("ascii"), 1)


def _unpack(data: bytes) -> Any:
    return json.loads(zlib.decompress(data))
