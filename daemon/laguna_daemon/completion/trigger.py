"""Whether to suggest anything at all by itself."""

from __future__ import annotations

from collections.abc import Mapping

_FOLLOWS = frozenset(")]}\"'`>;,: \t")
"""What editors put behind the cursor by themselves, and what ends a line anyway."""


def wanted(before: str, rest: str, language: str, languages: Mapping[str, bool]) -> bool:
    """Whether an automatic request is worth an answer; one that the user makes always is.

    ``before`` and ``rest`` are the cursor's line left and right of it. Not in a language that is switched off, not
    with text right of the cursor, and not in the middle of a word.
    """
    if not languages.get(language, languages.get("*", True)):
        return False
    if rest and (rest[0].isalnum() or rest[0] == "_") and before and (before[-1].isalnum() or before[-1] == "_"):
        return False
    return all(character in _FOLLOWS for character in rest)
