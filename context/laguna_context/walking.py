"""A folder outside git, walked by the rules git would apply there."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from .errors import ContextError
from .git import run_git
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
    """The user's global excludes: where `core.excludesFile` of their own configuration says, or git's default place."""
    path = _configured_excludes() or _default_excludes()
    data = read_plain(path)
    return (RuleFile(b"", parse_rules(data, str(path))),) if data else ()


def _configured_excludes() -> Path | None:
    with suppress(ContextError):
        answer = run_git(Path("/"), "config", "--global", "--path", "--get", "core.excludesFile", accept=(0, 1, 128))
        if answer:
            return Path(os.fsdecode(answer.removesuffix(b"\n")))
    return None


def _default_excludes() -> Path:
    configured = os.environ.get("XDG_CONFIG_HOME")
    return Path(configured) / "git/ignore" if configured else Path("~/.config/git/ignore").expanduser()
