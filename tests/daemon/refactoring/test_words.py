"""Which identifiers and files an instruction names."""

from __future__ import annotations

import pytest

from laguna_daemon.service.refactoring.words import identifiers, named_files, new_names, pattern


@pytest.mark.parametrize(
    ("instruction", "wanted"),
    [
        ("Rename `greet` to `salute`", ("greet",)),
        ("rename greet to salute", ("greet",)),
        ("Rename the function greet to salute everywhere.", ("greet",)),
        ("Rename 'greet' into \"salute\" please", ("greet",)),
        ("Give fetch_all a parameter `timeout` and update its callers", ("fetch_all", "timeout")),
        ("Make parseConfig() return None", ("parseConfig",)),
        ("Replace HttpClient with RetryingClient", ("HttpClient",)),
        ("Remove `shop.prices.old_total`", ("old_total",)),
        ("call run(x) with a keyword", ("run",)),
        ("Rename `Größe` to `Breite`", ("Größe",)),
        ("Make the code nicer and add tests to the project", ()),
        ("Split `shapes.py` into `circle.py` and `square.py`", ()),
        ("Explain `a + b`", ()),
    ],
)
def test_old_names_are_found_and_new_ones_left_out(instruction: str, wanted: tuple[str, ...]) -> None:
    assert identifiers(instruction) == wanted


def test_a_named_module_stands_for_those_who_import_it() -> None:
    known = {"pkg/shapes.py", "pkg/__init__.py", "a/x.py", "b/x.py", "README.md"}
    assert named_files("Split shapes.py and ./README.md, x.py, and pkg/__init__.py", known) == (
        "pkg/shapes.py",
        "README.md",
        "pkg/__init__.py",
    )
    assert identifiers("Split it", ["pkg/shapes.py", "pkg/__init__.py", "io.py"]) == ("shapes",)


def test_new_names() -> None:
    assert new_names("Rename `greet` to `salute`") == ("salute",)
    assert new_names("rename greet to salute.") == ("salute",)
    assert new_names("Remove `greet`") == ()


def test_a_word_stands_alone() -> None:
    found = pattern(["get", "get_all"])
    assert [match.group() for match in found.finditer("get get_all getter forget .get( get-x")] == [
        "get",
        "get_all",
        "get",
        "get",
    ]
