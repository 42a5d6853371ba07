"""`workspace/executeCommand`: what a suggestion, a code action or a status lets the user do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from lsprotocol import types

from laguna_daemon.lsp.adapter import Peer
from laguna_daemon.lsp.errors import ResponseError, invalid_params
from laguna_daemon.lsp.features.actions import EDIT, Actions
from laguna_daemon.lsp.features.status import OPEN_LOG, START_ENGINE, WARM
from laguna_daemon.lsp.features.warming import Warming
from laguna_daemon.lsp.inline.completion import ACCEPTED, Completion
from laguna_daemon.lsp.ports import ServicePort
from laguna_daemon.lsp.text.uris import from_path
from laguna_daemon.paths import log_dir
from laguna_daemon.schemas import CompletionEvent, WarmParams, WarmResult

Command = Callable[[list[Any]], Awaitable[Any]]


class Commands:
    """One client's commands, by name."""

    def __init__(
        self, service: ServicePort, peer: Peer, completion: Completion, actions: Actions, warming: Warming
    ) -> None:
        self._service = service
        self._peer = peer
        self._completion = completion
        self._actions = actions
        self._warming = warming
        self._known: dict[str, Command] = {
            ACCEPTED: self._accepted,
            EDIT: self._edit,
            START_ENGINE: self._start_engine,
            OPEN_LOG: self._open_log,
            WARM: self._warm,
        }

    @property
    def names(self) -> list[str]:
        """Every command."""
        return list(self._known)

    async def execute(self, params: types.ExecuteCommandParams) -> Any:
        """Run one; raises InvalidParams for an unknown one or wrong arguments."""
        command = self._known.get(params.command)
        if command is None:
            raise invalid_params(f"There is no command {params.command}.")
        return await command(list(params.arguments or []))

    async def _accepted(self, arguments: list[Any]) -> None:
        if len(arguments) != 1 or not isinstance(arguments[0], str):
            raise invalid_params(f"{ACCEPTED} takes one argument, the suggestion's id.")
        self._completion.accepted(CompletionEvent(id=arguments[0]))

    async def _edit(self, arguments: list[Any]) -> Any:
        """Make an action's edit and have the client apply it; its answer is the result."""
        if len(arguments) != 1:
            raise invalid_params(f"{EDIT} takes one argument, the data of a code action.")
        edit = await self._actions.edit(arguments[0])
        return await self._peer.call(types.WORKSPACE_APPLY_EDIT, {"label": "Laguna", "edit": edit})

    async def _start_engine(self, arguments: list[Any]) -> None:
        await self._service.start_engine()

    async def _open_log(self, arguments: list[Any]) -> Any:
        """Show the engine's log in the editor; where it cannot open files, say where the log is."""
        path = log_dir() / "engine.log"
        try:
            return await self._peer.call(types.WINDOW_SHOW_DOCUMENT, {"uri": from_path(path), "takeFocus": True})
        except ResponseError:
            said = types.ShowMessageParams(type=types.MessageType.Info, message=f"The engine's log is {path}")
            self._peer.notify(types.WINDOW_SHOW_MESSAGE, said)
            return {"success": False}

    async def _warm(self, arguments: list[Any]) -> WarmResult:
        if len(arguments) > 1 or not all(isinstance(each, str) for each in arguments):
            raise invalid_params(f"{WARM} takes at most one argument, a root.")
        return await self._warming.warm(WarmParams(root=arguments[0] if arguments else None))
