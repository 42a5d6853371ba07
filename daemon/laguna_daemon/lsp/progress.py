"""Work-done progress: a bar in the editor for work whose length is known, or not."""

import asyncio
import contextlib
import itertools
from typing import Any

from lsprotocol import types

from laguna_daemon.lsp.adapter import Peer
from laguna_daemon.lsp.errors import ResponseError
from laguna_daemon.schemas import ProgressEvent

_tokens = itertools.count(1)
CREATE_TIMEOUT = 5.0


class WorkDone:
    """One progress bar. Every call returns at once; what comes before the client knows the bar is kept."""

    def __init__(self, peer: Peer, title: str, token: int | str | None = None) -> None:
        self._peer = peer
        self._title = title
        self._given = token is not None
        self.token: int | str = token if token is not None else f"laguna-progress-{next(_tokens)}"
        self._shown = False
        self._ended = False
        self._last: tuple[str, int | None] | None = None
        self._creating: asyncio.Task[None] | None = None

    def report(self, message: str, percentage: int | None = None) -> None:
        """Say how far the work is; the first call shows the bar, one of our own after the client agreed."""
        if (message, percentage) == self._last or self._ended:
            return
        first, self._last = self._last is None, (message, percentage)
        if self._shown:
            self._send(types.WorkDoneProgressReport(message=message, percentage=percentage))
        elif first:
            self._begin()

    def end(self, message: str | None = None) -> None:
        """Take the bar away; a second call does nothing."""
        if self._ended:
            return
        self._ended = True
        if self._shown:
            self._send(types.WorkDoneProgressEnd(message=message))
        elif self._creating is not None:
            self._creating.cancel()

    def _begin(self) -> None:
        if self._given:
            self._show()
        else:
            self._creating = asyncio.create_task(self._create())

    async def _create(self) -> None:
        params = types.WorkDoneProgressCreateParams(token=self.token)
        with contextlib.suppress(ResponseError, TimeoutError):
            async with asyncio.timeout(CREATE_TIMEOUT):
                await self._peer.call(types.WINDOW_WORK_DONE_PROGRESS_CREATE, params)
            if not self._ended:
                self._show()

    def _show(self) -> None:
        self._shown = True
        message, percentage = self._last or ("", None)
        # A client draws percentages only if the first message has one.
        self._send(types.WorkDoneProgressBegin(title=self._title, message=message, percentage=percentage))

    def _send(self, value: Any) -> None:
        self._peer.notify(types.PROGRESS, types.ProgressParams(token=self.token, value=value))


def percent(done: int | None, total: int | None) -> int | None:
    """Whole percent of `total`, None if either is unknown."""
    return None if done is None or not total else min(100, 100 * done // total)


def amount(done: int, total: int) -> str:
    """`96K of 190K`, as people read it."""
    return f"{_short(done)} of {_short(total)}"


def show(bar: WorkDone, event: ProgressEvent) -> None:
    """Put work before an answer on its bar."""
    message = event.message
    if event.done is not None and event.total:
        message += f" {amount(event.done, event.total)}" + (" tokens" if event.stage == "prefill" else "")
    bar.report(message, percent(event.done, event.total))


def _short(count: int) -> str:
    return f"{count // 1000}K" if count >= 10_000 else str(count)
