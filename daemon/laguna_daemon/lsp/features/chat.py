"""`laguna/chat`: one question, its answer streamed as partial results; in mode edit with a WorkspaceEdit."""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path

from lsprotocol import types

from laguna_daemon import edits
from laguna_daemon.errors import LagunaError
from laguna_daemon.lsp.adapter import Peer
from laguna_daemon.lsp.errors import Code, ResponseError
from laguna_daemon.lsp.features.questions import Questions
from laguna_daemon.lsp.features.workspace_edit import Abilities, Basis, CannotEdit, OpenFile, propose
from laguna_daemon.lsp.ports import ServicePort
from laguna_daemon.lsp.progress import WorkDone, show
from laguna_daemon.lsp.text.documents import Documents
from laguna_daemon.schemas import (
    AskRequest,
    ChatParams,
    ChatResult,
    ErrorEvent,
    Event,
    NoticeEvent,
    ProgressEvent,
    ProgressToken,
    TextEvent,
    ThinkingEvent,
    UsageEvent,
)

NO_ROOT = "No workspace folder is open, so this answer knows nothing of a repository."
NO_EDIT = "The answer holds no edit."


@dataclass
class _Reply:
    """What has come of an answer so far."""

    text: list[str] = field(default_factory=list)
    thinking: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    result: ChatResult | None = None

    def take(self, event: Event) -> None:
        match event:
            case TextEvent():
                self.text.append(event.text)
            case ThinkingEvent():
                self.thinking.append(event.text)
            case NoticeEvent():
                self.notices.append(event.message)
            case ErrorEvent():
                data = {"advice": event.advice, "exitCode": event.exit_code}
                raise ResponseError(Code.REQUEST_FAILED, f"{event.error}\n{event.advice}".rstrip(), data)
            case UsageEvent():
                self.result = ChatResult(
                    text=event.text or "".join(self.text),
                    thinking="".join(self.thinking),
                    usage=event.usage,
                    conversation=event.conversation,
                    notices=self.notices,
                )


@dataclass
class _Seen:
    """What the model is shown while it answers: asked for when its answer begins, since the prompt is made by then."""

    asked: dict[str, OpenFile]
    shown: asyncio.Task[dict[str, str]] | None = None

    async def hashes(self, now: dict[str, OpenFile]) -> dict[str, str]:
        """sha256 (hex) by path; without the open files that have been changed since, which may only be edited."""
        shown: dict[str, str] = {}
        if self.shown is not None:
            try:
                shown = dict(await self.shown)
            except LagunaError:
                shown = {}  # then nothing may be rewritten, which is the careful side
        for path in {*self.asked, *now}:
            before, after = self.asked.get(path), now.get(path)
            if before is not None and after is not None and before.text == after.text and path in shown:
                shown[path] = hashlib.sha256(after.text.encode()).hexdigest()
            else:
                shown.pop(path, None)
        return shown


class Chat:
    """One client's questions."""

    def __init__(self, service: ServicePort, peer: Peer, documents: Documents, questions: Questions) -> None:
        self._service = service
        self._peer = peer
        self._documents = documents
        self._questions = questions
        self.server_progress = False  # the client lets us make progress bars of our own
        self.abilities = Abilities()
        self._asking: dict[ProgressToken, asyncio.Task[ChatResult]] = {}

    async def chat(self, params: ChatParams, *, record: bool = True) -> ChatResult:
        """The whole answer; its pieces go out before it if the client gave a token for them.

        Cancelling, or losing the client, closes the service's generator: the engine stops.
        """
        bar = self._bar(params)
        task = asyncio.current_task()
        if bar is not None and task is not None:
            self._asking[bar.token] = task
        try:
            return await self._answer(params, bar, record)
        finally:
            if bar is not None:
                self._asking.pop(bar.token, None)
                bar.end()

    def progress_cancelled(self, params: types.WorkDoneProgressCancelParams) -> None:
        """The user has closed a progress bar of ours: the question ends with it."""
        task = self._asking.get(params.token)
        if task is not None:
            task.cancel()

    async def _answer(self, params: ChatParams, bar: WorkDone | None, record: bool) -> ChatResult:
        request = await self._questions.request(params)
        request.record = record
        root = None if request.root is None else Path(request.root)
        seen = _Seen(self._questions.opened(root)) if root is not None and params.mode == "edit" else None
        try:
            result = await self._stream(params, request, bar, seen)
            if seen is not None and root is not None:
                await self._propose(result, root, seen)
            return result
        finally:
            if seen is not None and seen.shown is not None:
                seen.shown.cancel()

    async def _stream(
        self, params: ChatParams, request: AskRequest, bar: WorkDone | None, seen: _Seen | None
    ) -> ChatResult:
        reply = _Reply()
        if request.no_context:
            self._take(params, NoticeEvent(message=NO_ROOT), reply)
        async with aclosing(self._service.ask(request)) as events:
            async for event in events:
                if isinstance(event, TextEvent | ThinkingEvent):
                    if bar is not None:
                        bar.end()
                    if seen is not None and seen.shown is None and request.root is not None:
                        seen.shown = asyncio.create_task(self._service.seen(request.root))
                elif bar is not None and isinstance(event, ProgressEvent):
                    show(bar, event)
                self._take(params, event, reply)
                await self._peer.drain()
        if reply.result is None:
            raise ResponseError(Code.INTERNAL_ERROR, "The answer ended without its usage.")
        return reply.result

    async def _propose(self, result: ChatResult, root: Path, seen: _Seen) -> None:
        """Make the answer's blocks an edit of the documents as they are now, or say why there is none."""
        now = self._questions.opened(root)
        basis = Basis(root, now, await seen.hashes(now))
        units: edits.Units = self._documents.encoding.value
        try:
            result.edit = await asyncio.to_thread(propose, result.text, basis, units, self.abilities)
        except CannotEdit as error:
            result.refusals = error.refusals
            result.notices.append(f"Nothing was changed, because the edits do not all fit.\n{error}")
            return
        if result.edit is None:
            result.notices.append(NO_EDIT)

    def _take(self, params: ChatParams, event: Event, reply: _Reply) -> None:
        reply.take(event)
        if params.partial_result_token is not None:
            value = event.model_dump(mode="json", by_alias=True)
            self._peer.notify(types.PROGRESS, {"token": params.partial_result_token, "value": value})

    def _bar(self, params: ChatParams) -> WorkDone | None:
        if params.work_done_token is not None:
            return WorkDone(self._peer, "Laguna", params.work_done_token)
        return WorkDone(self._peer, "Laguna") if self.server_progress else None
