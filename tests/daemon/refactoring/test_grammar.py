"""The grammar that binds an answer: everything it allows is a set of edits that can be carried out."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from laguna_daemon import edits
from laguna_daemon.errors import UsageError
from laguna_daemon.service.refactoring.batches import Batch, Item
from laguna_daemon.service.refactoring.files import Planned
from laguna_daemon.service.refactoring.grammar import grammar, spans
from support.daemon import repository

TEXT = (
    "def greet():\n    pass\n\n\ndef one():\n    greet()\n    x = 1\n\n\n"
    'def two():\n    greet()\n    x = 2  # é "q" \\\n'
)
_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|(name)')


def spoken(found: dict[str, str], name: str) -> str:
    """What a model says under the grammar if it always chooses ``name``."""
    root = found["grammar"].split("\n")[0].removeprefix("root ::= ")
    return "".join(
        name if token[2] else token[1].encode("ascii").decode("unicode_escape") for token in _TOKEN.finditer(root)
    )


def batch(text: str, word: str) -> Batch:
    lines = tuple(n for n, line in enumerate(text.split("\n")) if word in line)
    return (Item(Planned("a.py", "", lines), 0),)


def test_an_answer_under_the_grammar_applies(tmp_path: Path) -> None:
    root = repository(tmp_path / "root", {"a.py": TEXT})
    found = grammar(batch(TEXT, "greet"), {"a.py": TEXT}, ["greet"], ["salute"])
    assert found["grammar"].endswith('\nname ::= "salute"\n')
    parsed = edits.parse(spoken(found, "salute"))
    assert parsed.problems == ()
    made = edits.plan(root, parsed.blocks)
    assert isinstance(made, edits.ChangeSet), made
    (change,) = made.changes
    assert change.after is not None
    assert change.after.data.decode() == TEXT.replace("greet", "salute")


def test_without_new_names_any_name_may_come() -> None:
    found = grammar(batch(TEXT, "greet"), {"a.py": TEXT}, ["greet"], [])
    assert "name ::= [a-zA-Z_] [a-zA-Z0-9_]{0,30}" in found["grammar"]


def test_places_are_widened_until_they_are_unique_and_never_overlap() -> None:
    lines = TEXT.split("\n")
    runs = list(spans(lines, (0, 5, 10)))
    assert [lines[a:b] for a, b in runs] == [
        ["def greet():"],
        ["def one():", "    greet()"],
        ["def two():", "    greet()"],
    ]
    for one, two in itertools.pairwise(runs):
        assert one[1] <= two[0]
    same = ["x"] * 6
    assert list(spans(same, (2, 3))) == [(0, 6)]


@pytest.mark.parametrize("text", ["no such word\n", "greet\r\n"])
def test_nothing_to_bind_is_an_error(text: str) -> None:
    with pytest.raises(UsageError, match="constrained"):
        grammar(batch(text, "greet") if "greet" in text else (), {"a.py": text}, ["greet"], [])
