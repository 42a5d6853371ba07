"""How much memory weights and KV cache take, by vLLM's own rules for models of several kinds of layers.

KV memory is handed out in blocks of 16 tokens for a group of layers of one kind; groups have as many layers as the
smallest kind, so that all blocks are of one size. A draft's layers are allocated as layers of full attention. Source:
vllm/v1/core/kv_cache_utils.py of vLLM 0.25.1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from laguna_daemon.engine.checks.pairs import MEMORY_GIB, MIXED_GIB, MIXED_PRECISION
from laguna_daemon.engine.checks.situation import GIB, Checkpoints, Situation

BLOCK = 16
# Activations, CUDA graphs and what the driver keeps: 1.5 GiB per GPU reproduces the published pool at batches of 2,048.
_RESERVE_GIB = 1.0
_RESERVE_PER_TOKEN_GIB = 0.5 / 2048
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": GIB, "KIB": 2**10, "MIB": 2**20, "GIB": GIB}


@dataclass(frozen=True, slots=True)
class KvShape:
    """Layers of each kind, and what one token costs in one layer, in bytes over all GPUs."""

    full: int
    sliding: int
    window: int
    layer_bytes: int

    @property
    def group(self) -> int:
        """Layers in a group."""
        kinds = [count for count in (self.full, self.sliding) if count]
        smallest, largest = min(kinds), max(kinds)
        return largest if largest < smallest * 1.25 else smallest

    @property
    def block_bytes(self) -> int:
        """Bytes of one block over all GPUs."""
        return BLOCK * self.group * self.layer_bytes

    @property
    def token_bytes(self) -> int:
        """What one more token of a long context costs: layers of full attention only."""
        return self.full * self.layer_bytes

    def blocks(self, tokens: int, batch: int) -> int:
        """Blocks that one request of ``tokens`` takes while it is prefilled in steps of ``batch`` tokens."""
        full = math.ceil(self.full / self.group) * math.ceil(tokens / BLOCK)
        reach = min(self.window - 1 + batch, tokens)
        return full + math.ceil(self.sliding / self.group) * (math.ceil(reach / BLOCK) + 1)

    def capacity(self, pool_bytes: int, context: int, batch: int) -> int:
        """Tokens that a pool is said to hold: blocks in units of a whole request, as vLLM's log counts."""
        blocks = pool_bytes // self.block_bytes - 1  # one block is never handed out
        return max(0, int(blocks / self.blocks(context, batch) * context))


def kv_shape(config: Mapping[str, Any], draft: Mapping[str, Any] | None, dtype: str) -> KvShape | None:
    """The shape that the two config.json give; None if they do not say enough."""
    text = config.get("text_config", config)
    layers = int(text.get("num_hidden_layers") or 0)
    heads = int(text.get("num_key_value_heads") or text.get("num_attention_heads") or 0)
    size = int(text.get("head_dim") or 0)
    if not size and text.get("num_attention_heads"):
        size = int(text.get("hidden_size") or 0) // int(text["num_attention_heads"])
    if not (layers and heads and size):
        return None
    kinds = list(text.get("layer_types") or ())
    sliding = sum(kind == "sliding_attention" for kind in kinds)
    extra = int((draft or {}).get("num_hidden_layers") or 0)
    width = 1 if dtype.startswith("fp8") else 2
    return KvShape(
        full=layers - sliding + extra,
        sliding=sliding,
        window=int(text.get("sliding_window") or 0) or 1,
        layer_bytes=2 * heads * size * width,
    )


@dataclass(frozen=True, slots=True)
class Memory:
    """GiB per GPU: what the weights take, what is kept in reserve, what is left for the KV pool, and of it what one
    request of the whole context needs. ``sure``: the weights are known, not guessed from files.
    """

    weights: float
    reserve: float
    pool: float
    needed: float
    tokens: int
    sure: bool


def memory(situation: Situation) -> Memory | None:
    """The arithmetic of one start; None where model or GPUs are not known well enough."""
    model = situation.model
    gpus = situation.gpus[: situation.parallel]
    if model is None or not model.there or not gpus:
        return None
    draft = situation.draft if situation.draft and situation.draft.there else None
    shape = kv_shape(model.config, draft.config if draft else None, str(situation.flags.get("kv-cache-dtype", "")))
    loaded, sure = _loaded(model, situation.dummy)
    if shape is None or loaded is None:
        return None
    share = 1 / situation.parallel
    weights = (loaded + ((_loaded(draft, situation.dummy)[0] or 0) if draft else 0)) * share
    reserve = _RESERVE_GIB + _RESERVE_PER_TOKEN_GIB * situation.batch
    utilisation = float(situation.flags.get("gpu-memory-utilization") or 0.9)
    smallest = min(gpu.memory_gib for gpu in gpus)
    asked = size_of_flag(situation.flags.get("kv-cache-memory-bytes"))
    pool = asked / GIB if asked else smallest * utilisation - weights - reserve
    return Memory(
        weights=weights,
        reserve=reserve,
        pool=pool,
        needed=shape.blocks(situation.context, situation.batch) * shape.block_bytes * share / GIB,
        tokens=shape.capacity(int(max(pool, 0) * GIB / share), situation.context, situation.batch),
        sure=sure,
    )


def size_of_flag(value: object) -> int:
    """Bytes of a size as vLLM takes it: 8074538516, "1G", "7.5GiB"; 0 for none."""
    found = re.fullmatch(r"([\d.]+)\s*([A-Za-z]*)", str(value).strip()) if value else None
    if found is None:
        return 0
    return int(float(found[1]) * _UNITS.get(found[2].upper(), 1))


def _loaded(model: Checkpoints, dummy: bool) -> tuple[float | None, bool]:
    """GiB of weights, and whether that is known; files can hold more than is loaded."""
    if model.origin and model.origin.revision.startswith(MIXED_PRECISION):
        return MIXED_GIB, True
    name = model.section.repository.rpartition("/")[2] if dummy else model.repository
    if name in MEMORY_GIB:
        return MEMORY_GIB[name], True
    return (model.size / GIB, False) if model.size else (None, False)
