"""Start-up phases of an engine, read from its log."""

from __future__ import annotations

import re

# Each line of vLLM's log that begins something a user waits for, and the words for it; `{1}` is the first group.
_PHASES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (r"Loading safetensors checkpoint shards:\s+(\d+)%", "loading weights, {1}%"),
        (r"Starting to load model", "loading weights"),
        (r"Loading drafter model|Loading draft(?:er)? ", "loading the draft model"),
        (r"Loading weights took ([\d.]+) seconds", "weights loaded in {1} s"),
        (r"Model loading took ([\d.]+) Gi?B", "model loaded, {1} GiB"),
        (r"(?:Dynamo bytecode transform|Compiling a graph|Start compiling|torch\.compile takes)", "compiling"),
        (r"Capturing CUDA graphs?.*?(\d+)%", "capturing graphs, {1}%"),
        (r"Capturing CUDA graph", "capturing graphs"),
        (r"(?:GPU|CPU) KV cache size: ([\d,]+) tokens", "room for {1} tokens"),
        (r"Warming up model|Warmup", "warming up"),
        (r"Initializing a V1 LLM engine", "initialising"),
        (r"Starting vLLM (?:API )?server|Supported routes|Available routes", "opening its socket"),
        (r"Application startup complete", "answering soon"),
    )
)


def phase_of(line: str) -> str | None:
    """The phase that a log line begins, in words; None for any other line."""
    for pattern, words in _PHASES:
        found = pattern.search(line)
        if found:
            return words.format(found[0], *found.groups())
    return None
