"""Incremental changes against a slow oracle that scans the whole text for every position."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laguna_daemon.completion import window
from laguna_daemon.lsp.text.documents import Change, Document, Documents, Place
from laguna_daemon.lsp.text.positions import Encoding

ENCODINGS = list(Encoding)
# Line endings, everything str.splitlines() would wrongly take for one, and characters of every width.
ALPHABET = "ab \n\r\x0b\x0c\x1c\x85\u2028\u2029éñ漢\u0301😋🎉"
TEXTS = st.text(alphabet=ALPHABET, max_size=30)
PLACES = st.builds(Place, st.integers(0, 8), st.integers(0, 14))
CHANGES = st.one_of(
    st.builds(Change, TEXTS, PLACES, PLACES), st.builds(Change, TEXTS, PLACES, PLACES), st.builds(Change, TEXTS)
)


def width(character: str, encoding: Encoding) -> int:
    if encoding is Encoding.UTF32:
        return 1
    if encoding is Encoding.UTF16:
        return 2 if ord(character) > 0xFFFF else 1
    return len(character.encode("utf-8"))


def line_spans(text: str) -> list[tuple[int, int]]:
    """(start, end without ending) of each line, found one character at a time."""
    spans = []
    start = at = 0
    while at < len(text):
        if text[at] in "\r\n":
            spans.append((start, at))
            at += 2 if text[at : at + 2] == "\r\n" else 1
            start = at
        else:
            at += 1
    return [*spans, (start, len(text))]


def offset(text: str, place: Place, encoding: Encoding) -> int:
    spans = line_spans(text)
    if place.line >= len(spans):
        return len(text)
    at, end = spans[place.line]
    left = place.column
    while at < end and left >= width(text[at], encoding):
        left -= width(text[at], encoding)
        at += 1
    return at


def replaced(text: str, change: Change, encoding: Encoding) -> str:
    if change.start is None or change.end is None:
        return change.text
    first, last = sorted((offset(text, change.start, encoding), offset(text, change.end, encoding)))
    return text[:first] + change.text + text[last:]


def opened(text: str, encoding: Encoding = Encoding.UTF16) -> Document:
    return Documents(encoding).open("file:///d", "text", 1, text)


@settings(max_examples=600, deadline=None)
@given(TEXTS, st.lists(CHANGES, max_size=8), st.sampled_from(ENCODINGS))
def test_changes_match_the_oracle(text, changes, encoding):
    document = opened(text, encoding)
    for version, change in enumerate(changes, 2):
        text = replaced(text, change, encoding)
        document.apply([change], version)
        assert document.text == text
        assert document.version == version
        ends = [(len(line), line.rstrip("\r\n")) for line in document.lines]
        assert len(ends) == len(line_spans(text))
        assert [content for _, content in ends] == [text[a:b] for a, b in line_spans(text)]


@settings(max_examples=300, deadline=None)
@given(TEXTS, PLACES, st.sampled_from(ENCODINGS), st.integers(0, 40))
def test_windows_match_the_oracle(text, place, encoding, limit):
    document = opened(text, encoding)
    at = offset(text, place, encoding)
    line, index = document.locate(place)
    before = window.lines_before(document.lines, line, index, limit)
    after = window.lines_after(document.lines, line, index, limit)
    assert text[:at].endswith(before) and text[at:].startswith(after)
    assert len(before) <= limit and len(after) <= limit


@settings(max_examples=300, deadline=None)
@given(TEXTS, PLACES, st.sampled_from(ENCODINGS))
def test_a_clamped_place_names_the_same_point(text, place, encoding):
    document = opened(text, encoding)
    clamped = document.place(*document.locate(place))
    assert document.locate(clamped) == document.locate(place)
    assert offset(text, clamped, encoding) == offset(text, place, encoding)


@settings(max_examples=200, deadline=None)
@given(st.lists(CHANGES, min_size=1, max_size=6), TEXTS, st.sampled_from(ENCODINGS))
def test_one_notification_with_many_changes_is_the_same_as_many(changes, text, encoding):
    at_once, one_by_one = opened(text, encoding), opened(text, encoding)
    at_once.apply(changes, 2)
    for change in changes:
        one_by_one.apply([change], 2)
    assert at_once.text == one_by_one.text


def test_form_feed_is_no_line_ending():
    document = opened("a\x0cb\nsecond line\n")
    document.apply([Change("THIRD", Place(1, 0), Place(1, 6))], 2)
    assert document.text == "a\x0cb\nTHIRD line\n"


def test_carriage_return_and_newline_that_meet_become_one_ending():
    document = opened("a\rb\nc")
    document.apply([Change("", Place(1, 0), Place(1, 1))], 2)
    assert document.lines == ["a\r\n", "c"]
    document.apply([Change("x", Place(1, 0), Place(1, 1))], 3)
    assert document.text == "a\r\nx"


def test_reversed_range_is_taken_as_meant():
    document = opened("abcdef")
    document.apply([Change("-", Place(0, 4), Place(0, 2))], 2)
    assert document.text == "ab-ef"


@pytest.mark.parametrize(
    ("column", "expected"), [(0, "x😋😋"), (1, "x😋😋"), (2, "😋x😋"), (3, "😋x😋"), (4, "😋😋x"), (9, "😋😋x")]
)
def test_utf16_columns_inside_pairs_are_clamped(column, expected):
    document = opened("😋\n😋😋\n")
    document.apply([Change("x", Place(1, column), Place(1, column))], 2)
    assert document.text == f"😋\n{expected}\n"


def test_halves_of_a_pair_are_joined_when_they_meet():
    high, low = json.loads('"\\ud83d"'), json.loads('"\\ude0b"')
    document = opened("ab")
    document.apply([Change(high, Place(0, 1), Place(0, 1))], 2)
    assert document.text == "a\ufffdb"  # valid Unicode at every moment
    document.apply([Change(low, Place(0, 2), Place(0, 2))], 3)
    assert document.text == "a😋b"
    assert document.place(0, 2) == Place(0, 3)


def test_documents_by_uri():
    documents = Documents()
    first = documents.open("file:///a%20b", "python", 1, "x")
    assert documents.get("file:///a%20b") is first
    assert documents.open("file:///a%20b", "python", 7, "y") is not first
    assert [document.text for document in documents] == ["y"]
    assert documents.close("file:///a%20b") is not None
    assert documents.close("file:///a%20b") is None
    assert len(documents) == 0


def test_an_edit_of_a_long_file_touches_only_its_lines():
    document = opened("".join(f"line {number}\n" for number in range(20_000)))
    untouched = document.lines[:9_999] + document.lines[10_000:]
    document.apply([Change("é", Place(9_999, 4), Place(9_999, 5))], 2)
    assert document.lines[9_999] == "lineé9999\n"
    kept = document.lines[:9_999] + document.lines[10_000:]
    assert all(new is old for new, old in zip(kept, untouched, strict=True))
