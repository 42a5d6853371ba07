"""A fake engine for fast tests: vLLM's HTTP, a real tokenizer, an honest prefix cache, scripted answers.

    python fake_engine.py --uds S.sock --model FOLDER [--answers FILE] [--blocks N] [--trace FILE] ...

It imports nothing of the product and ignores vLLM flags that it has no use for, so it can stand in for the engine's
command. `/control/...` are its own: answers, requests, wedge, health, exit.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import uvicorn
from fake_core import Core, Options
from fake_core import Request as Work
from fake_pool import Pool
from fake_text import Detokenizer, Model, Script
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

VERSION = "0.32.0"


class Refused(Exception):
    """A request that vLLM answers with an error object."""

    def __init__(self, message: str, param: str | None = None, code: int = 400) -> None:
        super().__init__(message)
        self.body = {"error": {"message": message, "type": "BadRequestError", "param": param, "code": code}}
        self.code = code


class Engine:
    """The HTTP side."""

    def __init__(self, core: Core, options: argparse.Namespace) -> None:
        self.core, self.options = core, options
        self.name = options.served_model_name or str(options.model)
        self.healthy = not options.unhealthy

    async def completions(self, http: Request) -> Response:
        body = await http.json()
        work = self._work(body)
        identity, created = f"cmpl-{uuid4().hex}", int(time.time())
        head = {"id": identity, "object": "text_completion", "created": created, "model": self.name}
        if body.get("stream"):
            return StreamingResponse(self._stream(body, work, head), media_type="text/event-stream")
        pieces = [piece async for piece in self._pieces(body, work)]
        choice = {
            "index": 0,
            "text": "".join(piece["text"] for piece in pieces),
            "logprobs": None,
            "finish_reason": pieces[-1]["finish_reason"],
            "stop_reason": pieces[-1]["stop_reason"],
            "token_ids": work.output if body.get("return_token_ids") else None,
        }
        return JSONResponse({**head, "choices": [choice], "usage": self._usage(work)})

    def _work(self, body: dict[str, Any]) -> Work:
        """Check a request as vLLM does."""
        core = self.core
        if body.get("model") not in (None, self.name):
            raise Refused(f"The model `{body['model']}` does not exist.", "model", 404)
        prompt = body.get("prompt")
        ids = core.model.encode(prompt) if isinstance(prompt, str) else prompt
        if not ids:
            raise Refused("You must pass at least one prompt")
        highest = max(ids)
        if highest >= core.model.vocabulary:
            raise Refused(f"Token id {highest} is out of vocabulary")
        asked = 16 if body.get("max_tokens") is None else body["max_tokens"]
        self._check_length(len(ids), asked)
        wanted = min(asked, core.options.context - len(ids))
        if wanted < 1:
            raise Refused(f"max_tokens must be at least 1, got {wanted}. (parameter=max_tokens)", "max_tokens")
        if body.get("priority") and self.options.scheduling_policy != "priority":
            raise Refused("Got priority != 0 but the scheduling policy is not priority.")
        return Work(
            prompt=list(ids),
            max_tokens=wanted,
            stop_ids=tuple(body.get("stop_token_ids") or ()),
            priority=body.get("priority") or 0,
            salt=body.get("cache_salt") or "",
            ignore_eos=bool(body.get("ignore_eos")),
        )

    def _check_length(self, tokens: int, wanted: int) -> None:
        context = self.core.options.context
        if wanted > context:
            raise Refused(
                f"max_tokens={wanted} cannot be greater than max_model_len={context}. Please request fewer output "
                f"tokens. (parameter=max_tokens, value={wanted})",
                "max_tokens",
            )
        if tokens > context:
            raise Refused(
                f"This model's maximum context length is {context} tokens. However, your prompt contains {tokens} "
                "input tokens, which exceeds this limit even without any output tokens. Please reduce the length of "
                f"the input prompt. (parameter=input_tokens, value={tokens})",
                "input_tokens",
            )

    async def _pieces(self, body: dict[str, Any], work: Work) -> AsyncIterator[dict[str, Any]]:
        text = Detokenizer(self.core.model)
        held = ""
        stops = body.get("stop") or []
        hold = max((len(word) - 1 for word in stops), default=0)
        generation = self.core.generate(work)
        try:
            async for ids, finish, stop in generation:
                spoken = [] if finish == "stop" else ids
                held += text.add(spoken, last=finish is not None)
                ended, reason = finish, stop
                for word in stops:
                    if word in held:
                        held, ended, reason = held.split(word)[0], "stop", word
                # As vLLM does: what may be the beginning of a stop text waits.
                cut = len(held) if ended else max(0, len(held) - hold)
                piece, held = held[:cut], held[cut:]
                yield {"text": piece, "finish_reason": ended, "stop_reason": reason, "token_ids": ids}
                if ended is not None:
                    return
        finally:
            await generation.aclose()

    async def _stream(self, body: dict[str, Any], work: Work, head: dict[str, Any]) -> AsyncIterator[bytes]:
        first = True
        pieces = self._pieces(body, work)
        try:
            async for piece in pieces:
                choice = {"index": 0, "logprobs": self._logprobs(body, piece["token_ids"]), **piece}
                if not body.get("return_token_ids"):
                    del choice["token_ids"]
                elif first:
                    choice["prompt_token_ids"] = work.prompt
                first = False
                yield _event({**head, "choices": [choice]})
            if (body.get("stream_options") or {}).get("include_usage"):
                yield _event({**head, "choices": [], "usage": self._usage(work)})
            yield b"data: [DONE]\n\n"
        finally:
            await pieces.aclose()

    def _logprobs(self, body: dict[str, Any], ids: list[int]) -> dict[str, Any] | None:
        if body.get("logprobs") is None:
            return None
        if not body.get("return_tokens_as_token_ids"):
            raise Refused("The fake engine names tokens by their ids only.", "logprobs")
        names = [f"token_id:{number}" for number in ids]
        return {"tokens": names, "token_logprobs": [-0.5] * len(ids), "top_logprobs": None, "text_offset": []}

    def _usage(self, work: Work) -> dict[str, Any]:
        prompt, output = len(work.prompt), len(work.output)
        usage = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}
        if self.options.enable_prompt_tokens_details:
            return {**usage, "prompt_tokens_details": {"cached_tokens": work.cached or 0}}
        return usage

    async def tokenize(self, http: Request) -> Response:
        body = await http.json()
        if "messages" in body:
            wanted = body.get("add_generation_prompt", True)
            ids = self.core.model.chat(body["messages"], wanted, **(body.get("chat_template_kwargs") or {}))
        else:
            ids = self.core.model.encode(body["prompt"])
        return JSONResponse({"count": len(ids), "max_model_len": self.core.options.context, "tokens": ids})

    async def detokenize(self, http: Request) -> Response:
        ids = (await http.json())["tokens"]
        return JSONResponse({"prompt": self.core.model.decode(ids, special=True)})

    async def models(self, http: Request) -> Response:
        entry = {"id": self.name, "object": "model", "owned_by": "vllm", "root": str(self.options.model)}
        return JSONResponse({"object": "list", "data": [{**entry, "max_model_len": self.core.options.context}]})

    async def metrics(self, http: Request) -> Response:
        core = self.core
        label = f'{{engine="0",model_name="{self.name}"}}'
        rows = {
            "num_requests_running": core.running,
            "num_requests_waiting": len(core.waiting),
            "kv_cache_usage_perc": core.pool.usage,
            **{f"{name}_total": value for name, value in core.counters.items()},
        }
        pool = f'vllm:cache_config_info{{block_size="{core.pool.size}",num_gpu_blocks="{core.pool.blocks + 1}"}} 1.0\n'
        page = "".join(f"vllm:{name}{label} {float(value)}\n" for name, value in rows.items())
        return PlainTextResponse(page + pool)

    async def health(self, http: Request) -> Response:
        return Response(status_code=200 if self.healthy else 503)

    async def version(self, http: Request) -> Response:
        return JSONResponse({"version": VERSION})

    async def reset(self, http: Request) -> Response:
        return JSONResponse({"success": self.core.pool.reset()})

    async def control(self, http: Request) -> Response:
        action = http.path_params["action"]
        body = json.loads(await http.body() or b"null")
        if action == "answers":
            self.core.script.rules = body
        elif action == "wedge":
            self.core.wedged = bool(body)
        elif action == "health":
            self.healthy = bool(body)
        elif action == "exit":
            os._exit(int(body))
        return JSONResponse(self.core.log if action == "requests" else {"ok": True})

    def app(self) -> Starlette:
        routes = [
            Route("/v1/completions", self.completions, methods=["POST"]),
            Route("/tokenize", self.tokenize, methods=["POST"]),
            Route("/detokenize", self.detokenize, methods=["POST"]),
            Route("/v1/models", self.models),
            Route("/metrics", self.metrics),
            Route("/health", self.health),
            Route("/version", self.version),
            Route("/reset_prefix_cache", self.reset, methods=["POST"]),
            Route("/control/{action}", self.control, methods=["GET", "POST"]),
        ]
        return Starlette(routes=routes, exception_handlers={Refused: _refusal})


async def _refusal(http: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return JSONResponse(error.body, status_code=error.code)


def _event(body: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(body, ensure_ascii=False).encode() + b"\n\n"


def options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--uds", required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--served-model-name")
    parser.add_argument("--max-model-len", type=int)
    parser.add_argument("--max-num-batched-tokens", type=int, default=2048)
    parser.add_argument("--max-num-seqs", type=int, default=8)
    parser.add_argument("--kv-cache-memory-bytes", default="1G")
    parser.add_argument("--block-size", type=int, default=128)
    parser.add_argument("--scheduling-policy", default="fcfs")
    parser.add_argument("--enable-prompt-tokens-details", action="store_true")
    parser.add_argument("--blocks", type=int, help="KV blocks; without it computed from the memory")
    parser.add_argument("--answers", type=Path)
    parser.add_argument("--trace", type=Path)
    parser.add_argument("--prefill-speed", type=float, default=0.0, help="tokens per second")
    parser.add_argument("--decode-speed", type=float, default=0.0, help="tokens per second")
    parser.add_argument("--start-seconds", type=float, default=0.0)
    parser.add_argument("--start-log", type=Path, help="printed while starting")
    parser.add_argument("--start-exit", type=int, help="end with this code instead of serving")
    parser.add_argument("--cores", type=int, default=0, help="detached processes to start, as vLLM's own")
    parser.add_argument("--unhealthy", action="store_true")
    parser.add_argument("--ignore-term", action="store_true")
    return parser.parse_known_args(arguments)[0]


def bytes_of(text: str) -> int:
    units = {"K": 10, "M": 20, "G": 30}
    scale = units.get(text[-1].upper())
    return int(text) if scale is None else int(float(text[:-1]) * 2**scale)


def start(chosen: argparse.Namespace) -> None:
    """What an engine does before it serves: start helpers, log, take its time, perhaps fail."""
    for _ in range(chosen.cores):
        # Like vLLM's engine cores: a session of their own and an environment that cannot be read back.
        subprocess.Popen(["sleep", "600"], start_new_session=True, env={})
    if chosen.start_log:
        print(chosen.start_log.read_text(encoding="utf-8"), flush=True)
    time.sleep(chosen.start_seconds)
    if chosen.start_exit is not None:
        sys.exit(chosen.start_exit)


def build(chosen: argparse.Namespace) -> Engine:
    model = Model(chosen.model)
    size = chosen.block_size
    blocks = chosen.blocks or bytes_of(chosen.kv_cache_memory_bytes) // (model.kv_bytes * size) - 1
    core = Core(
        model,
        Pool(blocks, size),
        Script(chosen.answers),
        Options(
            context=chosen.max_model_len or model.context,
            batch=chosen.max_num_batched_tokens,
            sequences=chosen.max_num_seqs,
            prefill_speed=chosen.prefill_speed,
            decode_speed=chosen.decode_speed,
        ),
        chosen.trace,
    )
    return Engine(core, chosen)


class Server(uvicorn.Server):
    """Ends at once on SIGTERM, running requests or not; or never, to be killed."""

    def handle_exit(self, sig: int, frame: Any) -> None:
        if not getattr(self, "stubborn", False):
            os._exit(0)


def main() -> None:
    chosen = options(sys.argv[1:])
    if chosen.ignore_term:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    start(chosen)
    engine = build(chosen)
    server = Server(uvicorn.Config(engine.app(), uds=chosen.uds, log_level="warning", access_log=False))
    server.stubborn = chosen.ignore_term
    print("INFO Application startup complete.", flush=True)
    server.run()


if __name__ == "__main__":
    main()
