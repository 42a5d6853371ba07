"""What a listing is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

Kind = Literal["file", "symlink", "submodule", "nested"]


class Entry(NamedTuple):
    """One listed path, relative to the root, posix, odd bytes as surrogate escapes.

    The stat fields (bytes, nanoseconds) come from one `lstat` and are 0 for what has none. `git_oid` is the
    blob's id in the index: the file on disk may have been edited since. Files that are no plain files keep
    the kind "file"; their `mode` tells.
    """

    path: str
    kind: Kind
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    mode: int
    tracked: bool
    git_oid: str | None


@dataclass(frozen=True)
class Selection:
    """What one call wants of a root: globs in gitignore's language, submodules or not; `order` is for the
    snapshot."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    submodules: bool = False
    order: tuple[str, ...] = ()


EVERYTHING = Selection()


@dataclass(frozen=True)
class Listing:
    """Entries in path order, and how many paths were left out, by reason."""

    root: Path
    entries: tuple[Entry, ...]
    left_out: Mapping[str, int]
    in_git: bool


class Named(NamedTuple):
    """A path before it has been looked at on disk."""

    path: str
    tracked: bool
    oid: str | None
    gitlink: bool = False


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a path is in a listing or not: `rule` as written in line `line` (from 1) of `source`, or what
    else decided in `reason`. `rule` and `source` are empty and `line` is 0 where no rule had a say."""

    included: bool
    reason: str
    rule: str = ""
    source: str = ""
    line: int = 0
