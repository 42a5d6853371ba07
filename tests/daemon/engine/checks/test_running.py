"""What an examination of a running engine says, and what it says of the one before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from laguna_daemon.engine.checks.running import compared, examined, keep, recall
from laguna_daemon.schemas import Proof


def proof(**changes: Any) -> Proof:
    """A healthy engine with a draft."""
    healthy = {
        "prompt_tokens": 96,
        "cached_first": 0,
        "cached_again": 80,
        "reusable": 80,
        "drafting": True,
        "drafts": 100,
        "accepted": 220,
        "acceptance_length": 3.2,
        "drafts_now": 20,
        "accepted_now": 44,
        "abort_s": 0.05,
    }
    return Proof.model_validate({**healthy, **changes})


def test_a_healthy_engine_gives_no_findings() -> None:
    assert list(examined(proof())) == []
    assert list(examined(proof(drafting=False, drafts=0, accepted=0, drafts_now=0, acceptance_length=None))) == []


@pytest.mark.parametrize(
    ("changes", "check", "severity", "message"),
    [
        ({"cached_again": 0}, "prefix-cache", "error", "0 came from the cache, 80 could have"),
        ({"accepted": 1}, "draft-acceptance", "error", "Of 100 drafts 1 tokens were accepted"),
        ({"drafts_now": 0}, "draft-acceptance", "warning", "No draft was made"),
        ({"abort_s": None}, "abort", "error", "had not ended"),
        ({"abort_s": 3.5}, "abort", "warning", "ended after 3.5 s"),
    ],
)
def test_what_does_not_work_is_said(changes: dict[str, Any], check: str, severity: str, message: str) -> None:
    (finding,) = examined(proof(**changes))
    assert (finding.check, finding.severity) == (check, severity)
    assert message in finding.what


def test_an_acceptance_of_nothing_is_only_judged_once_there_are_drafts() -> None:
    assert list(examined(proof(drafts=8, accepted=0, drafts_now=8))) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"acceptance_length": 2.1}, "acceptance length is 2.10; it was 3.20"),
        ({"cached_again": 48}, "finds 48 tokens in the cache; it found 80"),
        ({"abort_s": 1.5}, "ended after 1.5 s; it took 0.1"),
    ],
)
def test_a_regression_is_warned_of(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = tmp_path / "doctor.json"
    keep(path, "profile 0.25.1", proof())
    before = recall(path, "profile 0.25.1")
    assert list(compared(proof(), before)) == []
    (finding,) = compared(proof(**changes), before)
    assert finding.severity == "warning"
    assert message in finding.what


def test_examinations_are_kept_by_profile_and_version(tmp_path: Path) -> None:
    path = tmp_path / "doctor.json"
    assert recall(path, "a") == {}
    keep(path, "a", proof(cached_again=80))
    keep(path, "b", proof(cached_again=10))
    assert (recall(path, "a")["cached_again"], recall(path, "b")["cached_again"]) == (80, 10)
    path.write_text("cut off")
    assert recall(path, "a") == {}
