"""The open repositories of the daemon: each read once, then kept current by its watcher."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from laguna_context.barrier import Barrier
from laguna_context.errors import ContextError
from laguna_context.listing import Selection
from laguna_context.prompt import Prompt
from laguna_context.watching import watch
from laguna_context.workspace import Workspace
from laguna_daemon.config import Settings
from laguna_daemon.errors import RepositoryError
from laguna_daemon.paths import cache_dir, runtime_dir
from laguna_daemon.schemas import WorkspaceStatus
from laguna_daemon.service import roots
from laguna_daemon.service.materials import Materials

T = TypeVar("T")
_log = logging.getLogger(__name__)
Progress = Callable[[str, int, int], None]
"""Called from a worker thread with the stage, what is done and the total."""
_SETTLE_S = 1.0  # events arrive within tens of milliseconds; after this the tree is looked at instead


@dataclass
class OpenRoot:
    """One open repository."""

    root: Path
    workspace: Workspace
    selection: Selection
    notices: tuple[str, ...]
    barrier: Barrier
    last: Prompt | None = None
    used: float = field(default_factory=time.monotonic)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    following: asyncio.Task[None] | None = None
    failure: str | None = None

    async def settle(self) -> None:
        """Return when every write made before the call has reached the workspace."""
        if not await self.barrier.wait(_SETTLE_S):
            await asyncio.to_thread(self.workspace.changed, None)


class Workspaces:
    """Opens repositories, follows their changes and closes the least used ones."""

    def __init__(self, settings: Settings, on_change: Callable[[], None]) -> None:
        self._settings = settings
        self._on_change = on_change
        self._open: dict[Path, asyncio.Task[OpenRoot]] = {}
        self._pool = ThreadPoolExecutor(4, thread_name_prefix="repository")
        self._listeners: dict[Path, list[Progress]] = {}

    async def get(self, root: Path, materials: Materials, progress: Progress) -> OpenRoot:
        """The open repository at ``root``; reads it first if need be, reporting to ``progress``.

        Two requests for one root share one reading. Raises RepositoryError.
        """
        listeners = self._listeners.setdefault(root, [])
        listeners.append(progress)
        try:
            task = self._open.get(root)
            if task is None:
                task = asyncio.create_task(self._read(root, materials))
                self._open[root] = task
                self._on_change()
            try:
                opened = await asyncio.shield(task)
            except ContextError as error:
                self._open.pop(root, None)
                raise RepositoryError(error.what, error.advice) from error
            except Exception:
                self._open.pop(root, None)
                raise
            opened.used = time.monotonic()
            return opened
        finally:
            listeners.remove(progress)

    def opened(self) -> list[OpenRoot]:
        """The roots that have been read."""
        return [task.result() for task in self._open.values() if _read_well(task)]

    def statuses(self) -> list[WorkspaceStatus]:
        """What ``status`` says about every root."""
        return [self._status(root, task) for root, task in self._open.items()]

    async def forget(self) -> None:
        """Close every root; the next question opens its own again."""
        for root in list(self._open):
            await self._close(root)
        self._on_change()

    async def close(self) -> None:
        """Close every root, for good."""
        for root in list(self._open):
            await self._close(root)
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _read(self, root: Path, materials: Materials) -> OpenRoot:
        await self._make_room()
        selection, notices = await asyncio.to_thread(roots.selection, root, self._settings.context)

        def report(stage: str, done: int, total: int) -> None:
            for listener in list(self._listeners.get(root, ())):
                listener(stage, done, total)

        def read() -> Workspace:
            return Workspace.open(
                root,
                tokenizer=materials.tokenizer,
                template=materials.template,
                budget=materials.budget,
                cache_dir=cache_dir(),
                selection=selection,
                secrets=self._settings.context.secrets,
                model=materials.launch.profile.model.revision,
                progress=report,
            )

        workspace = await self._in_pool(read)
        barrier = Barrier(runtime_dir() / "marks" / hashlib.sha256(os.fsencode(root)).hexdigest()[:16])
        opened = OpenRoot(root, workspace, selection, notices, barrier)
        opened.following = asyncio.create_task(self._follow(opened))
        self._on_change()
        return opened

    async def _follow(self, opened: OpenRoot) -> None:
        try:
            # The first item is a rescan: what changed between reading and watching is found by it.
            async for changes in watch(
                opened.root, selection=opened.selection, stop=opened.stop, barrier=opened.barrier
            ):
                paths = None if changes.rescan else changes.paths
                await self._in_pool(lambda: opened.workspace.changed(paths))  # noqa: B023
        except Exception as error:
            opened.failure = f"changes are no longer followed ({error}); every question re-reads the tree"
            _log.exception("watching %s failed", opened.root)

    async def _in_pool(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    async def _make_room(self) -> None:
        done = {r: t.result() for r, t in self._open.items() if t.done() and not t.exception()}
        while len(done) >= self._settings.daemon.max_workspaces:
            oldest = min(done, key=lambda root: done[root].used)
            del done[oldest]
            await self._close(oldest)

    async def _close(self, root: Path) -> None:
        task = self._open.pop(root)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            opened = await task
            opened.stop.set()
            if opened.following is not None:
                await opened.following
            await self._in_pool(opened.workspace.close)

    def _status(self, root: Path, task: asyncio.Task[OpenRoot]) -> WorkspaceStatus:
        if not _read_well(task):
            return WorkspaceStatus(root=str(root), state="reading")
        opened = task.result()
        last = opened.last
        return WorkspaceStatus(
            root=str(root),
            state=opened.failure or "open",
            snapshot=last.snapshot if last else "",
            files=len(last.documents) if last else 0,
            snapshot_tokens=last.prefix_tokens if last else 0,
            overlay_tokens=last.overlay_tokens if last else 0,
            overlay_seq=last.overlay_seq if last else 0,
        )


def _read_well(task: asyncio.Task[OpenRoot]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None
