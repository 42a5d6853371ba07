"""A refactoring on the real engine. A model of 135 million parameters cannot write blocks, so its answer is bound by a
grammar to the planned lines: this shows that every part works together, and nothing about a model's quality."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from support.daemon import Home, git, repository

INSTRUCTION = "Rename the function `greet` to `salute`"
FILES = {
    "app/__init__.py": "",
    "app/core.py": 'def greet(name):\n    """Say hello."""\n    return f"hello {name}"\n',
    **{
        f"app/part_{n}.py": f"from app.core import greet\n\n\ndef part_{n}():\n    return greet('{n}')\n"
        for n in range(2)
    },
    "test_app.py": (
        "import unittest\n\nfrom app.core import salute\nfrom app.part_1 import part_1\n\n\n"
        "class App(unittest.TestCase):\n    def test_part(self):\n"
        "        self.assertEqual(part_1(), salute('1'))\n"
    ),
    ".gitignore": "__pycache__/\n",
}


@pytest.mark.timeout(1200)
def test_constrained_edits_are_applied_checked_and_undone(real_home: Home, tmp_path: Path) -> None:
    repo = repository(tmp_path / "app", FILES)
    real_home.json("start", "--wait", "--json", timeout=900)
    args = ("refactor", INSTRUCTION, "--structured", "--apply", "--json", "--check", f"{sys.executable} -B -m unittest")
    done = real_home.run(*args, cwd=repo, timeout=900)
    assert done.returncode == 0, (done.stdout, done.stderr, real_home.daemon_log())
    found = json.loads(done.stdout)
    planned = [one["path"] for one in found["plan"]["files"]]
    assert planned == ["app/core.py", *(f"app/part_{n}.py" for n in range(2))]
    assert [one["path"] for one in found["report"]["done"]] == planned
    assert found["checks"][0]["exit_code"] == 0, "the tests pass only with the new name"
    assert len(found["turns"]) == len(found["plan"]["batches"])
    for turn in found["turns"]:
        usage = turn["usage"]
        assert usage["prompt_tokens"] == usage["cached_tokens"] + usage["prefilled_tokens"]
        assert usage["output_tokens"] > 0
    snapshots = {turn["usage"]["snapshot"] for turn in found["turns"]}
    assert len(snapshots) == 1
    assert real_home.run("undo", cwd=repo).returncode == 0
    assert git(repo, "status", "--porcelain") == ""
