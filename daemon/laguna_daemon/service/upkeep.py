"""What is done about the engine rather than with it: another profile, a rest while nobody asks, an examination."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator
from typing import TYPE_CHECKING, TypeVar

from laguna_daemon.errors import EngineUnavailable, LagunaError
from laguna_daemon.schemas import Proof
from laguna_daemon.service import chosen
from laguna_daemon.service.proof import prove

if TYPE_CHECKING:
    from laguna_daemon.service.service import Service

_log = logging.getLogger(__name__)
Item = TypeVar("Item")


async def use(service: Service, name: str | None) -> None:
    """Load the profile ``name`` from now on, or the present one again; remembered for later daemons once accepted."""
    await service.hosting.use(name)
    if name is not None:
        await asyncio.to_thread(chosen.remember, name)


async def one_life(service: Service, events: AsyncIterator[Item]) -> AsyncGenerator[Item, None]:
    """The events of an answer; if the engine was changed under it, its error says so instead of how it broke."""
    hosting = service.hosting
    life = hosting.lives
    try:
        async for event in events:
            yield event
    except Exception as error:
        if hosting.lives == life:
            raise
        name = hosting.choice.profile.name if hosting.choice else "another"
        raise EngineUnavailable(
            f"The engine was ended while this was being answered; it starts again with the profile {name}.",
            "Ask again.",
        ) from error


async def unload_when_idle(service: Service, seconds: float) -> None:
    """End the engine whenever nobody has used it for so long; the next request starts it. Runs until cancelled."""
    hosting = service.hosting
    while True:
        await asyncio.sleep(min(seconds / 4, 10))
        if service.traffic.running:
            hosting.used = time.monotonic()
        quiet = time.monotonic() - hosting.used
        if quiet < seconds or hosting.status().phase != "ready":
            continue
        try:
            metrics = await (await hosting.peek()).metrics()
        except LagunaError:
            continue
        if metrics.running or metrics.waiting or time.monotonic() - hosting.used < seconds:
            continue
        _log.info("engine unloaded after %.0f s without requests", quiet)
        await hosting.unload("unloaded, since nobody asked anything; the next request starts it")


async def examine(service: Service) -> Proof:
    """Run the small proofs on the engine; raises EngineUnavailable unless it serves now."""
    client = await service.hosting.now()
    materials = await service.hosting.materials()
    async with service.traffic.interactive():
        return await prove(client, materials)
