"""A folder outside git, walked by the rules git would apply there."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from .ignoring import GIT_FILE, Ignorer, RuleFile, parse_rules, read_plain


def walk(root: Path, left_out: Counter[str]) -> Iterator[str]:
    """Relative paths of files and links below `root`; repositories inside end in `/` and are not entered.

    Symbolic links are never followed. What `.gitignore` files or the user's global excludes leave out is
    counted as "ignored", a whole folder once; a folder that cannot be opened as "unreadable folder".
    """
    ignorer = Ignorer(root, GIT_FILE, wider=global_rules())
    pending = [""]
    while pending:
        folder = pending.pop()
        try:
            children = list(os.scandir(root / folder))
        except OSError:
            left_out["unreadable folder"] += 1
            continue
        for child in children:
            path = f"{folder}{child.name}"
            is_dir = child.is_dir(follow_symlinks=False)
            if child.name == ".git":
                continue
            if ignorer.ignores(path, is_dir=is_dir):
                left_out["ignored"] += 1
            elif not is_dir:
                if child.is_symlink() or child.is_file(follow_symlinks=False):
                    yield path
                else:
                    left_out["not a plain file"] += 1
            elif os.path.lexists(os.path.join(child.path, ".git")):  # noqa: PTH118
                yield f"{path}/"
            else:
                pending.append(f"{path}/")


def global_rules() -> tuple[RuleFile, ...]:
    """The user's global excludes at git's default place."""
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")  # noqa: PTH111
    path = Path(base, "git", "ignore")
    data = read_plain(path)
    return (RuleFile(b"", parse_rules(data, str(path))),) if data else ()
