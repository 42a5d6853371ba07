"""The lane of long prefills, and waiting for those who go first."""

from __future__ import annotations

import asyncio

from laguna_daemon.residency.lane import Lane
from laguna_daemon.residency.traffic import Traffic

QUESTION, WARM = 1, 2


async def test_one_at_a_time_in_order_and_better_ranks_first() -> None:
    lane, order = Lane(), []

    async def work(name: str, rank: int) -> None:
        async with lane.hold(rank):
            order.append(name)
            await asyncio.sleep(0.01)

    async with lane.hold(WARM):
        tasks = [asyncio.create_task(work(*who)) for who in (("w", WARM), ("q1", QUESTION), ("q2", QUESTION))]
        await asyncio.sleep(0.01)
        assert order == []
    await asyncio.gather(*tasks)
    assert order == ["q1", "q2", "w"]


async def test_a_holder_lets_better_ranks_pass_at_its_boundary_and_no_others() -> None:
    lane, order = Lane(), []

    async def work(rank: int) -> None:
        async with lane.hold(rank):
            order.append(rank)

    async with lane.hold(WARM) as holder:
        assert not await holder.give_way()
        task = asyncio.create_task(work(QUESTION))
        other = asyncio.create_task(work(WARM))
        await asyncio.sleep(0)
        assert await holder.give_way()
        assert order == [QUESTION]
        assert lane.holder is holder
    await asyncio.gather(task, other)
    assert order == [QUESTION, WARM]


async def test_who_is_cancelled_while_waiting_keeps_nothing() -> None:
    lane = Lane()

    async def work() -> None:
        async with lane.hold(WARM) as holder:
            await asyncio.sleep(0.01)
            await holder.give_way()
            raise AssertionError("cancelled before")

    working = asyncio.create_task(work())
    await asyncio.sleep(0)
    async with lane.hold(QUESTION):
        working.cancel()
        await asyncio.wait({working})
        assert lane.holder is not None
    assert lane.holder is None
    async with asyncio.timeout(1), lane.hold(WARM):
        pass


async def test_waiting_for_quiet_has_a_bound_and_knows_completions_from_questions() -> None:
    changes: list[int] = []
    traffic = Traffic(lambda: changes.append(traffic.running))
    assert await traffic.quiet(0)
    async with traffic.interactive():
        assert not await traffic.quiet(0.01)
        assert await traffic.pause(0), "a question is no completion"
        assert traffic.idle_s() == 0
        async with traffic.interactive(typing=True):
            assert not await traffic.pause(0.01)
        assert await traffic.pause(0)
    assert await traffic.quiet(0)
    assert changes == [1, 0]


async def test_a_completion_is_told_of_once_it_lasts() -> None:
    changes: list[int] = []
    told = asyncio.Event()
    traffic = Traffic(lambda: (changes.append(traffic.running), told.set())[0])
    for _ in range(3):
        async with traffic.interactive(typing=True):
            await asyncio.sleep(0)
    async with traffic.interactive(typing=True):
        await told.wait()
    told.clear()
    await told.wait()
    assert changes == [1, 0]


async def test_background_work_does_not_begin_while_a_question_is_on_its_way() -> None:
    traffic = Traffic()
    async with traffic.coming():
        assert not await traffic.calm(0.01)
        assert await traffic.quiet(0)
        assert traffic.running == 0
    assert await traffic.calm(0)
