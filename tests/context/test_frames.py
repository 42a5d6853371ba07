"""Frames cannot be left, and stand on lines of their own."""

from __future__ import annotations

import hashlib
import html

from hypothesis import example, given
from hypothesis import strategies as st

from laguna_context.frames import change, document, escape, extra, short_id, task, text_hash

PATHS = st.text(min_size=1, max_size=20)


def test_a_document_is_framed_as_agreed() -> None:
    name = hashlib.sha256(b"x = 1\n").hexdigest()[:8]
    frame = document("src/a.py", "x = 1\n")
    assert frame.text == f'<document path="src/a.py" id="{name}">\nx = 1\n\n</document {name}>\n'
    assert frame.id == name


def test_a_text_with_our_closing_line_gets_a_longer_id() -> None:
    text = "anything"
    digest = text_hash(text)
    assert short_id(f"</document {digest[:8]}>", digest, "document") == digest[:9]
    assert short_id(f"</change {digest[:8]}>", digest, "document") == digest[:8]


@given(PATHS, st.text())
@example('a"b<c>&\n\u2028.py', "text")
@example("odd\udc80name", "")
def test_any_frame_opens_with_an_angle_and_ends_on_one_newline(path: str, text: str) -> None:
    for frame in (document(path, text), change(1, path, "whole", text), extra(path, text)):
        assert frame.text.startswith("<")
        assert frame.text.endswith(f"{frame.id}>\n")
        opening = frame.text.split("\n", 1)[0]
        assert opening.endswith('">')
        assert frame.text.count(f" {frame.id}>\n") == 1 or f" {frame.id}>\n" in text


@given(PATHS.filter(lambda path: not any(0xD800 <= ord(c) <= 0xDFFF for c in path)))
def test_an_escaped_path_is_one_line_and_comes_back(path: str) -> None:
    escaped = escape(path)
    assert not set(escaped) & set('<>"\n\r\u2028')
    if not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in path):
        assert html.unescape(escaped) == path


def test_names_that_differ_in_undecodable_bytes_stay_apart() -> None:
    assert escape("a\udc80") != escape("a\udc81")


def test_a_change_says_what_it_replaces() -> None:
    frame = change(7, "a.py", "diff", "@@ -1 +1 @@\n-a\n+b", base="0011aabb")
    assert frame.text.startswith('<change n="7" path="a.py" kind="diff" base="0011aabb" id="')
    moved = change(8, "a.py", "renamed", base="0011aabb", to="b.py")
    assert moved.text.startswith('<change n="8" path="a.py" kind="renamed" to="b.py" base="0011aabb"')
    assert change(9, "a", "unsaved", "@@", base="1", diff=True).text.count('form="diff"') == 1


def test_a_task_ends_on_one_newline_behind_its_last_word() -> None:
    assert task("  why?\n\n") == "<task>\nwhy?\n"
    assert task(" \n") == "<task>\n"
