"""The frozen prefix of a repository: documents with their token ids, least likely to change first."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from laguna_context import frames
from laguna_context.packing import Tier
from laguna_context.tokens import Ids, Tokenizer


@dataclass(frozen=True, slots=True)
class Part:
    """One document of a snapshot. `digest`: sha256 of its text; `version`: of the file's bytes; `id`: its frame's;
    `start`, `end`: tokens, counted from the first document."""

    path: str
    digest: str
    version: str
    id: str
    start: int
    end: int


@dataclass(frozen=True)
class Snapshot:
    """Never changes. `ids`: of all documents, shape (n,); `lines`, `tiers`: what is only named, and how."""

    id: str
    parts: tuple[Part, ...]
    ids: Ids
    lines: tuple[str, ...]
    tiers: Mapping[str, Tier]

    def part(self, path: str) -> Part | None:
        """The document of `path`, or None."""
        return self._by_path.get(path)

    @cached_property
    def _by_path(self) -> dict[str, Part]:
        return {part.path: part for part in self.parts}

    def text(self, part: Part, tokenizer: Tokenizer) -> str | None:
        """The text of a document, from its ids; None if this tokenizer does not give texts back exactly."""
        frame = tokenizer.decode(self.ids[part.start : part.end]).decode("utf-8", "replace")
        _, found, rest = frame.partition("\n")
        closing = f"\n</document {part.id}>\n"
        if not found or not rest.endswith(closing):
            return None
        text = rest.removesuffix(closing)
        return text if frames.text_hash(text) == part.digest else None

    def body(self) -> dict[str, Any]:
        """Everything but the ids, for `restore`."""
        return {
            "id": self.id,
            "parts": [list(asdict(part).values()) for part in self.parts],
            "lines": self.lines,
            "tiers": dict(self.tiers),
        }


@dataclass(frozen=True, slots=True)
class Piece:
    """A document on its way into a snapshot."""

    path: str
    digest: str
    version: str
    id: str
    ids: Ids


def listing_text(lines: Iterable[str]) -> str:
    """The text of the document that names what is not shown in full."""
    return "\n".join(lines)


def listing_piece(lines: Sequence[str], tokenizer: Tokenizer) -> Piece:
    """The last document of a snapshot."""
    text = listing_text(frames.escape(line) for line in lines)
    frame = frames.document(frames.LISTING_PATH, text)
    return Piece(frames.LISTING_PATH, frames.text_hash(text), "", frame.id, tokenizer.encode(frame.text))


def freeze(pieces: Sequence[Piece], lines: Sequence[str], tiers: Mapping[str, Tier]) -> Snapshot:
    """Join documents, in this order, into a snapshot. Its id is a hash of its token ids."""
    parts, start = [], 0
    for piece in pieces:
        parts.append(Part(piece.path, piece.digest, piece.version, piece.id, start, start + piece.ids.size))
        start += piece.ids.size
    ids = np.concatenate([piece.ids for piece in pieces]) if pieces else np.empty(0, dtype=np.uint32)
    ids.flags.writeable = False
    return Snapshot(_identity(ids), tuple(parts), ids, tuple(lines), dict(tiers))


def restore(body: Mapping[str, Any], ids: Ids) -> Snapshot | None:
    """A kept snapshot, or None if it is damaged."""
    try:
        parts = tuple(Part(*fields) for fields in body["parts"])
        if body["id"] != _identity(ids) or (parts[-1].end if parts else 0) != ids.size:
            return None
        return Snapshot(body["id"], parts, ids, tuple(body["lines"]), body["tiers"])
    except (KeyError, TypeError, IndexError):
        return None


def _identity(ids: Ids) -> str:
    return hashlib.sha256(ids.tobytes()).hexdigest()[:16]
