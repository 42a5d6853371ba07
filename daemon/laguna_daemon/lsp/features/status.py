"""`laguna/status`, `laguna/didChangeStatus`, and progress bars while the engine loads and repositories are warmed."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import PurePath
from typing import Literal

from laguna_daemon.lsp.adapter import Peer
from laguna_daemon.lsp.ports import ServicePort
from laguna_daemon.lsp.progress import WorkDone, amount, percent
from laguna_daemon.schemas import EditorStatus, EngineStatus, Status, StatusCommand, StatusParams, WorkspaceStatus

DID_CHANGE = "laguna/didChangeStatus"
START_ENGINE = "laguna.startEngine"
OPEN_LOG = "laguna.openLog"
WARM = "laguna.warm"

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
_SHOW_LOG = StatusCommand(title="Show the engine's log", command=OPEN_LOG)
_COMMANDS = {
    "starting": _SHOW_LOG,
    "backoff": _SHOW_LOG,
    "failed": StatusCommand(title="Try to start the engine again", command=START_ENGINE),
    "stopped": StatusCommand(title="Start the engine", command=START_ENGINE),
}
_WELL = ("open", "reading")
_LOADING = ""  # key of the bar that shows the engine; those of roots are paths


class StatusReport:
    """Tells one client how the daemon is."""

    def __init__(self, service: ServicePort, peer: Peer) -> None:
        self._service = service
        self._peer = peer
        self.server_progress = False  # the client lets us make progress bars of our own
        self._told: EditorStatus | None = None
        self._bars: dict[str, WorkDone] = {}

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
            for bar in self._bars.values():
                bar.end()

    def _tell(self, status: EditorStatus) -> None:
        if status == self._told:
            return
        self._told = status
        self._peer.notify(DID_CHANGE, status)
        if self.server_progress:
            starting = status.engine.phase == "starting"
            self._show(_LOADING, "Laguna: loading the model", status.engine.detail if starting else None)
            for each in status.workspaces:
                self._show_warming(each)

    def _show(self, key: str, title: str, message: str | None, percentage: int | None = None) -> None:
        """Keep a bar up to date; without a message it goes."""
        bar = self._bars.get(key)
        if message is not None:
            if bar is None:
                bar = self._bars[key] = WorkDone(self._peer, title)
            bar.report(message or title, percentage)
        elif bar is not None:
            bar.end()
            del self._bars[key]

    def _show_warming(self, root: WorkspaceStatus) -> None:
        warming = root.residency == "warming"
        message = f"{amount(root.warm_tokens, root.prefix_tokens)} tokens" if warming else None
        done = percent(root.warm_tokens, root.prefix_tokens)
        self._show(root.root, f"Laguna: reading {PurePath(root.root).name}", message, done)


def editor_status(status: Status) -> EditorStatus:
    """What an editor shows of the daemon's status: one kind, one message with the cause, and what to do about it.

    An engine that does not serve comes first, then what works less well than it could, then what is going on.
    """
    engine = status.engine
    kind, message, command = _engine(engine)
    warming = any(each.residency == "warming" or each.state == "reading" for each in status.workspaces)
    if engine.phase == "ready":
        degraded = _degraded(status)
        if degraded is not None:
            kind, message, command = degraded
        elif status.busy:
            message = "Answering"
        else:
            message = next((said for each in status.workspaces if (said := _doing(each))), message)
    return EditorStatus(
        busy=status.busy > 0 or engine.phase == "starting" or warming,
        kind=kind,
        message=message,
        command=command,
        engine=engine,
        workspaces=status.workspaces,
    )


def _engine(engine: EngineStatus) -> tuple[Kind, str, StatusCommand | None]:
    message = _MESSAGES.get(engine.phase, engine.phase)
    if engine.phase != "ready":
        cause = engine.error or engine.detail
        message = ". ".join(part.rstrip(".") for part in (message, cause, engine.advice) if part)
    return _KINDS.get(engine.phase, "Warning"), message, _COMMANDS.get(engine.phase)


def _degraded(status: Status) -> tuple[Kind, str, StatusCommand | None] | None:
    """The gravest of what is served, but not as well as it could be."""
    for each in status.workspaces:
        name = PurePath(each.root).name
        again = StatusCommand(title=f"Read {name} again", command=WARM, arguments=[each.root])
        if each.state not in _WELL:
            return "Warning", f"{name}: {each.state}", again
        if each.residency == "evicted":
            lost = f"{name} was pushed out of the engine's cache: the next question reads it again"
            return "Warning", lost, again
    if status.engine.warnings:
        return "Warning", status.engine.warnings[0], _SHOW_LOG
    return None


def _doing(root: WorkspaceStatus) -> str:
    name = PurePath(root.root).name
    if root.state == "reading":
        return f"Reading {name}"
    if root.residency == "warming":
        return f"Reading {name}: {amount(root.warm_tokens, root.prefix_tokens)} tokens"
    if root.residency == "cold" and root.waits_for:
        return f"Ready; {name} is not read yet: {root.waits_for}"
    return ""
