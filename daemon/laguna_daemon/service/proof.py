"""Whether a running engine does what the product rests on: it reuses a prefix, its draft is accepted, it aborts.

Costs a prompt of some hundred tokens and a few dozen tokens of output.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing

import numpy as np
from numpy.typing import NDArray

from laguna_daemon.engine.client import EngineClient, finish_of
from laguna_daemon.engine.sampling import Sampling
from laguna_daemon.schemas import Proof
from laguna_daemon.service.materials import Materials

Ids = NDArray[np.uint32]
_BLOCKS = 6
_DECODED = 48
_PATIENCE_S = 10.0
_TEXT = "for number in range(100):\n    print(number, number * number)\n"


async def prove(client: EngineClient, materials: Materials) -> Proof:
    """Ask the engine three small things and read its counters; raises LagunaError if it fails to answer."""
    block = materials.launch.profile.block_size
    prompt = _fresh(materials, _BLOCKS * block)
    one = Sampling(max_tokens=1)
    first, second = [await finish_of(client.generate(prompt, one)) for _ in range(2)]
    before = await client.metrics()
    await finish_of(client.generate(_text(materials), Sampling(max_tokens=_DECODED, ignore_eos=True)))
    after = await client.metrics()
    abort = await _abort(client, prompt)
    queries, hits = after.prefix_queries, after.prefix_hits
    return Proof(
        version=".".join(map(str, client.traits.version)),
        prompt_tokens=len(prompt),
        cached_first=first.cached_tokens,
        cached_again=second.cached_tokens,
        reusable=(len(prompt) - 1) // block * block,
        hit_share=round(hits / queries, 4) if queries else None,
        drafting=bool(client.traits.speculation),
        drafts=after.drafts,
        accepted=after.accepted_tokens,
        acceptance_length=round(after.acceptance_length, 3) if after.acceptance_length else None,
        drafts_now=after.drafts - before.drafts,
        accepted_now=after.accepted_tokens - before.accepted_tokens,
        abort_s=abort,
    )


async def _abort(client: EngineClient, prompt: Ids) -> float | None:
    """Seconds from closing a long answer until the engine has dropped it; None if it had not after a while."""
    resting = (await client.metrics()).running
    context = client.traits.context or 4096
    longest = Sampling(max_tokens=max(2, min(2000, context - len(prompt))), ignore_eos=True)
    async with aclosing(client.generate(prompt, longest)) as pieces:
        async for _ in pieces:
            break
    began = time.perf_counter()
    while time.perf_counter() - began < _PATIENCE_S:
        if (await client.metrics()).running <= resting:
            return round(time.perf_counter() - began, 2)
        await asyncio.sleep(0.05)
    return None


def _fresh(materials: Materials, count: int) -> Ids:
    """Ids of a text that no engine has seen yet."""
    text = f"{time.time_ns()} is when this was asked. " + _TEXT * (count // 8)
    return materials.tokenizer.encode(text)[:count]


def _text(materials: Materials) -> Ids:
    return materials.tokenizer.encode(_TEXT * 4)
