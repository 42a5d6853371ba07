"""The text around a cursor, cut at coarse anchors: while one types, the cut stays where it is.

A prompt holds the window's suffix before its prefix, so a keystroke changes the prompt at its end alone, and the
engine finds all but the last block in its cache, until the prefix has grown by a whole step.
"""

from __future__ import annotations

from collections.abc import Sequence

LINE_STEP = 32


def lines_before(lines: Sequence[str], line: int, index: int, chars: int) -> str:
    """Text before (``line``, ``index``), about ``chars`` characters, from a line whose number is a multiple of 32.

    Within lines that are longer than that, the last ``chars`` characters.
    """
    first, size = line, index
    while first > 0 and size + len(lines[first - 1]) <= chars:
        first -= 1
        size += len(lines[first])
    if first > 0:
        anchored = -(-first // LINE_STEP) * LINE_STEP
        first = anchored if anchored <= line else first
    text = "".join([*lines[first:line], lines[line][:index]])
    return text[-chars:] if chars else ""


def lines_after(lines: Sequence[str], line: int, index: int, chars: int) -> str:
    """Text behind (``line``, ``index``): whole lines, at most ``chars`` characters in all."""
    parts = [lines[line][index:]]
    size = len(parts[0])
    for text in lines[line + 1 :]:
        size += len(text)
        if size > chars:
            break
        parts.append(text)
    return "".join(parts)[:chars]


def tail(text: str, chars: int) -> str:
    """At most ``chars`` characters from the end, from a line start; the cut moves in steps of a quarter of that."""
    if len(text) <= chars:
        return text
    if chars <= 0:
        return ""
    step = max(1, chars // 4)
    start = -(-(len(text) - chars) // step) * step
    newline = text.find("\n", start - 1)
    start = newline + 1 if 0 <= newline < len(text) - 1 else len(text) - chars
    return text[start:]


def head(text: str, chars: int) -> str:
    """At most ``chars`` characters from the start, up to a line end where there is one."""
    if len(text) <= chars:
        return text
    cut = text[:chars]
    newline = cut.rfind("\n")
    return cut[: newline + 1] if newline >= 0 else cut
