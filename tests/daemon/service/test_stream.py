"""Work as a stream of its reports: errors come at the end, closing ends the work, cleaning up is never broken off."""

import asyncio
from contextlib import aclosing

import anyio
import pytest

from laguna_daemon.schemas import Event, TextEvent
from laguna_daemon.service.stream import Emitter, stream


async def test_reports_come_in_order_also_from_threads() -> None:
    async def work(emit: Emitter[Event]) -> None:
        emit(TextEvent(text="1"))
        await asyncio.to_thread(emit.from_thread, TextEvent(text="2"))
        await asyncio.sleep(0)
        emit(TextEvent(text="3"))

    assert [event.text async for event in stream(work) if isinstance(event, TextEvent)] == ["1", "2", "3"]


async def test_an_error_comes_after_the_reports() -> None:
    async def work(emit: Emitter[Event]) -> None:
        emit(TextEvent(text="before"))
        raise ValueError("at the end")

    seen = []
    with pytest.raises(ValueError, match="at the end"):
        async for event in stream(work):
            seen.append(event)
    assert len(seen) == 1


async def test_cleaning_up_is_finished_even_when_cancelled_again_and_again() -> None:
    cleaned = asyncio.Event()

    async def work(emit: Emitter[Event]) -> None:
        emit(TextEvent(text="started"))
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.05)  # closing a connection takes a moment
            cleaned.set()

    async def consume() -> None:
        async with aclosing(stream(work)) as events:
            async for _ in events:
                pass

    # A web server's cancel scope cancels anew at every await until the stream is closed.
    async with anyio.create_task_group() as group:
        group.start_soon(consume)
        await asyncio.sleep(0.05)
        group.cancel_scope.cancel()
    async with asyncio.timeout(5):
        await cleaned.wait()
