"""Warm-up and what it is worth, on the real engine: token counts and ratios, no times."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.daemon import Home, repository
from support.daemon_api import Daemon

BLOCK = 128
FILES = {f"lamp/part_{n}.py": f"VALUE_{n} = {n}\n" * 30 for n in range(8)}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path / "lamp", FILES)


def test_a_warm_up_leaves_only_the_question_to_be_read(real_home: Home, repo: Path) -> None:
    daemon = Daemon(real_home)
    progress = [event["done"] for event in daemon.warm(repo) if event.get("stage") == "prefill"]
    root = daemon.root(repo)
    assert root["residency"] == "resident"
    assert progress == sorted(progress)
    assert progress[-1] == root["prefix_tokens"] >= 8 * BLOCK
    first = daemon.ask(repo, "What is VALUE_3?")
    assert first["cached_tokens"] >= root["prefix_tokens"] // BLOCK * BLOCK
    assert first["prefilled_tokens"] < root["prefix_tokens"] / 4
    daemon.complete(100)
    second = daemon.ask(repo, "And VALUE_4?")
    assert second["cached_tokens"] >= root["prefix_tokens"] // BLOCK * BLOCK
    assert second["broke_at"] is None
    assert daemon.root(repo)["evictions"] == 0
