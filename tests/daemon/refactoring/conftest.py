"""A home with the fake engine, and the words by which its script tells one turn from another."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.daemon import Home
from support.engine_probe import Probe


@pytest.fixture
def engine(home: Home) -> Iterator[Probe]:
    home.json("start", "--wait", "--json")
    yield Probe(home.runtime / "engine.sock")
