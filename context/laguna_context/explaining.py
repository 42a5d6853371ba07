"""Why a path is listed or not."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path, PurePosixPath

from .entries import EVERYTHING, Explanation, Selection
from .errors import NotARepository
from .git import run_git
from .ignoring import GIT_FILE, OWN_FILE, Globs, Ignorer, Rule
from .names import git_names
from .walking import global_rules


def explain(root: Path, path: str, selection: Selection = EVERYTHING) -> Explanation:
    """Why `path` (relative to `root`, or absolute below it) is in `list_files` or not; a folder is in if
    files could be.

    Raises `ContextError` and its kinds as `list_files` does.
    """
    relative = relative_to(root, path)
    if relative is None:
        return Explanation(False, "outside the folder")
    if ".git" in relative.split("/"):
        return Explanation(False, "git's own files are never listed")
    barrier = _barrier(root, relative)
    if barrier is not None:
        return _beyond(root, relative, barrier, selection)
    is_dir = stat.S_ISDIR(_mode(root / relative))
    by_user = _by_user(root, relative, is_dir, selection)
    verdict = _by_git(root, relative, is_dir)
    return by_user if by_user is not None and verdict.included else verdict


def relative_to(root: Path, path: str) -> str | None:
    """`path` as listings spell it; None for one that is outside, or the root itself."""
    given = PurePosixPath(path)
    if given.is_absolute():
        if not given.is_relative_to(root):
            return None
        given = given.relative_to(root)
    return None if ".." in given.parts or not given.parts else str(given)


def _mode(path: Path) -> int:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0


def _barrier(root: Path, relative: str) -> str | None:
    """The topmost folder on the way that is a link, or a repository of its own."""
    parts = relative.split("/")
    for count in range(1, len(parts)):
        above = "/".join(parts[:count])
        if stat.S_ISLNK(_mode(root / above)) or os.path.lexists(root / above / ".git"):
            return above
    return None


def _beyond(root: Path, relative: str, barrier: str, selection: Selection) -> Explanation:
    if stat.S_ISLNK(_mode(root / barrier)):
        return Explanation(False, f"behind the symbolic link {barrier}, which is not followed")
    try:
        is_submodule = any(name.gitlink for name in git_names(root, False, (barrier,)))
    except NotARepository:
        is_submodule = False
    if not is_submodule:
        return Explanation(False, f"inside {barrier}, a repository of its own")
    if not selection.submodules:
        return Explanation(False, f"inside the submodule {barrier}; submodules are not selected")
    by_user = _by_user(root, relative, stat.S_ISDIR(_mode(root / relative)), selection)
    inner = explain(root / barrier, relative[len(barrier) + 1 :], replace(selection, include=(), exclude=()))
    return by_user if by_user is not None and inner.included else inner


def _by_user(root: Path, relative: str, is_dir: bool, selection: Selection) -> Explanation | None:
    """Why the user's own rules keep it out; None if they do not."""
    rule = Ignorer(root, OWN_FILE).rule(relative, is_dir=is_dir)
    if rule is not None and not rule.negated:
        return _of_rule(False, f"left out by {OWN_FILE}", rule)
    include = Globs(selection.include)
    if include and not is_dir and not include.matches(relative):
        return Explanation(False, "no include pattern takes it", ", ".join(selection.include), "selection")
    rule = Globs(selection.exclude).rule(relative)
    if rule is not None and not rule.negated:
        return _of_rule(False, "an exclude pattern takes it", rule)
    return None


def _of_rule(included: bool, reason: str, rule: Rule) -> Explanation:
    return Explanation(included, reason, rule.text, rule.source, rule.line)


def _by_git(root: Path, relative: str, is_dir: bool) -> Explanation:
    try:
        names = git_names(root, False, (relative,))
    except NotARepository:
        return _by_walk(root, relative, is_dir)
    rule = _rule_of_git(root, relative)
    if any(name.tracked for name in names):
        if not os.path.lexists(root / relative):
            return Explanation(False, "in git's index, but not on disk")
        return replace(rule, included=True, reason="tracked by git" + (", whatever the rule says" if rule.line else ""))
    if not os.path.lexists(root / relative):
        return Explanation(False, "no such file")
    if rule.line and not rule.rule.startswith("!"):
        return rule
    if not is_dir and not names:
        return Explanation(False, "not a plain file")
    return replace(rule, included=True, reason="taken back in by a rule" if rule.line else "no rule is about it")


def _rule_of_git(root: Path, relative: str) -> Explanation:
    asked = b"./" + os.fsencode(relative) + b"\0"
    command = ("check-ignore", "-v", "-n", "-z", "--no-index", "--stdin")
    source, line, pattern, _ = run_git(root, *command, input=asked, accept=(0, 1)).split(b"\0")[:4]
    return Explanation(False, "ignored by git", os.fsdecode(pattern), os.fsdecode(source), int(line or 0))


def _by_walk(root: Path, relative: str, is_dir: bool) -> Explanation:
    if not os.path.lexists(root / relative):
        return Explanation(False, "no such file")
    rule = Ignorer(root, GIT_FILE, wider=global_rules()).rule(relative, is_dir=is_dir)
    if rule is None:
        return Explanation(True, "no rule is about it")
    return _of_rule(rule.negated, "taken back in by a rule" if rule.negated else "ignored", rule)
