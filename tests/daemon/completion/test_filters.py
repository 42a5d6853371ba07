"""Golden cases of each rule that is applied to a completion."""

from __future__ import annotations

import pytest

from laguna_daemon.completion.filters import (
    Site,
    apply,
    without_doubled_closers,
    without_fence,
    without_trailing_blanks,
)


def site(rest: str = "", before: str = "") -> Site:
    return Site(before=before, rest=rest)


@pytest.mark.parametrize(
    ("text", "rest", "expected"),
    [
        ("x)", ")", "x"),
        ("x))", "))", "x"),
        ("x))", ")", "x)"),
        ("f(x)", ")", "f(x)"),
        ("f(x))", ")", "f(x)"),
        ("x)]", ")];", "x"),
        ("x", ")", "x"),
        ("x)", "", "x)"),
        ("x)", "]", "x)"),
        (")", ")", ""),
        ("return 1;\n  }\n}", "", "return 1;\n  }\n}"),
        ("[1, 2])", ")", "[1, 2]"),
        ("x)", "):", "x"),
    ],
)
def test_brackets_right_of_the_cursor_are_not_doubled(text, rest, expected):
    assert without_doubled_closers(text, site(rest)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("```python\nx = 1\n```", "x = 1"),
        ("```\n    x = 1\n```\n", "    x = 1"),
        ("```python\nx = 1", "x = 1"),
        ("~~~\nx\n~~~", "x"),
        ("````md\n```\ncode\n```\n````", "```\ncode\n```"),
        ("x = '```'", "x = '```'"),
    ],
)
def test_a_fence_around_everything_goes(text, expected):
    assert without_fence(text, site()) == expected


@pytest.mark.parametrize(("text", "expected"), [("x\n\n", "x"), ("  \n", ""), ("\n    x", "\n    x")])
def test_trailing_white_space_goes(text, expected):
    assert without_trailing_blanks(text, site()) == expected


def test_the_pipeline_applies_every_rule_in_order():
    assert apply("```\nx)\n```", site(")")) == "x"
    assert apply("x", site(), [lambda text, at: text + "1", lambda text, at: text + "2"]) == "x12"
