"""What the model is told: the instruction with its files, the next batch, what was refused, a check that failed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from laguna_daemon import edits
from laguna_daemon.service.refactoring import batches
from laguna_daemon.service.refactoring.batches import Batch, Count

EXAMPLE = "path/of/file"
"""The path in the words below; a model that repeats them names no file."""
_HOW = f"""\
Before the first block, name every file that has to change, each on a line of its own: FILE {EXAMPLE}
For a listed file that needs no change, write a line instead of a block: SKIP {EXAMPLE}: the reason
"""
_DONE_SHOWN = 40


class Tasks:
    """The words of one refactoring. ``names`` are the identifiers that its plan was made of."""

    def __init__(self, instruction: str, names: Sequence[str], globs: Sequence[str]) -> None:
        self._instruction = instruction.strip()
        self._names = names
        self._globs = globs

    def opening(self, done: Iterable[str] = ()) -> str:
        """What every first turn of a conversation begins with; ``done`` are files with edits from an earlier one."""
        limit = f"Touch no files but those that match: {', '.join(self._globs)}\n" if self._globs else ""
        paths = sorted(set(done))
        text = f"{edits.INSTRUCTIONS}{_HOW}{limit}\nRefactor this repository: {self._instruction}\n"
        if paths:
            more = f" and {len(paths) - _DONE_SHOWN} more" if len(paths) > _DONE_SHOWN else ""
            text += f"Edits of these files are done; do not repeat them: {', '.join(paths[:_DONE_SHOWN])}{more}\n"
        return text

    def batch(self, batch: Batch, number: int, count: int) -> str:
        """The files of one batch, from 1; nothing where there is no plan."""
        if not batch:
            return ""
        what = f"The files that have {' or '.join(self._names)}" if self._names else "The files it is about"
        which = f" (batch {number} of {count}; write blocks for these files alone)" if count > 1 else ""
        return f"{what}{which}:\n" + "".join(batches.line(item.planned) for item in batch)

    def missing(self, batch: Batch) -> str:
        """Files that the model has passed over without a word."""
        files = "".join(batches.line(item.planned) for item in batch)
        return f"These files are still to do. Write their blocks, or a SKIP line with the reason:\n{files}"


def refusals(messages: Sequence[str], kept: int, room: int, count: Count) -> list[str]:
    """What was refused, in as many turns as it takes with ``room`` tokens each; ``kept`` blocks need no repeating."""
    others = f" The other {kept} blocks are kept: do not repeat them." if kept else ""
    head = f"Nothing is written yet. These blocks were refused; write them again, corrected.{others}\n\n"
    texts: list[str] = []
    used = 0
    for message in messages:
        shown = cut(message, room, count)
        tokens = count(shown)
        if not texts or used + tokens > room:
            texts.append(head)
            used = count(head)
        texts[-1] += f"{shown}\n\n"
        used += tokens
    return texts


def failed_check(command: str, code: int) -> str:
    """The edits are on the disk, and the user's check does not pass. Its output goes with the task as an extra."""
    return (
        f"The edits were written; the changed files are above. Then the check `{command}` failed, exit code {code}; "
        "its output is given above. Write the blocks that mend it, against the files as they are now.\n"
    )


def cut_off(problem: edits.Problem) -> str:
    """The answer ran out of room inside a block, which was thrown away."""
    where = f" for {problem.path}" if problem.path else ""
    return (
        f"Your answer broke off inside the block{where}; that block was thrown away. Write it again, and what follows."
    )


def cut(text: str, room: int, count: Count) -> str:
    """A text within ``room`` tokens: its beginning and, three times as long, its end, where errors stand."""
    if count(text) <= room:
        return text
    size = len(text)
    while size > 80:
        size = size * 3 // 4
        short = f"{text[: size // 4]}\n[... {len(text) - size:,} characters left out ...]\n{text[-(size * 3 // 4) :]}"
        if count(short) <= room:
            return short
    return text[-size:]
