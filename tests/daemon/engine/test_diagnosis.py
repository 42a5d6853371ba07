"""Each way an engine ends becomes a message with the setting to change.

The samples in cases/engine/logs are logs of vLLM 0.32 on the CPU, made to fail that way; those named `gpu-` carry the
messages of vLLM's and PyTorch's own sources in a traceback of that form.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from laguna_daemon.engine.diagnosis import diagnose

LOGS = Path(__file__).parents[2] / "cases" / "engine" / "logs"


@pytest.mark.parametrize(
    ("sample", "kind", "says", "advises"),
    [
        ("flag-unknown", "flag", "does not know the flag --no-such-flag", "engine.args"),
        ("flag-value", "flag", "--max-num-seqs (invalid int value: 'many')", "engine.args"),
        ("flag-choice", "flag", "--scheduling-policy (invalid choice: 'best'", "engine.args"),
        ("context-model", "context", "100000 tokens) is larger than the model's own", "max-model-len"),
        ("context-kv", "context", "one request of 8192 tokens", "max-model-len"),
        ("architecture", "architecture", "NoSuchForCausalLM", "vLLM version"),
        ("weights", "weights", "cannot be read", "Install the model again"),
        ("tensor-parallel", "configuration", "heads (9) must be divisible by tensor parallel size (4)", "engine.args"),
        ("socket", "socket", "socket is in use", "laguna-daemon stop"),
        ("package-metadata", "package", "for vllm", "engine install"),
        ("package-missing", "package", "No module named 'vllm'", "engine install"),
        ("package-torchvision", "package", "torchvision::nms", "engine install"),
        ("disk", "disk", "disk is full", "Make room"),
        ("memory-host", "memory", "machine ran out of memory", "kv-cache-memory-bytes"),
        ("gpu-busy", "busy-gpu", "3.1/23.57 GiB", "nvidia-smi"),
        ("gpu-no-blocks", "memory", "leave no memory for the KV cache", "gpu-memory-utilization"),
        ("gpu-context", "context", "one request of 204800 tokens", "max-model-len"),
        ("gpu-memory", "memory", "GPU ran out of memory", "max-num-batched-tokens"),
        ("gpu-draft", "draft", "does not fit the target", "engine.draft"),
        ("gpu-offload", "offload", "expandable_segments", "PYTORCH_CUDA_ALLOC_CONF"),
        ("gpu-count", "gpus", "needs more", "CUDA_VISIBLE_DEVICES"),
        ("gpu-driver", "driver", "too old", "driver"),
    ],
)
def test_classified(sample: str, kind: str, says: str, advises: str) -> None:
    found = diagnose((LOGS / f"{sample}.txt").read_text().splitlines()[-400:], 1)
    assert found.kind == kind
    assert says in found.what
    assert advises in found.advice
    assert "\n" not in found.what
    assert len(found.what) < 500
    assert found.permanent == (kind not in ("busy-gpu", "socket") and sample not in ("gpu-memory", "memory-host"))


def test_every_sample_is_used() -> None:
    """A log that nobody reads proves nothing; the clean start is read by the phases' test."""
    source = Path(__file__).read_text()
    assert [path.stem for path in LOGS.iterdir() if f'"{path.stem}"' not in source and path.stem != "cpu-start"] == []


def test_a_clean_log_is_told_by_the_exit_code() -> None:
    lines = (LOGS / "cpu-start.txt").read_text().splitlines()
    assert diagnose(lines, -signal.SIGKILL).kind == "killed"
    assert "SIGSEGV" in diagnose(lines, -signal.SIGSEGV).what
    assert "exit code 3" in diagnose(lines, 3).what
    assert diagnose(lines, 0).kind == diagnose(lines, None).kind == "ended"
    assert "signal 64" in diagnose(lines, -64).what or "SIGRTMAX" in diagnose(lines, -64).what
    assert not any(diagnose(lines, code).permanent for code in (-9, -11, 3, 0, None))


def test_an_unknown_refusal_is_quoted() -> None:
    found = diagnose(["(APIServer pid=1) ValueError: foo must be bar"], 1)
    assert (found.kind, found.permanent) == ("configuration", True)
    assert "foo must be bar" in found.what
