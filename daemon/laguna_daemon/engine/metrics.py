"""The engine's counters, read from its Prometheus page.

Names are those of vLLM's ``/metrics``: https://docs.vllm.ai/en/latest/usage/metrics.html
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_SAMPLE = re.compile(r"^(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>.*)\})?\s+(?P<value>\S+)")
_POSITION = re.compile(r'(?:^|,)\s*position="(\d+)"')


@dataclass(frozen=True, slots=True)
class Metrics:
    """One reading, summed over the engine's cores. Counters are totals since its start, in tokens or requests.

    ``kv_usage`` is the share of KV blocks in use by running requests, 0 to 1. ``accepted_at`` counts accepted draft
    tokens by their position in the draft. ``kv_blocks`` is the size of the KV pool and ``block_size`` the tokens of a
    block of one KV group, as the engine laid them out; 0 if it does not say.
    """

    running: int = 0
    waiting: int = 0
    kv_usage: float = 0.0
    prompt_tokens: int = 0
    generated_tokens: int = 0
    prefix_queries: int = 0
    prefix_hits: int = 0
    preemptions: int = 0
    drafts: int = 0
    draft_tokens: int = 0
    accepted_tokens: int = 0
    accepted_at: dict[int, int] = field(default_factory=dict)
    kv_blocks: int = 0
    block_size: int = 0

    @property
    def acceptance_length(self) -> float | None:
        """Mean tokens gained per step of speculative decoding: 1 + accepted / drafts; None before the first."""
        return 1 + self.accepted_tokens / self.drafts if self.drafts else None

    @property
    def movement(self) -> tuple[float, ...]:
        """Changes whenever the engine does any work: a prefill moves the KV usage, decoding the generated tokens."""
        return (
            self.running,
            self.waiting,
            self.kv_usage,
            self.prompt_tokens,
            self.generated_tokens,
            self.prefix_queries,
            self.preemptions,
        )


_COUNTERS = {
    "vllm:num_requests_running": "running",
    "vllm:num_requests_waiting": "waiting",
    "vllm:kv_cache_usage_perc": "kv_usage",
    "vllm:prompt_tokens_total": "prompt_tokens",
    "vllm:generation_tokens_total": "generated_tokens",
    "vllm:prefix_cache_queries_total": "prefix_queries",
    "vllm:prefix_cache_hits_total": "prefix_hits",
    "vllm:num_preemptions_total": "preemptions",
    "vllm:spec_decode_num_drafts_total": "drafts",
    "vllm:spec_decode_num_draft_tokens_total": "draft_tokens",
    "vllm:spec_decode_num_accepted_tokens_total": "accepted_tokens",
}
_CACHE = "vllm:cache_config_info"
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_PER_POSITION = "vllm:spec_decode_num_accepted_tokens_per_pos_total"


def parse_metrics(page: str) -> Metrics:
    """Read a Prometheus text page; samples that are not known, or not numbers, are passed over."""
    totals: dict[str, float] = {}
    positions: dict[int, int] = {}
    cache: dict[str, str] = {}
    for line in page.splitlines():
        found = _SAMPLE.match(line)
        if found is None:
            continue
        name, labels = found["name"], found["labels"] or ""
        try:
            value = float(found["value"])
        except ValueError:
            continue
        if name in _COUNTERS:
            key = _COUNTERS[name]
            totals[key] = totals.get(key, 0.0) + value
        elif name == _CACHE:
            cache = dict(_LABEL.findall(labels))
        elif name == _PER_POSITION and (at := _POSITION.search(labels)):
            positions[int(at[1])] = positions.get(int(at[1]), 0) + int(value)
    usage = totals.pop("kv_usage", 0.0)
    whole = {name: int(value) for name, value in totals.items()}
    return Metrics(
        kv_usage=usage,
        accepted_at=positions,
        kv_blocks=_whole(cache.get("num_gpu_blocks")),
        block_size=_whole(cache.get("block_size")),
        **whole,
    )


def _whole(text: str | None) -> int:
    return int(text) if text and text.isdigit() else 0
