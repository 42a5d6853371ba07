"""The wording of refusals: what happened, what to do, and the nearest candidate. They go back to the model."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from laguna_daemon.edits import redaction
from laguna_daemon.edits.blocks import Block, Replace
from laguna_daemon.edits.changes import Refusal, RefusalCode
from laguna_daemon.edits.draft import Draft, Unmatched
from laguna_daemon.edits.safety import PathChecker

_MARGIN = 2
_PLACES = 5
_LINE_CHARACTERS = 300


class Refused(Exception):
    """Raised while planning; carries the refusal."""

    def __init__(
        self,
        code: RefusalCode,
        path: str | None,
        what: str,
        advice: str = "",
        *,
        excerpt: str = "",
        places: tuple[int, ...] = (),
        block: Block | None = None,
    ) -> None:
        super().__init__(what)
        self.refusal = Refusal(code, path, what, advice, excerpt, places, block)

    @classmethod
    def of(cls, refusal: Refusal, block: Block | None = None) -> Refused:
        """A refusal that exists already."""
        return cls(refusal.code, refusal.path, refusal.what, refusal.advice, block=block or refusal.block)


def unmatched(path: str, block: Replace, draft: Draft, error: Unmatched) -> Refused:
    """A SEARCH that has no place, or several, with the lines it may have meant."""
    if error.code == "no match" and redaction.markers(block.search):
        return redacted(path, block)
    lines = draft.searchable.exact
    places = tuple(place + 1 for place in error.places[:_PLACES])
    if error.code == "ambiguous":
        where = ", ".join(map(str, places)) + (" ..." if len(error.places) > _PLACES else "")
        what = f"The SEARCH text occurs {len(error.places)} times in {path} (at lines {where})."
        excerpt = "\n".join(_excerpt(path, lines, place - 1, place - 1 + len(block.search)) for place in places[:2])
        advice = "Add lines around it until it occurs once."
        return Refused("ambiguous", path, what, advice, excerpt=excerpt, places=places, block=block)
    if error.code == "overlap":
        what = f"The SEARCH text stands in {path} only at line {places[0]}, which an earlier block has replaced."
        return Refused("overlap", path, what, "Make one block of the two.", places=places, block=block)
    if error.code == "empty search":
        what = f"The SEARCH part for {path} has no text in it."
        return Refused("empty search", path, what, "Repeat a neighbouring line in both parts to insert.", block=block)
    if error.code == "indentation":
        what = f"The SEARCH text matches {path} with other indentation, which the new lines cannot be given."
        return Refused("indentation", path, what, "Copy the indentation from the file.", block=block)
    return _no_match(path, block, draft)


def _no_match(path: str, block: Replace, draft: Draft) -> Refused:
    lines = draft.searchable.exact
    nearest = draft.searchable.nearest(block.search)
    what = f"The SEARCH text is nowhere in {path}."
    advice = "Copy whole lines exactly from the file."
    if any(line.strip() in {"...", "…", "# ...", "// ..."} for line in block.search):
        advice = "Write every line out; '...' stands for nothing."
    if nearest is None:
        return Refused("no match", path, what, advice, block=block)
    excerpt = "The nearest lines are these:\n" + _excerpt(path, lines, *nearest)
    return Refused("no match", path, what, advice, excerpt=excerpt, places=(nearest[0] + 1,), block=block)


def _excerpt(path: str, lines: list[str], start: int, stop: int) -> str:
    """Numbered lines with a margin, secrets taken out."""
    first, last = max(0, start - _MARGIN), min(len(lines), stop + _MARGIN)
    # Redacted as a whole first: a secret can begin far above the lines that are shown.
    shown = redaction.without_secrets(lines, path)
    if len(shown) != len(lines):
        return ""
    width = len(str(last))
    return "\n".join(f"{first + n + 1:>{width}}| {line[:_LINE_CHARACTERS]}" for n, line in enumerate(shown[first:last]))


def redacted(path: str, block: Block) -> Refused:
    """A block that touches, or would write, a marker."""
    what = f"The block for {path} touches text of the form [redacted: ...], which hides a secret."
    return Refused("redacted", path, what, "Leave those lines out of the block, as they are.", block=block)


def stale(path: str, block: Block) -> Refused:
    """The file is not what the model saw."""
    what = f"{path} has changed since it was shown; the edit was made for another text."
    return Refused("stale", path, what, "Read it again and write the block anew.", block=block)


def unseen(path: str, block: Block) -> Refused:
    """A rewrite of a file the model was not shown."""
    what = f"{path} exists and was not shown, so it cannot be rewritten whole."
    return Refused("unseen", path, what, "Use SEARCH/REPLACE blocks.", block=block)


def exists(path: str, block: Block) -> Refused:
    """The target of a CREATE or RENAME is taken."""
    advice = "Use SEARCH/REPLACE blocks, or DELETE it first to rewrite it whole."
    return Refused("exists", path, f"{path} exists already.", advice, block=block)


def no_file(path: str, block: Block, checker: PathChecker, seen: Mapping[str, str]) -> Refused:
    """No such file, and the path that may have been meant."""
    folder, _, name = path.rpartition("/")
    meant = checker.twin(path)
    if meant is None:
        same_name = sorted(other for other in seen if other.rpartition("/")[2] == name)
        meant = same_name[0] if len(same_name) == 1 else None
    if meant is None:
        close = difflib.get_close_matches(name, checker.names(folder), n=1)
        meant = f"{folder}/{close[0]}".lstrip("/") if close else None
    advice = f"Did you mean {meant}?" if meant else "To make a new file, use CREATE."
    return Refused("no file", path, f"There is no file {path}.", advice, block=block)


def twin(path: str, other: str) -> Refusal:
    """Two names that some file systems take for one, or a file where a folder is needed."""
    what = f"{path} and {other} cannot both exist on every file system."
    return Refusal("twin", path, what, "Choose another name, or use the existing one.")


def ignored(path: str) -> Refusal:
    """A path that the repository's ignore rules leave out."""
    what = f"{path} is ignored by the repository, so edits leave it alone."
    return Refusal("ignored", path, what, "Allow ignored files for this edit if it is meant.")


def too_large(path: str, size: int, limit: int) -> Refusal:
    """A file over the size limit, before or after."""
    what = f"{path} has {size:,} bytes; edits are limited to {limit:,} bytes a file."
    return Refusal("too large", path, what)


def set_too_large(files: int, size: int) -> Refusal:
    """A whole set over its limits."""
    return Refusal("too large", None, f"The edits touch {files:,} files and {size:,} bytes, which is over the limit.")


def not_encodable(path: str, error: UnicodeEncodeError) -> Refusal:
    """New text with characters that the file's encoding does not have."""
    character = error.object[error.start : error.start + 1]
    what = f"{path} is written in {error.encoding}, which has no character {character!a}."
    return Refusal("encoding", path, what, "Use other characters.")


def nothing_to_do(had_blocks: bool) -> Refusal:
    """An answer that would change no file."""
    what = "The edits leave every file as it is." if had_blocks else "The answer holds no edit."
    return Refusal("no change", None, what, "" if had_blocks else "Write edits as blocks.")


def has_nul(texts: Iterable[str]) -> bool:
    """Whether any text holds a NUL, which no text file does."""
    return any("\0" in text for text in texts)
