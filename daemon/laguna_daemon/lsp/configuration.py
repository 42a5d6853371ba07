"""The editor's own settings: at initialisation, pulled (`workspace/configuration`) or pushed."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from lsprotocol import types
from pydantic import ValidationError

from laguna_daemon.lsp.adapter import Peer
from laguna_daemon.lsp.errors import ResponseError
from laguna_daemon.schemas import EditorSettings

_log = logging.getLogger(__name__)
SECTION = "laguna"


class Configuration:
    """One editor's settings; what is wrong in them is shown to the user and changes nothing."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._can_pull = False
        self._can_register = False
        self._pulling: asyncio.Task[None] | None = None
        self.settings = EditorSettings()

    def initialize(self, params: types.InitializeParams) -> None:
        """Take what the client sends along with `initialize`, and learn how it tells of changes."""
        workspace = params.capabilities.workspace
        if workspace is not None:
            self._can_pull = bool(workspace.configuration)
            changes = workspace.did_change_configuration
            self._can_register = bool(changes and changes.dynamic_registration)
        if params.initialization_options is not None:
            self._take(params.initialization_options)

    def initialized(self) -> None:
        """Ask for the settings, and to be told when they change."""
        if self._can_pull:
            self._pull()

    def changed(self, params: types.DidChangeConfigurationParams) -> None:
        """The client pushes settings, or says that there are new ones to pull."""
        if isinstance(params.settings, Mapping) and SECTION in params.settings:
            self._take(params.settings[SECTION])
        elif self._can_pull:
            self._pull()

    def close(self) -> None:
        """Stop asking."""
        if self._pulling is not None:
            self._pulling.cancel()

    def _pull(self) -> None:
        first = self._pulling is None
        self.close()
        self._pulling = asyncio.create_task(self._ask(register=first and self._can_register))

    async def _ask(self, register: bool) -> None:
        try:
            if register:
                wish = types.Registration(
                    id="laguna-configuration",
                    method=types.WORKSPACE_DID_CHANGE_CONFIGURATION,
                    register_options={"section": SECTION},
                )
                await self._peer.call(types.CLIENT_REGISTER_CAPABILITY, types.RegistrationParams(registrations=[wish]))
            items = [types.ConfigurationItem(section=SECTION)]
            found = await self._peer.call(types.WORKSPACE_CONFIGURATION, types.ConfigurationParams(items=items))
        except ResponseError as error:
            _log.warning("the editor gives no settings: %s", error.message)
            return
        if isinstance(found, list) and found and found[0] is not None:
            self._take(found[0])

    def _take(self, raw: Any) -> None:
        try:
            self.settings = EditorSettings.model_validate(raw)
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join([SECTION, *map(str, first["loc"])])
            message = f"The setting {name} is wrong: {first['msg']}. The settings are as they were."
            shown = types.ShowMessageParams(type=types.MessageType.Warning, message=message)
            self._peer.notify(types.WINDOW_SHOW_MESSAGE, shown)
