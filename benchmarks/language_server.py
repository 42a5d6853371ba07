"""What bridge and daemon cost an editor user: the real bridge, the real daemon, an engine of fixed latency.

    python benchmarks/language_server.py --model FOLDER [--big TREE] [--seconds 60] --result result.json

1. latency: time that bridge and daemon add to an inline completion, in a workspace of 5,000 files that is open;
2. typing: 50 keystrokes a second in a file of 20,000 lines, each followed by a request: growth of the daemon's memory,
   answers for a stale version, time from a keystroke to the abort of the superseded generation in the engine;
3. editors: 8 editors on 4 roots, one of them ``--big`` (a copy of django, say), one daemon: all served, its memory.

FOLDER holds a tokenizer, a chat template and a config.json; no weights are needed. Debounce and preparation of the next
suggestion are off: they are waits by choice. Absolute figures depend on the machine and on what else it does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import psutil

from laguna_context.tokens import load_tokenizer

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import support.lsp_client
from support.daemon import COMMAND, Home, repository
from support.lsp_client import LspClient, edit, inline

ENGINE = Path(__file__).with_name("fixed_engine.py")
OFF = {"completion": {"debounce": "off", "prefetch": False}}
LINES, WIDTH = 20_000, 36
PATIENCE = 600
support.lsp_client.PATIENCE = PATIENCE  # a large root takes longer to read than a test waits


class Bench:
    """One user with a daemon whose engine has a fixed latency."""

    def __init__(self, model: Path) -> None:
        self.model = model
        command = json.dumps([sys.executable, str(ENGINE)])
        self.home = Home.create(
            LAGUNA_PROFILE="cpu",
            LAGUNA_ENGINE__COMMAND=command,
            LAGUNA_ENGINE__MODEL=str(model),
            LAGUNA_WARM__AUTOMATIC="false",
        )
        self.folder = Path(tempfile.mkdtemp(prefix="laguna-bench-"))
        self.clients: list[LspClient] = []

    @property
    def engine(self) -> httpx.Client:
        transport = httpx.HTTPTransport(uds=str(self.home.runtime / "engine.sock"))
        return httpx.Client(transport=transport, base_url="http://engine", timeout=PATIENCE)

    def rss(self) -> float:
        """The daemon's memory in MB, without the engine's."""
        pid = self.home.daemon_pid()
        assert pid is not None
        return float(psutil.Process(pid).memory_info().rss) / 1e6

    def cpu(self, client: LspClient) -> float:
        """Seconds of processor time that the daemon and a client's bridge have used."""
        times = [psutil.Process(pid).cpu_times() for pid in (self.home.daemon_pid(), client.process.pid)]
        return sum(each.user + each.system for each in times)

    async def editor(self, *roots: Path) -> LspClient:
        """An editor behind the real bridge, once the engine is ready."""
        client = await LspClient.spawn(*COMMAND, "lsp", env=self.home.env)
        self.clients.append(client)
        folders = [{"uri": root.as_uri(), "name": root.name} for root in roots]
        params = {"processId": None, "rootUri": None, "capabilities": {}, "workspaceFolders": folders}
        await client.request("initialize", {**params, "initializationOptions": OFF})
        client.notify("initialized", {})
        wanted = "laguna/didChangeStatus"
        await client.until(lambda m: m.get("method") == wanted and m["params"]["engine"]["phase"] == "ready")
        return client

    async def close(self) -> None:
        for client in self.clients:
            client.process.kill()
            await client.process.wait()
        self.home.remove()
        shutil.rmtree(self.folder)


async def ask(client: LspClient, text: str, **more: Any) -> Any:
    """A question, however long its repository takes to read."""
    return await client.answer(client.start("laguna/chat", {"text": text, "maxTokens": 1, **more}))


async def complete(client: LspClient, uri: str, line: int, character: int) -> Any:
    return await client.request("textDocument/inlineCompletion", inline(uri, line, character))


# 1


async def latency(bench: Bench, files: int, rounds: int) -> dict[str, Any]:
    """Paired: a completion through bridge and daemon, then a request of the same size straight to the engine.

    What is subtracted is what a bare socket sees of the engine, so the daemon's own client counts as added.
    """
    chance = random.Random(1)
    texts = {f"pkg{n % 50}/module{n}.py": _imports(n, files) + _module(chance, n) for n in range(files)}
    root = repository(bench.folder / "large", texts)
    client = await bench.editor(root)
    await ask(client, "What is this?")
    uri = (root / "pkg0/module0.py").as_uri()
    body = texts["pkg0/module0.py"]
    client.open(uri, body)
    lines = body.count("\n")
    engine = bench.engine
    engine.post("/latency", content="0.02")
    through, straight = [], []
    bare = socket.socket(socket.AF_UNIX)
    bare.connect(str(bench.home.runtime / "engine.sock"))
    spent = bench.cpu(client)
    for number in range(rounds):
        client.change(uri, 2 + number, edit((lines, 0), (lines, 100), f"x{number} = "))
        await client.settle()
        client.received.clear()  # looking through old messages would be the client's time, not the bridge's
        began = time.perf_counter()
        found = await complete(client, uri, lines, len(f"x{number} = "))
        through.append((time.perf_counter() - began) * 1000)
        assert found["items"], found
        tokens = (await asyncio.to_thread(engine.get, "/log")).json()[-1]["tokens"]
        straight.append(await asyncio.to_thread(_straight, bare, tokens))
    spent = bench.cpu(client) - spent
    bare.close()
    base = statistics.median(straight)
    added = sorted(value - base for value in through)
    return {
        "files": files,
        "rounds": rounds,
        "engine_ms": _quantiles(straight),
        "through_ms": _quantiles(through),
        "added_ms": _quantiles(added),
        "cpu_ms_a_round": round(spent * 1000 / rounds, 2),  # a change, a status and a completion; bridge and daemon
        "bar": "p50 <= 5 ms, p95 <= 15 ms",
    }


def _straight(engine: socket.socket, tokens: int) -> float:
    """Milliseconds from the first byte of a request to the last event of its answer, on a connection that is open."""
    body = json.dumps({"prompt": [1000] * tokens, "max_tokens": 64, "stream": True}).encode()
    head = b"POST /v1/completions HTTP/1.1\r\nHost: engine\r\nContent-Length: %d\r\n\r\n" % len(body)
    seen, took = b"", 0.0
    began = time.perf_counter()
    engine.sendall(head + body)
    while not seen.endswith(b"\r\n0\r\n\r\n"):  # the connection is read to its end, to be used again
        seen += engine.recv(65536)
        if not took and b"[DONE]" in seen:
            took = (time.perf_counter() - began) * 1000
    return took


def _imports(number: int, files: int) -> str:
    other = (number + 7) % files
    return f"from pkg{other % 50}.module{other} import *\nfrom pkg{other % 50} import module{other}\n\n"


def _module(chance: random.Random, number: int) -> str:
    names = [f"name_{chance.randrange(1000)}" for _ in range(20)]
    return "".join(f"def {name}_{number}(value):\n    return value + {number}\n\n" for name in names)


# 2


async def typing(bench: Bench, seconds: float, rate: float) -> dict[str, Any]:
    """Type in the middle of a long file, asking after each keystroke, as an editor that never cancels."""
    middle = LINES // 2
    client, uri = await _long_file(bench, middle)
    engine = bench.engine
    engine.post("/latency", content="0.3")
    memory, sent, asked = [bench.rss()], [], []
    text = _keystrokes(int(seconds * rate))
    line, column = middle, 0
    start = time.monotonic()
    for number, key in enumerate(text):
        await asyncio.sleep(max(0.0, start + number / rate - time.monotonic()))
        sent.append(time.monotonic())
        client.change(uri, 3 + number, edit((line, column), (line, column), key))
        line, column = (line + 1, 0) if key == "\n" else (line, column + 1)
        asked.append(client.start("textDocument/inlineCompletion", inline(uri, line, column)))
        if number % 250 == 249:
            memory.append(bench.rss())
    took = time.monotonic() - start
    answers = [(await client.answer(number)).get("result") for number in asked]
    await asyncio.sleep(0.5)
    log = engine.get("/log").json()
    late = _abort_times(log, text, sent, load_tokenizer(bench.model))
    settled = memory[min(2, len(memory) - 1)]
    return {
        "keystrokes": len(text),
        "per_second": round(len(text) / took, 1),
        "lines": LINES,
        "answers": len(answers),
        "stale_answers": sum(answer is not None for answer in answers[:-1]),
        "last_answered": bool(answers[-1] and answers[-1]["items"]),
        "engine_requests": len(log),
        "engine_aborts": sum(entry["aborted"] for entry in log),
        "abort_ms": _quantiles(late),
        "memory_mb": [round(value, 1) for value in memory],
        "memory_growth_mb": round(max(memory[2:] or memory) - settled, 1),
        "bar": "growth < 20 MB, no stale answer, aborted within 100 ms (p95)",
    }


async def _long_file(bench: Bench, middle: int) -> tuple[LspClient, str]:
    root = repository(bench.folder / "typing", {"a.py": "x = 1\n"})
    client = await bench.editor(root)
    uri = (root / "a.py").as_uri()
    client.open(uri, "".join(f"value_{number} = {number} + other_{number % 7}\n" for number in range(LINES)))
    client.change(uri, 2, edit((middle, 0), (middle, 0), "\n"))
    await complete(client, uri, middle, 0)
    return client, uri


def _keystrokes(count: int) -> str:
    """Lines that say in which line and column one is, so that a prompt's end tells the keystroke it was made after."""
    letters = "abcdefghijklmnopqrstuvwxyz0123"
    return "".join(f"L{number:05d}{letters[: WIDTH - 7]}\n" for number in range(count // WIDTH + 1))[:count]


def _abort_times(log: list[dict[str, Any]], text: str, sent: list[float], tokenizer: Any) -> list[float]:
    """Milliseconds from the keystroke that superseded a generation to its end in the engine."""
    found = []
    for entry in log:
        if not entry["aborted"]:
            continue
        said = re.search(r"L(\d{5})(\w*)(?:<CURSOR>|\Z)", tokenizer.decode(entry["tail"]).decode("utf-8", "replace"))
        if said is None or len(said[2]) == WIDTH - 7:  # a whole line: whether its end was typed too is not in a prompt
            continue
        after = int(said[1]) * WIDTH + 6 + len(said[2])  # keystrokes before the prompt was made
        if after < len(sent):
            found.append((entry["ended"] - sent[after]) * 1000)
    return found


# 3


async def editors(bench: Bench, big: Path | None, count: int = 8) -> dict[str, Any]:
    """Every editor asks and completes in its root, all at once."""
    roots = [repository(bench.folder / f"root{n}", {"a.py": f"x = {n}\n", "b.py": "y = 1\n"}) for n in range(3)]
    if big is None:
        chance = random.Random(2)
        roots.append(repository(bench.folder / "big", {f"m{n}.py": _module(chance, n) for n in range(2000)}))
    else:
        shutil.copytree(big, bench.folder / "big", symlinks=True, ignore=shutil.ignore_patterns(".git"))
        roots.append(repository(bench.folder / "big", {}))
    bench_engine = bench.engine
    clients = await asyncio.gather(*(bench.editor(roots[n % len(roots)]) for n in range(count)))
    bench_engine.post("/latency", content="0.05")
    began = time.monotonic()
    answers = await asyncio.gather(*(ask(client, "What is this?") for client in clients))
    first = time.monotonic() - began
    again = await asyncio.gather(*(ask(client, "And that?") for client in clients))
    completed = await asyncio.gather(*(_one_completion(client, roots[n % 4]) for n, client in enumerate(clients)))
    files = sum(1 for _ in _listed(roots[-1]))
    return {
        "editors": count,
        "roots": len(roots),
        "files_of_the_largest": files,
        "questions": len(answers) + len(again),
        "answered": sum("result" in answer for answer in [*answers, *again]),
        "failures": [answer["error"] for answer in [*answers, *again] if "error" in answer],
        "completed": sum(completed),
        "all_read_s": round(first, 1),
        "daemon_rss_mb": round(bench.rss(), 1),
        "bar": "all served, RSS < 400 MB with a django-size root",
    }


async def _one_completion(client: LspClient, root: Path) -> bool:
    uri = (root / "new.py").as_uri()
    client.open(uri, "x = ")
    found = await complete(client, uri, 0, 4)
    return bool(found and found["items"])


def _listed(root: Path) -> list[bytes]:
    done = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True)
    return [name for name in done.stdout.split(b"\0") if name]


# All


def _quantiles(values: list[float]) -> dict[str, float]:
    if not values:
        return {}
    ordered = sorted(values)
    at = {"p50": 0.5, "p95": 0.95, "max": 1.0}
    return {name: round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 2) for name, share in at.items()}


NAMES = ("latency", "typing", "editors")


async def measure(
    model: Path, big: Path | None, seconds: float, files: int, rounds: int, only: list[str]
) -> dict[str, Any]:
    """All three, or some, each with a daemon of its own."""
    result: dict[str, Any] = {}
    for name in only or NAMES:
        bench = Bench(model)
        try:
            if name == "latency":
                result[name] = await latency(bench, files, rounds)
            elif name == "typing":
                result[name] = await typing(bench, seconds, 50)
            else:
                result[name] = await editors(bench, big)
        finally:
            await bench.close()
        print(json.dumps({name: result[name]}), flush=True)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="a model folder; its weights are not used")
    parser.add_argument("--big", type=Path, help="a tree for the largest root; a copy of it is used")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--only", action="append", choices=NAMES, help="measure only this; may be given again")
    parser.add_argument("--note", default="", help="kept with the result: what is unusual about this run")
    parser.add_argument("--result", type=Path)
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    only = arguments.only or []
    result = asyncio.run(
        measure(arguments.model, arguments.big, arguments.seconds, arguments.files, arguments.rounds, only)
    )
    machine = {"cpus": os.cpu_count(), "load_before": round(load, 1), "python": platform.python_version()}
    whole = {"when": time.strftime("%Y-%m-%d"), "machine": machine, "note": arguments.note, **result}
    if arguments.result:
        arguments.result.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
