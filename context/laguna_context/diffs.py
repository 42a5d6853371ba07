"""Line diffs, short and quick: the form in which a small change to a large file enters the overlay."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

_CONTEXT = 3

# difflib's cost grows with the product of both sides; past this many line pairs the middle is one hunk.
_PAIRS = 250_000

_NO_NEWLINE = "\\ No newline at end of file"

Opcode = tuple[str, int, int, int, int]


def lines_of(text: str) -> list[str]:
    """Lines with their newline; only `\\n` ends a line, so that every other character stays as it is."""
    out = text.split("\n")
    tail = out.pop()
    lines = [line + "\n" for line in out]
    return [*lines, tail] if tail else lines


def unified(old: str, new: str) -> str:
    """Hunks that turn `old` into `new`, three lines of context, without file headers and a last newline."""
    a, b = lines_of(old), lines_of(new)
    out: list[str] = []
    for group in _groups(_opcodes(a, b)):
        first, last = group[0], group[-1]
        out.append(f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@")
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                out += _marked(" ", a[i1:i2])
            else:
                out += _marked("-", a[i1:i2])
                out += _marked("+", b[j1:j2])
    return "\n".join(out)


def _marked(sign: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        if line.endswith("\n"):
            yield sign + line[:-1]
        else:
            yield sign + line
            yield _NO_NEWLINE


def _range(start: int, end: int) -> str:
    length = end - start
    first = start + 1 if length else start
    return f"{first}" if length == 1 else f"{first},{length}"


def _opcodes(a: Sequence[str], b: Sequence[str]) -> list[Opcode]:
    """Edit operations; what both share at the start and at the end is cut off before comparing."""
    low = 0
    limit = min(len(a), len(b))
    while low < limit and a[low] == b[low]:
        low += 1
    high = 0
    while high < limit - low and a[-1 - high] == b[-1 - high]:
        high += 1
    i2, j2 = len(a) - high, len(b) - high
    out: list[Opcode] = [("equal", 0, low, 0, low)]
    i1 = j1 = low
    for i, j in [*_anchors(a[low:i2], b[low:j2], low), (i2, j2)]:
        out += _between(a, b, i1, i, j1, j)
        if i < i2:
            out.append(("equal", i, i + 1, j, j + 1))
        i1, j1 = i + 1, j + 1
    return _merged([*out, ("equal", i2, len(a), j2, len(b))])


def _between(a: Sequence[str], b: Sequence[str], i1: int, i2: int, j1: int, j2: int) -> list[Opcode]:
    if i1 == i2 and j1 == j2:
        return []
    if i1 == i2 or j1 == j2 or (i2 - i1) * (j2 - j1) > _PAIRS:
        return [("replace", i1, i2, j1, j2)]
    matcher = SequenceMatcher(None, a[i1:i2], b[j1:j2], autojunk=False)
    return [(tag, w + i1, x + i1, y + j1, z + j1) for tag, w, x, y, z in matcher.get_opcodes()]


def _anchors(a: Sequence[str], b: Sequence[str], offset: int) -> list[tuple[int, int]]:
    """Lines that stand exactly once on both sides, the longest chain of them that keeps its order (patience diff,
    Bram Cohen): long texts fall into short pieces between them."""
    once_a, once_b = _once(a), _once(b)
    pairs = [(i, once_b[line]) for line, i in once_a.items() if line in once_b]
    tops: list[int] = []
    chain: list[tuple[int, int, int]] = []  # pair, and the index of the pair before it
    ends: list[int] = []
    for i, j in pairs:
        at = bisect_left(tops, j)
        before = ends[at - 1] if at else -1
        tops[at : at + 1] = [j]
        ends[at : at + 1] = [len(chain)]
        chain.append((i, j, before))
    out: list[tuple[int, int]] = []
    index = ends[-1] if ends else -1
    while index >= 0:
        i, j, index = chain[index]
        out.append((i + offset, j + offset))
    return out[::-1]


def _once(lines: Sequence[str]) -> dict[str, int]:
    counts = Counter(lines)
    return {line: index for index, line in enumerate(lines) if counts[line] == 1}


def _merged(codes: list[Opcode]) -> list[Opcode]:
    """Neighbouring runs of equal lines joined, so that a hunk's context is counted over all of them."""
    out: list[Opcode] = []
    for code in codes:
        if out and out[-1][0] == code[0] == "equal":
            out[-1] = ("equal", out[-1][1], code[2], out[-1][3], code[4])
        else:
            out.append(code)
    return out


def _groups(codes: list[Opcode]) -> Iterator[list[Opcode]]:
    """Operations with at most three equal lines around each change; near changes share a hunk."""
    group: list[Opcode] = []
    for code in codes:
        tag, i1, i2, j1, _ = code
        if tag != "equal":
            group.append(code)
            continue
        length = i2 - i1
        if any(code[0] != "equal" for code in group):
            if length <= 2 * _CONTEXT:
                group.append(code)
                continue
            group.append((tag, i1, i1 + _CONTEXT, j1, j1 + _CONTEXT))
            yield _trimmed(group)
            group = []
        keep = min(length, _CONTEXT)
        group = [(tag, i2 - keep, i2, code[4] - keep, code[4])]
    if any(code[0] != "equal" for code in group):
        yield _trimmed(group)


def _trimmed(group: list[Opcode]) -> list[Opcode]:
    tag, i1, i2, j1, _ = group[-1]
    if tag == "equal" and i2 - i1 > _CONTEXT:
        group = [*group[:-1], (tag, i1, i1 + _CONTEXT, j1, j1 + _CONTEXT)]
    return [code for code in group if code[2] > code[1] or code[4] > code[3]]
