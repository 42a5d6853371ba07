"""Text as lines: the one place that says where a line ends.

Lines end at ``\\n``, ``\\r\\n`` or ``\\r`` and nowhere else (form feeds, U+2028 and the like are ordinary
characters), which is the rule of the language server protocol too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")


def split_lines(text: str) -> list[str]:
    """The lines of a text with their endings; joined they give the text. Empty text has no lines."""
    if "\r" in text:
        return _LINE.findall(text)
    lines = [line + "\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def content(line: str) -> str:
    """A line without its ending."""
    if line.endswith("\n"):
        return line[:-2] if line.endswith("\r\n") else line[:-1]
    return line[:-1] if line.endswith("\r") else line


def ending(line: str) -> str:
    """``\\n``, ``\\r\\n``, ``\\r``, or nothing for a last line without one."""
    return line[len(content(line)) :]


def usual_ending(lines: Sequence[str]) -> str:
    """The ending that most lines have; ``\\n`` where no line has one."""
    text = "".join(lines)
    both = text.count("\r\n")
    counted = {"\n": text.count("\n") - both, "\r\n": both, "\r": text.count("\r") - both}
    return max(counted, key=lambda newline: counted[newline])


def contents(lines: Sequence[str]) -> list[str]:
    """All lines without their endings."""
    text = "".join(lines)
    if "\r" in text:
        return [content(line) for line in lines]
    bare = text.split("\n")
    return bare if bare[-1] else bare[:-1]


def indentation(text: str) -> str:
    """The spaces and tabs a line starts with."""
    return text[: len(text) - len(text.lstrip(" \t"))]
