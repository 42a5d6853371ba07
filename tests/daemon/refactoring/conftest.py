"""One home with the fake engine for all tests of a module: each brings its own repository and script."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.daemon import FAKE_ENGINE, Home
from support.engine_probe import Probe


@pytest.fixture(scope="module")
def home(laguna_model: Path, shared_cache: Path) -> Iterator[Home]:
    found = Home.create(
        LAGUNA_PROFILE="cpu",
        LAGUNA_ENGINE__COMMAND=json.dumps([sys.executable, str(FAKE_ENGINE)]),
        LAGUNA_ENGINE__MODEL=str(laguna_model),
        LAGUNA_CACHE_DIR=str(shared_cache),
    )
    found.json("start", "--wait", "--json")
    yield found
    found.remove()


@pytest.fixture
def engine(home: Home) -> Probe:
    probe = Probe(home.runtime / "engine.sock")
    probe.answers()
    return probe
