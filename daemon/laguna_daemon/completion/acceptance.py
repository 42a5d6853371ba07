"""How much of a suggestion a user takes: a word, a line, or all of it."""

from __future__ import annotations

import re
from typing import Literal

Part = Literal["word", "line", "whole"]
_WORD = re.compile(r"\s*(?:\w+|[^\w\s]+)")


def word(text: str) -> str:
    """The first word with the white space before it; a run of other characters counts as one."""
    found = _WORD.match(text)
    return found.group() if found else text


def line(text: str) -> str:
    """Up to the end of the first line that says something, without its line ending."""
    lead = len(text) - len(text.lstrip("\r\n"))
    rest = text[lead:]
    return text[:lead] + rest.partition("\n")[0].rstrip("\r")


def part_of(text: str, units: int) -> Part:
    """What an accepted length in UTF-16 units comes to: the smallest part that is not shorter."""
    if units < _units(line(text)):
        return "word"
    return "line" if units < _units(text.rstrip()) else "whole"


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
