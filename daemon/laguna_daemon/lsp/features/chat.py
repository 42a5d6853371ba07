"""`laguna/chat`: one question, its answer streamed as partial results."""

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path

from lsprotocol import types

from laguna_daemon.lsp.adapter import Peer
from laguna_daemon.lsp.configuration import Configuration
from laguna_daemon.lsp.errors import Code, ResponseError, invalid_params
from laguna_daemon.lsp.ports import ServicePort
from laguna_daemon.lsp.progress import WorkDone, percent
from laguna_daemon.lsp.roots import Locator
from laguna_daemon.lsp.text.documents import Documents, Place
from laguna_daemon.schemas import (
    AskRequest,
    ChatParams,
    ChatReference,
    ChatResult,
    ErrorEvent,
    Event,
    NoticeEvent,
    ProgressEvent,
    ProgressToken,
    Reference,
    TextEvent,
    ThinkingEvent,
    UsageEvent,
)

NO_ROOT = "No workspace folder is open, so this answer knows nothing of a repository."


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


class Chat:
    """One client's questions."""

    def __init__(
        self,
        service: ServicePort,
        peer: Peer,
        documents: Documents,
        locator: Locator,
        configuration: Configuration,
    ) -> None:
        self._service = service
        self._peer = peer
        self._documents = documents
        self._locator = locator
        self._configuration = configuration
        self.server_progress = False  # the client lets us make progress bars of our own
        self._asking: dict[ProgressToken, asyncio.Task[ChatResult]] = {}

    async def chat(self, params: ChatParams) -> ChatResult:
        """The whole answer; its pieces go out before it if the client gave a token for them.

        Cancelling, or losing the client, closes the service's generator: the engine stops.
        """
        bar = self._bar(params)
        task = asyncio.current_task()
        if bar is not None and task is not None:
            self._asking[bar.token] = task
        try:
            return await self._answer(params, bar)
        finally:
            if bar is not None:
                self._asking.pop(bar.token, None)
                bar.end()

    def progress_cancelled(self, params: types.WorkDoneProgressCancelParams) -> None:
        """The user has closed a progress bar of ours: the question ends with it."""
        task = self._asking.get(params.token)
        if task is not None:
            task.cancel()

    async def _answer(self, params: ChatParams, bar: WorkDone | None) -> ChatResult:
        request = await self._request(params)
        reply = _Reply()
        if request.no_context:
            self._stream(params, NoticeEvent(message=NO_ROOT), reply)
        async with aclosing(self._service.ask(request)) as events:
            async for event in events:
                if isinstance(event, ProgressEvent):
                    if bar is not None:
                        _report(bar, event)
                elif bar is not None and isinstance(event, TextEvent | ThinkingEvent):
                    bar.end()
                self._stream(params, event, reply)
                await self._peer.drain()
        if reply.result is None:
            raise ResponseError(Code.INTERNAL_ERROR, "The answer ended without its usage.")
        return reply.result

    def _stream(self, params: ChatParams, event: Event, reply: _Reply) -> None:
        reply.take(event)
        if params.partial_result_token is not None:
            value = event.model_dump(mode="json", by_alias=True)
            self._peer.notify(types.PROGRESS, {"token": params.partial_result_token, "value": value})

    def _bar(self, params: ChatParams) -> WorkDone | None:
        if params.work_done_token is not None:
            return WorkDone(self._peer, "Laguna", params.work_done_token)
        return WorkDone(self._peer, "Laguna") if self.server_progress else None

    async def _request(self, params: ChatParams) -> AskRequest:
        if not params.text.strip():
            raise invalid_params("The question is empty.")
        paths = [self._path(reference) for reference in params.references]
        if params.root is not None:
            root: Path | None = self._locator.named(params.root)
        else:
            root = await self._locator.root_of(paths[0] if paths else None)
        references = [
            self._reference(reference, path, root) for reference, path in zip(params.references, paths, strict=True)
        ]
        return AskRequest(
            root=None if root is None else str(root),
            question=params.text,
            conversation=params.conversation,
            references=references,
            no_context=root is None,
            thinking=self._configuration.settings.thinking if params.thinking is None else params.thinking,
            max_tokens=params.max_tokens,
            temperature=params.temperature,
            seed=params.seed,
            keep=True,
        )

    def _path(self, reference: ChatReference) -> Path:
        path = self._locator.path_of(reference.uri)
        if path is None:
            raise invalid_params(f"The reference {reference.uri} names no file.")
        return path

    def _reference(self, reference: ChatReference, path: Path, root: Path | None) -> Reference:
        if root is None or not path.is_relative_to(root):
            raise invalid_params(f"The reference {reference.uri} is not below the root of this question.")
        name = path.relative_to(root).as_posix()
        if reference.range is None:
            return Reference(path=name)
        start, end = sorted(
            Place(point.line, point.character) for point in (reference.range.start, reference.range.end)
        )
        # An end at column 0 stands behind the line ending of the line before.
        last = end.line if end.column > 0 or end.line == start.line else end.line - 1
        document = self._documents.get(reference.uri)
        if document is not None:
            last = min(last, len(document.lines) - 1)
        return Reference(path=name, first_line=min(start.line, last) + 1, last_line=last + 1)


def _report(bar: WorkDone, event: ProgressEvent) -> None:
    amount = ""
    if event.done is not None and event.total:
        amount = f" {_short(event.done)} of {_short(event.total)}"
        amount += " tokens" if event.stage == "prefill" else ""
    bar.report(event.message + amount, percent(event.done, event.total))


def _short(count: int) -> str:
    return f"{count // 1000}K" if count >= 10_000 else str(count)
