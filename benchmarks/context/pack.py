"""A repository packed by a fresh process: cold, and again with nothing changed, against the floor and repomix.

    python benchmarks/context/pack.py TREE --model FOLDER --runs 5 --repomix node_modules/.bin/repomix --result FILE

*Floor* lists the tree with git, reads every file and encodes all that is UTF-8 with tiktoken. *Cold* opens a workspace
with an empty cache, makes a prompt and the manifest of every listed file; *again* is the same in another process with
that cache; *everything* is cold with a budget so large that all text is in the prompt, as it is in the floor's. Runs
take turns, so that ratios are of one load; `cpu` is user and system time of the process and its children, which the
machine's load hardly touches. With strace, the content files opened by *again* are counted.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

BUDGET = (204_800, 14_800, 8_000, 17_000)
EVERYTHING = (2_000_000_000, 14_800, 8_000, 17_000)


def floor(tree: Path, model: Path, cache: Path) -> dict[str, Any]:
    """In a process of its own: list, read and encode everything."""
    from laguna_context import tokens as library

    library.installed = lambda: None  # the floor is tiktoken's, also where the extra `fast` is installed
    tokenizer = library.load_tokenizer(model, cache=cache)
    assert tokenizer.kind == "tiktoken"
    listed = subprocess.run(
        ["git", "-C", str(tree), "ls-files", "-co", "--exclude-standard", "-z"], capture_output=True, check=True
    ).stdout
    tokens = files = 0
    for name in listed.split(b"\0")[:-1]:
        path = Path(os.fsdecode(name))
        if (tree / path).is_symlink() or not (tree / path).is_file():
            continue
        try:
            text = (tree / path).read_bytes().decode()
        except ValueError:
            continue
        tokens += tokenizer.encode(text).size
        files += 1
    return {"files": files, "tokens": tokens}


def ours(tree: Path, model: Path, cache: Path, secrets: bool, budget: tuple[int, int, int, int]) -> dict[str, Any]:
    """In a process of its own: open, prompt, manifest."""
    from laguna_context.template import load_template
    from laguna_context.tokens import load_tokenizer
    from laguna_context.workspace import Budget, Workspace

    tokenizer = load_tokenizer(model, cache=cache)
    template = load_template(model, tokenizer)
    space = Workspace.open(
        tree, tokenizer=tokenizer, template=template, budget=Budget(*budget), cache_dir=cache, secrets=secrets
    )
    prompt, manifest = space.prompt("What is this?"), space.manifest()
    space.close()
    return {
        "files": len(manifest.files),
        "opened": space.files_opened,
        "tokens": int(prompt.ids.size),
        "tiers": dict(manifest.tiers),
        "skipped": dict(manifest.skipped),
    }


def measured(argv: list[str], env: dict[str, str] | None = None) -> dict[str, Any]:
    """Run a command; seconds of wall clock and CPU, peak memory in MB, and what its last line says."""
    start = time.perf_counter()
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(argv, stdout=out, stderr=subprocess.DEVNULL, env={**os.environ, **(env or {})})
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - start
        if process.returncode:
            raise SystemExit(f"{argv} ended with {process.returncode}")
        out.seek(0)
        lines = out.read().decode(errors="replace").strip().splitlines()
    said = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}
    cpu = usage.ru_utime + usage.ru_stime
    return {"wall_s": round(wall, 3), "cpu_s": round(cpu, 3), "rss_mb": usage.ru_maxrss // 1024, **said}


def content_files_opened(argv: list[str], tree: Path) -> int:
    """Files of the tree, outside .git and rule files, that a run opens."""
    with tempfile.NamedTemporaryFile("r") as log:
        trace = ["strace", "-f", "-qq", "-y", "-e", "trace=open,openat,openat2", "-o", log.name, *argv]
        subprocess.run(trace, check=True, capture_output=True)
        inside = f"<{tree.resolve()}/"
        opened = {line.rsplit("<", 1)[1].split(">")[0] for line in log if inside in line.rsplit("=", 1)[-1]}
    rules = (".gitignore", ".lagunaignore", ".gitmodules", ".gitattributes")
    return sum(1 for name in opened if "/.git/" not in name and not name.endswith(rules) and Path(name).is_file())


class Bench:
    """The commands, in turns."""

    def __init__(self, tree: Path, model: Path, scratch: Path, repomix: Path | None, everything: bool) -> None:
        self.tree, self.scratch, self.repomix, self.everything = tree, scratch, repomix, everything
        self._self = [sys.executable, __file__, str(tree), "--model", str(model)]
        self.checked = scratch / "checked"
        for mode in ("floor", "open"):  # the tokenizer is checked once per user, before anything is measured
            self._run(mode, scratch / "before")
        self.checked.mkdir()
        shutil.copy(scratch / "before" / "tokenizers.json", self.checked)

    def argv(self, mode: str, cache: Path) -> list[str]:
        """The command of one run."""
        return [*self._self, "--mode", mode, "--cache", str(cache)]

    def _run(self, mode: str, cache: Path) -> dict[str, Any]:
        return measured(self.argv(mode, cache))

    def turn(self) -> dict[str, dict[str, Any]]:
        """One run of each."""
        found = {"floor": self._run("floor", self.checked)}
        for mode in ("open", "secrets"):
            cache = self.scratch / mode
            shutil.rmtree(cache, ignore_errors=True)
            shutil.copytree(self.checked, cache)
            found[f"cold {mode}"] = self._run(mode, cache)
            found[f"again {mode}"] = self._run(mode, cache)
        for mode in ("all-open", "all-secrets") if self.everything else ():
            cache = self.scratch / mode
            shutil.rmtree(cache, ignore_errors=True)
            shutil.copytree(self.checked, cache)
            found[f"everything {mode[4:]}"] = self._run(mode, cache)
        if self.repomix is not None:
            out = self.scratch / "repomix.xml"
            argv = [str(self.repomix), str(self.tree), "-o", str(out), "--quiet"]
            found["repomix"] = measured(argv, {"REPOMIX_TOKEN_CACHE": "0"})
        return found


def summary(turns: list[dict[str, dict[str, Any]]]) -> dict[str, Any]:
    """Medians, and medians of the ratios within one turn."""

    def median(value: Callable[[dict[str, dict[str, Any]]], float]) -> float:
        return round(statistics.median(value(turn) for turn in turns), 3)

    out: dict[str, Any] = {}
    for name in turns[0]:
        out[name] = {key: median(lambda t, n=name, k=key: t[n][k]) for key in ("wall_s", "cpu_s", "rss_mb")}
        for key in ("wall_s", "cpu_s"):
            out[name][f"{key[:-2]}_of_floor"] = median(lambda t, n=name, k=key: t[n][k] / t["floor"][k])
    return out


def main() -> None:
    """Measure, print, and write the raw rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--repomix", type=Path)
    parser.add_argument("--everything", action="store_true", help="also pack all text")
    parser.add_argument("--result", type=Path)
    parser.add_argument(
        "--mode", choices=["floor", "open", "secrets", "all-open", "all-secrets"], help=argparse.SUPPRESS
    )
    parser.add_argument("--cache", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.mode == "floor":
        print(json.dumps(floor(args.tree, args.model, args.cache)))
        return
    if args.mode:
        budget = EVERYTHING if args.mode.startswith("all-") else BUDGET
        print(json.dumps(ours(args.tree, args.model, args.cache, args.mode.endswith("secrets"), budget)))
        return
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(args.tree, args.model, Path(scratch), args.repomix, args.everything)
        turns = [bench.turn() for _ in range(args.runs)]
        found = {"tree": args.tree.name, "load": os.getloadavg(), "cpus": os.cpu_count(), "summary": summary(turns)}
        if shutil.which("strace"):
            again = bench.argv("secrets", Path(scratch) / "secrets")
            found["content_files_opened_again"] = content_files_opened(again, args.tree)
    print(json.dumps(found, indent=1))
    if args.result:
        args.result.write_text(json.dumps({**found, "turns": turns}, indent=1) + "\n")


if __name__ == "__main__":
    main()
