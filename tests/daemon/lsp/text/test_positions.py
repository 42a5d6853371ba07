"""Columns under the three encodings, and what ends a line."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laguna_daemon.lsp.text.positions import (
    Encoding,
    content_length,
    has_surrogates,
    join_surrogates,
    replace_surrogates,
    split_lines,
    to_column,
    to_index,
)

TEXT = st.text(alphabet="ab\n\r\x0b\x0c\x1c\x85\u2028é漢😋")
LINE = st.text(alphabet="ab\x0c\u2028é漢😋")


@given(TEXT)
def test_lines_join_to_the_text_and_only_the_last_has_no_ending(text):
    lines = split_lines(text)
    assert "".join(lines) == text
    assert all(line.endswith(("\n", "\r")) for line in lines[:-1])
    assert not lines[-1].endswith(("\n", "\r"))
    assert len(lines) == 1 + len(re.findall(r"\r\n|\r|\n", text))


@given(LINE, st.sampled_from(["", "\n", "\r", "\r\n"]))
def test_content_length_leaves_the_ending_out(line, ending):
    assert content_length(line + ending) == len(line)


@given(LINE, st.sampled_from(["", "\n", "\r\n"]), st.sampled_from(list(Encoding)))
def test_every_index_survives_the_way_there_and_back(line, ending, encoding):
    for index in range(len(line) + 1):
        column = to_column(line + ending, index, encoding)
        assert to_index(line + ending, column, encoding) == index


@given(LINE, st.integers(-3, 60), st.sampled_from(list(Encoding)))
def test_any_column_is_clamped_into_the_line(line, column, encoding):
    index = to_index(line + "\r\n", column, encoding)
    assert 0 <= index <= len(line)
    assert to_column(line, index, encoding) <= max(column, 0)


@pytest.mark.parametrize(
    ("encoding", "columns"),
    [
        (Encoding.UTF8, [0, 0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4, 4]),
        (Encoding.UTF16, [0, 1, 2, 3, 3, 4, 4]),
        (Encoding.UTF32, [0, 1, 2, 3, 4, 4]),
    ],
)
def test_columns_of_characters_of_every_width(encoding, columns):
    line = "éé漢😋"
    assert [to_index(line + "\n", column, encoding) for column in range(len(columns))] == columns


def test_surrogate_halves():
    high, low = "\ud83d", "\ude0b"
    assert has_surrogates("a" + low) and not has_surrogates("a😋")
    assert join_surrogates(f"{low}{high}{low}{high}") == f"{low}😋{high}"
    assert replace_surrogates(f"a{high}b") == "a\ufffdb"
    line = f"{high}a{low}"
    assert [to_index(line, column, Encoding.UTF16) for column in range(4)] == [0, 1, 2, 3]
