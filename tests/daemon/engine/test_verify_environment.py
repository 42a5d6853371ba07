"""The check of a finished environment, run as the script that it is."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import laguna_daemon.engine.setup.verify_environment as verifier
from support.wheels import write_wheel


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """An environment with alpha 1.0, which has two files."""
    env = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", env], check=True)
    wheel = write_wheel(tmp_path, "alpha", "1.0", files={"alpha/__init__.py": b"", "alpha/data.txt": b"x"})
    zipfile.ZipFile(wheel).extractall(next((env / "lib").glob("python3*/site-packages")))
    return env / "bin" / "python"


def check(python: Path, tmp_path: Path, pins: dict[str, str], without: tuple[str, ...] = ()) -> tuple[int, list[str]]:
    lock = tmp_path / "lock.json"
    lock.write_text(json.dumps({"pins": pins, "without": without}))
    done = subprocess.run([python, "-I", verifier.__file__, lock], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()


def test_what_the_lock_says_is_found(python: Path, tmp_path: Path) -> None:
    assert check(python, tmp_path, {"alpha": "1.0"}) == (0, [])


def test_missing_and_other_versions_are_told(python: Path, tmp_path: Path) -> None:
    status, lines = check(python, tmp_path, {"alpha": "2.0", "beta": "1.0"})
    assert status == 1 and lines == ["alpha is at 1.0 instead of 2.0", "beta 1.0 is not installed"]


def test_a_package_that_must_not_be_there_is_told(python: Path, tmp_path: Path) -> None:
    assert check(python, tmp_path, {}, ("alpha",)) == (1, ["alpha is installed and must not be"])


def test_a_package_that_is_there_only_in_part_is_told(python: Path, tmp_path: Path) -> None:
    site = next((python.parents[1] / "lib").glob("python3*/site-packages"))
    (site / "alpha" / "data.txt").unlink()
    status, lines = check(python, tmp_path, {"alpha": "1.0"})
    assert status == 1 and lines == ["alpha is installed only in part: alpha/data.txt is missing"]
    (site / "alpha-1.0.dist-info" / "RECORD").unlink()
    assert "only in part" in check(python, tmp_path, {"alpha": "1.0"})[1][0]
