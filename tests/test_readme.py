"""The README's commands do what it says, on a fresh clone in a fresh environment."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.daemon import Home
from support.engine_home import engine_environment

ROOT = Path(__file__).parent.parent


def command(name: str) -> str:
    """The command block of that name, as a user would copy it."""
    done = subprocess.run(
        [sys.executable, str(ROOT / ".ci" / "readme_command"), name], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.mark.engine
@pytest.mark.timeout(1800)
def test_the_install_command_asks_a_first_question(tmp_path: Path) -> None:
    clone = tmp_path / "laguna-daemon"
    subprocess.run(["git", "clone", "-q", "--no-hardlinks", str(ROOT), str(clone)], check=True)
    home = Home.create(**engine_environment())
    try:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command("install")],
            cwd=clone,
            env=home.env,
            capture_output=True,
            text=True,
            timeout=1700,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        assert done.stdout.strip()
        assert re.search(r"[\d,]+ prompt tokens", done.stderr)
        version = subprocess.run(
            [str(clone / ".venv" / "bin" / "laguna-daemon"), "--version"],
            env=home.env,
            capture_output=True,
            text=True,
            check=True,
        )
        assert version.stdout.startswith("laguna-daemon ")
        assert not list(clone.glob(".venv/lib/python*/site-packages/torch")), "the base install has no torch"
    finally:
        subprocess.run([str(clone / ".venv/bin/laguna-daemon"), "stop"], env=home.env, check=False)
        home.remove()


def test_the_test_command_runs_what_ci_runs() -> None:
    assert "pytest" in command("tests")
    ci = (ROOT / ".ci" / "run").read_text()
    assert "readme_command tests" in ci


def test_every_linked_file_is_there() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if not target.startswith(("http:", "https:")):
                assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"


def test_no_paths_of_one_machine_in_tracked_files() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    here = os.fspath(ROOT)
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if path.is_file() and not path.is_symlink() and path.suffix not in {".png", ".gif"}:
            assert here not in path.read_text(errors="replace"), name
