"""What a running engine's examination says, and how it compares with the last one of the same engine and model."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from laguna_daemon.engine.checks.finding import Finding
from laguna_daemon.schemas import Proof

_ENOUGH_DRAFTS = 16
_NOTHING = 0.02
_FELL = 0.8
_SLOW_ABORT_S = 2.0


def examined(proof: Proof) -> Iterator[Finding]:
    """Findings of one examination."""
    if proof.cached_again < proof.reusable - proof.prompt_tokens // 3:
        yield Finding(
            "prefix-cache",
            "error",
            f"The same {proof.prompt_tokens} tokens asked twice: {proof.cached_again} came from the cache, "
            f"{proof.reusable} could have.",
            "The engine does not reuse prefixes, so every question reads the whole repository again.",
            "Remove no-enable-prefix-caching from the engine's flags; see laguna-daemon logs engine.",
        )
    if proof.drafting and proof.drafts >= _ENOUGH_DRAFTS and proof.accepted < _NOTHING * proof.drafts:
        yield Finding(
            "draft-acceptance",
            "error",
            f"Of {proof.drafts:,} drafts {proof.accepted:,} tokens were accepted.",
            "The draft does not fit the target (another precision or revision): it only costs time.",
            "Use the pair that the profile pins (laguna-daemon engine download), or a profile without draft.",
        )
    elif proof.drafting and proof.drafts_now == 0:
        yield Finding(
            "draft-acceptance",
            "warning",
            "No draft was made while the engine answered.",
            "Speculative decoding is asked for and does not happen.",
            "See laguna-daemon logs engine.",
        )
    if proof.abort_s is None or proof.abort_s > _SLOW_ABORT_S:
        took = "had not ended" if proof.abort_s is None else f"ended after {proof.abort_s:.1f} s"
        yield Finding(
            "abort",
            "error" if proof.abort_s is None else "warning",
            f"An answer whose reader had gone {took}.",
            "Answers that nobody reads keep the engine from those that somebody waits for.",
            "Restart the engine: laguna-daemon engine restart",
        )


def compared(proof: Proof, before: Mapping[str, Any]) -> Iterator[Finding]:
    """What became worse since ``before``, as `recall` gave it."""
    old, new = before.get("acceptance_length"), proof.acceptance_length
    if old and new and proof.drafts >= _ENOUGH_DRAFTS and new - 1 < (old - 1) * _FELL:
        yield Finding(
            "regression",
            "warning",
            f"The mean acceptance length is {new:.2f}; it was {old:.2f}.",
            "Fewer drafted tokens are accepted than before, so answers come more slowly.",
            "Has a checkpoint or flag changed? laguna-daemon engine list shows what is there.",
        )
    old_again = before.get("cached_again")
    if old_again and proof.cached_again < old_again * _FELL:
        yield Finding(
            "regression",
            "warning",
            f"A repeated prompt finds {proof.cached_again} tokens in the cache; it found {old_again}.",
            "Prefixes are reused less well than before.",
            "Has the engine's version or a flag changed? See laguna-daemon logs engine.",
        )
    slow = before.get("abort_s")
    if slow is not None and proof.abort_s is not None and proof.abort_s > max(4 * slow, 1.0):
        yield Finding(
            "regression",
            "warning",
            f"An abandoned answer ended after {proof.abort_s:.1f} s; it took {slow:.1f}.",
            "The engine reacts more slowly than before.",
            "See what else uses the machine.",
        )


def recall(path: Path, key: str) -> Mapping[str, Any]:
    """The last examination kept under ``key``; empty if there is none."""
    found = _read(path).get(key)
    return found if isinstance(found, dict) else {}


def keep(path: Path, key: str, proof: Proof) -> None:
    """Keep an examination for the next comparison."""
    everything = {**_read(path), key: {**proof.model_dump(), "at": round(time.time())}}
    part = path.with_suffix(".new")
    part.write_text(json.dumps(everything, indent=1), encoding="utf-8")
    part.replace(path)


def _read(path: Path) -> dict[str, Any]:
    with contextlib.suppress(OSError, ValueError):
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, dict):
            return found
    return {}
