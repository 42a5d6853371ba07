"""What git itself lists."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from .entries import Named
from .errors import ContextError, NotARepository
from .git import run_git

_GITLINK = "160000"


def git_names(root: Path, submodules: bool, paths: tuple[str, ...] = ()) -> list[Named]:
    """What git lists at `root`, or of `paths` only, in one call per repository."""
    if not root.is_dir():
        raise ContextError(f"{root} is not a folder.", "Name an existing folder.")
    answer = run_git(root, "ls-files", "-s", "-o", "-t", "-z", "--exclude-standard", "--", *paths)
    names: dict[str, Named] = {}
    for record in answer.decode(sys.getfilesystemencoding(), "surrogateescape").split("\0"):
        if record.startswith("? "):
            path = record[2:]
            names[path] = Named(path, False, None)
        elif record:
            head, _, path = record.partition("\t")
            _, mode, oid, stage = head.split(" ")
            names[path] = Named(path, True, oid if stage == "0" else None, mode == _GITLINK)
    found = list(names.values())
    if submodules:
        for name in [name for name in found if name.gitlink]:
            found += _inside_submodule(root, name.path)
    return found


def _inside_submodule(root: Path, path: str) -> list[Named]:
    folder = root / path
    if not os.path.lexists(folder / ".git") or folder.is_symlink():
        return []
    try:
        inner = git_names(folder, True)
    except NotARepository:
        return []
    return [name._replace(path=f"{path}/{name.path}") for name in inner]
