"""File URIs as editors spell them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laguna_daemon.lsp.text.uris import from_path, to_path


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///tmp/my%20project%20%C3%A9%231/a.py", "/tmp/my project é#1/a.py"),
        ("file:///tmp/my project é#1/a.py", "/tmp/my project é#1/a.py"),
        ("file:///tmp/a%3Fb?c", "/tmp/a?b?c"),
        ("file://localhost/tmp/a", "/tmp/a"),
        ("file:///tmp/100%25", "/tmp/100%"),
        ("file:///c%3A/x", "/c:/x"),
    ],
)
def test_paths_of_uris(uri, path):
    assert to_path(uri) == Path(path)


@pytest.mark.parametrize(
    "uri",
    ["untitled:Untitled-1", "file://server/share/a", "file:relative", "http://x/a", "", "file:///a%00b", "file://["],
)
def test_uris_without_a_file_here(uri):
    assert to_path(uri) is None


NAMES = st.text(min_size=1).filter(lambda name: name not in (".", "..") and not {"/", "\0"} & set(name))


@given(st.lists(NAMES, min_size=1))
def test_every_path_survives_the_way_there_and_back(names):
    path = Path("/", *names)
    assert to_path(from_path(path)) == path


def test_bytes_that_are_no_utf8_survive():
    path = Path(b"/tmp/caf\xe9".decode("utf-8", "surrogateescape"))
    assert from_path(path) == "file:///tmp/caf%E9"
    assert to_path(from_path(path)) == path


def test_the_encoding_of_other_editors_means_the_same_file():
    # VS Code escapes more than others; both name one file.
    assert to_path("file:///tmp/a%2Bb%40c") == to_path("file:///tmp/a+b@c") == Path("/tmp/a+b@c")
