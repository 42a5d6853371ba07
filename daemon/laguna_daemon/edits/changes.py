"""What planning arrives at: a set of changes that can be applied as one, or the reasons why there is none."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeAlias

from laguna_daemon.edits.blocks import Block, Problem
from laguna_daemon.edits.files import sha256

RefusalCode: TypeAlias = Literal[
    "no match", "ambiguous", "empty search", "overlap", "indentation", "stale", "redacted", "encoding", "binary",
    "no file", "exists", "gone", "bad path", "outside", "git folder", "link", "special file", "folder",
    "other repository", "twin", "ignored", "forbidden", "too large", "unseen", "unreadable", "no change", "problem",
]  # fmt: skip
Kind: TypeAlias = Literal["created", "changed", "deleted", "renamed"]


@dataclass(frozen=True)
class FileState:
    """A regular file: its bytes and its permission bits (``stat.S_IMODE``)."""

    data: bytes
    mode: int

    @cached_property
    def digest(self) -> str:
        """sha256 of the bytes, hex."""
        return sha256(self.data)

    @property
    def executable(self) -> bool:
        """Whether git would call it executable."""
        return bool(self.mode & stat.S_IXUSR)


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file: ``before`` is at ``source`` for a rename and at ``path`` otherwise; None means no file.

    ``encoding`` is that of ``after``, None where the content was never decoded (a renamed or deleted file).
    """

    path: str
    before: FileState | None
    after: FileState | None
    source: str | None = None
    encoding: str | None = None

    @property
    def kind(self) -> Kind:
        """What happens to the file, in one word."""
        if self.source is not None:
            return "renamed"
        if self.before is None:
            return "created"
        return "deleted" if self.after is None else "changed"


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """Changes of one root, computed in memory; nothing has been written.

    ``buffers`` holds the text of every touched file whose base is an unsaved buffer: such a set can become editor
    edits, not be applied to the disk. ``notes`` say what was passed over (a block written twice).
    """

    root: Path
    changes: tuple[FileChange, ...]
    buffers: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path that is touched, both names of a rename included."""
        named = {change.path for change in self.changes} | {c.source for c in self.changes if c.source is not None}
        return tuple(sorted(named))

    def states(self) -> Mapping[str, tuple[FileState | None, FileState | None]]:
        """For every touched path what is there before and after."""
        before: dict[str, FileState | None] = {change.source or change.path: change.before for change in self.changes}
        after = {change.path: change.after for change in self.changes}
        return {path: (before.get(path), after.get(path)) for path in sorted({*before, *after})}


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why one block (or the set, if ``block`` is None) cannot be applied.

    ``what`` and ``advice`` are for reader and model alike; ``excerpt`` shows the nearest candidate as numbered
    lines, with secrets taken out; ``places`` are 1-based lines the block could mean.
    """

    code: RefusalCode
    path: str | None
    what: str
    advice: str = ""
    excerpt: str = ""
    places: tuple[int, ...] = ()
    block: Block | None = None

    @property
    def message(self) -> str:
        """The refusal in full, as it goes back to the model."""
        return "\n".join(part for part in (f"{self.what} {self.advice}".strip(), self.excerpt) if part)


@dataclass(frozen=True, slots=True)
class Refusals:
    """At least one block was refused, so nothing is applied. ``accepted`` are the blocks that could have been."""

    root: Path
    refusals: tuple[Refusal, ...]
    accepted: tuple[Block, ...] = field(default=())

    def message(self) -> str:
        """All refusals in one text for the model."""
        return "\n\n".join(refusal.message for refusal in self.refusals)


def from_problem(problem: Problem) -> Refusal:
    """A problem of parsing as a refusal, so that both travel the same way."""
    return Refusal("problem", problem.path, problem.message)
