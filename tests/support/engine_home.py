"""The real engine for tests: one that is there already, or one installed once by the product's own command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_home() -> Path:
    """Where tests keep what they install: ``LAGUNA_TEST_HOME``, else a folder of the user's cache."""
    named = os.environ.get("LAGUNA_TEST_HOME")
    return Path(named) if named else Path.home() / ".cache" / "laguna-daemon-tests"


def engine_environment() -> dict[str, str]:
    """Variables under which ``laguna-daemon`` finds the real CPU engine, installing it if it is not there."""
    python, model = os.environ.get("LAGUNA_TEST_ENGINE_PYTHON"), os.environ.get("LAGUNA_TEST_MODEL")
    if python and model:
        return {"LAGUNA_ENGINE__PYTHON": python, "LAGUNA_ENGINE__MODEL": model}
    data = test_home() / "data"
    subprocess.run(
        [sys.executable, "-m", "laguna_daemon.cli", "engine", "install", "cpu"],
        env={**os.environ, "LAGUNA_DATA_DIR": str(data), "LAGUNA_CACHE_DIR": str(test_home() / "cache")},
        check=True,
        timeout=1500,
    )
    return {"LAGUNA_DATA_DIR": str(data)}
