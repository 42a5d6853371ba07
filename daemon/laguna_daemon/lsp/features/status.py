"""`laguna/status`, `laguna/didChangeStatus`, and a progress bar while the engine loads."""

from contextlib import aclosing
from typing import Literal

from laguna_daemon.lsp.adapter import Peer
from laguna_daemon.lsp.ports import ServicePort
from laguna_daemon.lsp.progress import WorkDone
from laguna_daemon.schemas import EditorStatus, EngineStatus, Status, StatusParams

DID_CHANGE = "laguna/didChangeStatus"
START_ENGINE = "laguna.startEngine"
OPEN_LOG = "laguna.openLog"

Kind = Literal["Normal", "Warning", "Error", "Inactive"]
_KINDS: dict[str, Kind] = {
    "starting": "Normal",
    "ready": "Normal",
    "backoff": "Warning",
    "failed": "Error",
    "stopped": "Inactive",
    "stopping": "Inactive",
}
_MESSAGES = {
    "starting": "The engine is starting",
    "ready": "Ready",
    "backoff": "The engine ended and will be started again",
    "failed": "The engine cannot be started",
    "stopped": "The engine is not running",
    "stopping": "The engine is stopping",
}


class StatusReport:
    """Tells one client how the daemon is."""

    def __init__(self, service: ServicePort, peer: Peer) -> None:
        self._service = service
        self._peer = peer
        self.server_progress = False  # the client lets us make progress bars of our own
        self._told: EditorStatus | None = None
        self._bar: WorkDone | None = None

    async def status(self, params: StatusParams) -> EditorStatus:
        """`laguna/status`."""
        return editor_status(self._service.status())

    async def watch(self) -> None:
        """Tell the client of every change until cancelled."""
        try:
            self._tell(editor_status(self._service.status()))
            async with aclosing(self._service.watch_status()) as changes:
                async for status in changes:
                    self._tell(editor_status(status))
                    await self._peer.drain()
        finally:
            if self._bar is not None:
                self._bar.end()

    def _tell(self, status: EditorStatus) -> None:
        if status == self._told:
            return
        self._told = status
        self._peer.notify(DID_CHANGE, status)
        if self.server_progress:
            self._show_loading(status.engine)

    def _show_loading(self, engine: EngineStatus) -> None:
        if engine.phase == "starting":
            if self._bar is None:
                self._bar = WorkDone(self._peer, "Laguna: loading the model")
            self._bar.report(engine.detail or _MESSAGES["starting"])
        elif self._bar is not None:
            self._bar.end(_MESSAGES.get(engine.phase))
            self._bar = None


def editor_status(status: Status) -> EditorStatus:
    """What an editor shows of the daemon's status: one kind, one message with the cause and what to do."""
    engine = status.engine
    message = _MESSAGES.get(engine.phase, engine.phase)
    if engine.phase == "ready":
        message = "Answering" if status.busy else message
    else:
        cause = engine.error or engine.detail
        message = ". ".join(part.rstrip(".") for part in (message, cause, engine.advice) if part)
    return EditorStatus(
        busy=status.busy > 0 or engine.phase == "starting",
        kind=_KINDS.get(engine.phase, "Warning"),
        message=message,
        engine=engine,
        workspaces=status.workspaces,
    )
