"""What git says about the paths of an edit: ignored or not, and what was uncommitted before."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from laguna_context.git import find_root, run_git
from laguna_context.listing import explain


def ignored(root: Path, paths: Collection[str]) -> frozenset[str]:
    """Those of ``paths`` (relative to ``root``) that the repository's ignore rules leave out; tracked files never."""
    if not paths:
        return frozenset()
    if find_root(root) is None:
        return frozenset(path for path in paths if not explain(root, path).included and (root / path).exists())
    asked = b"\0".join(os.fsencode(path) for path in sorted(paths)) + b"\0"
    answer = run_git(root, "check-ignore", "-z", "--stdin", input=asked, accept=(0, 1))
    return frozenset(os.fsdecode(path) for path in answer.split(b"\0") if path)


def dirty(root: Path, paths: Collection[str]) -> tuple[str, ...]:
    """Those of ``paths`` with changes that no commit holds, untracked files included; nothing outside git."""
    top = find_root(root)
    if top is None or not paths:
        return ()
    below = Path(os.path.realpath(root)).relative_to(os.path.realpath(top)).as_posix()
    prefix = "" if below == "." else below + "/"
    # A few paths are named to git, many are picked from the whole status: an argument list has its limits.
    named = ["--", *paths] if len(paths) <= 200 else []
    answer = run_git(root, "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", *named)
    changed = {os.fsdecode(record[3:]) for record in answer.split(b"\0") if len(record) > 3}
    return tuple(sorted(path for path in paths if prefix + path in changed))


def object_format(root: Path) -> str:
    """The hash of the repository's objects, ``sha1`` or ``sha256``; ``sha1`` outside git."""
    if find_root(root) is None:
        return "sha1"
    return run_git(root, "rev-parse", "--show-object-format").decode().strip() or "sha1"
