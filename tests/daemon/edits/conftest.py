"""Folders in memory: these tests flush thousands of files, and what they show does not depend on a disk."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

_MEMORY = Path("/dev/shm")


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder for one test, in memory where the system offers that."""
    where = _MEMORY if _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="laguna-edits-", dir=where) as folder:
        yield Path(folder)
