"""Golden cases made from what a real small model said (the CPU profile's, asked in words and as a continuation).

Recorded by benchmarks/completion_eval.py; each `suggested` was read by a person before it was kept.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from laguna_daemon.completion.filters import Site, apply

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "cases" / "completion" / "recorded.json").read_text(encoding="utf-8")
)


def site(plain: dict[str, Any]) -> Site:
    return Site(**{name: tuple(value) if isinstance(value, list) else value for name, value in plain.items()})


@pytest.mark.parametrize("case", CASES, ids=[f"{n}-{case['language']}" for n, case in enumerate(CASES)])
def test_recorded(case: dict[str, Any]):
    at = site(case["site"])
    assert apply(case["raw"], at) == case["suggested"]
    # What has been filtered once is not changed by filtering it again: a remembered suggestion passes anew.
    assert apply(case["suggested"], Site(**{**vars_of(at), "cut": False})) == case["suggested"]


def vars_of(at: Site) -> dict[str, Any]:
    return {name: getattr(at, name) for name in Site.__dataclass_fields__}
