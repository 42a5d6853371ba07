"""A point in the stream of file events: when it has passed, every event before it has been dealt with.

A file is written into a private folder that the root's own notifier watches too. The kernel keeps one order for all
watches of a notifier, so when the file's event arrives, those of all earlier writes have. The idea is watchman's
cookies (https://facebook.github.io/watchman/docs/cookies).
"""

from __future__ import annotations

import asyncio
import itertools
import math
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

BUSY_S = 120.0


class Barrier:
    """Belongs to one watch. `folder` must be private, empty and outside of the root; it is made if missing.

    `wait` and `reached` are for the event loop of the watch; `written` is for any thread.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder = Path(os.path.realpath(folder))
        self._top = f"{self.folder}/"
        self._numbers = itertools.count()
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._live = False
        self._asked = -math.inf

    def busy(self) -> bool:
        """Whether somebody waited within the last minutes. For any thread."""
        return time.monotonic() - self._asked < BUSY_S

    def live(self, yes: bool) -> None:
        """Whether events are being followed; while they are not, nobody waits."""
        self._live = yes
        if not yes:
            for future in self._waiting.values():
                if not future.done():
                    future.cancel()

    async def wait(self, within: float) -> bool:
        """True once the consumer of the watch has taken in all events of writes made before this call; False if that
        did not happen `within` seconds, or events are not followed."""
        self._asked = time.monotonic()
        if not self._live:
            return False
        name = f"{os.getpid()}-{next(self._numbers)}"
        future = self._waiting[name] = asyncio.get_running_loop().create_future()
        path = self.folder / name
        try:
            path.touch(mode=0o600)
            async with asyncio.timeout(within):
                await future
        except (TimeoutError, OSError):
            return False
        except asyncio.CancelledError:
            if future.cancelled() and not self._live:
                return False
            raise
        finally:
            del self._waiting[name]
            with suppress(OSError):
                path.unlink()
        return True

    def own(self, event: str) -> str | None:
        """The mark that an event's path is of; None for a path that is not of this barrier."""
        return event[len(self._top) :] if event.startswith(self._top) else None

    def written(self) -> set[str]:
        """The marks that are in the folder now."""
        with suppress(OSError):
            return {path.name for path in self.folder.iterdir()}
        return set()

    def reached(self, marks: Iterable[str]) -> None:
        """What was told before these marks has been taken in."""
        for mark in marks:
            future = self._waiting.get(mark)
            if future is not None and not future.done():
                future.set_result(None)
