"""An offline evaluation of completion: holes punched into real files, filled in by whatever engine the daemon runs.

    laguna-daemon start --wait
    python benchmarks/completion_eval.py . --holes 12 --result benchmarks/results/completion-eval.json

Every hole is asked for with the text around it alone, as an editor without open files would, and passes the same
filters. Per language and kind of hole: how often the text is exactly the one that stood there, the edit similarity to
it (1 - Levenshtein distance / longer length), how often nothing was suggested, and times. White space at the ends
does not count. The result holds every raw answer; nothing is written to the files.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from laguna_daemon.api import client
from laguna_daemon.completion import filters
from laguna_daemon.lsp.text.positions import content_length, split_lines
from laguna_daemon.schemas import CompleteRequest, CompleteResult, Status

LANGUAGES = {
    ".py": "python",
    ".ts": "typescript",
    ".mjs": "javascript",
    ".js": "javascript",
    ".lua": "lua",
    ".go": "go",
    ".rs": "rust",
    ".c": "c",
    ".h": "c",
    ".cpp": "cpp",
    ".java": "java",
    ".html": "html",
    ".css": "css",
    ".toml": "toml",
    ".sh": "shellscript",
}
KINDS = ("rest of line", "line", "block")
_AROUND = 24_000


@dataclass(frozen=True)
class Hole:
    """Text that was taken out of a file: ``expected`` stood between ``prefix`` and ``suffix``."""

    path: str
    language: str
    kind: str
    line: int
    prefix: str
    suffix: str
    expected: str


def punch(root: Path, per_language: int, seed: int) -> list[Hole]:
    """So many holes per language, of all kinds in turn, in files that git lists, at most two in one file."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True).stdout.split(b"\0")
    files: dict[str, list[str]] = defaultdict(list)
    for name in sorted(os.fsdecode(raw) for raw in listed if raw):
        language = LANGUAGES.get(Path(name).suffix)
        if language is not None:
            files[language].append(name)
    chance = random.Random(seed)
    holes: list[Hole] = []
    for language, names in sorted(files.items()):
        chance.shuffle(names)
        found: list[Hole] = []
        for name in [*names, *names]:
            if len(found) == per_language:
                break
            hole = _hole(root, name, language, KINDS[len(found) % len(KINDS)], chance)
            if hole is not None:
                found.append(hole)
        holes += found
    return holes


def _hole(root: Path, name: str, language: str, kind: str, chance: random.Random) -> Hole | None:
    try:
        lines = split_lines((root / name).read_bytes().decode())
    except (UnicodeDecodeError, OSError):
        return None
    said = [n for n, line in enumerate(lines) if len(line.strip()) >= 10 and n >= 3]
    if len(lines) < 20 or not said:
        return None
    number = chance.choice(said)
    line = lines[number][: content_length(lines[number])]
    lead = len(line) - len(line.lstrip())
    start, end, last = lead, len(line), number
    if kind == "rest of line":
        start = chance.randrange(lead + 1, len(line) - 2)
    elif kind == "block":
        last = min(number + chance.randrange(1, 4), len(lines) - 1)
        while last > number and len(lines[last]) - len(lines[last].lstrip()) < lead:
            last -= 1
        end = content_length(lines[last])
    before = "".join(lines[:number]) + line[:start]
    after = lines[last][end:] + "".join(lines[last + 1 :])
    expected = "".join([*lines[number : last + 1]])[start:].removesuffix(lines[last][end:])
    return Hole(name, language, kind, number + 1, before[-_AROUND:], after[:_AROUND], expected)


def site_of(hole: Hole) -> filters.Site:
    """What the language server's filters would see there."""
    above, below = split_lines(hole.prefix), split_lines(hole.suffix)
    plain = [line[: content_length(line)] for line in above[:-1]]
    return filters.Site(
        before=above[-1],
        rest=below[0][: content_length(below[0])],
        above=tuple(plain[-16:]),
        below=tuple(line[: content_length(line)] for line in below[1:9]),
        indent=filters.step_of(above[-200:]),
    )


def distance(one: str, other: str) -> int:
    """Levenshtein distance: insertions, deletions and replacements of one character."""
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


def similarity(one: str, other: str) -> float:
    """1 for equal texts, 0 for texts that have nothing in common."""
    longer = max(len(one), len(other))
    return 1.0 if longer == 0 else 1 - distance(one, other) / longer


def fill(hole: Hole, root: Path) -> dict[str, Any]:
    """One hole: what the engine said, what is suggested, how near that is."""
    request = CompleteRequest(
        root=str(root), path=hole.path, language=hole.language, prefix=hole.prefix, suffix=hole.suffix, scope="local"
    )
    result = CompleteResult.model_validate(client.post("/v1/complete", request))
    cut = result.usage.finish_reason in ("length", "timeout")
    site = replace(site_of(hole), cut=cut)
    text = filters.apply(result.text, site)
    wanted, got = hole.expected.strip(), text.strip()
    return {
        "path": hole.path,
        "line": hole.line,
        "language": hole.language,
        "kind": hole.kind,
        "expected": hole.expected,
        "raw": result.text,
        "suggested": text,
        "site": asdict(site),
        "exact": got == wanted,
        "exact_line": bool(got) and got.partition("\n")[0].strip() == wanted.partition("\n")[0].strip(),
        "similarity": round(similarity(got, wanted), 4),
        "ttft_ms": result.usage.ttft_ms,
        "total_ms": result.usage.total_ms,
        "prompt_tokens": result.usage.prompt_tokens,
        "output_tokens": result.usage.output_tokens,
        "finish_reason": result.usage.finish_reason,
    }


def summarised(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over some holes."""
    return {
        "holes": len(rows),
        "exact": round(statistics.mean(row["exact"] for row in rows), 3),
        "exact_line": round(statistics.mean(row["exact_line"] for row in rows), 3),
        "similarity": round(statistics.mean(row["similarity"] for row in rows), 3),
        "nothing": round(statistics.mean(not row["suggested"].strip() for row in rows), 3),
        "median_total_ms": statistics.median(row["total_ms"] for row in rows),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path, help="a git repository to punch holes into")
    parser.add_argument("--holes", type=int, default=12, help="holes per language")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--name", default="", help="what the repository is called in the result")
    parser.add_argument("--note", default="", help="kept with the result: what is unusual about this run")
    parser.add_argument("--result", type=Path, help="file for the result, as JSON")
    arguments = parser.parse_args()
    root = arguments.root.resolve()
    status = next(iter(client.watch_status()), None)
    engine = None if status is None else Status.model_validate(status).engine
    rows: list[dict[str, Any]] = []
    for hole in punch(root, arguments.holes, arguments.seed):
        rows.append(fill(hole, root))
        print(f"{hole.language:<12} {hole.kind:<13} {rows[-1]['similarity']:.2f}  {hole.path}:{hole.line}", flush=True)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=False).stdout
    groups = {"all": rows}
    for row in rows:
        for name in (row["language"], row["kind"]):
            groups.setdefault(name, []).append(row)
    result = {
        "when": time.strftime("%Y-%m-%d"),
        "repository": arguments.name or root.name,
        "commit": commit.strip(),
        "model": engine.model if engine else "",
        "profile": engine.profile if engine else "",
        "seed": arguments.seed,
        "note": arguments.note,
        "summary": {name: summarised(group) for name, group in groups.items()},
        "holes": rows,
    }
    json.dump(result["summary"], sys.stdout, indent=1)
    if arguments.result:
        arguments.result.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
