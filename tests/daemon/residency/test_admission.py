"""Who may be in the engine at once, who goes first, who is refused."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import numpy as np
import pytest

from laguna_daemon.errors import OverBudget
from laguna_daemon.residency import admission as module
from laguna_daemon.residency.admission import Admission
from laguna_daemon.residency.pool import Pool
from laguna_daemon.residency.prefixes import Ids

POOL = Pool(blocks=101, block_size=16)  # 1,600 tokens
COMPLETION, CHAT, WARM = 0, 1, 2


def ids(seed: int, count: int) -> Ids:
    return np.random.default_rng(seed).integers(100, 50_000, count, dtype=np.uint32)


class Desk:
    """Requests that come and go by name."""

    def __init__(self, limit: int = 8) -> None:
        self.admission = Admission(lambda: POOL, limit)
        self.running: list[str] = []
        self._leave: dict[str, asyncio.Event] = {}
        self._tasks: list[asyncio.Task[None]] = []

    async def come(self, name: str, tokens: Ids, output: int = 16, rank: int = CHAT) -> None:
        self._leave[name] = asyncio.Event()
        self._tasks.append(asyncio.create_task(self._one(name, tokens, output, rank)))
        await asyncio.sleep(0.01)

    async def _one(self, name: str, tokens: Ids, output: int, rank: int) -> None:
        async with self.admission.admit(tokens, output, rank):
            self.running.append(name)
            await self._leave[name].wait()
            self.running.remove(name)

    async def go(self, name: str) -> None:
        self._leave[name].set()
        await asyncio.sleep(0.01)


async def test_a_completion_that_would_take_blocks_from_a_running_chat_waits() -> None:
    desk = Desk()
    await desk.come("chat", ids(1, 1200), output=300)
    await desk.come("completion", ids(2, 200), rank=COMPLETION)
    assert desk.running == ["chat"]
    await desk.come("small", ids(3, 40), rank=COMPLETION)
    assert desk.running == ["chat"], "and nobody passes it"
    await desk.go("chat")
    assert sorted(desk.running) == ["completion", "small"]


async def test_what_fits_beside_it_does_not_wait() -> None:
    desk = Desk()
    await desk.come("chat", ids(1, 1000), output=100)
    await desk.come("completion", ids(2, 200), rank=COMPLETION)
    assert desk.running == ["chat", "completion"]


async def test_a_beginning_that_two_share_counts_once() -> None:
    desk = Desk()
    repository = ids(1, 1200)
    await desk.come("one", np.concatenate([repository, ids(2, 50)]), output=64)
    await desk.come("two", np.concatenate([repository, ids(3, 50)]), output=64)
    assert desk.running == ["one", "two"]
    await desk.go("one")
    await desk.come("other", ids(4, 600))
    assert desk.running == ["two"], "the blocks of the beginning are still held by the one that is left"


async def test_completions_go_first_then_questions_then_warm_ups() -> None:
    desk = Desk()
    await desk.come("running", ids(1, 1500))
    for rank, name in ((WARM, "warm"), (CHAT, "chat"), (COMPLETION, "completion")):
        await desk.come(name, ids(10 + rank, 1000), rank=rank)
    order = []
    for name in ("running", "completion", "chat", "warm"):
        await desk.go(name)
        order += desk.running
    assert order == ["completion", "chat", "warm"]


async def test_a_question_that_waited_long_goes_before_later_completions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 0.0)
    desk = Desk()
    await desk.come("running", ids(1, 1500))
    await desk.come("chat", ids(2, 1500), rank=CHAT)
    await desk.come("completion", ids(3, 1500), rank=COMPLETION)
    await desk.go("running")
    assert desk.running == ["chat"]


async def test_a_full_queue_and_a_hopeless_request_are_refused() -> None:
    desk = Desk(limit=1)
    await desk.come("running", ids(1, 1500))
    await desk.come("waiting", ids(2, 1500))
    with pytest.raises(OverBudget, match="1 requests are running and 1 wait"):
        async with desk.admission.admit(ids(3, 1500), 16, COMPLETION):
            pass
    with pytest.raises(OverBudget, match="2,016 tokens"):
        async with desk.admission.admit(ids(3, 2000), 16, COMPLETION):
            pass
    assert desk.admission.waiting == 1


async def test_who_gives_up_waiting_leaves_nothing_behind() -> None:
    desk = Desk()
    await desk.come("running", ids(1, 1500))
    waiting = asyncio.create_task(desk._one("gone", ids(2, 1500), 16, CHAT))
    await asyncio.sleep(0.01)
    await desk.come("next", ids(3, 1500), rank=WARM)
    waiting.cancel()
    await asyncio.wait({waiting})
    assert desk.admission.waiting == 1
    await desk.go("running")
    assert desk.running == ["next"]
    await desk.go("next")
    async with AsyncExitStack() as stack:
        await asyncio.wait_for(stack.enter_async_context(desk.admission.admit(ids(4, 1500), 16, WARM)), 1)


def test_room_is_for_those_who_would_not_wait() -> None:
    assert Admission(lambda: POOL, 8).room(ids(1, 1000), 1)
    assert Admission(lambda: None, 8).room(ids(1, 10_000), 1), "without a known pool nothing is refused"
