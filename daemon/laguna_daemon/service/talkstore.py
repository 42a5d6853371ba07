"""Conversations on disk: one SQLite file in the data folder, read and written by one thread at a time."""

from __future__ import annotations

import dataclasses
import json
import os
import sqlite3
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from laguna_context.conversation import Conversation, Turn
from laguna_context.prompt import Span
from laguna_context.tokens import Ids
from laguna_daemon.errors import LagunaError
from laguna_daemon.paths import data_dir
from laguna_daemon.schemas import ConversationSummary, ConversationTurn

_SCHEMA = """
CREATE TABLE IF NOT EXISTS conversations(
    id TEXT PRIMARY KEY, root BLOB NOT NULL, title TEXT NOT NULL, created REAL NOT NULL, used REAL NOT NULL,
    fingerprint TEXT NOT NULL, state TEXT NOT NULL, ids BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS turns(
    conversation TEXT NOT NULL REFERENCES conversations(id) ON DELETE CASCADE, number INTEGER NOT NULL,
    body TEXT NOT NULL, task BLOB NOT NULL, answer BLOB NOT NULL, thinking INTEGER NOT NULL,
    PRIMARY KEY(conversation, number));
CREATE INDEX IF NOT EXISTS by_use ON conversations(used);
"""
_VERSION = 1
_APART = ("turns", "ids", "documents")  # fields of a Conversation that are not plain values


@dataclasses.dataclass
class Stored:
    """A conversation as it is kept. ``fingerprint`` names tokenizer and template of its ids; ``root`` is a path."""

    summary: ConversationSummary
    root: str
    fingerprint: str
    ids: Conversation
    turns: list[ConversationTurn]


_PATIENCE_S = 10.0


class TalkStore:
    """The file of all conversations. Every method blocks, and raises LagunaError if the file cannot be used.

    ``with_ids``: so many conversations, the latest used, keep the ids of their whole prompt (4 bytes a token); older
    ones keep their turns alone and are moved onto the repository's prefix of the day when they go on.
    """

    def __init__(self, path: Path, *, limit: int = 1000, with_ids: int = 32) -> None:
        self._path = path
        self._limit, self._with_ids = limit, with_ids
        self._opened: sqlite3.Connection | None = None

    @classmethod
    def standard(cls) -> TalkStore:
        """The user's own."""
        return cls(data_dir() / "conversations.sqlite")

    def listed(self, root: Path | None = None) -> list[ConversationSummary]:
        """All conversations, or those about ``root``, latest used first."""
        where, values = ("", []) if root is None else (" WHERE c.root = ?", [os.fsencode(root)])
        rows = self._run(f"{_SUMMARY}{where} GROUP BY c.id ORDER BY c.used DESC, c.rowid DESC", values)
        return [_summary(row) for row in rows]

    def read(self, id: str) -> Stored | None:
        """One conversation whole, None if there is none of that id."""
        rows = self._run(f"{_SUMMARY} WHERE c.id = ? GROUP BY c.id", [id])
        if not rows:
            return None
        ((fingerprint, state, ids),) = self._run("SELECT fingerprint, state, ids FROM conversations WHERE id = ?", [id])
        turns = self._run("SELECT body, task, answer, thinking FROM turns WHERE conversation = ? ORDER BY number", [id])
        plain = json.loads(state)
        documents = tuple(Span(*span) for span in plain.pop("documents"))
        known = {field.name for field in dataclasses.fields(Conversation)}
        conversation = Conversation(
            **{name: value for name, value in plain.items() if name in known},
            turns=[Turn(_ids(task), _ids(answer), bool(thinking)) for _, task, answer, thinking in turns],
            ids=_ids(ids),
            documents=documents,
        )
        texts = [ConversationTurn.model_validate_json(body) for body, *_ in turns]
        return Stored(_summary(rows[0]), os.fsdecode(rows[0][1]), fingerprint, conversation, texts)

    def keep(self, stored: Stored, *, new: bool) -> None:
        """Write a conversation's last turn; one that was deleted meanwhile stays deleted unless it is ``new``."""
        summary, talk = stored.summary, stored.ids
        with self._connection() as connection:
            if new:
                connection.execute(
                    "INSERT INTO conversations VALUES (?, ?, ?, ?, ?, '', '', x'')",
                    [summary.id, os.fsencode(stored.root), summary.title, summary.created, summary.used],
                )
            changed = connection.execute(
                "UPDATE conversations SET used = ?, fingerprint = ?, state = ?, ids = ? WHERE id = ?",
                [time.time(), stored.fingerprint, _state(talk), talk.ids.tobytes(), summary.id],
            )
            if changed.rowcount:
                connection.executemany("INSERT OR REPLACE INTO turns VALUES (?, ?, ?, ?, ?, ?)", _turn_rows(stored))
            self._tidy(connection)

    def delete(self, id: str) -> bool:
        """Forget a conversation; False if there is none of that id."""
        with self._connection() as connection:
            return connection.execute("DELETE FROM conversations WHERE id = ?", [id]).rowcount > 0

    def close(self) -> None:
        """Let go of the file."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _tidy(self, connection: sqlite3.Connection) -> None:
        latest = "SELECT id FROM conversations ORDER BY used DESC LIMIT ?"
        connection.execute(f"DELETE FROM conversations WHERE id NOT IN ({latest})", [self._limit])
        connection.execute(
            f"UPDATE conversations SET ids = x'', state = ? WHERE length(ids) > 0 AND id NOT IN ({latest})",
            [_state(Conversation(id="")), self._with_ids],
        )

    def _run(self, sql: str, values: Iterable[Any]) -> list[tuple[Any, ...]]:
        with self._connection() as connection:
            return connection.execute(sql, list(values)).fetchall()

    def _connection(self) -> _Guard:
        return _Guard(self)

    def _open(self) -> sqlite3.Connection:
        if self._opened is None:
            connection = sqlite3.connect(self._path, timeout=_PATIENCE_S)
            self._path.chmod(0o600)
            deadline = time.monotonic() + _PATIENCE_S
            while not self._prepared(connection):
                if time.monotonic() > deadline:
                    raise sqlite3.OperationalError("database is locked")
                time.sleep(0.02)
            self._opened = connection
        return self._opened

    def _prepared(self, connection: sqlite3.Connection) -> bool:
        """Set a connection up; False while another process does: for the journal's mode SQLite itself does not wait."""
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA secure_delete = ON")  # what the user deletes is gone from the file too
            connection.execute("PRAGMA journal_mode = WAL")  # the command line reads while the daemon writes
            connection.execute("PRAGMA synchronous = NORMAL")
            (found,) = connection.execute("PRAGMA user_version").fetchone()
            if found > _VERSION:
                connection.close()
                raise LagunaError(
                    f"{self._path} was written by a newer version, so conversations cannot be used.",
                    "Update laguna-daemon, or move the file away.",
                )
            connection.executescript(_SCHEMA)
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            return False
        return True


class _Guard:
    """A transaction whose failure is one that the user can read."""

    def __init__(self, store: TalkStore) -> None:
        self._store = store

    def __enter__(self) -> sqlite3.Connection:
        try:
            self._connection = self._store._open()
            return self._connection.__enter__()
        except (sqlite3.Error, OSError) as error:
            raise self._failure(error) from error

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        try:
            self._connection.__exit__(kind, error, trace)  # commits, or takes back
        except sqlite3.Error as failed:
            raise self._failure(failed) from failed
        if isinstance(error, sqlite3.Error):
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> LagunaError:
        self._store.close()
        path = self._store._path
        return LagunaError(
            f"The conversations in {path} cannot be used: {error}.",
            "Check free space and the file's rights; if it is damaged, move it away.",
        )


_SUMMARY = (
    "SELECT c.id, c.root, c.title, c.created, c.used, count(t.number) FROM conversations c "
    "LEFT JOIN turns t ON t.conversation = c.id"
)


def _summary(row: tuple[Any, ...]) -> ConversationSummary:
    id, root, title, created, used, turns = row
    # Bytes of a path that are not UTF-8 have no place in JSON.
    name = root.decode("utf-8", "backslashreplace")
    return ConversationSummary(id=id, root=name, title=title, created=created, used=used, turns=turns)


def _state(talk: Conversation) -> str:
    plain = {field.name: getattr(talk, field.name) for field in dataclasses.fields(talk) if field.name not in _APART}
    return json.dumps({**plain, "documents": [[span.path, span.start, span.end] for span in talk.documents]})


def _turn_rows(stored: Stored) -> list[list[Any]]:
    """Every turn: another tokenizer writes the earlier ones anew."""
    rows = []
    for number, (turn, text) in enumerate(zip(stored.ids.turns, stored.turns, strict=True)):
        body = text.model_dump_json()
        rows.append([stored.summary.id, number, body, turn.task.tobytes(), turn.answer.tobytes(), int(turn.thinking)])
    return rows


def _ids(raw: bytes) -> Ids:
    return np.frombuffer(raw, dtype=np.uint32).copy()
