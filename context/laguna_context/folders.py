"""Which folders of a root are worth watching: those where a listed file could appear."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from .entries import Entry
from .errors import NotARepository
from .git import run_git
from .ignoring import GIT_FILE, OWN_FILE, Ignorer
from .walking import global_rules

Judge = Callable[[list[str]], set[str]]
"""Of relative paths, those that ignore rules leave out."""


def open_folders(root: Path, entries: Iterable[Entry]) -> set[str]:
    """Relative paths of folders that are not ignored or hold a listed file; "" is the root. Ignored trees,
    repositories inside and what lies behind symbolic links are not entered, so a tree of ignored folders
    costs one look at its top."""
    listed = list(entries)
    found = holding_folders(listed)
    modules = {entry.path for entry in listed if entry.kind == "submodule"}
    _spread(root, "", found, modules, judge(root))
    for module in modules & found:
        _spread(root, module, found, modules, _shifted(judge(root / module), module))
    return found


def holding_folders(entries: Iterable[Entry]) -> set[str]:
    """Every folder on the way to an entry, "" included."""
    found = {""}
    for entry in entries:
        folder = entry.path.rpartition("/")[0]
        while folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found


def judge(root: Path) -> Judge:
    """The rules of git and of the user's own ignore files at `root`, for paths that exist."""
    own = Ignorer(root, OWN_FILE)
    outside: list[Ignorer] = []

    def ignored(paths: list[str]) -> set[str]:
        if not paths:
            return set()
        found = {path for path in paths if own.ignores(path, is_dir=_is_dir(root, path))}
        if not outside:
            try:
                return found | _ignored_by_git(root, paths)
            except NotARepository:
                outside.append(Ignorer(root, GIT_FILE, wider=global_rules()))
        return found | {path for path in paths if outside[0].ignores(path, is_dir=_is_dir(root, path))}

    return ignored


def _ignored_by_git(root: Path, paths: list[str]) -> set[str]:
    # The "./" keeps a name such as ":(top)" from being read as pathspec magic.
    asked = b"".join(b"./" + os.fsencode(path) + b"\0" for path in paths)
    answer = run_git(root, "check-ignore", "-z", "--stdin", input=asked, accept=(0, 1))
    return {os.fsdecode(path[2:]) for path in answer.split(b"\0") if path}


def _spread(root: Path, start: str, found: set[str], modules: set[str], ignored: Judge) -> None:
    """Add to `found` what is open below `start`. A folder with listed files needs no judging, and is no repository."""
    top = os.fspath(root)
    level = [start]
    while level:
        children = [child for folder in level for child in _children(top, folder) if child not in modules]
        strange = [child for child in children if child not in found]
        out = {child for child in strange if os.path.lexists(f"{top}/{child}/.git")}
        out |= ignored([child for child in strange if child not in out])
        level = [child for child in children if child not in out]
        found.update(level)


def _children(top: str, folder: str) -> list[str]:
    prefix = f"{folder}/" if folder else ""
    try:
        with os.scandir(f"{top}/{folder}") as children:
            return [
                prefix + child.name
                for child in children
                if child.is_dir(follow_symlinks=False) and child.name != ".git"
            ]
    except OSError:
        return []


def _shifted(ignored: Judge, module: str) -> Judge:
    start = len(module) + 1
    return lambda paths: {f"{module}/{path}" for path in ignored([path[start:] for path in paths])}


def _is_dir(root: Path, path: str) -> bool:
    full = root / path
    return full.is_dir() and not full.is_symlink()
