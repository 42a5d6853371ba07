"""The last commits of real repositories, one question after each: how much of every prompt the engine has already.

    git clone https://github.com/pallets/flask && git clone https://github.com/psf/black
    python benchmarks/context/replay.py --model FOLDER flask black --result benchmarks/results/context-replay.json

Each repository is cloned to a temporary folder and walked along its first parents. Half way the tree is switched to a
commit 30 back and returns, one question each. *Reused* is the length of the prompt's common prefix with the prompt
before, in tokens. *Ideal* is what nobody can avoid: for each changed file that is shown, the shorter of git's own diff
and the whole file, and the question. A commit's *row* is [prompt, reused, overlay, ideal, 1 if it compacted].

Two policies: `full`, the worst case, has no time between requests, and the request that finds the overlay full pays
for the compaction; `daemon` keeps the commits' own time: a question stands as long after the one before as the commits
were made apart (committer dates), and where that is longer than the daemon's idle time and a minute for reading, it
does what the daemon then does, `Workspace.compact()`, and the tokens it reads are counted as background. There is no
such time around the branch switch. Other orders (path, repomix's, most changed first, least changed first) show the
very same documents without a snapshot, in that order.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from laguna_context import frames
from laguna_context.template import load_template
from laguna_context.tokens import Ids, Tokenizer, load_tokenizer
from laguna_context.workspace import Budget, Workspace
from laguna_daemon.config import WarmSettings

BUDGET = Budget(context=204_800, output=14_800, task=8_000, overlay=17_000)
BACK = 30  # commits, of the branch switch
IDLE = WarmSettings().idle_compaction + 60  # seconds: until the daemon compacts, and to read what is new then
LOW = 0.92
REPOMIX_COMMITS = 100  # repomix counts changes over so many (its default)


def git(root: Path, *args: str) -> str:
    """Output of a git command."""
    done = subprocess.run(["git", "-C", str(root), *args], check=True, capture_output=True)
    return done.stdout.decode("utf-8", "surrogateescape")


def shared(a: Ids, b: Ids) -> int:
    """Length of the common prefix of two id arrays."""
    size = min(a.size, b.size)
    differs = np.flatnonzero(a[:size] != b[:size])
    return int(differs[0]) if differs.size else size


@dataclass(frozen=True)
class Visit:
    """A commit to be checked out. `pause`: seconds until the next one; `switch`: part of the branch switch."""

    commit: str
    pause: int
    switch: bool = False


def walk(root: Path, head: str, steps: int) -> Iterator[Visit]:
    """Check out one commit after the other, oldest first."""
    log = git(root, "log", "--first-parent", f"-n{steps + 1}", "--format=%H %ct", head).split()
    commits, times = log[::2][::-1], [int(time) for time in log[1::2]][::-1]
    pauses = [after - before for before, after in pairwise(times)] + [0]
    half = len(commits) // 2
    visits = [Visit(commit, pause) for commit, pause in zip(commits, pauses, strict=True)]
    switch = [Visit(commits[half - BACK], 0, True), Visit(commits[half], pauses[half], True)]
    visits[half : half + 1] = [Visit(commits[half], 0), *switch]
    for visit in visits:
        git(root, "checkout", "-qf", visit.commit)
        yield visit


class Ideal:
    """Tokens of change between two commits, as git tells it."""

    def __init__(self, root: Path, tokenizer: Tokenizer) -> None:
        self._root, self._tokenizer = root, tokenizer

    def between(self, old: str, new: str, shown: set[str]) -> int:
        """Over the changed files that are shown: the shorter of the diff's hunks and the whole file."""
        total = 0
        for record in git(self._root, "diff", "--no-renames", "--name-only", "-z", old, new).split("\0"):
            if record not in shown:
                continue
            diff = git(self._root, "diff", "--no-renames", "--no-ext-diff", old, new, "--", record)
            hunks = diff[diff.find("\n@@") + 1 :]
            path = self._root / record
            whole = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
            sizes = [self._tokenizer.encode(text).size for text in (hunks, whole) if text]
            total += min(sizes, default=0)
        return total


class OtherOrders:
    """The same documents in orders that are computed anew at each commit."""

    def __init__(self, root: Path, tokenizer: Tokenizer) -> None:
        self._root, self._tokenizer = root, tokenizer
        self._ids: dict[str, Ids] = {}
        self._before: dict[str, Ids] = {}
        self.shares: dict[str, list[float]] = {}

    def visit(self, texts: dict[str, str]) -> None:
        """One request over these texts in every order."""
        paths = sorted(texts)
        for name, order in self._orders(paths).items():
            ids = np.concatenate([self._document(path, texts[path]) for path in order])
            if name in self._before:
                self.shares.setdefault(name, []).append(shared(ids, self._before[name]) / max(1, ids.size))
            self._before[name] = ids

    def _orders(self, paths: list[str]) -> dict[str, list[str]]:
        counts = self._counts(f"-n{REPOMIX_COMMITS}")
        always = self._counts("-n500")
        folders_first = sorted(paths, key=folders_before_files)
        return {
            "path": paths,
            "repomix": sorted(folders_first, key=lambda path: counts[path]),
            "most changed first": sorted(paths, key=lambda path: -always[path]),
            "least changed first": sorted(paths, key=lambda path: always[path]),
        }

    def _counts(self, limit: str) -> Counter[str]:
        return Counter(
            git(self._root, "log", limit, "--pretty=format:", "--name-only", "-z").replace("\n", "\0").split("\0")
        )

    def _document(self, path: str, text: str) -> Ids:
        frame = frames.document(path, text)
        if frame.text not in self._ids:
            self._ids[frame.text] = self._tokenizer.encode(frame.text)
        return self._ids[frame.text]


def folders_before_files(path: str) -> list[tuple[int, str]]:
    """repomix's own order before it sorts by changes: folders first, by name without regard to case."""
    parts = path.split("/")
    return [(0 if index < len(parts) - 1 else 1, part.casefold()) for index, part in enumerate(parts)]


class Replay:
    """One repository under one policy."""

    def __init__(self, source: Path, scratch: Path, model: Path) -> None:
        self.root = scratch / "tree"
        subprocess.run(["git", "clone", "-q", str(source), str(self.root)], check=True)
        self.head = git(self.root, "rev-parse", "HEAD").strip()
        self._cache = scratch / "cache"
        self.tokenizer = load_tokenizer(model, cache=scratch)
        self._template = load_template(model, self.tokenizer)
        self._ideal = Ideal(self.root, self.tokenizer)
        self._warm: Ids = np.empty(0, dtype=np.uint32)
        self._before = ""
        self.shown: set[str] = set()
        self.first = 0
        self.rows: list[list[int]] = []
        self.commits: list[str] = []
        self.switches: list[int] = []
        self.background: list[int] = []

    def walk(self, steps: int, daemon: bool) -> Iterator[Visit]:
        """Ask at each commit; yields after each question."""
        space: Workspace | None = None
        for number, visit in enumerate(walk(self.root, self.head, steps)):
            space = space or self._open()
            self._ask(space, number, visit)
            if daemon and visit.pause > IDLE and space.compact():
                warmed = space.prompt("").ids
                self.background.append(warmed.size - shared(warmed, self._warm))
                self._warm = warmed
            yield visit
        assert space is not None
        space.close()

    def _open(self) -> Workspace:
        return Workspace.open(
            self.root, tokenizer=self.tokenizer, template=self._template, budget=BUDGET, cache_dir=self._cache
        )

    def _ask(self, space: Workspace, number: int, visit: Visit) -> None:
        space.changed(None)
        compactions, known = space.compactions, self.shown
        prompt = space.prompt(f"What does commit {number} change, and why?")
        self.shown = {file.path for file in space.manifest().files if file.tier in ("full", "overlay")}
        if self._before:
            ideal = self._ideal.between(self._before, visit.commit, known | self.shown) + prompt.task_tokens
            compacted = int(space.compactions > compactions)
            reused = shared(prompt.ids, self._warm)
            if visit.switch:
                self.switches.append(len(self.rows))
            self.rows.append([prompt.ids.size, reused, prompt.overlay_tokens, ideal, compacted])
            self.commits.append(visit.commit[:10])
        else:
            self.first = prompt.ids.size
        self._warm, self._before = prompt.ids, visit.commit


def replay(source: Path, scratch: Path, model: Path, steps: int, daemon: bool, others: bool) -> dict[str, Any]:
    """Walk one repository under one policy."""
    run = Replay(source, scratch, model)
    orders = OtherOrders(run.root, run.tokenizer)
    for _ in run.walk(steps, daemon):
        if others:
            orders.visit({path: (run.root / path).read_text(errors="replace") for path in run.shown})
    return summary(run) | {"orders": orders.shares, "rows": run.rows}


def summary(run: Replay) -> dict[str, Any]:
    """The figures of one walk. `low`: requests that reuse less than 92%, with what the commit itself brings."""
    rows = run.rows
    shares = sorted(row[1] / row[0] for row in rows)
    plain = [row for row in rows if not row[4]]
    low = [(number, row) for number, row in enumerate(rows) if row[1] < LOW * row[0]]
    return {
        "prompt_tokens_first": run.first,
        "prompt_tokens_last": rows[-1][0],
        "requests": len(rows),
        "reused_median": statistics.median(shares),
        "reused_p5": shares[len(shares) // 20],
        "reused_least": shares[0],
        "compactions_in_requests": sum(row[4] for row in rows),
        "compaction_tokens_in_requests": sum(row[0] - row[1] for row in rows if row[4]),
        "background_compactions": len(run.background),
        "background_tokens": sum(run.background),
        "prefilled_outside_compactions": sum(row[0] - row[1] for row in plain),
        "ideal_outside_compactions": sum(row[3] for row in plain),
        "prefilled": sum(row[0] - row[1] for row in rows) + sum(run.background),
        "ideal": sum(row[3] for row in rows),
        "branch_switch_reused": [rows[index][1] / rows[index][0] for index in run.switches],
        "unavoidable": sum(row[3] > (1 - LOW) * row[0] for row in rows),
        "low": [
            {
                "request": number,
                "commit": run.commits[number],
                "prompt": row[0],
                "read": row[0] - row[1],
                "commit_brings": row[3],
                "compacted": bool(row[4]),
                "switch": number in run.switches,
            }
            for number, row in low
        ],
    }


def main() -> None:
    """Replay each repository under both policies and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repositories", nargs="+", type=Path, help="clones or bare repositories")
    parser.add_argument("--model", type=Path, required=True, help="folder with tokenizer.json and chat template")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--policies", nargs="+", choices=["full", "daemon"], default=["full", "daemon"])
    parser.add_argument("--no-orders", action="store_true", help="leave the other orders out")
    parser.add_argument("--result", type=Path)
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    results = []
    for source in args.repositories:
        name = next(part for part in reversed(source.resolve().parts) if part not in ("repo", ".git"))
        for policy in args.policies:
            others = policy == "full" and not args.no_orders
            with tempfile.TemporaryDirectory() as scratch:
                found = replay(source, Path(scratch), args.model, args.steps, policy == "daemon", others)
            found = {"repository": name, "policy": policy, **found}
            results.append(found)
            show(found, args.verbose)
    if args.result:
        args.result.write_text(
            json.dumps(results, separators=(",", ":")).replace('{"repository"', '\n{"repository"') + "\n"
        )


def show(found: dict[str, Any], verbose: bool) -> None:
    """Print one walk."""
    if verbose:
        for number, row in enumerate(found["rows"]):
            print(number, *row, f"{row[1] / row[0]:.3f}")
    print(json.dumps({key: value for key, value in found.items() if key not in ("rows", "orders", "low")}))
    for name, values in found["orders"].items():
        print(f"    {name}: median {statistics.median(values):.3f}, p5 {sorted(values)[len(values) // 20]:.3f}")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
