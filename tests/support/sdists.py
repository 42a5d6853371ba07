"""Source distributions of well-known packages, unpacked: text that nobody wrote for these tests."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

from support.engine_home import test_home

# Both are built with setuptools alone, so fetching them runs no build backend that would have to be installed.
PINNED = ("six==1.17.0", "toolz==1.0.0")


def unpacked(requirement: str) -> Path:
    """The folder of a source distribution; downloaded once into the tests' own home."""
    folder = test_home() / "sdists" / requirement.replace("==", "-")
    if not folder.is_dir():
        archives = folder.with_suffix(".archive")
        subprocess.run(
            [
                sys.executable,
                "-m",
                "pip",
                "download",
                "-q",
                "--no-deps",
                "--no-binary",
                ":all:",
                "-d",
                archives,
                requirement,
            ],
            check=True,
            timeout=300,
        )
        staging = folder.with_suffix(".unpacking")
        with tarfile.open(next(archives.glob("*.tar.gz"))) as archive:
            archive.extractall(staging, filter="data")
        next(path for path in staging.iterdir() if path.is_dir()).rename(folder)
    return folder
