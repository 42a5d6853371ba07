"""Checks before loading: what would fail after minutes, or serve worse than nothing, is said within a second.

One function per hazard, each yielding the findings it has of a `Situation`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from laguna_daemon.engine.checks import checkpoints, hardware, serving, versions
from laguna_daemon.engine.checks.finding import Finding, Severity, errors, ordered
from laguna_daemon.engine.checks.situation import Checkpoints, Situation, survey

Check = Callable[[Situation], Iterable[Finding]]

CHECKS: tuple[Check, ...] = (
    hardware.gpus,
    versions.engine,
    hardware.driver,
    checkpoints.disk,
    checkpoints.architecture,
    checkpoints.quantisation,
    checkpoints.pins,
    checkpoints.pair,
    checkpoints.draft_layers,
    serving.moe_backend,
    serving.depth,
    serving.thinking,
    serving.sampling,
    hardware.kv_memory,
    hardware.small_cards,
    hardware.free_memory,
    hardware.offload,
    hardware.cpu_memory,
    versions.vllm_version,
    versions.retention,
    versions.transformers,
    versions.drift,
)


def look(situation: Situation) -> tuple[Finding, ...]:
    """All findings, the gravest first."""
    return ordered(_all(situation))


def _all(situation: Situation) -> Iterator[Finding]:
    for check in CHECKS:
        yield from check(situation)


__all__ = ["CHECKS", "Checkpoints", "Finding", "Severity", "Situation", "errors", "look", "ordered", "survey"]
