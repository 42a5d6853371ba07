"""The known tasks as templates, and the whole text of a question: what is asked, and in which form to answer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from laguna_context.errors import ContextError
from laguna_context.git import run_git
from laguna_context.secrets import forbidden
from laguna_daemon.edits import INSTRUCTIONS
from laguna_daemon.errors import RepositoryError
from laguna_daemon.schemas import AskRequest, Diagnostic, Task

_MOST_NAMES = 500_000  # bytes of names: a command line holds two millions at most, and a prompt far less

_TEXTS: dict[Task, str] = {
    "explain": "Explain what the code shown right above does, how it fits into the repository, and what is not "
    "obvious about it. Start with one sentence that says it all.",
    "fix": "Fix the problems listed below at their cause, with the smallest change that is right. "
    "Leave everything else as it is.",
    "tests": "Write tests for the code shown right above, in the test framework and the style that the repository "
    "already uses. Cover what it promises, its limits and its failures; test behaviour, not implementation.",
    "document": "Write the missing documentation comments of the code shown right above, in the language's usual form "
    "and the repository's style: what it does, parameters, results, errors. Change no code.",
    "review": "Review the changes shown right above. Name real problems, the gravest first, each with its file and "
    "line and what to do about it: wrong results, broken promises, missing tests, security. Do not repeat the changes. "
    "If there is nothing to find, say so.",
}


def text(request: AskRequest) -> str:
    """What stands in the task part of a prompt: the task's words, its diagnostics, the question, the answer's form."""
    parts = []
    if request.task is not None:
        parts.append(_TEXTS[request.task])
    if request.diagnostics:
        parts.append("Problems reported:\n" + "\n".join(map(_line, request.diagnostics)))
    parts.append(request.question.strip())
    if request.mode == "edit":
        parts.append(INSTRUCTIONS.strip())
    return "\n\n".join(part for part in parts if part)


def materials(request: AskRequest, root: Path) -> Sequence[tuple[str, str]]:
    """(name, text) of what a task is about beside its references: for a review the changes. Blocks on git.

    Raises RepositoryError where there is nothing to review.
    """
    if request.task != "review" or request.references:
        return ()
    changes = _changes(root)
    if not changes:
        raise RepositoryError(
            f"There are no changes to review in {root}.", "Change something, or name files to review."
        )
    return (("changes against the last commit", changes),)


def _changes(root: Path) -> str:
    """The diff of every file below ``root`` that a model may see, and the names of new ones."""
    try:
        # Before the first commit every file is a new one.
        born = run_git(root, "rev-parse", "-q", "--verify", "HEAD", accept=(0, 1))
        # Without --relative git names files from the top of the work tree, and reads those names from here.
        names = _names(root, "diff", "HEAD", "--relative", "--no-renames", "--name-only", "-z") if born else []
        changed = [path for path in names if forbidden(path) is None]
        if sum(len(os.fsencode(path)) + 1 for path in changed) > _MOST_NAMES:
            raise RepositoryError(
                f"{len(changed):,} files have changed in {root}: too many for one review.", "Name files to review."
            )
        shown = run_git(root, "diff", "HEAD", "--relative", "--", *changed) if changed else b""
        new = _names(root, "ls-files", *(() if born else ("-c",)), "-o", "-z", "--exclude-standard")
    except ContextError as error:
        raise RepositoryError(error.what, error.advice) from error
    diff = shown.decode("utf-8", "replace")
    untracked = [f"new file, not shown here: {path}" for path in new]
    return "\n".join(part for part in (diff.rstrip("\n"), *untracked) if part)


def _names(root: Path, *command: str) -> list[str]:
    return [os.fsdecode(name) for name in run_git(root, *command).split(b"\0") if name]


def _line(diagnostic: Diagnostic) -> str:
    kind = ", ".join(part for part in (diagnostic.severity, diagnostic.source) if part)
    return f"- {diagnostic.path}:{diagnostic.line}: {diagnostic.message}" + (f" ({kind})" if kind else "")
