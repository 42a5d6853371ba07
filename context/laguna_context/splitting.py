"""One regular expression for a chain of pre-tokenizers, so that the fast path can cut text as the reference does.

A `tokenizer.json` may cut text in several passes (newlines first, then words; digits first, then words). tiktoken
makes one pass with one expression. Each chain known here is rewritten into the single expression with the same cuts;
a chain that is not known gives None, and the reference tokenizer is used. Every rewriting is checked again at load
(see `tokens`), so a mistake here costs speed, never exactness.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

# The expression behind ByteLevel(use_regex=True), as published with GPT-2.
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"

# A newline run opens a piece and takes the following text along (MergedWithNext).
NEWLINE_RUN = r"(?:\r?\n)+(?!\r?\n)"

# One white-space character of the piece at hand: a newline would already belong to the next piece.
_INNER_SPACE = r"(?:(?!\r\n)[^\S\n])"

# Alternatives of the second pass that look across a newline, and what they become when newlines were cut before.
_AFTER_NEWLINES: Mapping[str, str] = {
    r"\s*[\r\n]+": r"(?:\r?\n)+(?:[^\S\n]*\r(?!\n))?|[^\S\n]*\r(?!\n)",
    r"\s*[\r\n]": r"(?:\r?\n)+(?:[^\S\n]*\r(?!\n))?|[^\S\n]*\r(?!\n)",
    r"\s+(?!\S)": rf"{_INNER_SPACE}+(?!\S)",
    r"\s+": rf"{_INNER_SPACE}+",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*": r" ?[^\s\p{L}\p{N}]+(?:\r(?!\n))*",
    r" ?[^\s\p{L}\p{N}]+[\r\n/]*": r" ?[^\s\p{L}\p{N}]+(?:/|\r(?!\n))*",
}

# The same when every digit was cut out before.
_AFTER_DIGITS: Mapping[str, str] = {
    r" ?\p{N}+": r"\p{N}",
    r"\p{N}+": r"\p{N}",
    r"\p{N}{1,3}": r"\p{N}",
    r"\s+(?!\S)": r"\s+(?:(?=\p{N})|(?!\S))",
}

# Alternatives that neither cross a newline nor a digit, whatever was cut before.
_NEUTRAL = re.compile(
    r"""
    (?:\(\?i:[^()]*\))                               # contractions, any case
  | (?:'(?:s|t|re|ve|m|ll|d))                        # contractions
  | (?:'\(\?i:\[sdmt\]\|ll\|ve\|re\))                # contractions, o200k spelling
  | (?:\[\^\\r\\n\\p\{L\}\\p\{N\}\]\?\+?\\p\{L\}\+)  # an optional sign, then letters
  | (?:[ ]\?\\p\{L\}\+)                              # an optional blank, then letters
  | (?:\\p\{N\}(?:\{1,3\}|\+)?)                      # digits
  | (?:[ ]\?\\p\{N\}\+)
  | (?:[ ]\?\[\^\\s\\p\{L\}\\p\{N\}\]\+)             # an optional blank, then signs
    """,
    re.VERBOSE,
)


def compose(pre_tokenizer: Mapping[str, Any] | None) -> str | None:
    """The one expression with the cuts of this pre-tokenizer chain, or None where none is known.

    `pre_tokenizer` is that part of a `tokenizer.json`. The chain must end in ByteLevel without a prefix space.
    """
    if pre_tokenizer is None:
        return None
    chain = pre_tokenizer.get("pretokenizers", [pre_tokenizer])
    *cuts, last = chain
    if last.get("type") != "ByteLevel" or last.get("add_prefix_space", True):
        return None
    if last.get("use_regex", True):
        cuts = [*cuts, {"type": "Split", "pattern": {"Regex": GPT2}, "behavior": "Isolated"}]
    return _compose_cuts(cuts)


def _compose_cuts(cuts: Sequence[Mapping[str, Any]]) -> str | None:
    if not cuts:
        return None
    pattern = _isolated(cuts[-1])
    for cut in reversed(cuts[:-1]):
        if pattern is None:
            return None
        if cut.get("type") == "Digits" and cut.get("individual_digits"):
            pattern = _rewrite(pattern, _AFTER_DIGITS)
        elif _is_newline_cut(cut):
            pattern = _rewrite(pattern, _AFTER_NEWLINES)
        else:
            return None
    return pattern


def _isolated(cut: Mapping[str, Any]) -> str | None:
    pattern = cut.get("pattern", {})
    if cut.get("type") != "Split" or cut.get("behavior") != "Isolated" or cut.get("invert", False):
        return None
    regex = pattern.get("Regex")
    return regex if isinstance(regex, str) else None


def _is_newline_cut(cut: Mapping[str, Any]) -> bool:
    return (
        cut.get("type") == "Split"
        and cut.get("pattern", {}).get("Regex") == NEWLINE_RUN
        and cut.get("behavior") == "MergedWithNext"
        and not cut.get("invert", False)
    )


def _rewrite(pattern: str, table: Mapping[str, str]) -> str | None:
    out = []
    for alternative in alternatives(pattern):
        if alternative in table:
            out.append(table[alternative])
        elif _NEUTRAL.fullmatch(alternative) or (table is _AFTER_DIGITS and alternative in _AFTER_NEWLINES):
            out.append(alternative)
        else:
            return None
    return "|".join(out)


def alternatives(pattern: str) -> list[str]:
    """The top-level alternatives of a regular expression, in order."""
    out, depth, in_class, start, index = [], 0, False, 0, 0
    while index < len(pattern):
        char = pattern[index]
        if char == "\\":
            index += 1
        elif in_class:
            in_class = char != "]"
        elif char == "[":
            in_class = True
        elif char in "()":
            depth += 1 if char == "(" else -1
        elif char == "|" and depth == 0:
            out.append(pattern[start:index])
            start = index + 1
        index += 1
    return [*out, pattern[start:]]
