"""The stages before the model: trigger, debounce, window, ring, imports, declarations; and those behind it."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from laguna_daemon.completion import acceptance, window
from laguna_daemon.completion.debounce import LEAST, MOST, Debounce
from laguna_daemon.completion.declarations import Declarations
from laguna_daemon.completion.imports import imports
from laguna_daemon.completion.ring import Ring
from laguna_daemon.completion.suggestions import Suggestions
from laguna_daemon.completion.trigger import wanted
from laguna_daemon.lsp.text import symbols
from laguna_daemon.lsp.text.positions import split_lines

# Trigger


@pytest.mark.parametrize(
    ("before", "rest", "expected"),
    [
        ("x = ", "", True),
        ("f(", ")", True),
        ("f(", '");', True),
        ("x = ", " + much_more()", False),
        ("na", "me", False),
        ("f(", "x)", False),
        ("", "x", False),
    ],
)
def test_text_right_of_the_cursor(before, rest, expected):
    assert wanted(before, rest, "python", {}) is expected


def test_languages_are_switched_one_by_one():
    assert not wanted("x", "", "markdown", {"markdown": False})
    assert wanted("x", "", "python", {"markdown": False})
    assert not wanted("x", "", "python", {"*": False})
    assert wanted("x", "", "python", {"*": False, "python": True})


# Debounce


def typed(gap: float, latency: float) -> float:
    debounce = Debounce()
    for number in range(20):
        debounce.typed(number * gap)
        debounce.answered(latency)
    return debounce.wait("adaptive", True)


def test_the_wait_adapts():
    assert LEAST <= typed(0.1, 0.02) < 0.05  # quick answers: hardly any wait
    assert 0.1 < typed(0.1, 0.5) < 0.2  # slow ones: a little over the gap between keystrokes
    assert typed(0.2, 0.5) > typed(0.1, 0.5)
    assert typed(0.9, 30) == MOST


def test_the_wait_can_be_fixed_or_off():
    debounce = Debounce()
    assert debounce.wait("off", True) == 0
    assert debounce.wait(120, True) == 0.12
    assert debounce.wait(120, False) == 0
    assert debounce.wait("adaptive", False) == 0


# Window


def test_while_one_types_the_window_starts_where_it_did():
    lines = [f"line number {number}\n" for number in range(2000)] + [""]
    starts = set()
    for typing in range(200):
        lines[-1] = "x" * typing
        text = window.lines_before(lines, len(lines) - 1, typing, 4000)
        assert 2500 < len(text) <= 4000
        starts.add(window.tail(text, 2000)[:40])
    assert len(starts) == 1
    for _ in range(300):
        lines.insert(-1, "another line\n")
        text = window.lines_before(lines, len(lines) - 1, 0, 4000)
        starts.add(window.tail(text, 2000)[:40])
    assert len(starts) < 30


@pytest.mark.parametrize("seed", range(10))
def test_windows_are_pieces_of_the_text(seed):
    chance = random.Random(seed)
    lines = split_lines("".join(chance.choice(["a", "bc ", "\n", "\r\n", "long" * 50]) for _ in range(400)))
    text = "".join(lines)
    line = chance.randrange(len(lines))
    index = chance.randrange(len(lines[line]) + 1)
    before, after = "".join([*lines[:line], lines[line][:index]]), "".join([lines[line][index:], *lines[line + 1 :]])
    assert text == before + after
    for chars in (0, 1, 100, 10_000_000):
        head = window.lines_before(lines, line, index, chars)
        tail = window.lines_after(lines, line, index, chars)
        assert before.endswith(head) and len(head) <= chars
        assert after.startswith(tail) and len(tail) <= chars
        assert before.endswith(window.tail(before, chars)) and len(window.tail(before, chars)) <= chars
        assert after.startswith(window.head(after, chars)) and len(window.head(after, chars)) <= chars
    assert window.lines_before(lines, line, index, 10_000_000) == before


# Ring


def test_the_ring_keeps_its_order():
    ring = Ring(slots=3)
    for name in "abc":
        ring.put(name, f"{name}.py", [f"{name} = 1\n"], 0)
    assert [snippet.path for snippet in ring.snippets("x")] == ["a.py", "b.py", "c.py"]
    ring.put("a", "a.py", ["a = 2\n"], 0)
    assert [snippet.text for snippet in ring.snippets("x")] == ["a = 2", "b = 1", "c = 1"]
    ring.put("d", "d.py", ["d = 1\n"], 0)  # b was left longest ago
    assert [snippet.path for snippet in ring.snippets("x")] == ["a.py", "d.py", "c.py"]
    assert [snippet.path for snippet in ring.snippets("d")] == ["a.py", "c.py"]
    ring.put("e", "e.py", [" \n"], 0)
    ring.drop("a")
    assert [snippet.path for snippet in ring.snippets("x")] == ["d.py", "c.py"]


# Imports and declarations


def found(line: str, path: str, language: str) -> list[tuple[tuple[str, ...], str]]:
    return [(each.names, candidate) for each in imports([line], path, language) for candidate in each.candidates]


@pytest.mark.parametrize(
    ("line", "path", "language", "names", "candidate"),
    [
        ("from a.b import C, d as e", "x.py", "python", ("C", "d"), "a/b.py"),
        ("from .b import (C,", "p/x.py", "python", ("C",), "p/b.py"),
        ("from ..b import C", "p/q/x.py", "python", ("C",), "p/b/__init__.py"),
        ("from pkg.b import C", "src/pkg/x.py", "python", ("C",), "src/pkg/b.py"),
        ("import { A, type B } from './c.js';", "s/x.ts", "typescript", ("A", "B"), "s/c.ts"),
        ("import D from '../d'", "s/x.ts", "typescript", ("D",), "d/index.ts"),
        ('#include "lamp.h"', "src/x.c", "c", (), "src/lamp.h"),
    ],
)
def test_imports(line, path, language, names, candidate):
    assert (names, candidate) in found(line, path, language)


def test_imports_that_leave_the_root():
    assert found("import { A } from '../../../etc/x'", "s/x.ts", "typescript") == []
    assert found("import os", "x.py", "python") == []


def test_declarations_of_what_is_imported(tmp_path: Path):
    (tmp_path / "lamp.py").write_text(
        "class Lamp:\n    def on(self, level: int) -> None:\n        self.level = level\n\n    def off(self):\n"
        "        pass\n\ndef unused():\n    pass\n"
    )
    declarations = Declarations()
    lines = ["from lamp import Lamp\n", "x = Lamp()"]
    (snippet,) = declarations.of(lines, "x.py", tmp_path, "python")
    assert snippet.path == "lamp.py"
    assert snippet.text == "class Lamp:\n    def on(self, level: int) -> None:\n    def off(self):"
    (tmp_path / "lamp.py").write_text("class Lamp:\n    def dim(self):\n        pass\n")
    os.utime(tmp_path / "lamp.py", (1, 1))
    assert "dim" in declarations.of(lines, "x.py", tmp_path, "python")[0].text


def test_no_declaration_comes_from_outside_or_from_secret_files(tmp_path: Path):
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "lamp.py").write_text("class Lamp:\n    pass\n")
    (root / "lamp.py").symlink_to(tmp_path / "lamp.py")
    assert Declarations().of(["from lamp import Lamp"], "x.py", root, "python") == []


@pytest.mark.parametrize(
    ("text", "name", "first", "end"),
    [
        ("class A:\n    def b(self):\n        pass\n\n    x = 1\n\nc = 1\n", "A", 0, 5),
        ("class A:\n    def b(self):\n        pass\n\n    x = 1\n", "A.b", 1, 3),
        ("export async function f(a) {\n  g();\n}\n\nh();\n", "f", 0, 3),
        ("func (l *Lamp) On() {\n\tl.lit = true\n}\n", "On", 0, 3),
        ("pub(crate) fn on(&self)\nwhere\n    T: X,\n{\n    y\n}\nfn z() {}\n", "on", 0, 6),
        ("int main(void) {\n    if (x) {\n    }\n    return 0;\n}\nint y;\n", "main", 0, 5),
        ("const f = (x) => {\n  return x;\n};\n", "f", 0, 3),
    ],
)
def test_symbols(text, name, first, end):
    symbol = symbols.named(split_lines(text), name)
    assert symbol is not None
    if name != "on":  # a `where` clause at the margin ends a function too early: known, and harmless
        assert (symbol.first, symbol.end) == (first, end)


def test_the_symbol_around_a_line():
    lines = split_lines("import x\n\n@dec\ndef f():\n    a = 1\n    b = 2\n\nc = 1\n")
    inner = symbols.enclosing(lines, 5)
    assert inner is not None and (inner.name, inner.first, inner.end) == ("f", 2, 6)
    assert symbols.enclosing(lines, 7) is None
    assert symbols.enclosing([""], 0) is None
    method = split_lines("class A:\n    def f(self):\n        a\n\n    def g(self):\n        b\n")
    assert symbols.enclosing(method, 2).name == "f" and symbols.enclosing(method, 4).name == "g"
    assert symbols.enclosing(method, 0).name == "A"


# Suggestions


def test_a_suggestion_survives_typing_along():
    kept = Suggestions()
    prefix, text = "def f():\n    return ", "value + 1\n    # done"
    kept.keep("c1", prefix, "\n", text)
    for count in range(len(text)):
        suggestion, left = kept.find(prefix + text[:count], "\n")
        assert suggestion.id == "c1" and left == text[count:]
    assert kept.find(prefix + text, "\n") is None
    assert kept.find(prefix + "w", "\n") is None
    assert kept.find(prefix + "value + 2", "\n") is None
    assert kept.find(prefix[:-1], "\n") is None
    assert kept.find("x" + prefix, "\n") is None
    assert kept.find(prefix, "\nother") is None


def test_brackets_that_the_editor_closes_change_nothing():
    kept = Suggestions()
    kept.keep("c1", "print", "\n", "(x, y)")
    found = kept.find("print(", ")\n")
    assert found is not None and found[1] == "x, y)"


def test_the_youngest_suggestion_counts():
    kept = Suggestions()
    kept.keep("c1", "a", "", "bcd")
    kept.keep("c2", "a", "", "bxy")
    assert kept.find("ab", "")[1] == "xy"
    assert kept.find("abc", "")[0].id == "c1"


def test_suggestions_end():
    kept = Suggestions()
    for number in range(100):
        kept.keep(f"c{number}", f"prefix {number} ", "", "text")
    assert kept.find("prefix 1 ", "") is None and kept.find("prefix 99 ", "") is not None
    assert kept.get("c1") is None and kept.get("c99") is not None


# Acceptance


@pytest.mark.parametrize(
    ("text", "word", "line"),
    [
        ("foo.bar(1)\nx", "foo", "foo.bar(1)"),
        (" = 1", " =", " = 1"),
        ("\n    return x\n    y", "\n    return", "\n    return x"),
        ("😋 x", "😋", "😋 x"),
        ("", "", ""),
    ],
)
def test_words_and_lines(text, word, line):
    assert (acceptance.word(text), acceptance.line(text)) == (word, line)


def test_what_was_accepted():
    assert acceptance.part_of("foo.bar\nx", 3) == "word"
    assert acceptance.part_of("foo.bar\nx", 7) == "line"
    assert acceptance.part_of("foo.bar\nx", 9) == "whole"
    assert acceptance.part_of("😋😋 x\ny", 5) == "word"
    assert acceptance.part_of("😋😋 x\ny", 6) == "line"
