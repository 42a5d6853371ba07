"""A scripted model for refactorings: what it writes for each file, at the turn that asks for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.daemon import Home
from support.engine_probe import Probe

REFUSED = "These blocks were refused"
MISSING = "These files are still to do"
CHECK = "Then the check"


def block(path: str, search: str, replace: str) -> str:
    """A SEARCH/REPLACE block; both texts are lines without a last newline."""
    return f"<<<<<<< SEARCH {path}\n{search}\n=======\n{replace}\n>>>>>>> REPLACE\n"


def create(path: str, text: str) -> str:
    """A CREATE block."""
    return f"<<<<<<< CREATE {path}\n{text}>>>>>>> END\n"


def rename_lines(root: Path, path: str, old: str, new: str) -> str:
    """A block for every line of a file that holds ``old``; the lines must differ."""
    lines = (root / path).read_text().splitlines()
    return "".join(block(path, line, line.replace(old, new)) for line in lines if old in line)


def plan(home: Home, repo: Path, instruction: str) -> dict[str, Any]:
    """The plan that ``instruction`` gets; the model's answers do not matter."""
    done = home.run("refactor", instruction, "--dry-run", "--stream-json", "--max-rounds", "1", cwd=repo)
    import json

    events = [json.loads(line) for line in done.stdout.splitlines()]
    return next(event for event in events if event["kind"] == "plan")


def script_batches(engine: Probe, instruction: str, answers: list[str], *more: dict[str, Any]) -> None:
    """One answer for each batch of the plan."""
    count = len(answers)
    rules = [{"when": f"(batch {n} of {count};", "answer": text} for n, text in enumerate(answers, 1)]
    if count == 1:
        rules = [{"when": f"Refactor this repository: {instruction}", "answer": answers[0]}]
    engine.answers(*rules, *more)
