"""An engine of fixed latency for benchmarks: vLLM's completions on a socket, and when each began and ended.

    python fixed_engine.py --uds S.sock --model FOLDER [--latency SECONDS]

It computes nothing: every answer is one token after the latency. ``GET /log`` gives, per request, the last 100 ids of
its prompt, the monotonic times of its arrival and end, and whether it was aborted; ``POST /latency`` changes the time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

TEXT = "value"


class FixedEngine:
    """The HTTP side, and the record."""

    def __init__(self, latency: float) -> None:
        self.latency = latency
        self.log: list[dict[str, Any]] = []

    async def completions(self, http: Request) -> Response:
        body = await http.json()
        entry = {"tail": body["prompt"][-100:], "tokens": len(body["prompt"]), "began": time.monotonic()}
        self.log.append(entry)
        return StreamingResponse(self._stream(entry), media_type="text/event-stream")

    async def _stream(self, entry: dict[str, Any]) -> AsyncIterator[bytes]:
        entry["aborted"] = True
        try:
            await asyncio.sleep(self.latency)
            choice = {"index": 0, "text": TEXT, "token_ids": [1], "finish_reason": "stop", "stop_reason": None}
            yield _event({"id": "c", "object": "text_completion", "choices": [choice]})
            usage = {"prompt_tokens": entry["tokens"], "completion_tokens": 1, "total_tokens": entry["tokens"] + 1}
            details = {"prompt_tokens_details": {"cached_tokens": 0}}
            yield _event({"id": "c", "object": "text_completion", "choices": [], "usage": {**usage, **details}})
            yield b"data: [DONE]\n\n"
            entry["aborted"] = False
        finally:
            entry["ended"] = time.monotonic()

    async def change(self, http: Request) -> Response:
        self.latency = float(await http.body())
        self.log.clear()
        return JSONResponse({})

    def app(self) -> Starlette:
        async def log(http: Request) -> Response:
            return JSONResponse(self.log)

        async def ok(http: Request) -> Response:
            return PlainTextResponse("")

        async def version(http: Request) -> Response:
            return JSONResponse({"version": "0.32.0"})

        return Starlette(
            routes=[
                Route("/v1/completions", self.completions, methods=["POST"]),
                Route("/latency", self.change, methods=["POST"]),
                Route("/log", log),
                Route("/health", ok),
                Route("/metrics", ok),
                Route("/version", version),
            ]
        )


def _event(body: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--uds", required=True)
    parser.add_argument("--latency", type=float, default=0.05)
    arguments, _ = parser.parse_known_args()  # vLLM's own flags are of no interest
    app = FixedEngine(arguments.latency).app()
    uvicorn.run(app, uds=arguments.uds, log_level="error", access_log=False)


if __name__ == "__main__":
    main()
