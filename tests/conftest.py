"""Fixtures shared by all tests: models, homes, and the daemons in them."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.daemon import FAKE_ENGINE, Home
from support.engine_home import engine_environment
from support.laguna_tokenizer import write_model

HomeFactory = Callable[..., Home]


def pytest_configure(config: pytest.Config) -> None:
    # A shell ignores Ctrl-C for what it runs in the background, and so would everything that tests start.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "engine: needs the real engine (installs it if it is not there)")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What uses the real engine is marked so, and runs last: a broken fast test is seen first."""
    for item in items:
        if {"real_home", "real_engine"} & set(getattr(item, "fixturenames", ())):
            item.add_marker("engine")
    items.sort(key=lambda item: item.get_closest_marker("engine") is not None)


@pytest.fixture(scope="session")
def laguna_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder of Laguna's shape: tokenizer and template, no weights."""
    folder = write_model(tmp_path_factory.mktemp("model"))
    config = {
        "architectures": ["LagunaForCausalLM"],
        "max_position_embeddings": 262_144,
        "vocab_size": 100_352,
        "eos_token_id": [2, 24],
        "num_hidden_layers": 12,
        "num_key_value_heads": 8,
        "num_attention_heads": 48,
        "hidden_size": 3072,
        "head_dim": 128,
    }
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder for tests that are not about caches: the tokenizer is checked once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def make_home(laguna_model: Path, shared_cache: Path) -> Iterator[HomeFactory]:
    """Makes homes whose daemons use the fake engine; arguments go to its command line."""
    homes: list[Home] = []

    def make(*engine_args: str, **env: str) -> Home:
        command = [sys.executable, str(FAKE_ENGINE), *engine_args]
        home = Home.create(
            **{
                "LAGUNA_PROFILE": "cpu",
                "LAGUNA_ENGINE__COMMAND": json.dumps(command),
                "LAGUNA_ENGINE__MODEL": str(laguna_model),
                "LAGUNA_CACHE_DIR": str(shared_cache),
                **env,
            }
        )
        homes.append(home)
        return home

    yield make
    for home in homes:
        home.remove()


@pytest.fixture
def home(make_home: HomeFactory) -> Home:
    """A home whose daemon uses the fake engine."""
    return make_home()


@pytest.fixture(scope="session")
def real_home() -> Iterator[Home]:
    """A home whose daemon uses the real engine; shared by all tests, so its engine is loaded once."""
    found = Home.create(**engine_environment(), LAGUNA_PROFILE="cpu")
    yield found
    found.remove()
