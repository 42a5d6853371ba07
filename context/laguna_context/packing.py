"""Which files are shown in full, which by path, which as a count in their folder: a budget of tokens spent by rank."""

from __future__ import annotations

import heapq
import re
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from laguna_context.ignoring import Globs
from laguna_context.tokens import Ids

Tier = Literal["full", "path", "folder"]

LISTING_SHARE = 0.08
"""Largest share of a snapshot that names of files not shown in full may take."""

# No tokenizer in use spends fewer tokens than one per 8 bytes on source text; a file that must be too long is not read.
_MOST_BYTES_PER_TOKEN = 8
BYTES_PER_TOKEN = 3.0
_FRAME_TOKENS = 24

# A file this long (bytes) ranks one kind lower: the same tokens show several shorter ones.
_LONG = 40_000

_GENERATED = re.compile(
    r"(?:^|/)(?:vendor|third_party|node_modules|dist|build|generated|__snapshots__|fixtures?|testdata)/"
    r"|\.min\.(?:js|css)$|(?:^|[-.])lock(?:\.json|\.yaml)?$|\.(?:po|pot|svg|csv|tsv|snap|map|lock|sum|pb\.go|ipynb)$"
)
_TEST = re.compile(r"(?:^|/)(?:tests?|spec|testing|benchmarks?)/|(?:^|/)(?:test_[^/]*|conftest)\.py$|[._]test\.\w+$")
_SOURCE = re.compile(
    r"\.(?:py|pyi|rs|go|c|h|cc|cpp|hpp|cs|java|kt|swift|rb|php|js|jsx|ts|tsx|mjs|vue|lua|sh|ex|exs|erl|hs|ml|scala|"
    r"clj|zig|nim|sql|proto|cu|m|mm|pl|r|jl|dart|el|vim)$",
    re.IGNORECASE,
)
_FIRST = re.compile(
    r"^(?:README[^/]*|pyproject\.toml|package\.json|Cargo\.toml|go\.mod|setup\.(?:py|cfg)|Makefile|CMakeLists\.txt)$",
    re.IGNORECASE,
)
_DOCUMENTATION = re.compile(r"\.(?:md|rst|txt|adoc)$", re.IGNORECASE)


@dataclass(frozen=True)
class Packing:
    """`full`: path -> ids of its frame, in rank order. `lines`: what stands for all others, one a line. `tiers`: the
    tier of every path that is not full."""

    full: dict[str, Ids]
    lines: tuple[str, ...]
    tiers: Mapping[str, Tier] = field(default_factory=dict)


def importance(
    order: Sequence[str], weights: Mapping[str, float], first: Collection[str] = ()
) -> Callable[[str, int], tuple[float, ...]]:
    """A sort key of (path, bytes): most worth showing first, and of two alike the shorter.

    `order` are globs of the user, first ones first; `weights` are of change; `first` are paths that come before any
    rank.
    """
    globs = [Globs((pattern,)) for pattern in order]

    def key(path: str, size: int) -> tuple[float, ...]:
        wish = -1 if path in first else next((i for i, glob in enumerate(globs) if glob.matches(path)), len(globs))
        length = min(2.0, size / _LONG)
        return (wish, _kind(path) + length - min(1.5, weights.get(path, 0.0)), path.count("/"))

    return key


def generated(path: str) -> bool:
    """Whether a path looks like something no one writes by hand: locks, vendored and built files, pictures as text."""
    return _GENERATED.search(path) is not None


def _kind(path: str) -> float:
    if _FIRST.search(path):
        return 0.0
    if generated(path):
        return 6.0
    if _TEST.search(path):
        return 3.0
    if _SOURCE.search(path):
        return 1.0
    return 2.5 if _DOCUMENTATION.search(path) else 3.5


def pack(
    candidates: Sequence[tuple[str, int]],
    others: Iterable[str],
    budget: int,
    ids_of: Callable[[Sequence[str]], Mapping[str, Ids]],
    count: Callable[[str], int],
    first: Collection[str] = (),
) -> Packing:
    """Spend `budget` tokens. `candidates`: (path, bytes) in rank order; `others`: paths that can only be named.

    Files of `first` do not leave room for names. `ids_of` gives the ids of the frames of readable files; `count`
    counts tokens of a text. Files are asked for in rank order until the budget is spent, so a tree of any size
    costs what fits.
    """
    everything = sum(size for _, size in candidates) / BYTES_PER_TOKEN + _FRAME_TOKENS * len(candidates)
    names = int(sum(len(path) + 1 for path, _ in candidates) / BYTES_PER_TOKEN) + _FRAME_TOKENS
    reserve = 0 if everything < budget * 0.8 else min(int(budget * LISTING_SHARE), names)
    full = dict(_fill([item for item in candidates if item[0] in first], budget, ids_of))
    room = budget - reserve - sum(ids.size for ids in full.values())
    full |= _fill([item for item in candidates if item[0] not in first], room, ids_of)
    rest = sorted({path for path, _ in candidates if path not in full} | set(others))
    room = budget - sum(ids.size for ids in full.values())
    lines, tiers = name_rest(rest, min(room, max(reserve, int(budget * LISTING_SHARE))), count)
    return Packing(full, lines, tiers)


def _fill(
    candidates: Sequence[tuple[str, int]], room: int, ids_of: Callable[[Sequence[str]], Mapping[str, Ids]]
) -> Iterator[tuple[str, Ids]]:
    waiting = deque(candidates)
    misses = 0
    while waiting and room > _FRAME_TOKENS and misses < 256:
        batch: list[str] = []
        hoped = 0.0
        while waiting and len(batch) < 64 and hoped < room:
            path, size = waiting.popleft()
            if size / _MOST_BYTES_PER_TOKEN <= room:
                batch.append(path)
                hoped += size / BYTES_PER_TOKEN + _FRAME_TOKENS
        found = ids_of(batch)
        for path in batch:
            ids = found.get(path)
            if ids is None:
                continue
            if ids.size <= room:
                room -= ids.size
                yield path, ids
            else:
                misses += 1


def name_rest(paths: Sequence[str], room: int, count: Callable[[str], int]) -> tuple[tuple[str, ...], dict[str, Tier]]:
    """One line per path, or per folder with the number of files in it, within `room` tokens.

    Folders are opened from the top while the lines fit, small ones first.
    """
    size = room * BYTES_PER_TOKEN
    for _ in range(6):
        lines, tiers = _open_folders(paths, size)
        used = count("\n".join(lines)) if lines else 0
        if used + _FRAME_TOKENS <= room:
            return lines, tiers
        size *= 0.9 * room / (used + _FRAME_TOKENS)
    return (), dict.fromkeys(paths, "folder")


def _open_folders(paths: Sequence[str], size: float) -> tuple[tuple[str, ...], dict[str, Tier]]:
    """Lines of at most `size` characters in all."""
    below: Counter[str] = Counter()
    inside: dict[str, list[str]] = {}
    for path in paths:
        folder = path.rpartition("/")[0]
        inside.setdefault(folder, []).append(path)
        while True:
            below[folder] += 1
            if not folder:
                break
            folder = folder.rpartition("/")[0]
    children: dict[str, list[str]] = {}
    for folder in below:
        if folder:
            children.setdefault(folder.rpartition("/")[0], []).append(folder)
    opened: set[str] = set()
    queue = [(0, 0, "")] if below else []
    while queue:
        folder = heapq.heappop(queue)[2]
        cost = sum(len(path) + 1 for path in inside.get(folder, ()))
        cost += sum(len(child) + 12 for child in children.get(folder, ())) - len(folder) - 12
        if cost > size:
            continue
        size -= max(cost, 0)
        opened.add(folder)
        for child in children.get(folder, ()):
            heapq.heappush(queue, (child.count("/"), below[child], child))
    return _lines(below, inside, children, opened)


def _lines(
    below: Mapping[str, int],
    inside: Mapping[str, Sequence[str]],
    children: Mapping[str, Sequence[str]],
    opened: set[str],
) -> tuple[tuple[str, ...], dict[str, Tier]]:
    lines: list[str] = []
    tiers: dict[str, Tier] = {}

    def close(folder: str) -> None:
        tiers.update(dict.fromkeys(inside.get(folder, ()), "folder"))
        for child in children.get(folder, ()):
            close(child)

    for folder in below:
        if folder in opened:
            lines += inside.get(folder, ())
            tiers.update(dict.fromkeys(inside.get(folder, ()), "path"))
        elif not folder or folder.rpartition("/")[0] in opened:
            lines.append(f"{folder or '.'}/ ({below[folder]} files)")
            close(folder)
    return tuple(sorted(lines)), tiers
