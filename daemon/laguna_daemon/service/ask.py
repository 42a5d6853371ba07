"""One question: the engine made ready, the repository read, the prompt built, the answer streamed."""

from __future__ import annotations

import asyncio
import contextlib
import time
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from laguna_context.errors import ContextError
from laguna_context.prompt import Prompt, PromptTooLarge
from laguna_daemon.engine.client import Finish, Piece
from laguna_daemon.engine.reasoning import ReasoningSplitter
from laguna_daemon.errors import OverBudget, RepositoryError, UsageError
from laguna_daemon.residency.prefill import prefill
from laguna_daemon.schemas import (
    AskRequest,
    ConversationTurn,
    Event,
    NoticeEvent,
    ProgressEvent,
    TextEvent,
    ThinkingEvent,
    Usage,
    UsageEvent,
)
from laguna_daemon.service import buffers as buffer_texts
from laguna_daemon.service import references, roots, tasks
from laguna_daemon.service.conversations import Talk
from laguna_daemon.service.materials import Materials
from laguna_daemon.service.stream import Emitter
from laguna_daemon.service.workspaces import OpenRoot

if TYPE_CHECKING:
    from laguna_daemon.service.service import Service

CHAT_PRIORITY = 1
"""vLLM serves lower numbers first: completions 0, questions 1, warm-up 2."""


@dataclass
class Answer:
    """What one answer has come to so far."""

    began: float = field(default_factory=time.perf_counter)
    ids: list[int] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    thinking: list[str] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)

    def elapsed_ms(self) -> float:
        """Milliseconds since submission."""
        return round((time.perf_counter() - self.began) * 1000, 1)

    def turn(self, request: AskRequest) -> ConversationTurn:
        """As it is kept in a conversation."""
        return ConversationTurn(
            question=request.question,
            answer="".join(self.text),
            thinking="".join(self.thinking),
            mode=request.mode,
            task=request.task,
            references=request.references,
            usage=self.usage,
        )


async def ask(service: Service, request: AskRequest, emit: Emitter[Event]) -> None:
    """Answer ``request``, reporting to ``emit``; cancelling aborts the generation in the engine."""
    if not request.question.strip() and request.task is None:
        raise UsageError("The question is empty.", "Give it as an argument or on standard input.")
    answer = Answer()
    materials, opened = await prepare(service, request, emit)
    root = None if opened is None else opened.root
    async with service.conversations.turn(request.conversation, root, materials) as talk:
        for notice in talk.notices:
            emit(NoticeEvent(message=notice))
        if opened is None:
            prompt = materials.plain_prompt(tasks.text(request), conversation=talk.ids)
        else:
            prompt = await _prompt(service, request, opened, talk, emit)
        expected = min(service.hosting.resident.ever(prompt.ids), prompt.prefix_tokens)
        if opened is not None:
            service.warmer.asked(opened, prompt)
        try:
            await _generate(service, request, materials, prompt, answer, emit)
        finally:
            if request.record and (answer.ids or answer.usage.finish_reason):
                talk.ids.answered(prompt, answer.ids, materials.template.end_ids)
                talk.answered(answer.turn(request))
                service.conversations.keep(talk)
    if opened is not None:
        opened.last = prompt
        if answer.usage.cached_tokens < expected:
            answer.usage.broke_at = opened.workspace.where_broke(
                answer.usage.cached_tokens, prompt, block=materials.launch.profile.block_size
            )
    kept = talk.id if request.record else None
    emit(UsageEvent(usage=answer.usage, conversation=kept, text="".join(answer.text)))


async def prepare(service: Service, request: AskRequest, emit: Emitter[Event]) -> tuple[Materials, OpenRoot | None]:
    """Read the repository while the engine loads; both are reported."""
    materials = await service.hosting.materials()
    if request.no_context:
        await service.hosting.ready(emit)
        return materials, None
    if request.root is None:
        raise UsageError("A question needs a root.", "Name a folder, or ask without context.")
    root = await asyncio.to_thread(roots.find, Path(request.root), True, request.force)

    def report(stage: str, done: int, total: int) -> None:
        emit.from_thread(ProgressEvent(stage=stage, message=f"Reading {root.name}", done=done, total=total))

    reading = asyncio.create_task(service.workspaces.get(root, materials, report))
    try:
        await service.hosting.ready(emit)
        opened = await reading
    finally:
        reading.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await reading
    for notice in opened.notices:
        emit(NoticeEvent(message=notice))
    return materials, opened


async def _prompt(service: Service, request: AskRequest, opened: OpenRoot, talk: Talk, emit: Emitter[Event]) -> Prompt:
    await opened.settle()
    held = buffer_texts.texts(service.buffers.under(opened.root))
    opened.workspace.resumable = service.hosting.resident.resumable(opened.root)
    try:
        extras = await asyncio.to_thread(references.resolve, opened.root, request.references, held, opened.selection)
        extras += await asyncio.to_thread(tasks.materials, request, opened.root)
        prompt = await asyncio.to_thread(
            opened.workspace.prompt,
            tasks.text(request),
            buffers=held,
            extras=extras,
            conversation=talk.ids,
            thinking=service.thinking(request),
        )
    except PromptTooLarge as error:
        raise OverBudget(error.what, error.advice) from error
    except ContextError as error:
        raise RepositoryError(error.what, error.advice) from error
    if prompt.buffers_used:
        emit(NoticeEvent(message="Unsaved text of open editors was used: " + ", ".join(prompt.buffers_used)))
    for path in sorted(set(service.buffers.conflicts(opened.root)) & set(prompt.buffers_used)):
        emit(NoticeEvent(message=f"{path} is open in two editors with different text; the latest was used"))
    if not prompt.documents:
        emit(NoticeEvent(message=f"There are no files to read in {opened.root}; the answer knows nothing of it"))
    for note in prompt.notes:
        emit(NoticeEvent(message=note))
    return prompt


async def _generate(
    service: Service,
    request: AskRequest,
    materials: Materials,
    prompt: Prompt,
    answer: Answer,
    emit: Emitter[Event],
) -> None:
    client = await service.hosting.ready(emit)
    usage = answer.usage
    usage.snapshot, usage.overlay_seq = prompt.snapshot, prompt.overlay_seq
    usage.profile = materials.launch.profile.name
    usage.prompt_tokens = len(prompt.ids)
    first_cached: int | None = None
    async with service.traffic.interactive():
        segments = prefill(client, prompt.ids, service.hosting.resident, service.hosting.pace, priority=CHAT_PRIORITY)
        async with aclosing(segments):
            async for segment in segments:
                first_cached = segment.cached if first_cached is None else first_cached
                emit(ProgressEvent(stage="prefill", message="Prefill", done=segment.end, total=len(prompt.ids)))
        sampling = materials.sampling(request, len(prompt.ids))
        splitter = materials.splitter(thinking=service.thinking(request))
        pieces = client.generate(prompt.ids, sampling, priority=CHAT_PRIORITY)
        async with aclosing(pieces):
            async for piece in pieces:
                if isinstance(piece, Finish):
                    _finish(usage, piece, first_cached)
                else:
                    _piece(piece, splitter, answer, emit)
    usage.reasoning_tokens = splitter.reasoning_tokens
    usage.total_ms = answer.elapsed_ms()


def _piece(piece: Piece, splitter: ReasoningSplitter, answer: Answer, emit: Emitter[Event]) -> None:
    answer.ids.extend(piece.token_ids)
    for part in splitter.feed(piece):
        if not part.text:
            continue
        if answer.usage.ttft_ms is None:
            answer.usage.ttft_ms = answer.elapsed_ms()
        if part.kind == "thinking":
            answer.thinking.append(part.text)
            emit(ThinkingEvent(text=part.text))
        else:
            answer.text.append(part.text)
            emit(TextEvent(text=part.text))


def _finish(usage: Usage, finish: Finish, first_cached: int | None) -> None:
    usage.cached_tokens = finish.cached_tokens if first_cached is None else first_cached
    usage.prefilled_tokens = usage.prompt_tokens - usage.cached_tokens
    usage.output_tokens = finish.output_tokens
    usage.finish_reason = finish.reason
