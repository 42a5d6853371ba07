"""Which folder is a workspace."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import RootRefused
from .git import find_root


def choose_root(start: Path, named: Path | None = None, *, force: bool = False) -> Path:
    """The real path of the folder the user named, or else of the git worktree that holds `start`.

    Raises `RootRefused` outside git if none is named, for what is no folder, and, unless forced, for `/` and the home
    folder; `UnsafeRepository` as `find_root` does.
    """
    chosen = named if named is not None else find_root(start)
    if chosen is None:
        raise RootRefused(f"{start} is in no git repository.", "Name a folder with --repo.")
    root = Path(os.path.realpath(chosen))
    if not root.is_dir():
        raise RootRefused(f"{chosen} is not a folder.", "Name an existing folder.")
    if not force and root in (Path("/"), Path(os.path.realpath(Path.home()))):
        raise RootRefused(
            f"{root} holds far more than one project, and private files among it.",
            "Name a project's folder with --repo, or insist with --force.",
        )
    return root
