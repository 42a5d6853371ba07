"""An engine that schedules and keeps its KV cache as vLLM does, and computes nothing: for policies at full size.

vLLM's own scheduler, KV cache manager and offloading connector decide what runs, what is preempted, what comes from the
cache and what is evicted, in a pool of the four-card size with Laguna's KV groups. Steps take the time that one H200
was measured to need (`Times`); text is one word. The HTTP side answers what the daemon asks of vLLM.

    PYTHONPATH=<vLLM 0.25.1's files> python scheduled_engine.py --uds S.sock [--kv-offloading-size GiB] [...]

Flags that it does not know are passed over: it stands in for vLLM's command line. `--speed 10` runs ten times
faster. `GET /log` gives every request: tokens, cached, priority, times, and how often it was preempted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import queue
import threading
import time
import traceback
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

os.environ.setdefault("PYTHONHASHSEED", "0")

import replay
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request as Http
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from vllm import SamplingParams
from vllm.distributed.kv_transfer.kv_connector.factory import KVConnectorFactory
from vllm.distributed.kv_transfer.kv_connector.v1.offloading.common import OffloadingWorkerMetadata
from vllm.distributed.kv_transfer.kv_connector.v1.offloading_connector import OffloadingConnector
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.outputs import DraftTokenIds, KVConnectorOutput, ModelRunnerOutput
from vllm.v1.request import Request, RequestStatus

WORD = " word"


@dataclass(frozen=True)
class Times:
    """Seconds of one step on one H200 with Laguna S 2.1 INT4 and DFlash, fitted to the rows in results: 190,000 tokens
    in steps of 2,048 take 19 s, the last ones about twice as long as the first; a decoded token at 190,000 takes 25 ms;
    host memory is read at about 20 GB/s."""

    step: float = 0.012
    token: float = 0.060e-3
    token_at_end: float = 0.075e-3  # more, per token, at 190,000 tokens before it
    context: float = 0.012  # more per request and step at 190,000 tokens
    load: float = 20e9
    api: float = 0.045  # JSON, checks and messages of a prompt of 190,000 ids

    def of(self, work: list[tuple[int, int]]) -> float:
        """A step that computes `tokens` behind `before` others, for each of its requests."""
        total = self.step
        for tokens, before in work:
            share = before / 190_000
            total += tokens * (self.token + self.token_at_end * share) + self.context * share
        return total


@dataclass
class Job:
    """One request on its way through the engine."""

    request: Request
    answer: asyncio.Queue[int | None]
    loop: asyncio.AbstractEventLoop
    arrived: float
    log: dict[str, Any] = field(default_factory=dict)
    first: float | None = None
    cached: int = 0


class Core:
    """The scheduler in a thread of its own, as vLLM's engine core."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.times = Times()
        self.log: list[dict[str, Any]] = []
        init_none_hash(sha256)
        self.hasher = get_request_block_hasher(replay.BLOCK, sha256)
        self._jobs: dict[str, Job] = {}
        self._inbox: queue.Queue[tuple[str, Any]] = queue.Queue()
        self._loads: dict[int, tuple[str, float]] = {}
        self.scheduler = self._scheduler()

    def _scheduler(self) -> Scheduler:
        options = self.options
        pool = replay.pool_config()
        self.blocks = pool.num_blocks
        speculative = SimpleNamespace(
            num_speculative_tokens_per_batch_size=None,
            use_eagle=lambda: True,
            uses_draft_model=lambda: False,
            use_dflash=lambda: True,
            use_dspark=lambda: False,
        )
        config = SimpleNamespace(
            scheduler_config=SimpleNamespace(
                max_num_seqs=options.max_num_seqs,
                max_num_scheduled_tokens=None,
                max_num_batched_tokens=options.max_num_batched_tokens,
                policy=options.scheduling_policy,
                long_prefill_token_threshold=options.long_prefill_token_threshold,
                enable_chunked_prefill=True,
                async_scheduling=False,
                watermark=0.0,
                scheduler_reserve_full_isl=True,
                max_num_partial_prefills=1,
            ),
            cache_config=SimpleNamespace(
                num_gpu_blocks=pool.num_blocks, enable_prefix_caching=True, mamba_cache_mode="none"
            ),
            model_config=SimpleNamespace(
                max_model_len=options.max_model_len,
                is_encoder_decoder=False,
                is_diffusion=False,
                enable_return_routed_experts=False,
                is_multimodal_model=False,
                multimodal_config=None,
            ),
            observability_config=SimpleNamespace(kv_cache_metrics=False, enable_mfu_metrics=False),
            parallel_config=SimpleNamespace(
                decode_context_parallel_size=1,
                prefill_context_parallel_size=1,
                pipeline_parallel_size=1,
                data_parallel_index=0,
                data_parallel_size=1,
                world_size=1,
            ),
            lora_config=None,
            kv_events_config=None,
            ec_transfer_config=None,
            speculative_config=speculative,
            num_speculative_tokens=replay.DRAFT,
            use_v2_model_runner=False,
            max_concurrent_batches=1,
            kv_transfer_config=None,
        )
        if options.kv_offloading_size:
            config.kv_transfer_config = SimpleNamespace(kv_load_failure_policy="recompute", is_kv_consumer=True)
            connector = OffloadingConnector.__new__(OffloadingConnector)
            connector.connector_scheduler = replay.Host(options.kv_offloading_size).connector
            connector.connector_worker = None
            KVConnectorFactory.create_connector = staticmethod(lambda **_: connector)  # type: ignore[method-assign]
        registry = SimpleNamespace(supports_multimodal_inputs=lambda _: False)
        return Scheduler(
            config,
            pool,
            SimpleNamespace(should_advance=lambda _: False),
            block_size=replay.BLOCK,
            hash_block_size=replay.BLOCK,
            mm_registry=registry,
        )

    # called by the HTTP side -------------------------------------------------------------------------------------

    def add(self, job: Job) -> None:
        self._inbox.put(("add", job))

    def abort(self, name: str) -> None:
        self._inbox.put(("abort", name))

    # the thread --------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Step for ever."""
        try:
            self._serve()
        except BaseException:
            traceback.print_exc()
            os._exit(1)  # as vLLM: its API server ends with its core

    def _serve(self) -> None:
        while True:
            self._take(wait=not self.scheduler.has_requests() and not self._loads)
            self._step()

    def _take(self, wait: bool) -> None:
        while True:
            try:
                what, item = self._inbox.get(block=wait)
            except queue.Empty:
                return
            wait = False
            if what == "add":
                self._jobs[item.request.request_id] = item
                self.scheduler.add_request(item.request)
            else:
                self.scheduler.finish_requests([item], RequestStatus.FINISHED_ABORTED)
                job = self._jobs.pop(item, None)
                if job is not None:
                    self._note(job, "abort")

    def _step(self) -> None:
        began = time.perf_counter()
        scheduler = self.scheduler
        output = scheduler.schedule()
        for name in output.preempted_req_ids or ():
            self._jobs[name].log["preempted"] = self._jobs[name].log.get("preempted", 0) + 1
        names = list(output.num_scheduled_tokens)
        work, sampled, drafts = [], [], []
        for name in names:
            request = self._jobs[name].request
            done = request.num_computed_tokens >= request.num_tokens
            tokens = output.num_scheduled_tokens[name]
            work.append((tokens, request.num_computed_tokens - tokens))
            sampled.append([1000] if done else [])
            drafts.append([1000] * replay.DRAFT if done else [])
        moved = self._transfers(output)
        self._sleep(self.times.of(work) if work else 0.001, began)
        result = ModelRunnerOutput(
            req_ids=names,
            req_id_to_index={name: index for index, name in enumerate(names)},
            sampled_token_ids=sampled,
            kv_connector_output=moved,
        )
        results = scheduler.update_from_output(output, result)
        scheduler.update_draft_token_ids(DraftTokenIds(names, drafts))
        for found in results.values():
            for item in found.outputs:
                self._said(item)

    def _sleep(self, seconds: float, began: float) -> None:
        left = seconds / self.options.speed - (time.perf_counter() - began)
        if left > 0:
            time.sleep(left)

    def _transfers(self, output: Any) -> KVConnectorOutput | None:
        """Copies to host memory are done with their step; loads after the time they take."""
        if not self.options.kv_offloading_size:
            return None
        meta = output.kv_connector_metadata
        now = time.perf_counter()
        done = dict.fromkeys(meta.store_jobs if meta else (), 1)
        for number, job in (meta.load_jobs if meta else {}).items():
            size = len(job.src_spec.block_ids) * replay.PAGE
            self._loads[number] = (job.req_id, now + size / self.times.load / self.options.speed)
        ready = [number for number, (_, end) in self._loads.items() if end <= now]
        received = {self._loads.pop(number)[0] for number in ready}
        done |= dict.fromkeys(ready, 1)
        return KVConnectorOutput(
            finished_recving=received, kv_connector_worker_meta=OffloadingWorkerMetadata(completed_jobs=done)
        )

    def _said(self, item: Any) -> None:
        job = self._jobs.get(item.request_id)
        if job is None:
            return
        if item.prefill_stats is not None:
            job.cached = item.prefill_stats.num_cached_tokens
        if job.first is None:
            job.first = time.perf_counter()
        for token in item.new_token_ids:
            job.loop.call_soon_threadsafe(job.answer.put_nowait, token)
        if item.finish_reason is not None:
            del self._jobs[item.request_id]
            self._note(job, str(item.finish_reason))
            job.loop.call_soon_threadsafe(job.answer.put_nowait, None)

    def _note(self, job: Job, reason: str) -> None:
        now, request = time.perf_counter(), job.request
        job.log |= {
            "tokens": request.num_prompt_tokens,
            "cached": job.cached,
            "output": request.num_output_tokens,
            "priority": request.priority,
            "at": round(job.arrived, 3),
            "first_s": round((job.first or now) - job.arrived, 4),
            "end_s": round(now - job.arrived, 4),
            "reason": reason,
        }
        self.log.append(job.log)
        print(json.dumps(job.log), flush=True)


class Engine:
    """vLLM's HTTP side, as much of it as the daemon asks for."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self._count = 0

    async def completions(self, http: Http) -> Response:
        arrived = time.perf_counter()
        body = json.loads(await http.body())
        ids = body["prompt"]
        self._count += 1
        params = SamplingParams(max_tokens=body.get("max_tokens") or 16, temperature=0, ignore_eos=True)
        name = f"cmpl-{self._count}"
        await asyncio.sleep(self.core.times.api * len(ids) / 190_000 / self.core.options.speed)
        request = Request(name, ids, params, None, priority=body.get("priority") or 0, block_hasher=self.core.hasher)
        job = Job(request, asyncio.Queue(), asyncio.get_running_loop(), arrived)
        self.core.add(job)
        back = ids if body.get("return_token_ids") else None
        return StreamingResponse(self._stream(job, body, back), media_type="text/event-stream")

    async def _stream(self, job: Job, body: dict[str, Any], back: list[int] | None) -> AsyncIterator[bytes]:
        ended = False
        count = 0
        try:
            while (token := await job.answer.get()) is not None:
                count += 1
                last = count >= job.request.max_tokens
                choice = {"index": 0, "text": WORD, "finish_reason": "length" if last else None, "stop_reason": None}
                if body.get("logprobs") is not None:
                    choice["logprobs"] = {"tokens": [f"token_id:{token}"]}
                if back is not None:
                    choice["token_ids"] = [token]
                    if count == 1:
                        choice["prompt_token_ids"] = back
                yield _event({"id": job.request.request_id, "object": "text_completion", "choices": [choice]})
            ended = True
            tokens = job.request.num_prompt_tokens
            usage = {
                "prompt_tokens": tokens,
                "completion_tokens": count,
                "total_tokens": tokens + count,
                "prompt_tokens_details": {"cached_tokens": job.cached},
            }
            yield _event({"id": job.request.request_id, "object": "text_completion", "choices": [], "usage": usage})
            yield b"data: [DONE]\n\n"
        finally:
            if not ended:
                self.core.abort(job.request.request_id)

    async def metrics(self, http: Http) -> Response:
        labels = f'block_size="{replay.BLOCK}",num_gpu_blocks="{self.core.blocks}"'
        return PlainTextResponse(f"vllm:cache_config_info{{{labels}}} 1.0\n")

    def app(self) -> Starlette:
        async def ok(http: Http) -> Response:
            return PlainTextResponse("")

        async def version(http: Http) -> Response:
            return JSONResponse({"version": "0.25.1"})

        async def models(http: Http) -> Response:
            return JSONResponse({"data": [{"id": "model", "max_model_len": self.core.options.max_model_len}]})

        async def log(http: Http) -> Response:
            return JSONResponse(self.core.log)

        return Starlette(
            routes=[
                Route("/v1/completions", self.completions, methods=["POST"]),
                Route("/v1/models", models),
                Route("/metrics", self.metrics),
                Route("/health", ok),
                Route("/version", version),
                Route("/log", log),
            ]
        )


def _event(body: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--uds", required=True)
    parser.add_argument("--speed", type=float, default=float(os.environ.get("SCHEDULED_ENGINE_SPEED", "1")))
    parser.add_argument("--max-model-len", type=int, default=204_800)
    parser.add_argument("--max-num-seqs", type=int, default=4)
    parser.add_argument("--max-num-batched-tokens", type=int, default=replay.CHUNK)
    parser.add_argument("--long-prefill-token-threshold", type=int, default=0)
    parser.add_argument("--scheduling-policy", default="priority")
    parser.add_argument("--kv-offloading-size", type=float, default=0)
    options, _ = parser.parse_known_args()
    core = Core(options)
    threading.Thread(target=core.run, daemon=True).start()
    uvicorn.run(Engine(core).app(), uds=options.uds, log_level="warning", access_log=False)


if __name__ == "__main__":
    main()
