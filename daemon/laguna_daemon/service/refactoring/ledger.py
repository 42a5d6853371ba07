"""What has come of a refactoring so far: blocks that stand, blocks that were refused, files done, skipped, missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from laguna_daemon import edits
from laguna_daemon.service.refactoring.answer import Answer
from laguna_daemon.service.refactoring.files import Planned, Scope

_MOST_NAMED = 500  # files that a model may add to the plan
# Refusals that are about the path itself: the right block is one for another path.
_ABOUT_THE_PATH = {
    "no file", "exists", "gone", "bad path", "outside", "git folder", "link", "special file", "folder",
    "other repository", "twin",
}  # fmt: skip


class Ledger:
    """Takes answers, plans all blocks that stand as one set, and knows what is still open."""

    def __init__(self, root: Path, scope: Scope, *, allow_ignored: bool = False) -> None:
        self.changes: edits.ChangeSet | None = None
        self.refused: list[edits.Refusal] = []
        self.cut_off: edits.Problem | None = None
        self.skipped: dict[str, str] = {}
        self.notes: list[str] = []
        self.expected: dict[str, Planned] = {}
        self._root = root
        self._scope = scope
        self._allow_ignored = allow_ignored
        self._blocks: list[edits.Block] = []
        self._problems: list[edits.Problem] = []
        self._outside: list[edits.Refusal] = []
        self._versions: dict[str, str] = {}

    def expect(self, planned: Iterable[Planned]) -> None:
        """These files have to be edited, or skipped with a reason."""
        for one in planned:
            self.expected.setdefault(one.path, one)

    def skip(self, path: str, reason: str) -> None:
        """A planned file is left out, for a reason of ours."""
        self.skipped[path] = reason

    @property
    def kept(self) -> int:
        """How many blocks stand."""
        return len(self._blocks)

    @property
    def touched(self) -> frozenset[str]:
        """Paths that the standing blocks edit, both names of a rename included."""
        return frozenset(path for block in self._blocks for path in _paths(block))

    @property
    def missing(self) -> list[Planned]:
        """Planned files that were neither edited, refused nor skipped."""
        settled = self.touched | self.skipped.keys() | {refusal.path for refusal in self.refused}
        return [one for path, one in self.expected.items() if path not in settled]

    @property
    def open(self) -> str:
        """Why another round is needed; empty if none is."""
        reasons = [
            (bool(self.refused), "refused blocks"),
            (self.cut_off is not None, "an answer that broke off"),
            (bool(self.missing), "files passed over"),
        ]
        return ", ".join(reason for there, reason in reasons if there)

    def take(self, answer: Answer, seen: Mapping[str, str]) -> None:
        """Take over an answer; ``seen`` are the versions of the files that the model had before it."""
        self._settle_refused(answer)
        for block in answer.blocks:
            strange = [path for path in _paths(block) if not self._scope.allows(path)]
            if strange:
                self._outside.append(_out_of_scope(strange[0], self._scope, block))
                continue
            self._blocks.append(block)
            if block.path in seen:
                self._versions.setdefault(block.path, seen[block.path])
        self._problems += answer.problems
        self.cut_off = answer.cut_off
        if self.cut_off is not None and self.cut_off.path is not None:
            self.expect([Planned(_plain(self.cut_off.path), "cut off")])
        for path in list(answer.named)[:_MOST_NAMED]:
            if self._scope.allows(path):
                self.expect([Planned(path, "named by the model")])
        self.skipped |= answer.skipped

    def plan(self, seen: Mapping[str, str], buffers: Mapping[str, str]) -> list[edits.Refusal]:
        """Compute all blocks that stand, in memory; the new refusals. Blocks on reading.

        Refused blocks are dropped: the model writes them again. The others are kept for the next time.
        """
        found, self._outside = self._outside, []
        self.changes = None
        if self._blocks or self._problems:
            made = edits.plan(
                self._root,
                self._blocks,
                {**seen, **self._versions},
                problems=self._problems,
                buffers=buffers,
                allow_ignored=self._allow_ignored,
            )
            if isinstance(made, edits.ChangeSet):
                self.changes = made
            else:
                found += self._drop(made)
        self._problems = []
        self.refused += found
        return found

    def _drop(self, made: edits.Refusals) -> list[edits.Refusal]:
        self._blocks = list(made.accepted)
        for refusal in made.refusals:
            if refusal.block is None and refusal.code != "problem":
                whole = refusal.path is None
                self._blocks = [b for b in self._blocks if not whole and refusal.path not in _paths(b)]
            if refusal.path is not None and refusal.path not in self.touched:
                self._versions.pop(refusal.path, None)
        return list(made.refusals)

    def _settle_refused(self, answer: Answer) -> None:
        """Refusals to which the answer has a new block, or a reason to leave the file, are dealt with."""
        written = Counter(path for block in answer.blocks for path in _paths(block))
        anything = bool(written or answer.skipped)
        settled = {*written, *answer.skipped}
        still = [refusal for refusal in self.refused if not _is_settled(refusal, settled, anything)]
        before = Counter(r.path for r in self.refused if r not in still and r.path in written)
        for path, count in before.items():
            if path is not None and written[path] < count:
                self.notes.append(f"{path}: {count} blocks were refused, {written[path]} written again.")
        self.refused = still


def _is_settled(refusal: edits.Refusal, settled: Collection[str], anything: bool) -> bool:
    if refusal.path is None or refusal.code in _ABOUT_THE_PATH:
        return anything
    return refusal.path in settled


def _paths(block: edits.Block) -> tuple[str, ...]:
    path = _plain(block.path)
    return (path, _plain(block.target)) if isinstance(block, edits.Rename) else (path,)


def _plain(path: str) -> str:
    return path.removeprefix("./")


def _out_of_scope(path: str, scope: Scope, block: edits.Block) -> edits.Refusal:
    what = f"{path} may not be touched: only files that match {', '.join(scope.globs)} may."
    return edits.Refusal("outside", path, what, "Leave it as it is.", block=block)
