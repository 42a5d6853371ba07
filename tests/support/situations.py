"""Machines, checkpoints and environments for the checks: the published deployment, and changes to it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from laguna_daemon.engine.checks import Checkpoints, Situation
from laguna_daemon.engine.gpus import FoundGpu
from laguna_daemon.engine.profile import load_profile
from laguna_daemon.engine.setup.download import Checkpoint
from support.laguna_configs import draft_config, target_config

GOOD = ("67dbeda456e68139f281c40831f9d12049d8fc11", "f6b32f4fb7ef2fb2ad481bb4c05433a2bf8b0ed1")
OTHER_GOOD = ("4bbfc285f2f8b3b6b526274c133b7b17aae6c8cb", "5e07c246915c86dc6920fead03d019989224f2ba")
MAIN = "3879c9fd" + "0" * 32
TARGET, DRAFT = "poolside/Laguna-S-2.1-INT4", "poolside/Laguna-S-2.1-DFlash-INT4"


def card(index: int = 0, memory: float = 24.0, free: float | None = None, **more: Any) -> FoundGpu:
    """An RTX 3090, or what the keywords make of it."""
    described = {"name": "NVIDIA GeForce RTX 3090", "capability": (8, 6), **more}
    return FoundGpu(index=index, memory_gib=memory, free_gib=memory - 0.2 if free is None else free, **described)


def published(name: str = "laguna-s-2.1-4x24gb", **changes: Any) -> Situation:
    """The profile on four RTX 3090s with everything as it should be. `flags` and `environment` are laid over its own,
    False takes one away; `revisions`, `repositories` and `configs` are pairs of target and draft."""
    profile = changes.pop("profile", None) or load_profile(name)
    revisions = changes.pop("revisions", GOOD)
    repositories = changes.pop("repositories", (TARGET, DRAFT))
    configs = changes.pop("configs", (target_config(), draft_config()))
    speculation = profile.draft and {
        "model": "draft",
        "num_speculative_tokens": profile.draft.tokens,
        "method": profile.draft.method,
    }
    flags = {**profile.flags, "speculative-config": speculation, **changes.pop("flags", {})}
    environment = {**profile.environment, **changes.pop("environment", {})}
    sections = (profile.model, profile.draft)
    folders = [
        section
        and Checkpoints(
            section,
            Path("/models") / repository.rpartition("/")[2],
            config,
            Checkpoint(section.name, repository, revision) if revision else None,
        )
        for section, repository, revision, config in zip(sections, repositories, revisions, configs, strict=True)
    ]
    situation = Situation(
        profile=profile,
        flags={key: value for key, value in flags.items() if value not in (None, False)},
        environment=environment,
        model=folders[0],
        draft=folders[1],
        gpus=[card(index) for index in range(4)],
        driver="580.65.06",
        packages={"vllm": "0.25.1", "transformers": "5.14.1"},
        managed=False,
        python=Path("/engine/bin/python"),
        free_disk=200_000_000_000,
        host_memory=128 * 2**30,
    )
    return replace(situation, **changes)
