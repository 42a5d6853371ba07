"""A recorded trace of requests and of what the real engine found in its cache for each.

Prompts are spelled as parts, `{"seed": s, "tokens": n}` for fixed random ids and `{"output_of": i}` for what request
`i` generated, so that a replay does not depend on what a machine's arithmetic makes the model say.

    python trace.py SOCKET FILE        records the `cached_tokens` of the requests in FILE anew
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from pathlib import Path
from typing import Any

from laguna_daemon.engine.client import EngineClient, Finish, Piece
from laguna_daemon.engine.sampling import Sampling

FILE = Path(__file__).parent.parent / "cases" / "engine" / "trace.json"
# What the trace was recorded with: a pool of 23 blocks of 128 tokens, so that it overflows.
FLAGS = {"max-model-len": 2048, "kv-cache-memory-bytes": "70M", "max-num-seqs": 4}


def requests() -> list[dict[str, Any]]:
    return json.loads(FILE.read_text(encoding="utf-8"))


async def replay(client: EngineClient, wanted: list[dict[str, Any]]) -> list[int]:
    """Run the requests one after another on an engine with an empty cache; `cached_tokens` of each."""
    assert await client.reset_prefix_cache()
    outputs: list[list[int]] = []
    found: list[int] = []
    for request in wanted:
        prompt = [token for part in request["parts"] for token in _ids(part, outputs)]
        output, cached = await _run(client, prompt, request)
        outputs.append(output)
        found.append(cached)
    return found


async def _run(client: EngineClient, prompt: list[int], request: dict[str, Any]) -> tuple[list[int], int]:
    sampling = Sampling(
        max_tokens=request.get("max_tokens", 1), ignore_eos=True, cache_salt=request.get("salt"), temperature=0
    )
    output: list[int] = []
    cached = -1
    stream = client.generate(prompt, sampling)
    async for item in stream:
        if isinstance(item, Piece):
            output += item.token_ids
        if isinstance(item, Finish):
            cached = item.cached_tokens
        if len(output) == request.get("abort_after"):
            await stream.aclose()
            break
    while (await client.metrics()).running:  # noqa: ASYNC110 - another process has no event
        await asyncio.sleep(0.02)
    return output, cached


def _ids(part: dict[str, int], outputs: list[list[int]]) -> list[int]:
    if "output_of" in part:
        return outputs[part["output_of"]]
    random_ids = random.Random(part["seed"])
    return [random_ids.randrange(100, 40_000) for _ in range(part["tokens"])]


async def _replay_on(socket: Path, wanted: list[dict[str, Any]]) -> list[int]:
    client = EngineClient(socket=socket)
    try:
        return await replay(client, wanted)
    finally:
        await client.aclose()


def _record(socket: Path, file: Path) -> None:
    wanted = json.loads(file.read_text(encoding="utf-8"))
    for request, cached in zip(wanted, asyncio.run(_replay_on(socket, wanted)), strict=True):
        request["cached_tokens"] = cached
    lines = ",\n".join("  " + json.dumps(request) for request in wanted)
    file.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    _record(Path(sys.argv[1]), Path(sys.argv[2]))
