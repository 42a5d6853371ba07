"""A piece of work that reports while it runs, as an asynchronous stream of its reports."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Generic, TypeVar

from laguna_daemon.schemas import Event

T = TypeVar("T")
_log = logging.getLogger(__name__)
_ending: set[asyncio.Task[None]] = set()  # the event loop itself holds tasks only weakly


class Emitter(Generic[T]):
    """Takes reports from the event loop's thread and from workers."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.queue: asyncio.Queue[T | None] = asyncio.Queue()

    def __call__(self, item: T) -> None:
        """Report from the event loop's thread."""
        self.queue.put_nowait(item)

    def from_thread(self, item: T) -> None:
        """Report from any other thread; dropped if the loop is gone."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.queue.put_nowait, item)


async def stream(work: Callable[[Emitter[Event]], Awaitable[None]]) -> AsyncGenerator[Event, None]:
    """Run ``work`` and yield what it reports; its exception is raised at the end.

    Closing the stream cancels the work and waits until it has let go of the engine.
    """
    emit: Emitter[Event] = Emitter()

    async def run() -> None:
        try:
            await work(emit)
        finally:
            emit.queue.put_nowait(None)

    task = asyncio.create_task(run())
    try:
        while (item := await emit.queue.get()) is not None:
            yield item
        await task
    finally:
        if not task.done():
            task.cancel()
            _ending.add(task)
            task.add_done_callback(_end)
            # A server cancels again and again while it closes a stream. Awaiting the task itself would pass each of
            # these on to it, and so break off the very closing of its connection that aborts the generation.
            await asyncio.wait({task})


def _end(task: asyncio.Task[None]) -> None:
    _ending.discard(task)
    if not task.cancelled() and task.exception() is not None:
        _log.info("a cancelled answer ended with %r", task.exception())
