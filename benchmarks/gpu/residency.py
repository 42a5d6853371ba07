"""What keeps a repository's prefix in a small KV pool: other work, touching, branches, long answers, offload.

Runs vLLM in process with dummy weights: times and cache hits are real, text is not. The KV pool has the size that four
24 GB cards leave. One line of JSON for each request: seconds to the last token, prompt tokens, tokens from the cache.

usage: residency.py --models FOLDER --out FILE [--draft 7] [--offload GiB] [--parts touch,branch] [--seconds 500]
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any, TextIO

import laguna_config
import rows

POOL = {True: 7.52, False: 4.97}  # GiB over four cards, with and without the draft's layers


class OutOfTime(Exception):
    """The time given is used up; what was measured is written."""


class Engine:
    """A rig that asks vLLM and writes each row down at once, so that a kill loses nothing."""

    def __init__(self, options: argparse.Namespace, out: TextIO) -> None:
        self._began = time.perf_counter()
        self._seconds = options.seconds
        self._out = out
        self._llm = start(options)
        given = {name: value for name, value in vars(options).items() if not isinstance(value, Path)}
        self._write(row="started", s=self._elapsed(), **given)

    def run(self, row: str, prompt: rows.Ids, output: int = 1) -> rows.Ids:
        from vllm import SamplingParams, TokensPrompt

        if self._elapsed() > self._seconds:
            raise OutOfTime(row)
        began = time.perf_counter()
        answer = self._llm.generate(
            [TokensPrompt(prompt_token_ids=prompt)],
            SamplingParams(temperature=0, max_tokens=output, ignore_eos=True, detokenize=False),
            use_tqdm=False,
        )[0]
        seconds = round(time.perf_counter() - began, 3)
        self._write(row=row, s=seconds, prompt=len(prompt), cached=answer.num_cached_tokens, output=output)
        return list(answer.outputs[0].token_ids)

    def counters(self) -> None:
        """Write vLLM's counters of the whole run that say something about caching."""
        wanted = ("prefix", "preempt", "offload", "transfer", "kv_")
        for metric in self._llm.get_metrics():
            if any(word in metric.name for word in wanted) and hasattr(metric, "value"):
                self._write(row="counter", name=metric.name, value=metric.value)

    def _elapsed(self) -> float:
        return round(time.perf_counter() - self._began, 1)

    def _write(self, **record: Any) -> None:
        line = json.dumps(record, default=str)
        print(line, flush=True)
        self._out.write(line + "\n")
        self._out.flush()


def start(options: argparse.Namespace) -> Any:
    """The published recipe for four 24 GB cards, on one card."""
    from vllm import LLM

    target, draft = laguna_config.write(options.models)
    extra: dict[str, Any] = {}
    if options.draft:
        extra["speculative_config"] = {
            "model": str(draft),
            "num_speculative_tokens": options.draft,
            "method": "dflash",
        }
    if options.offload:
        extra["kv_offloading_size"] = options.offload
    return LLM(
        model=str(target),
        load_format="dummy",
        skip_tokenizer_init=True,
        max_model_len=204_800,
        kv_cache_dtype="fp8",
        kv_cache_memory_bytes=int(POOL[bool(options.draft)] * 2**30),
        max_num_seqs=4,
        max_num_batched_tokens=2048,
        moe_backend="marlin",
        disable_log_stats=False,
        **extra,
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", type=Path, required=True, help="folder for the two configs, made if missing")
    parser.add_argument("--out", type=Path, required=True, help="file of JSON lines")
    parser.add_argument("--draft", type=int, default=0, help="draft tokens per step; 0: no draft model")
    parser.add_argument("--offload", type=float, default=0, help="GiB of host memory for KV blocks")
    parser.add_argument("--parts", default=",".join(rows.PARTS))
    parser.add_argument("--tokens", type=int, default=190_000, help="size of the repository")
    parser.add_argument("--seconds", type=float, default=3600, help="begin no row after this many")
    options = parser.parse_args()
    with options.out.open("a") as out:
        engine = Engine(options, out)
        engine.run("first kernels", rows.Source(1).ids(600), 4)
        try:
            rows.ask(engine, options.parts.split(","), options.tokens)
        except OutOfTime as row:
            print(f"no time left for: {row}", flush=True)
        engine.counters()


if __name__ == "__main__":
    main()
