"""An inline completion: a small local prompt, one short answer."""

from __future__ import annotations

import time
from contextlib import aclosing
from typing import TYPE_CHECKING

from laguna_daemon.engine.client import Finish
from laguna_daemon.schemas import CompleteRequest, CompleteResult, Usage
from laguna_daemon.service.instructions import COMPLETE, CURSOR

if TYPE_CHECKING:
    from laguna_daemon.service.service import Service

COMPLETION_PRIORITY = 0


async def complete(service: Service, request: CompleteRequest) -> CompleteResult:
    """The text to insert between prefix and suffix; cancelling aborts the generation in the engine.

    Raises EngineUnavailable at once when the engine is not ready: nobody wants ghost text minutes late.
    """
    began = time.perf_counter()
    client = await service.hosting.now(wake=True)
    materials = await service.hosting.materials()
    window = service.settings.completion
    prefix = _line_start(request.prefix, window.prefix_chars)
    suffix = request.suffix[: window.suffix_chars]
    what = f"the file {request.path}" + (f" ({request.language})" if request.language else "")
    prompt = materials.plain_prompt(
        COMPLETE.format(what=what, marker=CURSOR, prefix=prefix, suffix=suffix), thinking=False
    )
    usage = Usage(prompt_tokens=len(prompt.ids), profile=materials.launch.profile.name)
    sampling = materials.completion_sampling(request.max_tokens or window.max_tokens)
    text: list[str] = []
    async with service.traffic.interactive(typing=True):
        pieces = client.generate(prompt.ids, sampling, priority=COMPLETION_PRIORITY)
        async with aclosing(pieces):
            async for piece in pieces:
                if isinstance(piece, Finish):
                    usage.cached_tokens = piece.cached_tokens
                    usage.output_tokens = piece.output_tokens
                    usage.finish_reason = piece.reason
                    continue
                if usage.ttft_ms is None:
                    usage.ttft_ms = round((time.perf_counter() - began) * 1000, 1)
                text.append(piece.text)
    usage.prefilled_tokens = usage.prompt_tokens - usage.cached_tokens
    usage.total_ms = round((time.perf_counter() - began) * 1000, 1)
    return CompleteResult(text="".join(text), usage=usage)


def _line_start(text: str, limit: int) -> str:
    """At most ``limit`` characters from the end of ``text``, from the start of a line where there is one."""
    if len(text) <= limit:
        return text
    cut = text[-limit:] if limit else ""
    newline = cut.find("\n")
    return cut[newline + 1 :] if newline >= 0 else cut
