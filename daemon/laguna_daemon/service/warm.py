"""``laguna-daemon warm``: a repository read into the engine because somebody said so."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING

from laguna_daemon.schemas import Event, NoticeEvent, ProgressEvent, Usage, UsageEvent, WarmRequest
from laguna_daemon.service import roots
from laguna_daemon.service.stream import Emitter

if TYPE_CHECKING:
    from laguna_daemon.service.service import Service


async def warm(service: Service, request: WarmRequest, emit: Emitter[Event]) -> None:
    """Warm, pin, unpin or stop; a warm-up is awaited, and goes on when the caller leaves."""
    root = await asyncio.to_thread(roots.find, Path(request.root), True, request.force)
    if request.action == "stop":
        service.warmer.halt(root)
        emit(NoticeEvent(message=f"No warm-up of {root} until somebody asks about it."))
    elif request.action == "unpin":
        service.warmer.pin(root, False)
        emit(NoticeEvent(message=f"{root} is no longer pinned."))
    else:
        if request.action == "pin":
            service.warmer.pin(root, True)
            emit(NoticeEvent(message=f"{root} is pinned: it is kept warm before any other."))
        await _await_warm(service, root, emit)


async def _await_warm(service: Service, root: Path, emit: Emitter[Event]) -> None:
    began = time.perf_counter()
    materials = await service.hosting.materials()

    def report(stage: str, done: int, total: int) -> None:
        emit.from_thread(ProgressEvent(stage=stage, message=f"Reading {root.name}", done=done, total=total))

    await service.workspaces.get(root, materials, report)
    await service.hosting.ready(emit)
    wish = service.warmer.wish(root)
    while not wish.done.done():
        await wish.moved.wait()
        wish.moved.clear()
        if wish.total:
            emit(ProgressEvent(stage="prefill", message="Warm-up", done=wish.end, total=wish.total))
    await wish.done
    prefix = service.hosting.resident.prefixes.get(root)
    if prefix is None:
        emit(NoticeEvent(message=f"The warm-up of {root} was stopped before it began."))
        return
    state = service.hosting.resident.state(prefix)
    emit(NoticeEvent(message=f"{root} is {state}: {prefix.warm:,} of {len(prefix.ids):,} tokens."))
    cached = prefix.warm if wish.cached is None else wish.cached
    total_ms = round((time.perf_counter() - began) * 1000, 1)
    usage = Usage(
        prompt_tokens=len(prefix.ids),
        cached_tokens=cached,
        prefilled_tokens=max(0, prefix.warm - cached),
        total_ms=total_ms,
        profile=materials.launch.profile.name,
    )
    emit(UsageEvent(usage=usage))
