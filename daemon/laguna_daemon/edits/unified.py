"""Unified diffs, read line by line into the blocks of the edit language.

A hunk becomes a ``Replace`` and is looked up like any other block: a model's line numbers are rarely right, so
they are kept as a claim (``at``) that ``plan`` may only use where all of a file's hunks prove true. Counts in the
``@@`` line may be wrong or missing; binary patches, links, submodules and copies are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from laguna_daemon.edits.blocks import (
    Block,
    Create,
    Delete,
    Event,
    Problem,
    Prose,
    Rename,
    Replace,
    SetMode,
)

_HUNK = re.compile(r"^@@(?: -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@.*|.*)$")
_EXTENDED = re.compile(
    r"^(old mode|new mode|new file mode|deleted file mode|rename from|rename to|copy from|copy to|"
    r"similarity index|dissimilarity index|index|Binary files|GIT binary patch)(?: (.*))?$"
)
_ESCAPES = {"n": 10, "t": 9, "r": 13, "a": 7, "b": 8, "f": 12, "v": 11, "\\": 92, '"': 34}
_NOTHING = "/dev/null"


@dataclass(slots=True)
class _Hunk:
    line: int
    at: int = 0
    counted: bool = False
    old_left: int = 0
    new_left: int = 0
    body: list[tuple[str, str]] = field(default_factory=list)
    unended: set[str] = field(default_factory=set)

    @property
    def full(self) -> bool:
        return self.counted and self.old_left <= 0 and self.new_left <= 0

    def take(self, line: str) -> bool:
        """Whether the line belongs to this hunk."""
        sign = line[:1] or " "
        if line.startswith("\\"):
            self.unended.add(self.body[-1][0] if self.body else " ")
            return True
        over = self.full and line in {"", "-- "}
        if sign not in " +-" or over or (not line and self.counted and not (self.old_left and self.new_left)):
            return False
        self.old_left -= sign != "+"
        self.new_left -= sign != "-"
        self.body.append((sign if line else "", line[1:]))
        return True

    def block(self, path: str) -> Replace:
        if (self.counted and (self.old_left or self.new_left)) or not self.counted:
            while self.body and self.body[-1] == ("", ""):
                self.body.pop()
        search = tuple(text for sign, text in self.body if sign != "+")
        replace = tuple(text for sign, text in self.body if sign != "-")
        before, after = bool(self.unended & {" ", "", "-"}), bool(self.unended & {" ", "", "+"})
        final = None if before == after else before
        return Replace(path, search, replace, self.line, self.at, final)


@dataclass(slots=True)
class _File:
    line: int
    git: str | None = None
    old: str | None = None
    new: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    hunks: list[_Hunk] = field(default_factory=list)


class DiffReader:
    """Reads the diffs of one answer. ``read`` says whether a line was part of one."""

    def __init__(self) -> None:
        self._file: _File | None = None
        self._minus: tuple[str, int] | None = None

    def read(self, line: str, number: int) -> tuple[list[Event], bool]:
        """Events completed by this line, and whether the line belongs to a diff."""
        if self._minus is not None:
            return self._after_minus(line, number)
        file = self._file
        if file and file.hunks and not self._at_header(file.hunks[-1], line) and file.hunks[-1].take(line):
            return [], True
        if line.startswith("diff --git "):
            events = self._close()
            self._file = _File(number, git=line.removeprefix("diff --git "))
            return events, True
        if line.startswith("--- ") and len(line) > 4:
            self._minus = (line, number)
            return [], True
        if file is None:
            return [], False
        if file.new is not None and (hunk := _HUNK.match(line)):
            file.hunks.append(_new_hunk(hunk, number))
            return [], True
        if file.new is None and (header := _EXTENDED.match(line)):
            file.headers[header[1]] = header[2] or ""
            return [], True
        return self._close(), False

    def finish(self) -> list[Event]:
        """Events of what is still open at the end of the answer."""
        waiting: list[Event] = [Prose(self._minus[0] + "\n")] if self._minus else []
        self._minus = None
        return waiting + self._close()

    @staticmethod
    def _at_header(hunk: _Hunk, line: str) -> bool:
        if line.startswith(("diff --git ", "@@")):
            return True
        return (hunk.full or not hunk.counted) and line.startswith("--- ") and len(line) > 4

    def _after_minus(self, line: str, number: int) -> tuple[list[Event], bool]:
        assert self._minus is not None
        minus, started = self._minus
        self._minus = None
        if not line.startswith("+++ "):
            events = [*self._close(), Prose(minus + "\n")]
            more, consumed = self.read(line, number)
            return events + more, consumed
        events = []
        if self._file is None or self._file.new is not None:
            events = self._close()
            self._file = _File(started)
        self._file.old, self._file.new = _name(minus[4:]), _name(line[4:])
        return events, True

    def _close(self) -> list[Event]:
        file, self._file = self._file, None
        return _blocks(file) if file else []


def _new_hunk(header: re.Match[str], number: int) -> _Hunk:
    at, removed, _, added = header.groups()
    if at is None:
        return _Hunk(number)
    old_left, new_left = (1 if count is None else int(count) for count in (removed, added))
    return _Hunk(number, int(at), True, old_left, new_left)


def _blocks(file: _File) -> list[Event]:
    problem = _unsupported(file)
    names = None if problem else _paths(file)
    if problem or names is None:
        why = problem or "its file names cannot be made out"
        return [Problem("unsupported" if problem else "not a diff", _said(file, why), file.line)]
    old, new = names
    if old is None:
        return _created(file, new or "")
    if new is None:
        return [Delete(old, file.line)]
    found: list[Event] = []
    if old != new:
        if "rename to" not in file.headers:
            why = f"its two names differ ({old}, {new}); a rename needs 'rename from' and 'rename to' lines"
            return [Problem("not a diff", _said(file, why), file.line, old)]
        found.append(Rename(old, new, file.line))
    mode = file.headers.get("new mode")
    if mode is not None:
        found.append(SetMode(new, mode == "100755", file.line))
    hunks: list[Block] = [hunk.block(new) for hunk in file.hunks]
    if not found and not hunks:
        return [Problem("not a diff", _said(file, "it holds no hunk (a line that starts with @@)"), file.line, new)]
    return [*found, *hunks]


def _created(file: _File, path: str) -> list[Event]:
    body = [part for hunk in file.hunks for part in hunk.body]
    while body and body[-1] == ("", ""):
        body.pop()
    if any(sign != "+" for sign, _ in body):
        return [Problem("not a diff", _said(file, "a new file can only have added lines"), file.line, path)]
    text = "".join(f"{line}\n" for _, line in body)
    if any("+" in hunk.unended for hunk in file.hunks):
        text = text.removesuffix("\n")
    return [Create(path, text, file.line, file.headers.get("new file mode") == "100755")]


def _unsupported(file: _File) -> str | None:
    if "GIT binary patch" in file.headers or "Binary files" in file.headers:
        return "binary patches are not accepted"
    if "copy from" in file.headers or "copy to" in file.headers:
        return "copies are not accepted; create the new file instead"
    modes = [file.headers.get(key) for key in ("old mode", "new mode", "new file mode", "deleted file mode")]
    if any(mode is not None and mode not in {"100644", "100755", "100600", "100664"} for mode in modes):
        return "only regular files are accepted, no links and no submodules"
    return None


def _paths(file: _File) -> tuple[str | None, str | None] | None:
    """(old, new) without their prefixes, None for a file that is not there; None if they cannot be known."""
    if "rename from" in file.headers and "rename to" in file.headers:
        return _name(file.headers["rename from"]), _name(file.headers["rename to"])
    old, new = file.old, file.new
    if old is None or new is None:
        same = _git_names(file.git or "")
        if same is None:
            return None
        created, deleted = "new file mode" in file.headers, "deleted file mode" in file.headers
        return (None if created else same), (None if deleted else same)
    if old == _NOTHING and new == _NOTHING:
        return None
    prefixed = (old == _NOTHING or old.startswith("a/")) and (new == _NOTHING or new.startswith("b/"))
    cut = 2 if prefixed else 0
    return (None if old == _NOTHING else old[cut:]), (None if new == _NOTHING else new[cut:])


def _git_names(text: str) -> str | None:
    """The one path of ``a/P b/P``; None if the two differ (then other header lines name them)."""
    if text.startswith('"'):
        first, _, second = text.partition('" "')
        old, new = _name(first + '"'), _name('"' + second)
    else:
        middle = len(text) // 2
        old, new = text[:middle], text[middle + 1 :]
    return old[2:] if old.startswith("a/") and new == "b/" + old[2:] else None


def _name(text: str) -> str:
    """A file name of a header line: without time stamp, and with git's C-style quoting undone."""
    text = text.partition("\t")[0].strip()
    if not (len(text) > 1 and text.startswith('"') and text.endswith('"')):
        return text
    raw = bytearray()
    for match in re.finditer(r'\\([0-7]{3})|\\([ntrabfv\\"])|([^\\])', text[1:-1]):
        octal, escape, plain = match.groups()
        if plain is not None:
            raw += plain.encode("utf-8", "surrogateescape")
        else:
            raw.append(int(octal, 8) & 0xFF if octal else _ESCAPES[escape])
    return raw.decode("utf-8", "surrogateescape")


def _said(file: _File, why: str) -> str:
    return f"The diff at line {file.line} of the answer cannot be used: {why}."
