"""Server-sent events of an OpenAI-compatible stream."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import orjson

from laguna_daemon.errors import EngineUnavailable


async def events(chunks: AsyncIterator[bytes]) -> AsyncGenerator[dict[str, Any], None]:
    r"""Decode the JSON objects of a stream up to ``[DONE]``.

    Lines end at ``\n`` or ``\r\n`` alone: generated text can hold U+2028 and form feeds, which general line readers
    would split at. Comments (keep-alive) and other fields are passed over.
    """
    open_line: list[bytes] = []  # an event that repeats a long prompt's ids comes in many chunks
    async for chunk in chunks:
        first, *others = chunk.split(b"\n")
        open_line.append(first)
        if not others:
            continue
        lines = [b"".join(open_line), *others]
        open_line = [lines.pop()]
        for line in lines:
            if not line.startswith(b"data:"):
                continue
            data = line[5:].strip()
            if data == b"[DONE]":
                return
            try:
                yield orjson.loads(data)
            except orjson.JSONDecodeError as error:
                raise EngineUnavailable(
                    "The engine's answer could not be read: it is not an OpenAI-compatible stream.",
                    "Check that engine.url is vLLM's own address.",
                ) from error
