"""One turn of a refactoring: a prompt behind the repository's prefix, an answer that goes on past its limit."""

from __future__ import annotations

import codecs
import time
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from laguna_context.prompt import Prompt
from laguna_daemon.engine.client import Finish, Piece
from laguna_daemon.engine.reasoning import ReasoningSplitter
from laguna_daemon.engine.sampling import Sampling
from laguna_daemon.residency.prefill import prefill
from laguna_daemon.residency.work import AdmittedClient
from laguna_daemon.schemas import AskRequest, Event, ProgressEvent, RefactorRequest, ThinkingEvent, Usage
from laguna_daemon.service.ask import CHAT_PRIORITY
from laguna_daemon.service.materials import Materials
from laguna_daemon.service.stream import Emitter

if TYPE_CHECKING:
    from laguna_daemon.service.service import Service

MOST_CONTINUATIONS = 8
"""How often an answer may go on behind its limit; a model that loops would fill the context."""
_LEAST_ROOM = 32  # tokens: with less, going on is not worth a request


@dataclass
class Spoken:
    """What has come of one answer: its ids as generated, its usage, and whether it ended for want of room."""

    ids: list[int] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    continued: int = 0
    out_of_room: bool = False
    began: float = field(default_factory=time.perf_counter)

    def elapsed_ms(self) -> float:
        """Milliseconds since submission."""
        return round((time.perf_counter() - self.began) * 1000, 1)


class Speaker:
    """Generates the answers of one refactoring."""

    def __init__(
        self, service: Service, materials: Materials, request: RefactorRequest, emit: Emitter[Event], thinking: bool
    ) -> None:
        self._service = service
        self._materials = materials
        self._emit = emit
        self._thinking = thinking
        self._wishes = AskRequest(
            question="", temperature=request.temperature, seed=request.seed, max_tokens=request.max_tokens
        )

    async def speak(
        self,
        prompt: Prompt,
        spoken: Spoken,
        take: Callable[[str], None],
        structured: Mapping[str, Any] | None = None,
    ) -> None:
        """Generate the answer to ``prompt`` into ``spoken``; its text goes to ``take`` piece by piece.

        At its limit the answer is continued from its own ids, so a block that was cut in two comes whole. Where a
        grammar binds it, it is not: the grammar would begin anew.
        """
        client = await self._service.hosting.ready(self._emit)
        usage = spoken.usage
        usage.snapshot, usage.overlay_seq = prompt.snapshot, prompt.overlay_seq
        usage.profile = self._materials.launch.profile.name
        usage.prompt_tokens = len(prompt.ids)
        reader = _Reader(self._materials, self._thinking, take, self._emit)
        async with self._service.traffic.interactive():
            first = await self._prefill(client, prompt)
            ids = prompt.ids
            while True:
                sampling = self._sampling(len(ids), structured)
                finish = await self._generate(client, ids, sampling, spoken, reader)
                _account(usage, finish, first)
                first = usage.cached_tokens
                ids = np.concatenate([prompt.ids, np.asarray(spoken.ids, dtype=np.uint32)])
                if finish.reason != "length":
                    break
                room = self._materials.budget.context - len(ids)
                if structured or room < _LEAST_ROOM or spoken.continued >= MOST_CONTINUATIONS:
                    spoken.out_of_room = True
                    break
                spoken.continued += 1
        reader.finish()
        usage.reasoning_tokens = reader.splitter.reasoning_tokens
        usage.total_ms = spoken.elapsed_ms()

    async def _prefill(self, client: AdmittedClient, prompt: Prompt) -> int | None:
        """Bring the prompt in by segments; what the first of them found cached."""
        hosting = self._service.hosting
        cached: int | None = None
        segments = prefill(client, prompt.ids, hosting.resident, hosting.pace, priority=CHAT_PRIORITY)
        async with aclosing(segments):
            async for segment in segments:
                cached = segment.cached if cached is None else cached
                done, total = segment.end, len(prompt.ids)
                self._emit(ProgressEvent(stage="prefill", message="Prefill", done=done, total=total))
        return cached

    async def _generate(
        self, client: AdmittedClient, ids: np.ndarray, sampling: Sampling, spoken: Spoken, reader: _Reader
    ) -> Finish:
        async with aclosing(client.generate(ids, sampling, priority=CHAT_PRIORITY)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Finish):
                    return piece
                spoken.ids.extend(piece.token_ids)
                reader.read(piece)
                if spoken.usage.ttft_ms is None and reader.spoke:
                    spoken.usage.ttft_ms = spoken.elapsed_ms()
        raise AssertionError("a generation ends with its Finish")

    def _sampling(self, tokens: int, structured: Mapping[str, Any] | None) -> Sampling:
        sampling = self._materials.sampling(self._wishes, tokens)
        return sampling if structured is None else replace(sampling, structured=structured)


class _Reader:
    """Pieces -> text for the parser. Decoded from the ids where there are any: a character may be cut in two where
    an answer is continued, and the engine's own text has lost it then."""

    def __init__(self, materials: Materials, thinking: bool, take: Callable[[str], None], emit: Emitter[Event]) -> None:
        self.splitter: ReasoningSplitter = materials.splitter(thinking=thinking)
        self.spoke = False
        self._decode = materials.tokenizer.decode
        self._bytes = codecs.getincrementaldecoder("utf-8")("replace")
        self._take = take
        self._emit = emit

    def read(self, piece: Piece) -> None:
        for part in self.splitter.feed(piece):
            if part.kind == "thinking":
                if part.text:
                    self._emit(ThinkingEvent(text=part.text))
                continue
            text = self._bytes.decode(self._decode(part.token_ids)) if part.token_ids else part.text
            if text:
                self.spoke = True
                self._take(text)

    def finish(self) -> None:
        if rest := self._bytes.decode(b"", final=True):
            self._take(rest)


def _account(usage: Usage, finish: Finish, first_cached: int | None) -> None:
    usage.cached_tokens = finish.cached_tokens if first_cached is None else first_cached
    usage.prefilled_tokens = usage.prompt_tokens - usage.cached_tokens
    usage.output_tokens += finish.output_tokens
    usage.finish_reason = finish.reason


def total(usages: list[Usage]) -> Usage:
    """The usage of several turns as one: counts and times added, the rest from the last."""
    if not usages:
        return Usage()
    names = ("prompt_tokens", "cached_tokens", "prefilled_tokens", "output_tokens", "reasoning_tokens", "total_ms")
    sums = {name: sum(getattr(usage, name) for usage in usages) for name in names}
    return usages[-1].model_copy(update={**sums, "ttft_ms": usages[0].ttft_ms})
