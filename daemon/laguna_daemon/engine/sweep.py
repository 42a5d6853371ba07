"""Ending what a daemon that died in the worst way left behind, and nothing else.

A process is ours if the record in the runtime folder, made under this boot, names it by pid and start time, or if
its environment carries the random cookie of that record.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from laguna_daemon.engine.guard import ProcessId, boot_id, identify

COOKIE = "LAGUNA_ENGINE_COOKIE"
_PATIENCE = 5.0


def write_record(path: Path, cookie: str, socket: Path) -> None:
    """Note, before an engine is started, how its processes can be told; raises OSError."""
    temporary = path.with_suffix(".new")
    body = {"boot": boot_id(), "cookie": cookie, "socket": str(socket), "processes": []}
    temporary.write_text(json.dumps(body), encoding="utf-8")
    temporary.chmod(0o600)
    temporary.replace(path)


def sweep(path: Path) -> list[int]:
    """End the processes that the record at ``path`` proves to be ours, then remove it; returns their pids.

    Blocks for up to five seconds. The caller must be the only one to start engines in this runtime folder.
    """
    record = _read(path)
    if record is None:
        return []
    ended: set[int] = set()
    deadline = time.monotonic() + _PATIENCE
    while (found := proven(record)) and time.monotonic() < deadline:
        for pid, _ in found:
            ended.add(pid)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    with contextlib.suppress(OSError):
        path.unlink()
    return sorted(ended)


def proven(record: Mapping[str, Any]) -> list[ProcessId]:
    """Live processes that the record proves to be ours."""
    if record.get("boot") != boot_id():
        return []
    named = {(int(pid), int(start)) for pid, start in record.get("processes", [])}
    cookie = f"{COOKIE}={record.get('cookie')}".encode()
    found: list[ProcessId] = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        who = identify(int(folder.name))
        if who is not None and (who in named or _carries(folder, cookie)):
            found.append(who)
    return found


def _carries(folder: Path, cookie: bytes) -> bool:
    try:
        return cookie in (folder / "environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("cookie") else None
