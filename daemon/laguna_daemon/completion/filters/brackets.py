"""Closing brackets that stand right of the cursor already."""

from __future__ import annotations

from laguna_daemon.completion.filters.site import Site

_CLOSES = {")": "(", "]": "[", "}": "{"}


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
