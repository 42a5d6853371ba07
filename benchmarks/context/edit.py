"""The next prompt after one edit of a 20 KB file, at 190,000 tokens, as the daemon makes it.

    python benchmarks/context/edit.py TREE --model FOLDER --result benchmarks/results/context-edit.json

A copy of the tree is watched as in the daemon. *Compute* is the CPU time of the thread from the event to the prompt's
ids (telling the workspace and making the prompt); *ready* is wall clock from the end of the write to the ids, the
watcher's debouncing included. Two kinds of edit: one line of the file, and all of it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from laguna_context.listing import Selection
from laguna_context.template import load_template
from laguna_context.tokens import load_tokenizer
from laguna_context.watching import Changes, watch
from laguna_context.workspace import Budget, Workspace

BUDGET = Budget(context=238_000, output=7_000, task=4_000, overlay=17_000)  # a fresh snapshot fills 90% of its share


def edited(text: str, number: int, whole: bool) -> str:
    """The file with one line changed, or with all of its words in another order."""
    if whole:
        words = text.split()
        random.Random(number).shuffle(words)
        return "\n".join(" ".join(words[start : start + 8]) for start in range(0, len(words), 8)) + "\n"
    lines = text.split("\n")
    lines[len(lines) // 2] = f"edited = {number}"
    return "\n".join(lines)


async def measure(space: Workspace, root: Path, path: str, runs: int, whole: bool) -> list[dict[str, float]]:
    """Edit `path` so many times; milliseconds of each."""
    rows: list[dict[str, float]] = []
    original = (root / path).read_text()
    stop = asyncio.Event()
    events: asyncio.Queue[Changes] = asyncio.Queue()

    async def listen() -> None:
        async for changes in watch(root, selection=Selection(), stop=stop):
            await events.put(changes)

    listener = asyncio.create_task(listen())
    await events.get()  # the first one says that watching has begun
    for number in range(runs):
        compactions = space.compactions
        (root / path).write_text(edited(original, number, whole))
        written = time.perf_counter()
        while not ((changes := await events.get()).rescan or path in changes.paths):
            pass
        heard, cpu = time.perf_counter(), time.thread_time()
        space.changed([path])
        prompt = space.prompt(f"What changed in edit {number}?")
        ready = time.perf_counter()
        rows.append(
            {
                "compute_ms": (time.thread_time() - cpu) * 1e3,
                "event_ms": (heard - written) * 1e3,
                "ready_ms": (ready - written) * 1e3,
                "prompt_tokens": prompt.ids.size,
                "compacted": space.compactions - compactions,
            }
        )
        await asyncio.sleep(0.15)
    stop.set()
    await listener
    return rows


def main() -> None:
    """Measure both kinds of edit and write the raw rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--result", type=Path)
    args = parser.parse_args()
    result: dict[str, Any] = {"tree": args.tree.name, "load": os.getloadavg(), "cpus": os.cpu_count()}
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "tree"
        shutil.copytree(args.tree, root, symlinks=True)
        tokenizer = load_tokenizer(args.model, cache=Path(scratch))
        template = load_template(args.model, tokenizer)
        space = Workspace.open(
            root, tokenizer=tokenizer, template=template, budget=BUDGET, cache_dir=Path(scratch) / "cache"
        )
        shown = [span.path for span in space.prompt("?").documents]
        files = [path for path in shown if (root / path).is_file()]
        nearest = min(files, key=lambda path: abs((root / path).stat().st_size - 20_000))
        result["file_bytes"] = (root / nearest).stat().st_size
        for name, whole in (("one line", False), ("whole file", True)):
            rows = asyncio.run(measure(space, root, nearest, args.runs, whole))
            plain = [row for row in rows if not row["compacted"]]
            medians = {key: round(statistics.median(row[key] for row in plain), 2) for key in list(rows[0])[:3]}
            result[name] = {**medians, "compactions": len(rows) - len(plain), "rows": rows}
            print(name, medians, "compactions", len(rows) - len(plain), "tokens", rows[-1]["prompt_tokens"])
        space.close()
    if args.result:
        args.result.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
