"""What must never be in a prompt: values become markers, and every one is listed.

A cheap pass over the whole text finds the places worth a look: long runs of letters and digits with a digit among them,
and the words of passwords. Only those places are scanned.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .secret_files import forbidden
from .secret_rules import Span, armoured, in_addresses, named, shaped

__all__ = ["MARKER", "Finding", "Redacted", "forbidden", "redact"]

MARKER = re.compile(r"\[redacted: (?P<kind>[a-z0-9 ]+)\]")
"""A value that was taken out. Whoever edits text must refuse to write one of these over a real value."""

Place = tuple[int, int]

_RUN = 16
_BEFORE_SHAPE, _AFTER_SHAPE = 48, 100
_AROUND = 160
_NAME = 60
_WORDS = (b"passw", b"secret", b"passphrase", b"pwd")
_NEAR = (b"key", b"token", b"cred", b"auth")
_PREFIXES = ("glpat-", "AIza", "xapp-", "SG.")
_BREAKS = bytes(char not in (string.ascii_letters + string.digits).encode() for char in range(256))
_DIGITS = bytes(chr(char) in string.digits for char in range(256))


@dataclass(frozen=True, slots=True)
class Finding:
    """A secret that was taken out: what it looks like, and the line (from 1) it starts in."""

    kind: str
    line: int
    path: str


@dataclass(frozen=True, slots=True)
class Redacted:
    """Text whose secrets are markers. It has as many lines as the original."""

    text: str
    findings: tuple[Finding, ...]


def redact(text: str, path: str) -> Redacted:
    """Take secret values out of `text`, a file, diff or buffer of `path` (relative, posix).

    What is redacted stays as it is when it is redacted again.
    """
    findings: list[Finding] = []
    # A marker can bare a neighbour that had no word boundary before, so look until nothing is left.
    while spans := _apart(_found(text, path)):
        text, more = _marked(text, spans, path)
        findings += more
    return Redacted(text, tuple(sorted(findings, key=lambda finding: finding.line)))


def _marked(text: str, spans: list[Span], path: str) -> tuple[str, list[Finding]]:
    pieces: list[str] = []
    findings: list[Finding] = []
    position = 0
    line = 1
    for span in spans:
        before = text[position : span.start]
        line += before.count("\n")
        lines = text.count("\n", span.start, span.end)
        findings.append(Finding(span.kind, line, path))
        pieces += [before, f"[redacted: {span.kind}]", "\n" * lines]
        line += lines
        position = span.end
    pieces.append(text[position:])
    return "".join(pieces), findings


def _found(text: str, path: str) -> Iterator[Span]:
    if "PRIVATE KEY" in text:
        yield from armoured(text)
    if "://" in text and "@" in text:
        yield from in_addresses(text)
    # One byte a character, so that places in the bytes are places in the text.
    raw = text.encode("latin-1", "replace")
    small = raw.lower()
    runs, words = _candidates(text, raw, small)
    for start, end in _windows(text, runs, _BEFORE_SHAPE, _AFTER_SHAPE):
        yield from shaped(text, start, end)
    for start, end in _windows(text, words, _AROUND, _AROUND):
        yield from named(text, small, start, end, path)


def _apart(spans: Iterator[Span]) -> list[Span]:
    """Spans in order without overlaps: the earlier start wins, then the longer."""
    kept: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if not kept or span.start >= kept[-1].end:
            kept.append(span)
    return kept


def _candidates(text: str, raw: bytes, small: bytes) -> tuple[list[Place], list[Place]]:
    """Where a token's shape, and where a named value, is worth a scan."""
    runs = _long_runs(raw)
    words = list(_words(small))
    for start, end in runs:
        before = small[max(0, start - _NAME) : start]
        if any(word in before for word in _NEAR):
            words.append((start, end))
    runs += _prefixes(text)
    return sorted(runs), sorted(words)


def _windows(text: str, places: list[Place], before: int, after: int) -> list[Place]:
    """The surroundings of places, kept within their lines, in order and apart."""
    merged: list[Place] = []
    for start, end in places:
        low, high = max(0, start - before), min(len(text), end + after)
        begin = text.rfind("\n", low, start) + 1 or low
        stop = text.find("\n", end, high)
        stop = high if stop < 0 else stop
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((begin, stop))
    return merged


def _long_runs(raw: bytes) -> list[Place]:
    breaks = np.flatnonzero(np.frombuffer(raw.translate(_BREAKS), dtype=np.bool_))
    edges = np.concatenate(([-1], breaks, [len(raw)]))
    long = np.flatnonzero(np.diff(edges) > _RUN)
    if not long.size:
        return []
    starts, ends = edges[long] + 1, edges[long + 1]
    digits = np.flatnonzero(np.frombuffer(raw.translate(_DIGITS), dtype=np.bool_))
    with_digit = np.searchsorted(digits, starts) < np.searchsorted(digits, ends)
    return list(zip(starts[with_digit].tolist(), ends[with_digit].tolist(), strict=True))


def _words(lowered: bytes) -> Iterator[Place]:
    for word in _WORDS:
        at = lowered.find(word)
        while at >= 0:
            yield at, at + len(word)
            at = lowered.find(word, at + len(word))


def _prefixes(text: str) -> Iterator[Place]:
    for prefix in _PREFIXES:
        at = text.find(prefix)
        while at >= 0:
            yield at, at + len(prefix)
            at = text.find(prefix, at + len(prefix))
