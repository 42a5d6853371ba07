"""Reading repositories ahead of their questions: which one, when, and how it went."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from laguna_context.errors import ContextError
from laguna_daemon.errors import EngineUnavailable, LagunaError
from laguna_daemon.residency.prefill import WARM_PRIORITY, prefill
from laguna_daemon.residency.prefixes import Prefix
from laguna_daemon.schemas import AskRequest, WorkspaceStatus
from laguna_daemon.service import buffers as buffer_texts
from laguna_daemon.service import roots
from laguna_daemon.service.kept_roots import KeptRoots
from laguna_daemon.service.power import why_not
from laguna_daemon.service.workspaces import OpenRoot

if TYPE_CHECKING:
    from laguna_context.prompt import Prompt
    from laguna_daemon.service.service import Service

_LOOK_S = 20.0  # how often hours, battery and idleness are looked at when nothing happens
_CALM_S = 30.0
_SETTLE = 64  # new tokens behind a prefix that make its copy in host memory whole
_log = logging.getLogger(__name__)


@dataclass
class Wish:
    """A warm-up that a user asked for: done once `done` is set; `end` and `total` tell how far it is."""

    end: int = 0
    total: int = 0
    cached: int | None = None
    moved: asyncio.Event = field(default_factory=asyncio.Event)
    done: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Warmer:
    """One background task of the daemon: warms, settles, compacts, one thing at a time."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._work = service.hosting.work
        self._residency = service.hosting.work.residency
        self._settings = service.settings.warm
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._wishes: dict[Path, Wish] = {}
        self._stopped: set[Path] = set()
        self._failed: dict[Path, tuple[str, str]] = {}
        self._kept = KeptRoots()
        self._restored = False
        self._compacted = False
        self._pause = 0.0  # seconds after the latest failure, and when they are over
        self._again = 0.0

    def start(self) -> None:
        """Begin to look after the roots."""
        self._task = asyncio.create_task(self._loop())

    async def stop(self) -> None:
        """Let go of the engine."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def poke(self) -> None:
        """Something changed: an engine, a root, a request that ended."""
        self._wake.set()

    # what users and questions say --------------------------------------------------------------------------------

    def asked(self, opened: OpenRoot, prompt: Prompt) -> None:
        """A question about a root is about to be sent."""
        if prompt.conversation_tokens == 0:
            self._follow(opened.root, prompt)
        self._residency.used(opened.root)
        self._stopped.discard(opened.root)
        self._kept.used(opened.root)

    def wish(self, root: Path) -> Wish:
        """Warm this root now, whatever the settings say."""
        self._stopped.discard(root)
        self._failed.pop(root, None)
        wish = self._wishes.setdefault(root, Wish())
        self.poke()
        return wish

    def halt(self, root: Path) -> None:
        """No warm-up of this root until somebody asks about it."""
        self._stopped.add(root)
        wish = self._wishes.pop(root, None)
        if wish is not None and not wish.done.done():
            wish.done.set_result(None)
            wish.moved.set()
        self._service.changed()

    def pin(self, root: Path, pinned: bool) -> None:
        """Keep this root warm before any other, or no longer."""
        self._kept.pin(root, pinned)
        if root in self._residency.prefixes:
            self._residency.prefixes[root].pinned = pinned
        self._service.changed()

    def shown(self, status: WorkspaceStatus) -> WorkspaceStatus:
        """A root's status with what is known of its prefix."""
        prefix = self._residency.prefixes.get(Path(status.root))
        if prefix is None:
            return status
        state = self._residency.state(prefix)
        there = state in ("resident", "warming", "offloaded", "cold")
        return status.model_copy(
            update={
                "residency": state,
                "warm_tokens": prefix.warm if there else 0,
                "prefix_tokens": len(prefix.ids),
                "pinned": prefix.pinned,
                "settled": prefix.settled,
                "evictions": prefix.evictions,
                "waits_for": "" if state in ("resident", "warming", "offloaded") else self.why_not(prefix),
            }
        )

    def why_not(self, prefix: Prefix) -> str:
        """Why a root that is not warm is not being warmed; empty if nothing keeps it."""
        if prefix.root in self._stopped:
            return "stopped by the user"
        failed = self._failed.get(prefix.root)
        if failed and failed[0] == prefix.identity:
            return failed[1]
        if not self._residency.fits_beside(prefix, ()):
            return "it is larger than the engine's KV memory"
        if not self._allowed(prefix):
            return "it would push out a repository that is pinned or was used last"
        return why_not(self._settings)

    # the loop ----------------------------------------------------------------------------------------------------

    async def _loop(self) -> None:
        look = min(_LOOK_S, max(0.5, self._settings.idle_compaction / 2))
        while True:
            pause = self._again - time.monotonic()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(look, pause) if pause > 0 else look):
                    await self._wake.wait()
            self._wake.clear()
            engine = self._service.hosting.status()
            if engine.phase != "ready":
                if engine.phase in ("failed", "stopped"):
                    self._refuse(f"The engine is not ready: {engine.error or engine.detail or engine.phase}")
                continue
            try:
                await self._restore()
                self._forget_closed()
                while await self._step():
                    self._pause = 0.0
            except (LagunaError, ContextError) as error:
                _log.info("a warm-up ended: %s", error)
                # What failed once may fail each time, and every attempt wakes this loop.
                self._pause = min(max(1.0, 2 * self._pause), _LOOK_S)
                self._again = time.monotonic() + self._pause
            except Exception:
                _log.exception("a warm-up failed")
                await asyncio.sleep(1)

    def _forget_closed(self) -> None:
        """Nobody asks about a root that is closed: nothing is done to keep its prefix."""
        for root in self._residency.prefixes.keys() - {found.root for found in self._service.workspaces.opened()}:
            self._residency.drop(root)

    def _refuse(self, why: str) -> None:
        """No engine is coming: whoever waits for a warm-up is told."""
        wishes, self._wishes = self._wishes, {}
        for wish in wishes.values():
            wish.done.set_exception(EngineUnavailable(why, "See what it does: laguna-daemon status"))
            wish.moved.set()

    async def _step(self) -> bool:
        """Do the one thing that is most wanted; False if there is nothing to do."""
        wished = next(iter(self._wishes), None)
        if wished is not None:
            await self._grant(wished)
            return True
        if time.monotonic() < self._again or why_not(self._settings):
            return False
        if not await self._work.traffic.calm(_CALM_S):
            return False
        for opened in self._candidates():
            if await self._tend(opened):
                return True
        return await self._compact()

    async def _grant(self, root: Path) -> None:
        wish = self._wishes[root]
        try:
            opened = next((found for found in self._service.workspaces.opened() if found.root == root), None)
            if opened is not None:
                await opened.settle()
                prefix = await self._prefix(opened)
                self._residency.used(root)
                self._kept.used(root)
                await self._warm(prefix, opened, wish)
            if not wish.done.done():
                wish.done.set_result(None)
        except Exception as error:
            if not wish.done.done():
                wish.done.set_exception(error)
        finally:
            wish.moved.set()
            if self._wishes.get(root) is wish:
                del self._wishes[root]

    def _candidates(self) -> list[OpenRoot]:
        """Open roots, the pinned ones first, then those used last."""
        prefixes = self._residency.prefixes

        def rank(opened: OpenRoot) -> tuple[bool, float, float]:
            prefix = prefixes.get(opened.root)
            return (not self._kept.pinned(opened.root), -(prefix.used if prefix else 0.0), -opened.used)

        opened = [found for found in self._service.workspaces.opened() if found.root not in self._stopped]
        return sorted(opened, key=rank)

    async def _tend(self, opened: OpenRoot) -> bool:
        """Warm or settle one root if it needs that and may have it; True if something was done."""
        prefix = self._residency.prefixes.get(opened.root)
        if prefix is None or prefix.identity != opened.workspace.identity:
            prefix = await self._prefix(opened)
        failed = self._failed.get(opened.root)
        if failed and failed[0] == prefix.identity:
            return False
        state = self._residency.state(prefix)
        if state in ("cold", "evicted") and self._allowed(prefix):
            before = prefix.warm
            await self._warm(await self._prefix(opened), opened, None)
            if not prefix.whole and prefix.warm <= before and prefix.identity == opened.workspace.identity:
                self._failed[opened.root] = (prefix.identity, "its last warm-up did not come to its end")
            return True
        if state == "resident" and prefix.whole and self._residency.unsettled(prefix):
            await self._settle(prefix)
            return True
        return False

    def _allowed(self, prefix: Prefix) -> bool:
        """No warm-up that nobody asked for pushes out what is pinned, or what a user asked for last."""
        last = self._residency.last_used()
        others = [other for other in self._residency.prefixes.values() if other is not prefix]
        held = [other for other in others if other.warm and self._residency.resident(other)]
        guarded = [other for other in held if other.pinned or (other is last and not prefix.pinned)]
        return self._residency.fits_beside(prefix, guarded)

    # what it does ------------------------------------------------------------------------------------------------

    async def _prefix(self, opened: OpenRoot) -> Prefix:
        """The root's prefix as it is now; its prompt is built for it."""
        client = await self._service.hosting.now()
        await self._work.learn(client)
        held = buffer_texts.texts(self._service.buffers.under(opened.root))
        thinking = self._service.thinking(AskRequest(root=str(opened.root), question="-"))
        prompt = await asyncio.to_thread(opened.workspace.prompt, "", buffers=held, thinking=thinking)
        if opened.last is None:
            opened.last = prompt
        return self._follow(opened.root, prompt)

    def _follow(self, root: Path, prompt: Prompt) -> Prefix:
        launch = self._work.launch
        percents = () if launch is None or self._residency.offloads else launch.profile.cache.anchors
        base = prompt.ids[: prompt.prefix_tokens + prompt.overlay_tokens]
        prefix = self._residency.follow(root, base, prompt.identity, percents)
        prefix.pinned = self._kept.pinned(root)
        return prefix

    async def _warm(self, prefix: Prefix, opened: OpenRoot, wish: Wish | None) -> None:
        """Bring the prefix into the engine; ends early when it is superseded or stopped."""
        client = await self._service.hosting.now()
        identity = prefix.identity

        def current() -> bool:
            alive = not opened.stop.is_set() and opened.root not in self._stopped
            return alive and prefix.identity == identity == opened.workspace.identity

        prefix.warming = True
        self._service.changed()
        segments = prefill(
            client,
            prefix.ids,
            self._residency,
            self._work.pace,
            priority=WARM_PRIORITY,
            whole=True,
            current=current,
        )
        try:
            async with aclosing(segments):
                async for segment in segments:
                    self._tell(prefix, segment.end, segment.cached, wish)
        finally:
            prefix.warming = False
            self._service.changed()
        if prefix.whole and current() and self._residency.unsettled(prefix):
            await self._settle(prefix)

    def _tell(self, prefix: Prefix, end: int, cached: int, wish: Wish | None) -> None:
        wish = wish or self._wishes.get(prefix.root)
        if wish is not None:
            wish.end, wish.total = end, len(prefix.ids)
            wish.cached = cached if wish.cached is None else wish.cached
            wish.moved.set()
        self._service.changed()

    async def _settle(self, prefix: Prefix) -> None:
        """Ask once more over the prefix, so that its copy in host memory has no holes."""
        client = await self._service.hosting.now()
        if not await self._work.toucher.settle(client, prefix):
            self._failed[prefix.root] = (prefix.identity, "its copy in host memory could not be completed")
        self._service.changed()

    async def _compact(self) -> bool:
        """Compact the root used last once nobody has asked anything for long enough."""
        after = self._settings.idle_compaction
        if not after or self._work.traffic.idle_s() < after:
            self._compacted = False
            return False
        last = self._residency.last_used()
        if self._compacted or last is None:
            return False
        self._compacted = True
        opened = next((found for found in self._service.workspaces.opened() if found.root == last.root), None)
        if opened is not None:
            opened.workspace.resumable = self._residency.resumable(opened.root)
        if opened is None or not await asyncio.to_thread(opened.workspace.compact):
            return False
        _log.info("%s was compacted while idle", opened.root)
        return True

    async def _restore(self) -> None:
        """After a start: open again what is pinned, and what was used last."""
        if self._restored or why_not(self._settings):
            return
        self._restored = True
        materials = await self._service.hosting.materials()
        for root in self._kept.wanted():
            try:
                await asyncio.to_thread(roots.check, root, False)
                if await asyncio.to_thread(root.is_dir):
                    await self._service.workspaces.get(root, materials, lambda stage, done, total: None)
            except (LagunaError, OSError) as error:
                _log.info("%s was not opened again: %s", root, error)
