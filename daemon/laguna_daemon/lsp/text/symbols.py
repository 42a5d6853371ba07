"""Declarations in source text, found by their usual form in most languages and by indentation; no parser.

Right for code that is formatted as its language's formatter would; where it is not, a symbol is not found or ends
late, and nothing worse.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_KEYWORD = (
    r"def|class|function\*?|func|fn|interface|struct|enum|trait|impl|type|module|namespace|record|object|macro_rules!"
)
_VALUE = r"const|let|var|val|static"
_MODIFIERS = (
    r"export|default|declare|public|private|protected|internal|static|async|abstract|final|sealed|partial|open|data|"
    r"override|virtual|inline|extern|unsafe|readonly|pub(?:\([^)]*\))?"
)
_DECLARATION = re.compile(
    rf"^[ \t]*(?:(?:{_MODIFIERS})\s+)*"
    rf"(?:(?:{_KEYWORD})\s+(?:\([^)]*\)\s*)?|(?:{_VALUE})\s+(?:mut\s+)?)(?P<name>[A-Za-z_$][\w$]*)"
)
# Methods and functions without a keyword: C, C++, Java, C#, methods of JavaScript classes.
_CALLABLE = re.compile(r"^[ \t]*(?:[\w:<>,\[\]*&~]+[ \t]+[*&]*)*(?P<name>~?[A-Za-z_$][\w$]*)\s*\([^;]*\)[^;=]*\{\s*$")
_NO_NAMES = frozenset(["if", "for", "while", "switch", "catch", "return", "else", "do", "try", "with", "new", "match"])
_CLOSERS = re.compile(r"^[\s)}\];,]*(?:end\b.*)?$")
_MOST_LINE = 400  # characters; longer lines are generated, and slow for any pattern


@dataclass(frozen=True, slots=True)
class Symbol:
    """A declaration: its name, and its lines from ``first`` up to, not including, ``end`` (from 0)."""

    name: str
    first: int
    end: int


def named(lines: Sequence[str], name: str) -> Symbol | None:
    """The first declaration of `name`, which may be dotted (`Lamp.on`): the last part inside the part before it."""
    first, end = 0, len(lines)
    found: Symbol | None = None
    for part in re.split(r"\.|::|#", name):
        found = next((s for s in declarations(lines, first, end) if s.name == part), None)
        if found is None:
            return None
        first, end = found.first + 1, found.end
    return found


def enclosing(lines: Sequence[str], line: int) -> Symbol | None:
    """The innermost declaration that contains `line` (from 0)."""
    limit = _indent(lines[line]) if line < len(lines) and lines[line].strip() else 1 << 30
    for number in range(min(line, len(lines) - 1), -1, -1):
        text = lines[number]
        if not text.strip() or (number < line and _indent(text) >= limit and limit != 1 << 30):
            continue
        limit = min(limit, _indent(text) if number < line else limit)
        name = declared(text)
        if name is not None and (end := _end(lines, number, len(lines))) > line:
            return Symbol(name, _with_decorators(lines, number), end)
    return None


def declarations(lines: Sequence[str], first: int = 0, end: int | None = None) -> list[Symbol]:
    """Every declaration whose first line lies in `first` .. `end`."""
    end = len(lines) if end is None else end
    found = []
    for number in range(first, end):
        name = declared(lines[number])
        if name is not None:
            found.append(Symbol(name, number, _end(lines, number, end)))
    return found


def declared(line: str) -> str | None:
    """The name that a line declares, or None."""
    if len(line) > _MOST_LINE:
        return None
    found = _DECLARATION.match(line) or _CALLABLE.match(line)
    if found is None or found["name"] in _NO_NAMES or line.lstrip().split("(")[0].split(" ")[0] in _NO_NAMES:
        return None
    return found["name"]


def _end(lines: Sequence[str], start: int, limit: int) -> int:
    """The line behind a declaration: the first that is not indented deeper, closing brackets apart."""
    indent = _indent(lines[start])
    last = start
    for number in range(start + 1, limit):
        text = lines[number]
        if not text.strip():
            continue
        if _indent(text) <= indent:
            if not (_indent(text) == indent and _opens_or_closes(text)):
                break
            last = number
            if _CLOSERS.match(text):
                break
            continue
        last = number
    return last + 1


def _opens_or_closes(text: str) -> bool:
    return _CLOSERS.match(text) is not None or text.lstrip()[:1] in "{)]}"


def _with_decorators(lines: Sequence[str], number: int) -> int:
    while number > 0 and lines[number - 1].lstrip().startswith("@"):
        number -= 1
    return number


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))
