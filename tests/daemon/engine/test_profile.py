"""Profiles: the published recipe flag by flag, layers, budgets, and the choice from the GPUs found."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from packaging.specifiers import SpecifierSet

from laguna_daemon.config import EngineSettings, Settings
from laguna_daemon.engine import offload
from laguna_daemon.engine.launch import Launch, build_launch
from laguna_daemon.engine.profile import choose_profile, load_profile, profile_names
from laguna_daemon.errors import UsageError

CASES = Path(__file__).parents[2] / "cases" / "engine"


@dataclass
class Gpu:
    name: str
    memory_gib: float


def published() -> tuple[dict[str, str], dict[str, Any]]:
    """Environment and flags of the published command line."""
    words = shlex.split((CASES / "published-4x24gb.txt").read_text())
    start = words.index("vllm")
    environment = dict(word.split("=", 1) for word in words[:start])
    return environment, flags_of(words[start + 2 :])


def flags_of(words: list[str]) -> dict[str, Any]:
    flags: dict[str, Any] = {}
    name = ""
    for word in words:
        if word.startswith("--"):
            name = word[2:]
            flags[name] = True
        else:
            flags[name] = json.loads(word) if word.startswith("{") else word
    return flags


def launch(user: Path, model: Path, name: str, **engine: Any) -> Launch:
    settings = Settings(
        engine=EngineSettings(
            model=model, draft=model, **{"args": {"load-format": "dummy"}, "python": "/bin/sh", **engine}
        )
    )
    return build_launch(load_profile(name), settings, None, user / "engine.sock")


def free_memory(patch: pytest.MonkeyPatch, gib: float) -> None:
    memory = SimpleNamespace(available=int(gib * 2**30))
    patch.setattr(offload, "psutil", SimpleNamespace(virtual_memory=lambda: memory))


def test_the_published_recipe_flag_by_flag(user: Path, laguna_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment, wanted = published()
    free_memory(monkeypatch, 128)
    ours = launch(user, laguna_model, "laguna-s-2.1-4x24gb")
    flags = flags_of(list(ours.argv[3:]))
    del flags["load-format"]  # this test's own
    different = {name for name in wanted.keys() | flags.keys() if wanted.get(name) != flags.get(name)}
    different |= {name for name, value in environment.items() if ours.env.get(name) != value}
    profile = load_profile("laguna-s-2.1-4x24gb")
    assert different == set(profile.departures), "every departure has its reason, and every reason is a departure"
    assert all(len(reason) > 20 for reason in profile.departures.values())
    # What a departure keeps of the published value.
    ours_draft = {**flags["speculative-config"], "model": wanted["speculative-config"]["model"]}
    assert ours_draft == wanted["speculative-config"]


def test_without_memory_for_an_offload_the_recipe_is_left_as_it_is(
    user: Path, laguna_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment, _ = published()
    free_memory(monkeypatch, 40)
    ours = launch(user, laguna_model, "laguna-s-2.1-4x24gb")
    assert ours.offload_gib == 0
    assert offload.FLAG not in flags_of(list(ours.argv[3:]))
    assert {name: ours.env[name] for name in environment} == environment


@pytest.mark.parametrize(("free", "expected"), [(40, 0), (50, 24), (128, 31)])
def test_host_memory_for_one_or_two_repositories(free: float, expected: float) -> None:
    """Measured and replayed (docs/residency.md): 24 GiB hold one repository of 190,000 tokens, 28 and more hold two."""
    assert offload.size_gib(load_profile("laguna-s-2.1-4x24gb"), int(free * 2**30)) == expected
    assert offload.size_gib(load_profile("cpu"), int(free * 2**30)) == 0


def test_retention_is_said_explicitly_where_the_engine_would_choose() -> None:
    """Since 0.29 a sliding window is kept only where a request ended, unless the flag says more."""
    for name in profile_names():
        profile = load_profile(name)
        versions = SpecifierSet(profile.vllm)
        if profile.vllm and not any(versions.contains(old) for old in ("0.25.1", "0.28.0")):
            interval = profile.flags["prefix-cache-retention-interval"]
            assert (interval > 0) == (profile.cache.window > 0), name
        else:
            assert "prefix-cache-retention-interval" not in profile.flags, "0.25 does not know it"


def test_only_expandable_segments_are_taken_out_of_the_allocators_options() -> None:
    name = "PYTORCH_CUDA_ALLOC_CONF"
    clean = offload.without_expandable_segments
    assert clean({name: "expandable_segments:True", "A": "b"}) == {"A": "b"}
    assert clean({name: "max_split_size_mb:64,expandable_segments:True"}) == {name: "max_split_size_mb:64"}


@pytest.mark.parametrize("name", ["laguna-s-2.1-4x24gb-no-draft", "laguna-s-2.1-80gb", "laguna-s-2.1-141gb"])
def test_profiles_built_on_the_recipe_explain_each_difference(user: Path, laguna_model: Path, name: str) -> None:
    _, wanted = published()
    flags = flags_of(list(launch(user, laguna_model, name).argv[3:]))
    del flags["load-format"]
    different = {flag for flag in wanted.keys() | flags.keys() if wanted.get(flag) != flags.get(flag)}
    assert different <= set(load_profile(name).departures)


def test_the_pair_is_pinned() -> None:
    profile = load_profile("laguna-s-2.1-4x24gb")
    assert profile.draft is not None
    assert (profile.model.revision, profile.draft.revision) == (
        "67dbeda456e68139f281c40831f9d12049d8fc11",
        "f6b32f4fb7ef2fb2ad481bb4c05433a2bf8b0ed1",
    )


@pytest.mark.parametrize("name", profile_names())
def test_budgets_add_up(name: str) -> None:
    profile = load_profile(name)
    budget = profile.budget
    rest = budget.context - budget.output - budget.task
    assert 0 < budget.overlay <= rest * 0.115, "about a tenth of what remains, at most"
    assert rest - budget.overlay > budget.context / 2, "most of the context is the repository's"
    if "max-model-len" in profile.flags:
        assert profile.flags["max-model-len"] == budget.context
    assert profile.prefill.segment % profile.block_size == 0
    assert profile.summary


def test_the_agreed_budgets() -> None:
    big, small = load_profile("laguna-s-2.1-4x24gb").budget, load_profile("cpu").budget
    assert (big.context, big.overlay, big.task) == (204_800, 17_000, 8192)
    assert 165_000 <= big.context - big.output - big.task - big.overlay < 166_000
    assert (small.context, small.output, small.task, small.overlay) == (8192, 1024, 1024, 600)


def test_a_draft_never_meets_an_automatic_moe_backend() -> None:
    for name in profile_names():
        profile = load_profile(name)
        if profile.draft or "moe-backend" in profile.flags:
            assert profile.flags["moe-backend"] == "marlin"


def test_a_users_file_is_laid_over_the_profile(user: Path) -> None:
    folder = user / "config" / "laguna-daemon" / "profiles"
    folder.mkdir(parents=True)
    (folder / "cpu.toml").write_text("[flags]\nmax-num-seqs = 2\nenforce-eager = false\nswap-space = 4\n")
    (folder / "mine.toml").write_text('extends = "laguna-s-2.1-4x24gb"\nsummary = "k 5"\n[draft]\ntokens = 5\n')
    cpu, mine = load_profile("cpu"), load_profile("mine")
    assert (cpu.flags["max-num-seqs"], cpu.flags["swap-space"], cpu.flags["dtype"]) == (2, 4, "bfloat16")
    assert mine.draft is not None
    assert (mine.draft.tokens, mine.draft.method, mine.name) == (5, "dflash", "mine")
    assert "mine" in profile_names()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[flags\n", "not valid TOML"),
        ('extends = "mine"\n', "extend each other"),
        ('extends = "nothing"\n', "no profile 'nothing'"),
        ('extends = "cpu"\n[budget]\noutput = "many"\n', "wrong at budget.output"),
        ('extends = "cpu"\n[bugdet]\noutput = 5\n', "wrong at bugdet"),
        ('summary = "bare"\n', "wrong at kind"),
    ],
)
def test_a_wrong_file_is_named(user: Path, text: str, message: str) -> None:
    folder = user / "config" / "laguna-daemon" / "profiles"
    folder.mkdir(parents=True)
    (folder / "mine.toml").write_text(text)
    with pytest.raises(UsageError, match=message):
        load_profile("mine")


@pytest.mark.parametrize("name", ["nothing", "../cpu", "/etc/passwd", ".hidden", ""])
def test_what_is_not_a_profile(user: Path, name: str) -> None:
    with pytest.raises(UsageError, match="profile"):
        load_profile(name)


@pytest.mark.parametrize(
    ("gpus", "wanted", "reason"),
    [
        ([], "cpu", "no GPU was found"),
        ([Gpu("NVIDIA GeForce RTX 3090", 24.0)] * 4, "laguna-s-2.1-4x24gb", "4 x NVIDIA GeForce RTX 3090, 24 GiB"),
        ([Gpu("NVIDIA GeForce RTX 3090", 24.0)] * 2, "laguna-xs-2.1", "2 x"),
        ([Gpu("NVIDIA GeForce RTX 5090", 31.8)], "laguna-xs-2.1", "32 GiB"),
        ([Gpu("NVIDIA A100 80GB", 79.3)], "laguna-s-2.1-80gb", "A100"),
        ([Gpu("NVIDIA H200", 139.8)], "laguna-s-2.1-141gb", "H200"),
        ([Gpu("NVIDIA GeForce GTX 1070", 8.0)], "cpu", "no GPU profile fits"),
    ],
)
def test_the_choice_says_why(gpus: list[Gpu], wanted: str, reason: str) -> None:
    choice = choose_profile(Settings(), gpus)
    assert choice.profile.name == wanted
    assert reason in choice.reason


def test_settings_decide_before_the_gpus() -> None:
    gpus = [Gpu("NVIDIA H200", 139.8)]
    assert choose_profile(Settings(profile="cpu"), gpus).profile.name == "cpu"
    assert choose_profile(Settings(engine=EngineSettings(url="http://box:8000")), gpus).profile.kind == "remote"
