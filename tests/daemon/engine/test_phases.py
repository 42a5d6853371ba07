"""Start-up phases, read from logs of real starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from laguna_daemon.engine.phases import phase_of

LOGS = Path(__file__).parents[2] / "cases" / "engine" / "logs"


def test_a_real_start_on_the_cpu() -> None:
    found = [phase for line in (LOGS / "cpu-start.txt").read_text().splitlines() if (phase := phase_of(line))]
    assert found == [
        "initialising",
        "loading weights",
        "loading weights, 0%",
        "loading weights, 100%",
        "loading weights, 100%",
        "weights loaded in 0.27 s",
        "room for 3,072 tokens",
        "opening its socket",
        "opening its socket",
        "answering soon",
    ]


@pytest.mark.parametrize(
    ("line", "phase"),
    [
        ("INFO [gpu_model_runner.py:4890] Loading drafter model...", "loading the draft model"),
        (
            "INFO [gpu_model_runner.py:4900] Model loading took 17.51 GiB memory and 62.1 seconds",
            "model loaded, 17.51 GiB",
        ),
        ("INFO [backends.py:653] Dynamo bytecode transform time: 8.1 s", "compiling"),
        ("Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  43%|####3     | 3/7", "capturing graphs, 43%"),
        ("INFO [kv_cache_utils.py:1307] GPU KV cache size: 212,822 tokens", "room for 212,822 tokens"),
    ],
)
def test_phases_of_a_start_on_gpus(line: str, phase: str) -> None:
    assert phase_of(line) == phase


@pytest.mark.parametrize("line", ["", "INFO: 127.0.0.1 - GET /health 200", "WARNING Triton is not installed."])
def test_other_lines_are_no_phase(line: str) -> None:
    assert phase_of(line) is None
