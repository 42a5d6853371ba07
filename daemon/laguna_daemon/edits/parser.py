"""The streaming parser: a model's answer in pieces of any size -> prose, blocks and problems.

``feed`` may be called with single characters or with the whole answer; the events are the same. Nothing is ever
dropped silently: text that looks like an edit and cannot be read as one becomes a ``Problem``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from laguna_daemon.edits.blocks import (
    Began,
    Block,
    Create,
    Delete,
    Event,
    Problem,
    ProblemCode,
    Prose,
    Rename,
    Replace,
    strip_fence,
)
from laguna_daemon.edits.paths_in_prose import is_fence, path_in, unquote
from laguna_daemon.edits.unified import DiffReader

# An answer of a model is at most some hundred thousand tokens; beyond this it is an attack or a runaway.
MAX_ANSWER = 32 * 1024 * 1024

_OPEN = re.compile(r"^([ \t]*)(<{5,}|-{5,}(?= ?SEARCH\b)) ?([A-Za-z]+)\b[ \t]*(.*?)[ \t]*$")
_STRAY = re.compile(r"^[ \t]*(?:>{5,}|\+{5,}) ?(REPLACE|END)[ \t]*$", re.IGNORECASE)
_FOREIGN = re.compile(r"^\*\*\* (Begin Patch|Update File|Add File|Delete File)\b")
_OPERATIONS = {"SEARCH", "CREATE", "DELETE", "RENAME"}
# Words that stand behind seven "<" in a conflict of git, which an answer may well quote.
_CONFLICT = {"HEAD", "Updated", "ours", "theirs", "LOCAL", "BASE", "REMOTE"}


class Parser:
    """One answer. ``blocks`` and ``problems`` hold what has been read so far."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.problems: list[Problem] = []
        self._rest = ""
        self._line = 0
        self._size = 0
        self._hint: str | None = None
        self._last_path: str | None = None
        self._open: _Open | None = None
        self._skip_end: int = 0
        self._diff = DiffReader()
        self._finished = False

    @property
    def unfinished(self) -> bool:
        """True while a block is open, and after ``finish`` if the answer broke off inside one."""
        return self._open is not None or any(p.code == "unfinished" for p in self.problems)

    def feed(self, text: str) -> list[Event]:
        """Take the next piece of the answer; events of every line completed by it."""
        self._size += len(text)
        if self._size > MAX_ANSWER:
            return self._overflow()
        *lines, self._rest = (self._rest + text).split("\n")
        return self._take(lines)

    def finish(self) -> list[Event]:
        """The answer is over; events of what was left, a broken-off block included."""
        if self._finished:
            return []
        self._finished = True
        rest, self._rest = self._rest, ""
        events = self._take([rest] if rest else [])
        events += self._keep(self._diff.finish())
        if self._open is not None:
            events += self._keep([self._open.broken_off()])
            self._open = None
        return events

    def _overflow(self) -> list[Event]:
        self._rest, self._open = "", None
        if any(problem.code == "too large" for problem in self.problems):
            return []
        message = f"The answer is longer than {MAX_ANSWER // 2**20} MiB; the rest was not read."
        return self._keep([Problem("too large", message, self._line)])

    def _take(self, lines: Iterable[str]) -> list[Event]:
        events: list[Event] = []
        for line in lines:
            self._line += 1
            for event in self._keep(self._one(line.removesuffix("\r"))):
                if isinstance(event, Prose) and events and isinstance(events[-1], Prose):
                    events[-1] = Prose(events[-1].text + event.text)
                else:
                    events.append(event)
        return events

    def _keep(self, events: Iterable[Event]) -> list[Event]:
        kept = list(events)
        for event in kept:
            if isinstance(event, Problem):
                self.problems.append(event)
            elif not isinstance(event, Prose | Began):
                self.blocks.append(event)
        return kept

    def _one(self, line: str) -> list[Event]:
        if self._open is not None:
            return self._inside(self._open, line)
        events, consumed = self._diff.read(line, self._line)
        return events if consumed else events + self._outside(line)

    def _outside(self, line: str) -> list[Event]:
        skip, self._skip_end = self._skip_end, 0
        if skip and re.fullmatch(rf"[ \t]*>{{{skip}}}(?: ?[A-Za-z]+)?[ \t]*", line):
            return []
        if skip and not line.strip():
            self._skip_end = skip
        opening = _OPEN.match(line)
        if opening and opening[3] not in _CONFLICT:
            return self._opening(opening)
        if _STRAY.match(line):
            message = f"'{line.strip()}' closes a block that was never opened (no <<<<<<< line above it)."
            return [Problem("stray marker", message, self._line)]
        if foreign := _FOREIGN.match(line):
            message = f"'*** {foreign[1]}' is no known form of edit. Use SEARCH/REPLACE blocks or a unified diff."
            return [Problem("unsupported", message, self._line)]
        self._remember(line)
        return [Prose(line + "\n")]

    def _remember(self, line: str) -> None:
        """Keep the path named by a line of prose; any other line of words ends the claim of an earlier one."""
        if found := path_in(line):
            self._hint = found
        elif line.strip() and not is_fence(line):
            self._hint = None

    def _opening(self, opening: re.Match[str]) -> list[Event]:
        indent, marker, word, rest = opening.groups()
        operation = word.upper()
        if operation not in _OPERATIONS:
            message = f"'{word}' is no operation; known are SEARCH, CREATE, DELETE and RENAME."
            return [Problem("unknown operation", message, self._line)]
        if operation == "RENAME":
            return self._rename(rest, len(marker))
        path = unquote(rest) or self._hint or (self._last_path if operation == "SEARCH" else None)
        self._hint = None
        if operation == "DELETE":
            self._skip_end = len(marker)
            return [Delete(path, self._line)] if path else [self._no_path(operation)]
        self._open = _Open(operation, path, self._line, indent, marker)
        self._last_path = path
        begun: list[Event] = [Began(operation.lower(), path, self._line)]
        return begun if path else [*begun, self._no_path(operation)]

    def _rename(self, rest: str, length: int) -> list[Event]:
        self._skip_end = length
        self._hint = None
        parts = [unquote(part) for part in re.split(r"[ \t](?:->|=>|→)[ \t]", rest)]
        if len(parts) != 2 or not all(parts):
            message = "RENAME needs two paths on its line: <<<<<<< RENAME old/path -> new/path"
            return [Problem("no path", message, self._line)]
        return [Rename(parts[0], parts[1], self._line)]

    def _no_path(self, operation: str) -> Problem:
        message = f"The {operation} block names no file. Write its path behind {operation}, on the same line."
        return Problem("no path", message, self._line)

    def _inside(self, block: _Open, line: str) -> list[Event]:
        verdict = block.take(line)
        if verdict == "more":
            return []
        self._open = None
        if verdict == "nested":
            nested = block.problem("nested", "another block begins before this one is closed")
            return [nested, *self._outside(line)]
        result = block.close()
        return [] if block.path is None and not isinstance(result, Problem) else [result]


@dataclass(frozen=True, slots=True)
class Parsed:
    """A whole answer. ``unfinished``: it broke off inside a block, so the model may be asked to go on."""

    blocks: tuple[Block, ...]
    problems: tuple[Problem, ...]
    unfinished: bool


def parse(text: str) -> Parsed:
    """Read a whole answer at once."""
    parser = Parser()
    parser.feed(text)
    parser.finish()
    return Parsed(tuple(parser.blocks), tuple(parser.problems), parser.unfinished)


class _Open:
    """A block whose end has not been seen."""

    def __init__(self, operation: str, path: str | None, line: int, indent: str, marker: str) -> None:
        self.operation = operation
        self.path = path
        self.line = line
        self._indent = indent
        length = len(marker)
        shut = r"\+" if marker[0] == "-" else ">"
        word = "REPLACE" if operation == "SEARCH" else "END|CREATE"
        self._end = re.compile(rf"{shut}{{{length}}}(?: ?(?:{word}))?[ \t]*", re.IGNORECASE)
        self._nested = re.compile(rf"{re.escape(marker)} (?:SEARCH|CREATE|DELETE|RENAME)\b.*")
        self._separator = "=" * length
        self._closing = f"{shut[-1] * length} {word.split('|', maxsplit=1)[0]}"
        self._parts: list[list[str]] = [[]]

    def take(self, line: str) -> str:
        """Add a line; "more", "closed" or "nested"."""
        line = line.removeprefix(self._indent)
        if self._end.fullmatch(line):
            return "closed"
        if self._nested.fullmatch(line):
            return "nested"
        if self.operation == "SEARCH" and line.rstrip() == self._separator:
            self._parts.append([])
        else:
            self._parts[-1].append(line)
        return "more"

    def close(self) -> Block | Problem:
        path = self.path or ""
        if self.operation == "CREATE":
            return Create(path, _created(path, tuple(self._parts[0])), self.line)
        if len(self._parts) < 2:
            return self.problem("no separator", f"it has no '{self._separator}' line between its two parts")
        if len(self._parts) > 2:
            why = f"it has more than one '{self._separator}' line; use markers of nine characters"
            return self.problem("two separators", why)
        return Replace(path, tuple(self._parts[0]), tuple(self._parts[1]), self.line)

    def broken_off(self) -> Problem:
        return self.problem("unfinished", f"the answer ends before its '{self._closing}' line")

    def problem(self, code: ProblemCode, why: str) -> Problem:
        name = f" of {self.path}" if self.path else ""
        message = f"The {self.operation} block{name} (line {self.line} of the answer) cannot be read: {why}."
        return Problem(code, message, self.line, self.path)


def _created(path: str, lines: tuple[str, ...]) -> str:
    """The text of a new file; a fence around all of it is the model's, unless the file is markdown itself."""
    fenced = strip_fence(lines)
    if fenced is not None:
        markdown = path.lower().endswith((".md", ".markdown", ".mdx"))
        if not markdown or fenced[0].strip("`~ ").lower() in {"md", "markdown"}:
            lines = fenced[1]
    return "".join(f"{line}\n" for line in lines)
