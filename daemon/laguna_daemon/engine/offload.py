"""How much host memory the engine gets for KV blocks that the GPU's pool has no room for.

The host's copy is least recently used first out as well, and dense in all groups: N repositories of T tokens need
(N + groups - 1) times the bytes of one group, and something for other work (docs/residency.md).
"""

from __future__ import annotations

from typing import Any

import psutil

from laguna_daemon.engine.profile import Profile

FLAG = "kv-offloading-size"
OTHER_WORK_GIB = 4.0
_MOST = 0.5  # of the memory that is free when the engine starts
_ALLOCATOR = "PYTORCH_CUDA_ALLOC_CONF"
_EXPANDABLE = "expandable_segments:True"


def needed_gib(profile: Profile, repositories: int) -> float:
    """GiB of host memory that keep so many repositories of the profile's longest prompt."""
    cache = profile.cache
    tokens = profile.budget.context - profile.budget.output
    return (repositories + cache.groups - 1) * cache.token_bytes * tokens / 2**30 + OTHER_WORK_GIB


def size_gib(profile: Profile, free_bytes: int | None = None) -> float:
    """GiB to ask for, 0 for none: what the profile's number of repositories needs, fewer if only so many fit into
    half of the free memory."""
    wanted = profile.cache.offload
    if wanted != "auto":
        return float(wanted or 0)
    if not profile.cache.token_bytes:
        return 0.0
    free = psutil.virtual_memory().available if free_bytes is None else free_bytes
    for repositories in range(profile.cache.repositories, 0, -1):
        needed = needed_gib(profile, repositories)
        if needed <= _MOST * free / 2**30:
            return float(-(-needed // 1))
    return 0.0


def without_expandable_segments(environment: dict[str, str]) -> dict[str, str]:
    """The environment as offloading needs it: its connector refuses expandable segments."""
    parts = [part for part in environment.get(_ALLOCATOR, "").split(",") if part and part != _EXPANDABLE]
    kept = {name: value for name, value in environment.items() if name != _ALLOCATOR}
    return {**kept, **({_ALLOCATOR: ",".join(parts)} if parts else {})}


def apply(profile: Profile, flags: dict[str, Any]) -> float:
    """Add the flag where the profile asks for it and nobody set it; the GiB that the engine will take."""
    if FLAG in flags:
        return float(flags[FLAG] or 0)
    size = size_gib(profile) if profile.kind == "gpu" else 0.0
    if size:
        flags[FLAG] = int(size) if size == int(size) else size
    return size
