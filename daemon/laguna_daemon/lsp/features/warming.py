"""`laguna/warm`: read a repository into the engine ahead of its questions, or leave it alone."""

from __future__ import annotations

from contextlib import aclosing

from laguna_daemon.lsp.adapter import Peer
from laguna_daemon.lsp.errors import Code, ResponseError, invalid_params
from laguna_daemon.lsp.ports import ServicePort
from laguna_daemon.lsp.progress import WorkDone, show
from laguna_daemon.lsp.roots import Locator
from laguna_daemon.schemas import (
    ErrorEvent,
    NoticeEvent,
    ProgressEvent,
    UsageEvent,
    WarmParams,
    WarmRequest,
    WarmResult,
)


class Warming:
    """One client's warm-ups. Cancelling one only ends the waiting for it."""

    def __init__(self, service: ServicePort, peer: Peer, locator: Locator) -> None:
        self._service = service
        self._peer = peer
        self._locator = locator

    async def warm(self, params: WarmParams) -> WarmResult:
        """What the action asks for; a warm-up is awaited."""
        root = self._locator.named(params.root) if params.root is not None else await self._locator.root_of(None)
        if root is None:
            raise invalid_params("No workspace folder is open: name a root.")
        bar = None
        if params.work_done_token is not None:
            bar = WorkDone(self._peer, "Laguna", params.work_done_token)
        result = WarmResult()
        try:
            async with aclosing(self._service.warm(WarmRequest(root=str(root), action=params.action))) as events:
                async for event in events:
                    if isinstance(event, ProgressEvent) and bar is not None:
                        show(bar, event)
                    elif isinstance(event, NoticeEvent):
                        result.notices.append(event.message)
                    elif isinstance(event, UsageEvent):
                        result.usage = event.usage
                    elif isinstance(event, ErrorEvent):
                        raise ResponseError(Code.REQUEST_FAILED, f"{event.error}\n{event.advice}".rstrip())
            return result
        finally:
            if bar is not None:
                bar.end()
