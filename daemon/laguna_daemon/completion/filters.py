"""What is done to a completion after the model: small functions from text to text, applied in order."""

import re
from collections.abc import Callable
from dataclasses import dataclass

_FENCE = re.compile(r"\A\s*(```+|~~~+)[^\n]*\n(.*?)(?:\n?\1\s*)?\Z", re.DOTALL)
_CLOSES = {")": "(", "]": "[", "}": "{"}


@dataclass(frozen=True, slots=True)
class Site:
    """Where a completion goes: the text left of the cursor on its line, and the rest of the line."""

    before: str
    rest: str


Filter = Callable[[str, Site], str]


def without_fence(text: str, site: Site) -> str:
    """The code inside a Markdown fence that wraps the whole answer."""
    found = _FENCE.match(text)
    return found.group(2) if found else text


def without_trailing_blanks(text: str, site: Site) -> str:
    """No white space at the end; nothing at all if there is nothing else."""
    return text.rstrip()


def without_doubled_closers(text: str, site: Site) -> str:
    """Drop closing brackets at the end that stand right of the cursor already.

    Only those that close nothing opened in `text` itself: with `)` behind the cursor `x)` becomes `x`, and
    `f(x)` stays.
    """
    unmatched = _unmatched_closers(text)
    for size in range(min(len(text), len(site.rest)), 0, -1):
        start = len(text) - size
        if text.endswith(site.rest[:size]) and unmatched.issuperset(range(start, len(text))):
            return text[:start]
    return text


def _unmatched_closers(text: str) -> set[int]:
    """Indexes of the brackets in `text` that close nothing opened in it."""
    opened: list[str] = []
    unmatched: set[int] = set()
    for index, character in enumerate(text):
        if character in _CLOSES.values():
            opened.append(character)
        elif character in _CLOSES:
            if opened and opened[-1] == _CLOSES[character]:
                opened.pop()
            else:
                unmatched.add(index)
    return unmatched


PIPELINE: list[Filter] = [without_fence, without_trailing_blanks, without_doubled_closers]


def apply(text: str, site: Site, pipeline: list[Filter] | None = None) -> str:
    """`text` after every filter of `pipeline` (the standard one by default)."""
    for each in PIPELINE if pipeline is None else pipeline:
        text = each(text, site)
    return text
