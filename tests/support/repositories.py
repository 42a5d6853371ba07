"""Real repositories for tests, and what plain git says about them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

IDENTITY = ("-c", "user.name=Tester", "-c", "user.email=tester@example.org", "-c", "commit.gpgsign=false")


def git(root: Path, *args: str, input: bytes | None = None, check: bool = True) -> bytes:
    """Run git as a user of the repository would, configuration and all."""
    done = subprocess.run(
        ["git", *IDENTITY, *args], cwd=root, input=input, capture_output=True, check=False, timeout=60
    )
    if check and done.returncode:
        raise AssertionError(f"git {args} failed: {done.stderr.decode()}")
    return done.stdout


def write(root: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files, making their folders."""
    for path, content in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())


def repository(root: Path, files: Mapping[str, str | bytes] | None = None, *, commit: bool = False) -> Path:
    """A new repository at `root` holding `files`, all added and committed if asked."""
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q", "-b", "main")
    write(root, files or {})
    if commit:
        git(root, "add", "-A")
        git(root, "commit", "-q", "--allow-empty", "-m", "start")
    return root


def listed_by_git(root: Path) -> set[str]:
    """The paths git lists, of those that are on disk."""
    answer = git(root, "ls-files", "-co", "--exclude-standard", "-z")
    paths = {os.fsdecode(path).removesuffix("/") for path in answer.split(b"\0") if path}
    return {path for path in paths if os.path.lexists(root / path)}
