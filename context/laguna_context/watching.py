"""File events of a root as changed paths, without a watch on anything ignored."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError

from .barrier import Barrier
from .entries import EVERYTHING, Entry, Selection
from .errors import GitFailed, NotARepository
from .folders import holding_folders, judge, open_folders
from .git import run_git
from .ignoring import GIT_FILE, OWN_FILE
from .listing import list_files, refresh

DEBOUNCE_MS = 50
STEP_MS, QUICK_STEP_MS = 5, 2
"""How often it is looked whether events have come. A question waits for one or two of these, and they cost 0.7% of a
core; 1.3% the quick ones, which are for the minutes after a question."""
LOOK_AGAIN_MS = 1_000
POLL_MS = 5_000
MANY = 2_000
"""Events in one batch from which some may have been lost: the kernel drops all beyond 16,384 of its smaller
ones, of which a written file makes three or four, and the drop itself is not passed on to us."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Changes:
    """Paths (relative, posix) whose entry or content may differ. `rescan` says that more may have changed
    than the paths tell: ignore rules, the index or HEAD moved, or events were lost."""

    paths: frozenset[str]
    rescan: bool


async def watch(
    root: Path,
    *,
    selection: Selection = EVERYTHING,
    stop: asyncio.Event,
    barrier: Barrier | None = None,
) -> AsyncIterator[Changes]:
    """Changes below `root` until `stop` is set. The first item, an empty rescan, says that watching has
    begun: list after it, and nothing is missed. `barrier` tells when what was written before has been taken in:
    the consumer has by the time it asks for the next item.

    Raises `ContextError` if the root can no longer be listed.
    """
    watcher = Watcher(root, selection, barrier)
    halt = threading.Event()
    loop = asyncio.get_running_loop()
    pool = ThreadPoolExecutor(1, thread_name_prefix="laguna-watch")
    stopper = asyncio.create_task(_pass_on(stop, halt))
    try:
        await loop.run_in_executor(pool, watcher.start)
        yield Changes(frozenset(), True)
        while not stop.is_set():
            if barrier is not None:
                barrier.live(watcher.notified)
                barrier.reached(watcher.take_marks())
            changes = await loop.run_in_executor(pool, watcher.next, halt)
            if changes is not None:
                yield changes
    finally:
        if barrier is not None:
            barrier.live(False)
        halt.set()
        stopper.cancel()
        pool.submit(watcher.close)
        pool.shutdown(wait=False)


async def _pass_on(stop: asyncio.Event, halt: threading.Event) -> None:
    await stop.wait()
    halt.set()


class Watcher:
    """The blocking part of `watch`; every method is called from one thread."""

    def __init__(self, root: Path, selection: Selection, barrier: Barrier | None = None) -> None:
        self._root = Path(os.path.realpath(root))
        self._selection = selection
        self._barrier = barrier
        self._marks: set[str] = set()
        self._notify: RustNotify | None = None
        self._folders: set[str] = set()
        self._known: dict[str, Entry] = {}
        self._git_folders = _git_folders(self._root)

    @property
    def folders(self) -> frozenset[str]:
        """The folders being watched, relative; "" is the root."""
        return frozenset(self._folders)

    @property
    def known(self) -> frozenset[str]:
        """The paths listed last."""
        return frozenset(self._known)

    @property
    def notified(self) -> bool:
        """Whether the system tells of events; if not, the root is polled."""
        return self._notify is not None

    def take_marks(self) -> set[str]:
        """The barrier's marks passed since the last call: what was written before them has been told."""
        marks, self._marks = self._marks, set()
        return marks

    def start(self) -> None:
        """List the root and begin to watch."""
        self._settle(deep=True)

    def close(self) -> None:
        """End the notifier's thread and give its watches back."""
        if self._notify is not None:
            self._notify.close()
            self._notify = None

    def next(self, halt: threading.Event) -> Changes | None:
        """Wait for the next batch of events; None if it held nothing of ours, or `halt` was set."""
        if self._notify is None:
            if halt.wait(POLL_MS / 1000):
                return None
            return self._relisted(set(), hint=False, deep=True)
        try:
            quick = self._barrier is not None and self._barrier.busy()
            step = QUICK_STEP_MS if quick else STEP_MS
            batch = self._notify.watch(DEBOUNCE_MS, step, LOOK_AGAIN_MS, halt)
        except WatchfilesRustInternalError:
            # A name that is not UTF-8 ends this notifier for good: look for oneself, and begin a new one.
            self.close()
            halt.wait(DEBOUNCE_MS / 1000)
            return self._relisted(set(), hint=True, deep=True)
        if isinstance(batch, str):
            return None
        events = self._without_marks({path for _, path in batch})
        return self._digest(events) if events else None

    def _without_marks(self, events: set[str]) -> set[str]:
        if self._barrier is None:
            return events
        own = {event: mark for event in events if (mark := self._barrier.own(event)) is not None}
        self._marks |= set(own.values())
        return events - own.keys()

    def _digest(self, events: set[str]) -> Changes | None:
        hint, rules, paths = self._sorted_out(events)
        if len(events) >= MANY:
            return self._relisted(paths, hint=True, deep=True)
        known = {path for path in paths if path in self._known}
        strange = paths - known
        structural = {path for path in strange if path in self._folders or self._is_new_folder(path)}
        if structural - self._folders and not rules:
            structural -= judge(self._root)(sorted(structural - self._folders))
        if rules or structural or any(self._became_folder(path) for path in known):
            return self._relisted(known, hint=hint or rules, deep=True)
        if hint:
            return self._relisted(paths, hint=True, deep=False)
        return self._refreshed(known | strange)

    def _sorted_out(self, events: set[str]) -> tuple[bool, bool, set[str]]:
        """Whether git's state moved, whether ignore rules did, and the relative paths of the rest."""
        hint = rules = False
        paths: set[str] = set()
        top = f"{self._root}/"
        for event in events:
            folder, _, name = event.rpartition("/")
            if folder in self._git_folders:
                hint |= name in ("HEAD", "index")
                rules |= name == "exclude"
            elif event.startswith(top):
                path = event[len(top) :]
                rules |= name in (GIT_FILE, OWN_FILE) or path == ".git"
                if path != ".git":
                    paths.add(path)
        return hint, rules, paths

    def _is_new_folder(self, path: str) -> bool:
        full = self._root / path
        return full.is_dir() and not full.is_symlink()

    def _became_folder(self, path: str) -> bool:
        return self._known[path].kind in ("file", "symlink") and self._is_new_folder(path)

    def _refreshed(self, paths: set[str]) -> Changes | None:
        now = refresh(self._root, paths, self._known, self._selection)
        changed = set()
        for path, entry in now.items():
            if entry == self._known.get(path):
                continue
            changed.add(path)
            if entry is None:
                del self._known[path]
            else:
                self._known[path] = entry
        return Changes(frozenset(changed), False) if changed else None

    def _relisted(self, paths: set[str], *, hint: bool, deep: bool) -> Changes | None:
        before = self._known
        self._settle(deep=deep)
        after = self._known
        changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        return Changes(frozenset(changed), hint) if changed or hint else None

    def _settle(self, *, deep: bool) -> None:
        """Watch every folder where the listing could grow, then list, until both agree: nothing falls between."""
        if not self._known:
            self._list()
        wanted = self._wanted(deep)
        while True:
            if (self._notify is None or wanted != self._folders) and not self._arm(wanted):
                self._list()
                return
            self._list()
            wanted = self._wanted(deep)
            if self._notify is not None and wanted == self._folders:
                return

    def _list(self) -> None:
        if self._barrier is not None:
            # A new listing sees all that was written before it, events lost to a change of watches included.
            self._marks |= self._barrier.written()
        self._known = {entry.path: entry for entry in list_files(self._root, self._selection).entries}

    def _wanted(self, deep: bool) -> set[str]:
        if deep or not self._folders:
            return open_folders(self._root, self._known.values())
        return self._folders | holding_folders(self._known.values())

    def _arm(self, folders: set[str]) -> bool:
        """Watch these folders instead; False if the system has no watches left, and the root is polled from
        now on."""
        self.close()
        paths = [str(self._root / folder) for folder in folders if (self._root / folder).is_dir()]
        paths += [folder for folder in self._git_folders if Path(folder).is_dir()]
        if self._barrier is not None:
            paths.append(str(self._barrier.folder))
        try:
            self._notify = RustNotify(paths, False, False, 0, False, True)
        except FileNotFoundError:
            self._folders = set()
            return True
        except OSError as error:
            _log.warning(
                "%s: %s; looking every %d s instead. Raise fs.inotify.max_user_watches.",
                self._root,
                error,
                POLL_MS // 1000,
            )
            return False
        self._folders = folders
        return True


def _git_folders(root: Path) -> frozenset[str]:
    """Folders whose files say that git's state or rules moved: the git folder and the common `info`."""
    with suppress(NotARepository, GitFailed):
        answer = run_git(root, "rev-parse", "--absolute-git-dir", "--git-common-dir")
        own, common = (os.fsdecode(line) for line in answer.split(b"\n")[:2])
        return frozenset(_real(root, folder) for folder in (own, f"{common}/info"))
    return frozenset()


def _real(root: Path, folder: str) -> str:
    return os.path.realpath(root / folder)
