"""The rows of `residency.py` through vLLM's own KV cache manager, without a GPU: what would come from the cache.

No model runs and no time is measured: each request's blocks are looked up, allocated chunk by chunk and freed as the
scheduler does it for one request at a time, with its offloading connector if asked for. Needs vLLM 0.25.1's Python
files and torch, no GPU.

usage: replay.py [--parts touch,branch] [--tokens 190000] [--offload GiB]
"""

import argparse
import json
import os
from types import SimpleNamespace
from typing import Any

os.environ.setdefault("PYTHONHASHSEED", "0")

import laguna_config
import rows
import torch
from vllm import SamplingParams
from vllm.distributed.kv_transfer.kv_connector.v1.offloading.common import OffloadingWorkerMetadata
from vllm.distributed.kv_transfer.kv_connector.v1.offloading.scheduler import OffloadingConnectorScheduler
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_manager import KVCacheManager
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.kv_cache_interface import (
    FullAttentionSpec,
    KVCacheConfig,
    KVCacheGroupSpec,
    SlidingWindowSpec,
)
from vllm.v1.kv_offload.cpu.manager import CPUOffloadingManager
from vllm.v1.request import Request, RequestStatus

BLOCK = 16  # tokens
CHUNK = 2048  # tokens of one scheduler step
PAGE = 18 * 2048 * BLOCK  # bytes: 18 layers, 2,048 bytes per layer and token in FP8
POOL = int(7.52 * 2**30)
DRAFT = 7


class Ledger:
    """A rig that only keeps the books: one pool of blocks, three groups of 18 layers (12 global ones and the draft's
    six together, the 36 sliding ones in two)."""

    def __init__(self, host: "Host | None", silent: bool = False) -> None:
        self.cached = 0  # tokens of the last request that came from the cache
        self._silent = silent
        init_none_hash(sha256)
        self._hasher = get_request_block_hasher(BLOCK, sha256)
        self._host = host
        self._manager = KVCacheManager(
            pool_config(),
            max_model_len=204_800,
            scheduler_block_size=BLOCK,
            hash_block_size=BLOCK,
            max_num_batched_tokens=CHUNK,
            use_eagle=True,
        )
        self._count = 0

    def run(self, row: str, prompt: rows.Ids, output: int = 1) -> rows.Ids:
        request = self._request(prompt, output)
        blocks, known = self._manager.get_computed_blocks(request)
        loaded = self._load(request, blocks, known)
        cached = known + loaded
        if loaded:
            blocks, known = None, 0
        while request.num_computed_tokens < request.num_prompt_tokens:
            left = request.num_prompt_tokens - request.num_computed_tokens - known
            self._step(request, min(CHUNK, left), known, blocks)
            blocks, known = None, 0
        said = [1000 + self._count * 7 % 90_000] * output
        for token in said[:-1]:
            request.append_output_token_ids(token)
            self._step(request, 1, 0, None)
        if self._host:
            self._host.finish(request)
        self._manager.free(request)
        self.cached = cached
        if not self._silent:
            print(json.dumps({"row": row, "prompt": len(prompt), "cached": cached}), flush=True)
        return said

    def _request(self, prompt: rows.Ids, output: int) -> Request:
        self._count += 1
        return Request(
            f"request {self._count}",
            prompt,
            SamplingParams(max_tokens=output, temperature=0),
            None,
            block_hasher=self._hasher,
        )

    def _load(self, request: Request, blocks: Any, known: int) -> int:
        """Bring what host memory holds beyond the `known` tokens into the pool; returns the tokens brought."""
        if not self._host:
            return 0
        loaded = self._host.find(request, known)
        if loaded:
            self._manager.allocate_slots(
                request, 0, known, blocks, num_external_computed_tokens=loaded, delay_cache_blocks=True
            )
            self._host.load(request, self._manager.get_blocks(request.request_id), loaded)
            request.num_computed_tokens = known + loaded
            self._manager.cache_blocks(request, known + loaded)
        return loaded

    def _step(self, request: Request, step: int, known: int, blocks: Any) -> None:
        new = self._manager.allocate_slots(request, step, known, blocks, num_lookahead_tokens=DRAFT)
        if new is None:
            raise RuntimeError(f"the pool has no room for {request.num_tokens:,} tokens")
        request.num_computed_tokens += known
        if self._host:
            every = self._manager.get_block_ids(request.request_id)
            self._host.store(request, step, every, new.get_block_ids())
        request.num_computed_tokens += step


class Host:
    """vLLM's offloading connector, its scheduler's side; each transfer is done when its step is."""

    def __init__(self, gib: float) -> None:
        nothing = SimpleNamespace(enable_kv_cache_events=False, self_describing_kv_events=False)
        self._seen: set[str] = set()
        self.connector = OffloadingConnectorScheduler(
            SimpleNamespace(
                gpu_block_size=(BLOCK,) * 3,
                hash_block_size=BLOCK,
                block_size_factor=1,
                offload_prompt_only=True,
                kv_cache_config=pool_config(),
                kv_events_config=nothing,
                get_manager=lambda: CPUOffloadingManager(num_blocks=int(gib * 2**30) // PAGE),
                vllm_config=SimpleNamespace(
                    speculative_config=SimpleNamespace(use_eagle=lambda: True),
                    parallel_config=SimpleNamespace(world_size=1),
                    cache_config=SimpleNamespace(enable_prefix_caching=True),
                ),
            )
        )

    def find(self, request: Request, known: int) -> int:
        self.connector.on_new_request(request)
        return self.connector.get_num_new_matched_tokens(request, known)[0] or 0

    def load(self, request: Request, blocks: Any, tokens: int) -> None:
        self.connector.update_state_after_alloc(request, blocks, tokens)
        self._done(self.connector.build_connector_meta(scheduled()).load_jobs)

    def store(self, request: Request, step: int, every: Any, new: Any) -> None:
        name = request.request_id
        first = name not in self._seen
        self._seen.add(name)
        output = scheduled(name, step, every if first else None, new)
        self._done(self.connector.build_connector_meta(output).store_jobs)

    def finish(self, request: Request) -> None:
        request.status = RequestStatus.FINISHED_LENGTH_CAPPED
        self.connector.request_finished(request)

    def _done(self, jobs: dict[int, Any]) -> None:
        done = OffloadingWorkerMetadata(completed_jobs=dict.fromkeys(jobs, 1))
        self.connector.update_connector_output(SimpleNamespace(kv_connector_worker_meta=done))


def scheduled(name: str = "", step: int = 0, every: Any = None, new: Any = None) -> Any:
    """A scheduler's output for one request at most: `every` block of it if it is new, else the `new` ones."""
    running = [name] if name and every is None else []
    return SimpleNamespace(
        scheduled_new_reqs=[SimpleNamespace(req_id=name, block_ids=every)] if every else [],
        scheduled_cached_reqs=SimpleNamespace(
            req_ids=running, new_block_ids=[new] * len(running), resumed_req_ids=set()
        ),
        num_scheduled_tokens={name: step} if name else {},
        preempted_req_ids=set(),
    )


def pool_config() -> KVCacheConfig:
    """The pool as vLLM lays it out for Laguna with the DFlash draft."""
    shape: dict[str, Any] = {"num_kv_heads": 8, "head_size": 128, "dtype": torch.uint8}
    full = FullAttentionSpec(BLOCK, **shape)
    sliding = SlidingWindowSpec(BLOCK, sliding_window=laguna_config.WINDOW, **shape)
    groups = [KVCacheGroupSpec([f"group {number}"], spec) for number, spec in enumerate((full, sliding, sliding))]
    return KVCacheConfig(num_blocks=POOL // PAGE, kv_cache_tensors=[], kv_cache_groups=groups)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--parts", default=",".join(rows.PARTS))
    parser.add_argument("--tokens", type=int, default=190_000)
    parser.add_argument("--offload", type=float, default=0, help="GiB of host memory for KV blocks")
    options = parser.parse_args()
    host = Host(options.offload) if options.offload else None
    rows.ask(Ledger(host), options.parts.split(","), options.tokens)


if __name__ == "__main__":
    main()
