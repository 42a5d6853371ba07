"""Which Python an environment is made with, and whether it can make one."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from laguna_daemon.engine.setup.lockfile import Lock
from laguna_daemon.engine.setup.storage import InstallFailed

_TOLD = """
import importlib.util, json, sys
has = lambda name: importlib.util.find_spec(name) is not None
print(json.dumps({"version": "%d.%d" % sys.version_info[:2], "venv": has("venv") and has("ensurepip"),
                  "vllm": has("vllm"), "prefix": sys.prefix}))
"""


@dataclass(frozen=True)
class Interpreter:
    """A Python: ``version`` is major.minor, ``venv`` whether it can make environments, ``vllm`` whether it has vLLM."""

    path: Path
    version: str
    venv: bool
    vllm: bool


def inspect(path: Path) -> Interpreter:
    """Ask a Python about itself; raises InstallFailed if it does not answer."""
    try:
        done = subprocess.run(
            [path, "-I", "-c", _TOLD], capture_output=True, text=True, timeout=60, check=True, stdin=subprocess.DEVNULL
        )
        told = json.loads(done.stdout)
        return Interpreter(path, str(told["version"]), bool(told["venv"]), bool(told["vllm"]))
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError) as error:
        raise InstallFailed(
            f"{path} is not a Python that runs ({type(error).__name__}).", "Name another one with --python."
        ) from error


def choose(wanted: Path | None, lock: Lock) -> Interpreter:
    """The Python for an environment: ``wanted``, else ``$LAGUNA_PYTHON``, else the one that runs this.

    Raises InstallFailed when it is of a version that the lock file was not made for, or cannot make environments.
    """
    named = wanted or (Path(found) if (found := os.environ.get("LAGUNA_PYTHON")) else None)
    path = _resolve(named) if named else Path(sys.executable)
    found_python = inspect(path)
    if named is None and lock.pythons and found_python.version not in lock.pythons:
        for version in lock.pythons:
            if other := shutil.which(f"python{version}"):
                candidate = inspect(Path(other))
                if candidate.venv:
                    return candidate
    return _check(found_python, lock)


def _resolve(named: Path) -> Path:
    """A path as it is; a bare name as the shell would find it. Symlinks stay: an environment is found through them."""
    found = shutil.which(named)
    if found is None:
        raise InstallFailed(f"There is no Python at {named}.", "Name another one with --python or LAGUNA_PYTHON.")
    return Path(found).absolute()


def _check(python: Interpreter, lock: Lock) -> Interpreter:
    if lock.pythons and python.version not in lock.pythons:
        versions = ", ".join(lock.pythons)
        raise InstallFailed(
            f"{python.path} is Python {python.version}; the {lock.kind} engine is locked for {versions}.",
            "Name one of those with --python or LAGUNA_PYTHON.",
        )
    if not python.venv:
        raise InstallFailed(
            f"{python.path} cannot make virtual environments (the modules venv or ensurepip are missing).",
            "On Debian and Ubuntu: apt install python3-venv. Or name another Python with --python.",
        )
    return python


def check_machine(lock: Lock) -> None:
    """Raise InstallFailed on a machine that the locked packages do not run on."""
    if lock.machine and platform.machine() != lock.machine:
        raise InstallFailed(
            f"The {lock.kind} engine is made for {lock.machine}; this machine is {platform.machine()}.",
            "Use a vLLM on another machine (profile remote), or name an environment with vLLM: --engine-python.",
        )
    missing = [flag for flag in lock.cpu_flags if flag not in _cpu_flags()]
    if missing:
        raise InstallFailed(
            f"This processor has no {', '.join(missing).upper()}, which the {lock.kind} engine needs.",
            "Use a vLLM on another machine (profile remote).",
        )


def _cpu_flags() -> set[str]:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return set()
    return next((set(line.split()) for line in text.splitlines() if line.startswith("flags")), set())
