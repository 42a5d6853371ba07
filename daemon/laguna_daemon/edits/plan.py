"""Blocks -> a ChangeSet, or the reasons why not. Every file is computed in memory; nothing is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from laguna_daemon.edits import redaction, refusals, worktree
from laguna_daemon.edits.blocks import Block, Create, Delete, Problem, Rename, Replace, SetMode
from laguna_daemon.edits.changes import ChangeSet, FileState, Refusal, Refusals, from_problem
from laguna_daemon.edits.draft import Unmatched
from laguna_daemon.edits.files import NotText, TextFile, sha256
from laguna_daemon.edits.refusals import Refused
from laguna_daemon.edits.safety import PathChecker, PathRefused, fold, normalise, printable
from laguna_daemon.edits.tree import Tree
from laguna_daemon.edits.working import Working, assemble


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes beyond which an edit is refused: bytes of one file and of the whole set, and number of files."""

    file_bytes: int = 8 * 1024 * 1024
    set_bytes: int = 128 * 1024 * 1024
    files: int = 5000


def plan(
    root: Path,
    blocks: Sequence[Block],
    seen: Mapping[str, str] | None = None,
    *,
    problems: Sequence[Problem] = (),
    buffers: Mapping[str, str] | None = None,
    allow_ignored: bool = False,
    limits: Limits = Limits(),
) -> ChangeSet | Refusals:
    """Carry out ``blocks`` in memory, all or nothing.

    ``seen`` maps paths to the sha256 (hex) of what the model was shown: of a file's raw bytes, or of an unsaved
    buffer's text in UTF-8. A file whose hash differs is refused as stale; a file that is not in ``seen`` can be
    edited (an exact, unique match is proof enough) but not rewritten. ``buffers`` maps paths to unsaved text, which
    takes the place of what is on disk. ``problems`` of parsing refuse the set, as any refused block does.
    """
    with Tree(root) as tree:
        planner = _Planner(root, tree, blocks, seen or {}, buffers or {}, limits)
        return planner.run(problems, allow_ignored)


class _Planner:
    def __init__(
        self,
        root: Path,
        tree: Tree,
        blocks: Sequence[Block],
        seen: Mapping[str, str],
        buffers: Mapping[str, str],
        limits: Limits,
    ) -> None:
        self._root, self._tree, self._limits = root, tree, limits
        self._blocks = blocks
        self._seen, self._buffers = seen, buffers
        self._checker = PathChecker(root)
        self._disk: dict[str, Working] = {}
        self._alive: dict[str, Working] = {}
        self._gone: dict[str, str] = {}
        self._claims: dict[str, bool] = {}
        self._notes: list[str] = []
        self._bytes = 0

    def run(self, problems: Sequence[Problem], allow_ignored: bool) -> ChangeSet | Refusals:
        refused = [from_problem(problem) for problem in problems]
        accepted: list[Block] = []
        for block in self._blocks:
            try:
                self._carry_out(block)
                accepted.append(block)
            except Refused as error:
                refused.append(error.refusal)
            except PathRefused as error:
                refused.append(Refusal(error.code, printable(block.path), error.what, error.advice, block=block))
        changes = ChangeSet(self._root, ())
        if not refused:
            changes, refused = self._assemble(allow_ignored)
        if refused:
            return Refusals(self._root, tuple(refused), tuple(accepted))
        return changes

    def _assemble(self, allow_ignored: bool) -> tuple[ChangeSet, list[Refusal]]:
        refused: list[Refusal] = []
        for path, working in self._alive.items():
            try:
                size = len(working.result().data)
            except UnicodeEncodeError as error:
                refused.append(refusals.not_encodable(path, error))
                continue
            self._bytes += size
            if size > self._limits.file_bytes:
                refused.append(refusals.too_large(path, size, self._limits.file_bytes))
        if refused:
            return ChangeSet(self._root, ()), refused
        changes = assemble(self._alive, self._disk)
        buffers = {path: text for path, text in self._buffers.items() if path in self._disk}
        made = ChangeSet(self._root, changes, buffers, tuple(self._notes))
        return made, self._check_set(made, allow_ignored)

    def _check_set(self, made: ChangeSet, allow_ignored: bool) -> list[Refusal]:
        if not made.changes:
            return [refusals.nothing_to_do(bool(self._blocks))]
        if self._bytes > self._limits.set_bytes or len(made.changes) > self._limits.files:
            return [refusals.set_too_large(len(made.changes), self._bytes)]
        refused = self._check_names([change.path for change in made.changes if change.kind in {"created", "renamed"}])
        if not allow_ignored:
            refused += [refusals.ignored(path) for path in sorted(worktree.ignored(self._root, made.paths))]
        return refused

    def _check_names(self, new: Sequence[str]) -> list[Refusal]:
        """No two new names that some file system takes for one, and none that is a folder of another."""
        spelled: dict[str, str] = {}
        files = {fold(path): path for path in self._alive}
        for path in new:
            parts = path.split("/")
            for end in range(1, len(parts) + 1):
                prefix = "/".join(parts[:end])
                other = spelled.setdefault(fold(prefix), prefix)
                below = files.get(fold(prefix), path) if end < len(parts) else path
                if other != prefix or below != path:
                    return [refusals.twin(path, other if other != prefix else below)]
        return []

    def _carry_out(self, block: Block) -> None:
        path = normalise(block.path)
        if isinstance(block, Replace):
            self._replace(path, block)
        elif isinstance(block, Create):
            self._create(path, block)
        elif isinstance(block, Delete):
            self._take(path, block)
            self._gone[path] = "deleted"
        elif isinstance(block, Rename):
            self._rename(path, normalise(block.target), block)
        elif isinstance(block, SetMode):
            self._find(path, block).executable = block.executable

    def _replace(self, path: str, block: Replace) -> None:
        working = self._find(path, block)
        if refusals.has_nul((*block.search, *block.replace)):
            raise Refused("binary", path, f"The block for {path} contains a NUL byte.", block=block)
        try:
            draft = working.open_text()
        except NotText as error:
            raise Refused("encoding", path, f"{path} cannot be edited as text: {error}.", block=block) from None
        if redaction.invented_markers(block.search, block.replace):
            raise refusals.redacted(path, block)
        if block.search == block.replace and block.final_newline is None:
            self._notes.append(f"{path}: a block that changes nothing was passed over.")
            return
        try:
            outcome = draft.apply_claim(block) if self._claim(path, block, working) else draft.apply(block)
        except Unmatched as error:
            raise refusals.unmatched(path, block, draft, error) from None
        if outcome == "repeated":
            self._notes.append(f"{path}: a block written twice was applied once.")

    def _claim(self, path: str, block: Replace, working: Working) -> bool:
        """Whether line numbers may be believed: only where every hunk about the file is true to the letter."""
        if block.at is None or working.draft is None:
            return False
        if path not in self._claims:
            hunks = [b for b in self._blocks if isinstance(b, Replace) and b.at is not None and b.path == block.path]
            self._claims[path] = all(working.draft.holds(hunk) for hunk in hunks)
        return self._claims[path]

    def _create(self, path: str, block: Create) -> None:
        if refusals.has_nul((block.text,)):
            raise Refused("binary", path, f"The text for {path} contains a NUL byte.", block=block)
        if len(block.text) > self._limits.file_bytes:
            raise Refused.of(refusals.too_large(path, len(block.text), self._limits.file_bytes), block)
        if redaction.markers((block.text,)):
            raise refusals.redacted(path, block)
        if path in self._alive or (path not in self._gone and self._checker.look(path) is not None):
            raise refusals.exists(path, block)
        if self._gone.get(path) == "deleted" and path in self._disk:
            self._rewrite(path, block)
            return
        self._check_target(path)
        working = Working(path, executable=block.executable or None)
        working.file = TextFile([])
        working.rewrite(block.text)
        self._alive[path] = working
        self._gone.pop(path, None)

    def _rewrite(self, path: str, block: Create) -> None:
        """A file that this very answer deleted comes back with new text: it was there, so it keeps what it was."""
        old = self._disk[path]
        if path not in self._seen:
            raise refusals.unseen(path, block)
        working = Working(path, path, old.state, old.buffer, block.executable or None)
        try:
            text = "".join(working.open_text().lines)
        except NotText as error:
            raise Refused("encoding", path, f"{path} cannot be rewritten as text: {error}.", block=block) from None
        if redaction.has_secret(text, path):
            raise refusals.redacted(path, block)
        working.rewrite(block.text)
        self._alive[path] = working
        del self._gone[path]

    def _rename(self, path: str, target: str, block: Rename) -> None:
        if path == target:
            raise Refused("exists", path, f"{path} would be renamed to itself.", block=block)
        working = self._find(path, block)
        if target in self._alive or (target not in self._gone and self._checker.look(target) is not None):
            raise refusals.exists(target, block)
        self._check_target(target, leaving=path)
        del self._alive[path]
        self._gone[path] = f"renamed to {target}"
        self._gone.pop(target, None)
        self._alive[target] = Working(
            target, working.origin, working.state, working.buffer, working.executable, working.file, working.draft
        )

    def _check_target(self, path: str, leaving: str | None = None) -> None:
        twin = self._checker.twin(path)
        if twin is not None and twin != leaving and twin not in self._gone:
            raise Refused.of(refusals.twin(path, twin))

    def _take(self, path: str, block: Block) -> Working:
        working = self._find(path, block)
        del self._alive[path]
        return working

    def _find(self, path: str, block: Block) -> Working:
        """The file alive at a path. Raises Refused where there is none, or not the one the model saw."""
        if path in self._alive:
            return self._alive[path]
        if path in self._gone:
            why = f"{path} was {self._gone[path]} by an earlier block of the same answer."
            raise Refused("gone", path, why, block=block)
        working = self._load(path, block)
        self._disk[path] = working
        self._alive[path] = Working(path, path, working.state, working.buffer)
        return self._alive[path]

    def _load(self, path: str, block: Block) -> Working:
        place = self._checker.look(path)
        buffer = self._buffers.get(path)
        if place is None and buffer is None:
            raise refusals.no_file(path, block, self._checker, self._seen)
        if place is not None and place.size > self._limits.file_bytes:
            raise Refused.of(refusals.too_large(path, place.size, self._limits.file_bytes), block)
        if reason := redaction.forbidden(path):
            raise Refused(
                "forbidden", path, f"{path} is never shown to a model ({reason}), nor edited by one.", block=block
            )
        try:
            state = self._tree.read(path) if place is not None else None
        except OSError as error:
            raise Refused(
                "unreadable", path, f"{path} cannot be read: {error.strerror or error}.", block=block
            ) from error
        if path in self._seen and not _is_what_was_seen(self._seen[path], state, buffer):
            raise refusals.stale(path, block)
        return Working(path, path, state, buffer)


def _is_what_was_seen(digest: str, state: FileState | None, buffer: str | None) -> bool:
    if buffer is None:
        return state is not None and state.digest == digest
    if sha256(buffer.encode("utf-8", "surrogatepass")) == digest:
        return True
    if state is None or state.digest != digest:
        return False
    on_disk = Working("", None, state)
    try:
        return "".join(on_disk.open_text().lines) == buffer
    except NotText:
        return False
