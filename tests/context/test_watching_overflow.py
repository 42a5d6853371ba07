"""The kernel's own queue of file events overflows: a new listing makes up for what it dropped."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from support.repositories import repository, write

LIMIT = Path("/proc/sys/fs/inotify/max_queued_events")
PATIENCE = 120.0
FOLLOWER = """
import asyncio, json, sys
from pathlib import Path
from laguna_context.listing import Selection
from laguna_context.watching import watch

async def follow():
    async for changes in watch(Path(sys.argv[1]), selection=Selection(), stop=asyncio.Event()):
        print(json.dumps([sorted(changes.paths), changes.rescan]), flush=True)

asyncio.run(follow())
"""


class Follower:
    """A watch in a process of its own, which can be held so that nobody empties the kernel's queue."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.told: set[str] = set()
        self.rescans = 0

    async def next(self) -> None:
        assert self._process.stdout is not None
        line = await asyncio.wait_for(self._process.stdout.readline(), PATIENCE)
        assert line, "the watch ended"
        paths, rescan = json.loads(line)
        self.told |= set(paths)
        self.rescans += rescan

    def hold(self) -> None:
        self._process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WNOWAIT)

    def let_go(self) -> None:
        self._process.send_signal(signal.SIGCONT)


@asynccontextmanager
async def follower(root: Path) -> AsyncIterator[Follower]:
    limits: dict[str, Any] = {"limit": 1 << 26}  # the answer to a mass change is one long line
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", FOLLOWER, str(root), stdout=PIPE, **limits)
    try:
        found = Follower(process)
        await found.next()
        found.rescans = 0
        yield found
    finally:
        process.kill()
        await process.wait()


def more_than_fit() -> set[str]:
    """Names of more new files than the kernel keeps events; each makes two or more."""
    return {f"n{number}.txt" for number in range(int(LIMIT.read_text()) + 100)}


async def test_nothing_is_lost_when_the_kernels_queue_overflows(tmp_path: Path) -> None:
    root = repository(tmp_path, {"old.txt": "x", "gone.txt": "x", "d/deep.txt": "x"}, commit=True)
    names = more_than_fit()
    async with follower(root) as watch:
        watch.hold()
        for name in names:
            (root / name).touch()
        # The queue is full: of none of these is there an event.
        write(root, {"old.txt": "changed", "d/deep.txt": "changed", "new/folder/f.txt": "x"})
        (root / "gone.txt").unlink()
        late = {"old.txt", "d/deep.txt", "new/folder/f.txt", "gone.txt"}
        watch.let_go()
        while not late | names <= watch.told:
            await watch.next()
        assert watch.rescans > 0
        write(root, {"new/folder/after.txt": "x"})
        while "new/folder/after.txt" not in watch.told:
            await watch.next()
