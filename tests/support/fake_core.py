"""The scheduler of a fake engine: admission by priority and KV blocks, prefill in chunks, decoding, preemption."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from fake_pool import Held, Pool
from fake_text import Model, Script


@dataclass
class Options:
    context: int
    batch: int = 2048
    sequences: int = 8
    prefill_speed: float = 0.0  # tokens per second, 0 = as fast as it goes
    decode_speed: float = 0.0


@dataclass
class Request:
    prompt: list[int]
    max_tokens: int
    stop_ids: tuple[int, ...] = ()
    priority: int = 0
    salt: str = ""
    ignore_eos: bool = False
    cached: int | None = None
    output: list[int] = field(default_factory=list)
    held: Held = field(default_factory=Held)


class Core:
    """One engine. Everything happens on one event loop."""

    def __init__(self, model: Model, pool: Pool, script: Script, options: Options, trace: Path | None) -> None:
        self.model, self.pool, self.script, self.options = model, pool, script, options
        self.counters = dict.fromkeys(
            ("prompt_tokens", "generation_tokens", "prefix_cache_queries", "prefix_cache_hits", "num_preemptions"), 0
        )
        self.running = 0
        self.waiting: list[tuple[int, int, Request]] = []
        self.wedged = False
        self.log: list[dict[str, Any]] = []
        self._order = count()
        self._turn = asyncio.Condition()
        self._prefilling = False
        self._trace = trace

    async def generate(self, request: Request) -> AsyncIterator[tuple[list[int], str | None, int | None]]:
        """Yield (new ids, finish reason, stop id); closing it aborts and frees everything."""
        rule = self.script.rule(self.model.decode(request.prompt, special=True), request.prompt)
        answer, finish, stop = self._answer(request, rule)
        entry = self._note(request)
        try:
            await asyncio.sleep(rule.get("delay", 0))
            await self._prefill(request)
            for index, token in enumerate(answer):
                await self._step(request, token, first=index == 0)
                last = index == len(answer) - 1
                yield [token], finish if last else None, stop if last else None
                if rule.get("crash"):
                    os.kill(os.getpid(), signal.SIGKILL)
                self.wedged = self.wedged or bool(rule.get("wedge"))
            entry["finish"] = finish
        finally:
            entry.update(cached_tokens=request.cached, output=list(request.output))
            await self._leave(request)
            self._write(entry)

    def _answer(self, request: Request, rule: dict[str, Any]) -> tuple[list[int], str, int | None]:
        ids = rule.get("ids") or self.model.encode(rule["answer"])
        stops = (*request.stop_ids, *(() if request.ignore_eos else self.model.eos))
        at = next((i for i, token in enumerate(ids) if token in stops), None)
        if at is not None:
            ids = ids[: at + 1]
        elif request.ignore_eos:
            ids = (ids * (request.max_tokens // max(1, len(ids)) + 1))[: request.max_tokens]
        elif rule.get("finish", "stop") == "stop":
            ids = [*ids, self.model.eos[0]]
        if len(ids) > request.max_tokens or (ids and ids[-1] not in stops):
            return ids[: request.max_tokens], "length", None
        return ids, "stop", ids[-1] if ids[-1] in request.stop_ids else None

    async def _prefill(self, request: Request) -> None:
        """Wait for admission, take what is cached, compute the rest chunk by chunk."""
        ids = request.prompt + request.output
        request.held.keys = keys = self.pool.keys(ids, request.salt)
        await self._admit(request, keys, len(ids))
        hits = self.pool.take_hits(request.held, keys, len(ids))
        if request.cached is None:
            request.cached = hits
            self.counters["prefix_cache_queries"] += len(ids)
            self.counters["prefix_cache_hits"] += hits
        try:
            done = hits
            while done < len(ids):
                size = min(self.options.batch, len(ids) - done)
                while not self.pool.extend(request.held, done + size):
                    await self._moved()
                await self._work(size, self.options.prefill_speed)
                done += size
                self.pool.computed(request.held, keys, done)
        finally:
            self._prefilling = False
            await self._wake()

    async def _admit(self, request: Request, keys: list[bytes], tokens: int) -> None:
        place = (request.priority, next(self._order), request)
        self.waiting.append(place)
        try:
            async with self._turn:
                await self._turn.wait_for(
                    lambda: (
                        not self._prefilling
                        and self.running < self.options.sequences
                        and min(self.waiting, key=lambda item: item[:2]) is place
                        and self.pool.room_for(keys, tokens)
                    )
                )
                self._prefilling = True
                self.running += 1
        finally:
            self.waiting.remove(place)

    async def _step(self, request: Request, token: int, *, first: bool) -> None:
        """Sample one token; its predecessor's keys and values have been computed by now."""
        if first:
            self.counters["prompt_tokens"] += len(request.prompt)
        else:
            have = len(request.prompt) + len(request.output)
            if not self.pool.extend(request.held, have):
                await self._preempt(request)
            await self._work(1, self.options.decode_speed)
            ids = request.prompt + request.output
            request.held.keys = self.pool.keys(ids, request.salt, request.held.keys)
            self.pool.computed(request.held, request.held.keys, have)
        await self._unwedged()
        request.output.append(token)
        self.counters["generation_tokens"] += 1

    async def _preempt(self, request: Request) -> None:
        self.counters["num_preemptions"] += 1
        self.running -= 1
        self.pool.release(request.held)
        await self._wake()
        await self._prefill(request)

    async def _work(self, tokens: int, speed: float) -> None:
        await asyncio.sleep(tokens / speed if speed else 0)
        await self._unwedged()

    async def _unwedged(self) -> None:
        while self.wedged:  # noqa: ASYNC110 - set and cleared from outside, by name
            await asyncio.sleep(0.05)

    async def _leave(self, request: Request) -> None:
        if request.cached is not None:
            self.running -= 1
            self.pool.release(request.held)
        await self._wake()

    async def _wake(self) -> None:
        async with self._turn:
            self._turn.notify_all()

    async def _moved(self) -> None:
        async with self._turn:
            await asyncio.wait_for(self._turn.wait(), 0.1)

    def _note(self, request: Request) -> dict[str, Any]:
        entry = {"prompt": request.prompt, "max_tokens": request.max_tokens, "finish": "abort"}
        self.log.append(entry)
        return entry

    def _write(self, entry: dict[str, Any]) -> None:
        if self._trace:
            with self._trace.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
