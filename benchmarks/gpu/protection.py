"""What a user waits for while other work goes on, through the product's own daemon: warm questions, edits, completions
beside a warm-up, questions after whatever evicts a repository from a pool of the four-card size.

Everything goes over the daemon's socket, as the command line and the editors do; the same server is also called
directly on its own socket, to see what the daemon adds. One line of JSON for each request, written as it happens, and
a summary (p50, p95) after each part.

usage: protection.py --work FOLDER --out FOLDER [--engine-python PYTHON] [--engine-path PATHS] [--seconds 500]
       without a GPU: --scheduled 1, with vLLM 0.25.1's files in --engine-path (policies at full size, modelled times)
       on the CPU engine: --cpu-model FOLDER --engine-python PYTHON (sizes shrink to that engine's)
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import shutil
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import orjson
import rig

from laguna_context.workspace import Workspace

QUESTION = "Which module checks a token, and what does it refuse?"
# The CPU engine must hold one whole context; this is 34 blocks of 128 tokens with this model.
CPU_FLAGS = """
[flags]
max-model-len = 4096
kv-cache-memory-bytes = "98M"

[budget]
context = 4096
output = 256
task = 256
overlay = 500
"""


class OutOfTime(Exception):
    """The time given is used up; what was measured is written."""


class Bench:
    """One run: a daemon and its engine, repositories, and two ways to ask."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.began = time.perf_counter()
        self.record = rig.Record(options.out / options.name)
        flags = options.flags.replace("\\n", "\n") + (CPU_FLAGS if options.cpu_model else "")
        self.home = rig.make_home(
            options.work / "home",
            options.engine_python,
            options.engine_path,
            options.cpu_model,
            flags,
            options.scheduled,
            options.overlay,
        )
        # Completions of the size asked for, whatever an editor would send.
        self.home.env["LAGUNA_COMPLETION__PREFIX_CHARS"] = "100000"
        self.ruler = rig.Ruler(self.home)
        self.repos = [options.work / f"repository-{number}" for number in range(3)]
        self.chance = random.Random(11)
        self.daemon = _client(self.home.folder / "runtime" / "api.sock")
        self.engine = _client(self.home.folder / "runtime" / "engine.sock")
        self.samples: dict[str, list[float]] = {}

    def prepare(self) -> None:
        """Start the engine and make the repositories meanwhile."""
        self.record("launch", argv=self.ruler.launch.argv, offload_gib=self.ruler.launch.offload_gib)
        self.home.run("start")
        for number, root in enumerate(self.repos):
            if root.exists():
                continue  # from a run before, whose daemon may still be running
            tokens = rig.repository(root, self.options.tokens, QUESTION, self.ruler, seed=number + 1)
            self.record("repository", number=number, tokens=tokens)
        status = self.home.json("start", "--wait", "--json")
        self.record("ready", status=status)
        if status.get("engine", {}).get("phase") != "ready":
            raise SystemExit(f"the engine does not serve: {status}")

    # requests ----------------------------------------------------------------------------------------------------

    async def ask(self, row: str, repo: int | None, question: str, output: int = 4) -> dict[str, Any]:
        """One question through the daemon; seconds to the first token and to the end as its client sees them."""
        self._check_time()
        root = None if repo is None else str(self.repos[repo])
        body = {
            "root": root,
            "question": question,
            "no_context": repo is None,
            "max_tokens": output,
            "temperature": 0,
            "force": True,
        }
        began = time.perf_counter()
        first: float | None = None
        usage: dict[str, Any] = {}
        async with self.daemon.stream("POST", "/v1/ask", json=body) as answer:
            async for line in answer.aiter_lines():
                event = json.loads(line)
                if event["kind"] in ("text", "thinking") and first is None:
                    first = time.perf_counter() - began
                elif event["kind"] == "usage":
                    usage = event["usage"]
                elif event["kind"] == "error":
                    self.record(row, error=event)
        end = time.perf_counter() - began
        # Some of the tokens that dummy weights choose have no text.
        first = first if first is not None else end
        self.record(row, first_s=round(first, 4), end_s=round(end, 4), usage=_short(usage))
        self._sample(row, first)
        return usage

    async def direct(self, row: str, ids: list[int], output: int = 4, ids_back: bool = True) -> float:
        """The same kind of request on the engine's own socket; vLLM sends the answer's ids back only together with
        the prompt's."""
        self._check_time()
        body = {
            "prompt": ids,
            "max_tokens": output,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
            "priority": 1,
            "return_token_ids": ids_back,
        }
        content = orjson.dumps(body)
        headers = {"content-type": "application/json"}
        began = time.perf_counter()
        first: float | None = None
        usage: dict[str, Any] = {}
        async with self.engine.stream("POST", "/v1/completions", content=content, headers=headers) as answer:
            async for line in answer.aiter_lines():
                if not line.startswith("data: {"):
                    continue
                event = json.loads(line[6:])
                usage = event.get("usage") or usage
                if first is None and any(choice.get("text") for choice in event.get("choices", [])):
                    first = time.perf_counter() - began
        end = time.perf_counter() - began
        first = first if first is not None else end
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
        prompt = usage.get("prompt_tokens")
        self.record(row, first_s=round(first, 4), end_s=round(end, 4), prompt_tokens=prompt, cached_tokens=cached)
        self._sample(row, first)
        return first

    async def complete(self, row: str, tokens: int, output: int) -> None:
        """One completion of about so many prompt tokens."""
        self._check_time()
        body = {"path": "new.py", "language": "python", "prefix": self.text(tokens), "suffix": "", "max_tokens": output}
        began = time.perf_counter()
        answer = await self.daemon.post("/v1/complete", json=body)
        end = time.perf_counter() - began
        found = answer.json()
        usage = found.get("usage", {})
        first = (usage.get("ttft_ms") or 1000 * end) / 1000
        self.record(row, first_s=round(first, 4), end_s=round(end, 4), usage=_short(usage), error=found.get("error"))
        if "error" not in found:
            self._sample(f"{row}: first token", first)
            self._sample(f"{row}: end", end)

    async def warm(self, row: str, repo: int) -> float:
        """A warm-up, waited for; its seconds."""
        self._check_time()
        began = time.perf_counter()
        segments, last = [], began
        body = {"root": str(self.repos[repo]), "force": True}
        async with self.daemon.stream("POST", "/v1/warm", json=body) as answer:
            async for line in answer.aiter_lines():
                event = json.loads(line)
                if event.get("stage") == "prefill":
                    segments.append((event["done"], round(time.perf_counter() - last, 3)))
                    last = time.perf_counter()
                elif event["kind"] in ("error", "notice"):
                    self.record(f"{row}: said", said=event)
        seconds = time.perf_counter() - began
        self.record(row, s=round(seconds, 2), segments=segments, root=await self.root(repo))
        return seconds

    async def root(self, repo: int) -> dict[str, Any]:
        """What the daemon's status says of a root's prefix."""
        status = (await self.daemon.get("/v1/status")).json()
        names = ("residency", "warm_tokens", "prefix_tokens", "settled", "evictions")
        found = [item for item in status["workspaces"] if item["root"] == str(self.repos[repo].resolve())]
        return {name: found[0].get(name) for name in names} if found else {}

    # texts -------------------------------------------------------------------------------------------------------

    def text(self, tokens: int) -> str:
        """Text that was never seen before, of about so many tokens."""
        words = [f"{self.chance.choice(rig.NOUNS)}_{self.chance.randrange(10_000)}" for _ in range(50)]
        cost = self.ruler.tokens(" ".join(words)) / len(words)
        count = max(1, int(tokens / cost))
        return " ".join(f"{self.chance.choice(rig.NOUNS)}_{self.chance.randrange(10_000)}" for _ in range(count))

    def question(self) -> str:
        return f"{QUESTION} Think of {self.text(self.options.question)}."

    # bookkeeping -------------------------------------------------------------------------------------------------

    def summary(self, part: str, **more: Any) -> None:
        """p50 and p95 of every row since the last summary."""
        found = {
            row: {"n": len(values), "p50": _percentile(values, 50), "p95": _percentile(values, 95)}
            for row, values in self.samples.items()
        }
        self.samples = {}
        self.record(f"summary: {part}", rows=found, **more)

    def _sample(self, row: str, value: float) -> None:
        self.samples.setdefault(row, []).append(value)

    def _check_time(self) -> None:
        if time.perf_counter() - self.began > self.options.seconds:
            raise OutOfTime

    async def aclose(self) -> None:
        await self.daemon.aclose()
        await self.engine.aclose()
        if not self.options.keep:
            self.home.run("stop")
        for name in ("engine.log", "daemon.log"):
            with contextlib.suppress(FileNotFoundError):
                shutil.copy(self.home.logs / name, self.options.out / f"protection-{name}")


# parts ---------------------------------------------------------------------------------------------------------------


async def question(bench: Bench) -> None:
    """A warm-up undisturbed; then warm questions by the daemon and by the same server called directly, in turn."""
    seconds = await bench.warm("warm-up, undisturbed", 0)
    space = Workspace.open(
        bench.repos[0],
        tokenizer=bench.ruler.materials.tokenizer,
        template=bench.ruler.materials.template,
        budget=bench.ruler.materials.budget,
        cache_dir=bench.options.work / "direct",
    )
    thinking = bench.ruler.profile.thinking.default
    await bench.ask("first question", 0, bench.question())
    bench.samples = {}
    for _ in range(bench.options.repeat):
        await bench.ask("warm question, daemon", 0, bench.question())
        if not bench.options.direct:
            continue
        ids = space.prompt(bench.question(), thinking=thinking).ids.tolist()
        await bench.direct("warm question, direct", ids)
        ids = space.prompt(bench.question(), thinking=thinking).ids.tolist()
        await bench.direct("warm question, direct, no ids back", ids, ids_back=False)
    space.close()
    by = {row: statistics.median(values) for row, values in bench.samples.items()}
    added = by["warm question, daemon"] - by.get("warm question, direct", by["warm question, daemon"])
    bench.summary("warm question", beyond_direct_ms=round(1000 * added, 1), warm_up_s=round(seconds, 2))


async def edit(bench: Bench) -> None:
    """One edit of one file, then a question."""
    files = sorted(bench.repos[0].glob("pkg_*/*.py"))
    for number in range(bench.options.repeat):
        path = files[(7 * number) % len(files)]
        text = path.read_text()
        path.write_text(text.replace("raise ValueError(", "raise TypeError(", 1))
        await bench.ask("question after one edit", 0, bench.question())
    bench.summary("one edit")


async def typing(bench: Bench) -> None:
    """Completions while another repository is warmed up."""
    options = bench.options
    seconds = []
    for repo in (1, 2):
        warming = asyncio.create_task(bench.warm("warm-up with completions", repo))
        await asyncio.sleep(options.every / 2)
        while not warming.done():
            began = time.perf_counter()
            await bench.complete("completion during a warm-up", options.typed, 32 if not options.cpu_model else 4)
            await asyncio.sleep(max(0.0, options.every - (time.perf_counter() - began)))
        seconds.append(round(await warming, 2))
    bench.summary("completion during a warm-up", warm_ups_s=seconds, every_s=options.every)


async def completions(bench: Bench) -> None:
    """Four completions, then a question on the repository."""
    await bench.ask("(first question of the part)", 0, bench.question())
    bench.samples = {}
    for _ in range(bench.options.repeat):
        for _ in range(4):
            await bench.complete("completion", bench.options.completion, 16 if not bench.options.cpu_model else 4)
        await asyncio.sleep(0.3)
        await bench.ask("question after four completions", 0, bench.question())
    bench.summary("four completions", root=await bench.root(0))


async def chat(bench: Bench) -> None:
    """A long chat elsewhere, then a question on the repository."""
    await bench.ask("(first question of the part)", 0, bench.question())
    bench.samples = {}
    for _ in range(bench.options.repeat):
        await bench.ask("chat elsewhere", None, bench.text(bench.options.chat), 8)
        await bench.ask("question after a chat elsewhere", 0, bench.question())
    bench.summary("a chat elsewhere", root=await bench.root(0))


async def second(bench: Bench) -> None:
    """Two repositories in turn."""
    await bench.warm("second repository", 2)
    for _ in range(bench.options.turns):
        await bench.ask("first repository after the second", 0, bench.question())
        await bench.ask("second repository after the first", 2, bench.question())
    bench.summary("two repositories", roots=[await bench.root(0), await bench.root(2)])


async def unprotected(bench: Bench) -> None:
    """What happens without the daemon: completions straight to the engine, twice as many, then a question."""
    await bench.ask("(first question of the part)", 0, bench.question())
    tokenizer = bench.ruler.materials.tokenizer
    for _ in range(min(3, bench.options.repeat)):
        for _ in range(8):
            ids = tokenizer.encode(bench.text(bench.options.completion)).tolist()
            await bench.direct("completion past the daemon", ids)
        await bench.ask("question after eight completions past the daemon", 0, bench.question())
    bench.summary("without protection", root=await bench.root(0))


async def single(bench: Bench) -> None:
    """The reference of a warm-up: as many new tokens in one request."""
    ids = [bench.chance.randrange(100, 40_000) for _ in range(bench.options.tokens)]
    await bench.direct("one undisturbed request", ids)
    bench.summary("one undisturbed request")


PARTS: dict[str, Callable[[Bench], Awaitable[None]]] = {
    part.__name__: part for part in (question, edit, typing, completions, chat, second, single, unprotected)
}
STANDARD = "question,edit,typing,completions,chat,second,single"


# helpers -------------------------------------------------------------------------------------------------------------


def _client(socket: Path) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=httpx.AsyncHTTPTransport(uds=str(socket)), base_url="http://socket", timeout=httpx.Timeout(600)
    )


def _short(usage: dict[str, Any]) -> dict[str, Any]:
    names = ("prompt_tokens", "cached_tokens", "output_tokens", "ttft_ms", "total_ms", "broke_at", "finish_reason")
    return {name: usage.get(name) for name in names}


def _percentile(values: list[float], percent: int) -> float:
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))], 4)


async def run(bench: Bench) -> None:
    try:
        for part in bench.options.parts.split(","):
            await PARTS[part](bench)
    except OutOfTime:
        bench.summary("out of time")
    finally:
        await bench.aclose()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", type=Path, required=True, help="a new folder with a short path")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--name", default="protection.jsonl", help="the file of rows in --out")
    parser.add_argument("--engine-python", type=Path, default=Path(sys.executable), help="Python that has torch")
    parser.add_argument("--engine-path", default="", help="PYTHONPATH of the engine")
    parser.add_argument("--cpu-model", type=Path, help="run on the CPU engine with this model")
    parser.add_argument("--scheduled", type=float, help="no GPU: scheduled_engine.py, so many times faster")
    parser.add_argument("--flags", default="", help="more TOML for the profile; \\n is a line end")
    parser.add_argument("--parts", default=STANDARD, help=f"of {', '.join(PARTS)}")
    parser.add_argument("--seconds", type=float, default=3600, help="begin no request after this many")
    parser.add_argument("--tokens", type=int, help="of a repository's first prompt: 190,000; CPU 2,500")
    parser.add_argument("--overlay", type=int, default=rig.OVERLAY, help="tokens of changes before a compaction")
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--turns", type=int, default=10, help="of two repositories in turn")
    parser.add_argument("--every", type=float, default=2.0, help="seconds between completions of the typist")
    parser.add_argument("--no-direct", dest="direct", action="store_false", help="no requests that bypass the daemon")
    parser.add_argument("--keep", action="store_true", help="leave the daemon running at the end")
    options = parser.parse_args()
    small = options.cpu_model is not None
    options.tokens = options.tokens or (2500 if small else 190_000)
    options.question, options.typed = (20, 200) if small else (150, 2000)
    options.completion, options.chat = (500, 900) if small else (3000, 30_000)
    options.out.mkdir(parents=True, exist_ok=True)
    bench = Bench(options)
    try:
        bench.prepare()
    except BaseException:
        bench.home.run("stop")
        raise
    asyncio.run(run(bench))


if __name__ == "__main__":
    main()
