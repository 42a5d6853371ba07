"""Golden cases of each rule that is applied to a completion."""

from __future__ import annotations

import pytest

from laguna_daemon.completion import filters
from laguna_daemon.completion.filters import Site, apply, step_of


def site(rest: str = "", before: str = "", **more: object) -> Site:
    return Site(before=before, rest=rest, **more)


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
    assert filters.without_doubled_closers(text, site(rest)) == expected


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
    assert filters.without_fence(text, site()) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Here is the completed code:\n\n```python\nx = 1\n```\nIt sets x.", "x = 1"),
        ("Sure! Here you go:\nx = 1", "x = 1"),
        ("here = 1\n", "here = 1\n"),
        ("x = 1\n# here is the rest\n", "x = 1\n# here is the rest\n"),
    ],
)
def test_a_sentence_before_the_code_goes(text, expected):
    assert filters.without_preamble(text, site()) == expected


@pytest.mark.parametrize(
    ("text", "site_", "expected"),
    [
        ("This stands before the cursor:\nimport x\n", site(), ""),
        ("The code is written in JavaScript. The document", site(before=".actions "), ""),
        ("The code is:\n\n", site(), ""),
        ("This is a lamp.", site(before="# "), "This is a lamp."),
        ("This is a lamp.", site(above=('"""Lamp.', "")), "This is a lamp."),
        ("This is a lamp.", site(words=True), "This is a lamp."),
        ("This_is = 1", site(), "This_is = 1"),
        ("Theme(1)", site(), "Theme(1)"),
        ("It('is right', () => {", site(), "It('is right', () => {"),
    ],
)
def test_talk_about_the_code_is_no_code(text, site_, expected):
    assert filters.without_prose(text, site_) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("queue: list[int, int, int, int, int, int, int, int", "queue: list[int"),
        ("x = [0, 0, 0, 0, 0, 0, 0, 0]", "x = [0, 0, 0, 0, 0, 0, 0, 0]"),
        ("a a a a a", "a a a a a"),
        ("# --------------------", "# --------------------"),
    ],
)
def test_stutter_is_cut(text, expected):
    assert filters.without_stutter(text, site()).rstrip(", ") == expected


@pytest.mark.parametrize(("text", "expected"), [("a<CURSOR>b", "b"), ("a<CURSOR>", "a"), ("a", "a")])
def test_a_repeated_marker_ends_the_echo(text, expected):
    assert filters.without_marker(text, site()) == expected


@pytest.mark.parametrize(
    ("text", "before", "above", "expected"),
    [
        ("return x + 1", "    return ", (), "x + 1"),
        ("    return x + 1", "    return ", (), "x + 1"),
        ("def f(x):\n    return x", "    return ", ("def f(x):",), "x"),
        ("x = x + 1", "x", (), "x = x + 1"),
        ("value", "", ("value = 1",), "value"),
    ],
)
def test_what_stands_before_the_cursor_is_not_said_again(text, before, above, expected):
    assert filters.without_echo(text, site(before=before, above=above)) == expected


@pytest.mark.parametrize(
    ("text", "before", "indent", "expected"),
    [
        ("if x:\n    y()", "\t", "\t", "if x:\n\ty()"),
        ("if x:\n\t\ty()", "    ", "    ", "if x:\n        y()"),
        ("if x {\n\ty()\n}", "", "  ", "if x {\n  y()\n}"),
        ("a\n      b", "\t", "\t", "a\n\t  b"),
        ("\tx", "y =", "    ", "\tx"),
    ],
)
def test_indentation_is_the_files(text, before, indent, expected):
    assert filters.with_indentation_of_file(text, site(before=before, indent=indent)) == expected


@pytest.mark.parametrize(
    ("text", "before", "expected"),
    [
        ("    x = 1\n    y = 2", "    ", "x = 1\n    y = 2"),
        ("        x", "    ", "    x"),
        ("  x", "    ", "x"),
        ("x", "    ", "x"),
        ("  x", "y =", "  x"),
    ],
)
def test_the_first_line_is_not_indented_twice(text, before, expected):
    assert filters.without_doubled_indentation(text, site(before=before)) == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["a:", "\tb", "\t\tc"], "\t"),
        (["a:", "  b", "    c"], "  "),
        (["a:", "    b", "        c"], "    "),
        ([], "    "),
        (["a", "b"], "    "),
    ],
)
def test_the_step_of_a_file(lines, expected):
    assert step_of(lines) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1\nx = 1\nx = 1\n", "x = 1"),
        ("a = 1\nbb = 2\na = 1\nbb = 2\na = 1", "a = 1\nbb = 2"),
        ("}\n}\n}", "}\n}\n}"),
        ("a = 1\nb = 2", "a = 1\nb = 2"),
        ("{\n  css: {\n    css: {\n      css: {\n        css: {", "{\n  css: {"),
        ("      </div>\n    </div>\n  </div>", "      </div>\n    </div>\n  </div>"),
        ("if a:\n    if a:\n        x()", "if a:\n    if a:\n        x()"),
    ],
)
def test_circles_are_gone_round_once(text, expected):
    assert filters.without_loops(text, site()) == expected


@pytest.mark.parametrize(
    ("text", "above", "expected"),
    [
        ("self.lit = True", ("    self.lit = True",), ""),
        ("self.lit = True\nself.on = 1", ("    self.lit = True",), "self.lit = True\nself.on = 1"),
        ("}", ("}",), "}"),
        ("self.lit = False", ("    self.lit = True",), "self.lit = False"),
        ("a = 11\nb = 22", ("a = 11", "b = 22"), ""),
    ],
)
def test_the_line_above_is_not_suggested(text, above, expected):
    assert filters.without_line_above(text, site(above=above)) == expected


@pytest.mark.parametrize(
    ("text", "site_", "expected"),
    [
        ("x = 1\n    return x", site(before="    ", below=("    return x",)), "x = 1"),
        ("x = 1\n    return x\n\ndef g():", site(before="    ", below=("", "    return x", "", "y")), "x = 1"),
        ("x = 1\n}", site(before="    ", below=("}",)), "x = 1"),
        ("return x", site(before="    ", below=("    return x",)), ""),
        ("x = 1\n}", site(before="    ", below=("other()",)), "x = 1\n}"),
        ("a, b = c) + more", site(rest=" = c) + more", before="x("), "a, b "),
    ],
)
def test_what_stands_behind_the_cursor_is_not_suggested(text, site_, expected):
    assert filters.without_suffix(text, site_) == expected


@pytest.mark.parametrize(
    ("text", "site_", "expected"),
    [
        ("x = 1\nreturn x\n\ndef g():\n    pass", site(before="    "), "x = 1"),
        ("x = 1\n    return x\n\ndef g():\n    pass", site(before="    "), "x = 1\n    return x\n"),
        ("return 1;\n}\n\nint g() {", site(before="    "), "return 1;\n}"),
        ("return 1;\n  }\n}", site(before="    ", indent="  "), "return 1;\n  }"),
        ("x:\n        y()\n    z()", site(before="    if "), "x:\n        y()"),
        ("x:\n  y()\nelse:\n  z()\nw()", site(before="if "), "x:\n  y()\nelse:\n  z()"),
        ("1\ny = 2", site(before="x = "), "1"),
        ("\n    y = 2\nz = 3", site(before="    x = 1"), "\n    y = 2"),
        ("a,\n    b,\n)\nz = 1", site(before="x = f("), "a,\n    b,\n)"),
        ("a\nb", site(before="x = f(", rest=" + 1"), "a"),
        ("a\nb", site(before="", rest=")"), "a\nb"),
        ("def f():\n    pass\n\ndef g():\n    pass", site(), "def f():\n    pass\n"),
    ],
)
def test_it_ends_with_its_construct(text, site_, expected):
    assert filters.until_end_of_construct(text, site_) == expected


@pytest.mark.parametrize(
    ("text", "cut", "expected"),
    [("a = 1\nb = ", True, "a = 1"), ("a = 1\nb = ", False, "a = 1\nb = "), ("a = ", True, "a = ")],
)
def test_of_a_text_that_was_cut_whole_lines_stay(text, cut, expected):
    assert filters.without_unfinished_line(text, site(cut=cut)) == expected


@pytest.mark.parametrize(("text", "expected"), [("x\n\n", "x"), ("  \n", ""), ("\n    x", "\n    x")])
def test_trailing_white_space_goes(text, expected):
    assert filters.without_blanks_before_end(text, site()) == expected


def test_the_pipeline_applies_every_rule_in_order():
    assert apply("```\nx)\n```", site(")")) == "x"
    assert apply("x", site(), [lambda text, at: text + "1", lambda text, at: text + "2"]) == "x12"


def test_every_rule_has_its_golden_cases():
    tested = {name for name in globals() if name.startswith("test_")}
    assert len(filters.PIPELINE) == len({each.__name__ for each in filters.PIPELINE}) <= len(tested)
