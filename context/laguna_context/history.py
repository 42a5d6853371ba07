"""How likely each file is to change, from the repository's own history."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from laguna_context.errors import ContextError
from laguna_context.git import run_git

COMMITS = 500
"""How many commits back to look. Change is bursty: what was touched lately is touched again."""

_HALF_LIFE = 60.0
"""In commits: a change this many commits ago counts half."""

_TYPICAL_CHANGE = 150
"""Tokens of the diff of one file in one commit, roughly: a few lines and their context."""


def head(root: Path) -> str:
    """The commit checked out at `root`, empty without one or outside git."""
    try:
        return run_git(root, "rev-parse", "--verify", "-q", "HEAD").decode().strip()
    except ContextError:
        return ""


def change_weights(root: Path, commits: int = COMMITS) -> dict[str, float]:
    """Path -> weight of its changes in the last commits; absent = untouched there. One call of git.

    The weight is the sum over changes of 2 ** (-age / half-life), age counted in commits.
    """
    try:
        log = run_git(
            root, "log", f"-n{commits}", "--no-renames", "--name-only", "--relative", "-z", "--format=%x01%x01", "HEAD"
        )
    except ContextError:
        return {}
    weights: dict[str, float] = {}
    for age, record in enumerate(log.split(b"\x01\x01")[1:]):
        worth = 2.0 ** (-age / _HALF_LIFE)
        for name in record.split(b"\0"):
            path = os.fsdecode(name.removeprefix(b"\n"))
            if path:
                weights[path] = weights.get(path, 0.0) + worth
    return weights


def stable_first(path: str, weights: Mapping[str, float], tokens: int) -> tuple[float, str]:
    """Sort key of a snapshot: least likely to change first, per token of the document, then by path so that neighbours
    stay together.

    A cut costs the tokens behind it. So a long file that changes a little each time stands before a short one that
    changes as often: its changes are carried as a diff, while the short one is quickly read again.
    """
    return (round(weights.get(path, 0.0) * min(1.0, _TYPICAL_CHANGE / max(1, tokens)), 6), path)
