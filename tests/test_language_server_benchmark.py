"""The language server's benchmark in small: its counts and ratios hold, whatever else the machine does."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("language_server_benchmark", FOLDER / "language_server.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


async def test_counts(benchmark: ModuleType, laguna_model: Path):
    result = await benchmark.measure(laguna_model, None, seconds=2, files=50, rounds=5, only=["latency", "typing"])
    assert result["latency"]["rounds"] == 5
    typing = result["typing"]
    assert typing["answers"] == typing["keystrokes"] == 100
    assert typing["stale_answers"] == 0 and typing["last_answered"]
    # The last request, and the one before the typing, come to their end; all others are superseded.
    assert typing["engine_requests"] - typing["engine_aborts"] <= 2


def test_holes(tmp_path: Path):
    sys.path.insert(0, str(FOLDER))
    try:
        import completion_eval
    finally:
        sys.path.remove(str(FOLDER))
    assert completion_eval.distance("kitten", "sitting") == 3
    assert completion_eval.similarity("", "") == 1 and completion_eval.similarity("ab", "cd") == 0
    holes = completion_eval.punch(FOLDER.parent, 3, seed=1)
    assert {hole.language for hole in holes} >= {"python", "typescript"}
    assert {hole.kind for hole in holes} == set(completion_eval.KINDS)
    for hole in holes:
        text = (FOLDER.parent / hole.path).read_bytes().decode()
        assert hole.prefix + hole.expected + hole.suffix in text
        assert hole.expected and completion_eval.site_of(hole).before == hole.prefix.rpartition("\n")[2]
