"""What changed since the snapshot: an append-only journal, each entry a whole file or a diff, whichever is shorter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from laguna_context import frames
from laguna_context.diffs import unified
from laguna_context.tokens import Ids, Tokenizer


@dataclass(frozen=True, slots=True)
class Seen:
    """The version of a file that the model last saw. `digest`: sha256 of its text, empty if it was told that there is
    none; `id`: of the frame that showed it; `text`: None where it has to be taken from the snapshot."""

    digest: str
    id: str
    text: str | None = None
    version: str = ""
    unsaved: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """One overlay entry, number `seq` from 1. `seen`: what the model knows of `path` after it; `to`: where a renamed
    file went."""

    seq: int
    path: str
    kind: frames.Kind
    ids: Ids
    seen: Seen
    to: str = ""

    def body(self) -> dict[str, Any]:
        """Everything but the ids, for `restore`."""
        seen = self.seen
        return {
            "head": [self.seq, self.path, self.kind, self.to],
            "seen": [seen.digest, seen.id, seen.text, seen.version, seen.unsaved],
        }


def restore(body: Mapping[str, Any], ids: Ids) -> Change:
    """A kept entry. KeyError, TypeError or ValueError if it is damaged."""
    seq, path, kind, to = body["head"]
    return Change(seq, path, kind, ids, Seen(*body["seen"]), to)


class Overlay:
    """The journal. Entries are only ever appended."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.tokens = 0
        self._joined: Ids = np.empty(0, dtype=np.uint32)
        self._count = 0

    @property
    def seq(self) -> int:
        """Number of the last entry, 0 for none."""
        return self.changes[-1].seq if self.changes else 0

    def append(self, change: Change) -> None:
        """Add an entry at the end."""
        self.changes.append(change)
        self.tokens += change.ids.size

    def ids(self) -> Ids:
        """All entries joined."""
        if self._count != len(self.changes):
            fresh = [change.ids for change in self.changes[self._count :]]
            self._joined = np.concatenate([self._joined, *fresh])
            self._count = len(self.changes)
        return self._joined

    def since(self, seq: int) -> list[Change]:
        """Entries after number `seq`."""
        return [change for change in self.changes if change.seq > seq]


def write(
    tokenizer: Tokenizer,
    seq: int,
    path: str,
    text: str,
    digest: str,
    *,
    before: Seen | None,
    version: str = "",
    unsaved: bool = False,
) -> Change:
    """The entry for a file that now reads `text`. `before`: what the model knows, with its text where it has one."""
    kind: frames.Kind = "unsaved" if unsaved else "whole"
    base = before.id if before is not None and before.digest else ""
    whole = frames.change(seq, path, kind, text, base=base)
    seen = Seen(digest, whole.id, text, version, unsaved)
    if before is None or before.text is None or not before.digest:
        return Change(seq, path, kind, tokenizer.encode(whole.text), seen)
    difference = unified(before.text, text)
    if len(difference) < len(text):
        diff_kind: frames.Kind = "unsaved" if unsaved else "diff"
        diff = frames.change(seq, path, diff_kind, difference, base=base, diff=True)
        ids = tokenizer.encode(diff.text)
        # A word starts at least one token, so counting words bounds the whole file from below without encoding it.
        if ids.size <= len(whole.text.split()):
            return Change(seq, path, diff_kind, ids, Seen(digest, diff.id, text, version, unsaved))
        whole_ids = tokenizer.encode(whole.text)
        if ids.size < whole_ids.size:
            return Change(seq, path, diff_kind, ids, Seen(digest, diff.id, text, version, unsaved))
        return Change(seq, path, kind, whole_ids, seen)
    return Change(seq, path, kind, tokenizer.encode(whole.text), seen)


def delete(tokenizer: Tokenizer, seq: int, path: str, before: Seen, reason: str = "") -> Change:
    """The entry for a file that is gone, or (with a reason) has no text any more."""
    frame = frames.change(seq, path, "deleted", reason, base=before.id)
    return Change(seq, path, "deleted", tokenizer.encode(frame.text), Seen("", frame.id))


def rename(tokenizer: Tokenizer, seq: int, path: str, to: str, before: Seen) -> Change:
    """The entry for a file that moved unchanged; `to` then reads what `path` read."""
    frame = frames.change(seq, path, "renamed", base=before.id, to=to)
    return Change(seq, path, "renamed", tokenizer.encode(frame.text), Seen("", frame.id), to)
