"""500 edit blocks over 200 files of a real tree: parse, match and apply, against merely reading and writing the files.

    pip download --no-binary :all: --no-deps django && tar xf django-*.tar.gz
    python benchmarks/edits.py django-5.2.19 --result benchmarks/results/edits.json

"Reading and writing" is the same files with the same new bytes, each read, written beside its place, flushed and
renamed, without any check or journal. The target is 1 s beyond that.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from laguna_daemon import edits

FILES, BLOCKS, TARGET_S = 200, 500, 1.0


def choose_files(root: Path, seed: int) -> list[str]:
    """200 Python files of 30 to 3,000 lines."""
    found = []
    for path in sorted(root.rglob("*.py")):
        if 30 <= path.read_bytes().count(b"\n") <= 3000:
            found.append(path.relative_to(root).as_posix())
    return sorted(random.Random(seed).sample(found, FILES))


def write_answer(root: Path, paths: list[str], seed: int) -> str:
    """An answer of 500 blocks, each of 3 to 8 lines that stand once in their file and overlap with no other."""
    rng = random.Random(seed)
    answer: list[str] = []
    taken: dict[str, list[range]] = {path: [] for path in paths}
    while len(answer) < BLOCKS:
        path = paths[len(answer) % FILES]
        text = (root / path).read_text(encoding="utf-8")
        lines = text.split("\n")[:-1]
        length = rng.randint(3, 8)
        start = rng.randrange(len(lines) - length)
        piece = lines[start : start + length]
        place = range(start, start + length)
        unique = f"\n{text}".count("\n" + "\n".join(piece) + "\n") == 1
        if not unique or not any(any(c.isalnum() for c in line) for line in piece):
            continue
        if any(set(place) & set(other) for other in taken[path]):
            continue
        taken[path].append(place)
        new = [*piece[:1], "# a line of the benchmark", *piece[2:]]
        answer.append("\n".join([f"<<<<<<< SEARCH {path}", *piece, "=======", *new, ">>>>>>> REPLACE", ""]))
    rng.shuffle(answer)
    return "Here are the changes.\n\n" + "\n".join(answer)


def read_and_write(root: Path, states: dict[str, bytes]) -> float:
    """Seconds to read, write beside, flush and rename the files."""
    started = time.perf_counter()
    for path in states:
        (root / path).read_bytes()
    for path, data in states.items():
        target = root / path
        temporary = target.with_name(f".{target.name}.tmp")
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(target)
    return time.perf_counter() - started


def run_once(tree: Path, answer: str, work: Path) -> dict[str, float]:
    """Seconds of every stage, on a fresh copy of the tree."""
    root, plain, journal = work / "root", work / "plain", work / "journal"
    shutil.copytree(tree, root)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    subprocess.run(["git", "add", "-A"], cwd=root, check=True)
    shutil.copytree(tree, plain)
    os.sync()
    started = time.perf_counter()
    parsed = edits.parse(answer)
    parsing = time.perf_counter()
    changes = edits.plan(root, parsed.blocks, problems=parsed.problems)
    planning = time.perf_counter()
    if isinstance(changes, edits.Refusals):
        sys.exit(changes.message())
    edits.apply(changes, journal)
    applying = time.perf_counter()
    assert len(parsed.blocks) == BLOCKS and len(changes.changes) == FILES
    new = {change.path: change.after.data for change in changes.changes if change.after}
    baseline = read_and_write(plain, new)
    assert all((root / path).read_bytes() == data for path, data in new.items())
    total = applying - started
    return {
        "parse_s": parsing - started,
        "plan_s": planning - parsing,
        "apply_s": applying - planning,
        "total_s": total,
        "read_and_write_s": baseline,
        "beyond_s": total - baseline,
    }


def main() -> None:
    """Measure, print, and store the raw figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", type=Path, help="a folder on the file system to measure (default: temporary)")
    parser.add_argument("--result", type=Path)
    options = parser.parse_args()
    paths = choose_files(options.tree, options.seed)
    answer = write_answer(options.tree, paths, options.seed)
    runs = []
    for _ in range(options.runs):
        with tempfile.TemporaryDirectory(dir=options.work) as work:
            runs.append(run_once(options.tree, answer, Path(work)))
    beyond = [run["beyond_s"] for run in runs]
    result = {
        "benchmark": "edits",
        "tree": options.tree.name,
        "tree_files": sum(path.is_file() for path in options.tree.rglob("*")),
        "files": FILES,
        "blocks": BLOCKS,
        "answer_bytes": len(answer.encode()),
        "python": platform.python_version(),
        "machine": {"system": platform.platform(), "cpus": os.cpu_count(), "load": os.getloadavg()},
        "runs": runs,
        "beyond_s": {"median": statistics.median(beyond), "best": min(beyond), "worst": max(beyond)},
        "target_s": TARGET_S,
        "met": statistics.median(beyond) <= TARGET_S,
    }
    text = json.dumps(result, indent=1)
    print(text)
    if options.result:
        options.result.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
