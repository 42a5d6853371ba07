"""One client's session: life cycle, capabilities, and which handler serves which method."""

import asyncio
import logging
import uuid
from pathlib import Path

from lsprotocol import types

from laguna_daemon import __version__
from laguna_daemon.lsp.adapter import Peer, choose_encoding
from laguna_daemon.lsp.configuration import Configuration
from laguna_daemon.lsp.editor_process import EditorProcess
from laguna_daemon.lsp.features.actions import OPTIONS, Actions
from laguna_daemon.lsp.features.chat import Chat
from laguna_daemon.lsp.features.commands import Commands
from laguna_daemon.lsp.features.context import ContextAccount
from laguna_daemon.lsp.features.conversations import ConversationList
from laguna_daemon.lsp.features.questions import Questions
from laguna_daemon.lsp.features.status import StatusReport
from laguna_daemon.lsp.features.warming import Warming
from laguna_daemon.lsp.features.workspace_edit import Abilities
from laguna_daemon.lsp.inline.completion import Completion
from laguna_daemon.lsp.inline.suggesting import Suggester
from laguna_daemon.lsp.ports import ServicePort
from laguna_daemon.lsp.roots import Locator
from laguna_daemon.lsp.text.documents import Documents
from laguna_daemon.lsp.text.positions import Encoding
from laguna_daemon.lsp.text.sync import Sync
from laguna_daemon.lsp.text.uris import to_path
from laguna_daemon.lsp.workspaces import FindRoot, Workspaces
from laguna_daemon.schemas import (
    ChatParams,
    CompletionEvent,
    ContextParams,
    ConversationsParams,
    StatusParams,
    WarmParams,
)

_log = logging.getLogger(__name__)


class Session:
    """One connected editor; everything it owns ends with its connection."""

    def __init__(
        self,
        service: ServicePort,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        find_root: FindRoot,
    ) -> None:
        self.id = uuid.uuid4().hex
        self.client = ""  # name and version as the editor gives them
        self._service = service
        self._peer = Peer(reader, writer, __version__)
        self.documents = Documents()
        self.workspaces = Workspaces(find_root)
        self._sync = Sync(self.id, self.documents, service.buffers)
        locator = Locator(self._sync, self.workspaces)
        self._configuration = Configuration(self._peer)
        suggester = Suggester(service, self.documents, locator, self._configuration)
        self.completion = Completion(self.documents, self._configuration, suggester)
        questions = Questions(self.documents, locator, self._configuration)
        self._chat = Chat(service, self._peer, self.documents, questions)
        self._actions = Actions(self.documents, self._chat, self._configuration)
        self._warming = Warming(service, self._peer, locator)
        self._commands = Commands(service, self._peer, self.completion, self._actions, self._warming)
        self._context = ContextAccount(service, locator)
        self._conversations = ConversationList(service, locator)
        self._status = StatusReport(service, self._peer)
        self._editor = EditorProcess(self._peer.abort)
        self._watching: asyncio.Task[None] | None = None
        self._register()

    async def run(self) -> None:
        """Serve the connection until it ends, then let go of all that belongs to it."""
        try:
            await self._peer.run()
        finally:
            # Buffers first: from now on the disk's text counts, whatever the closing below waits for.
            self._service.buffers.drop(self.id)
            if self._watching is not None:
                self._watching.cancel()
            self._editor.close()
            self._configuration.close()
            self.completion.close()
            await self._peer.aclose()

    @property
    def methods(self) -> frozenset[str]:
        """Every method this session serves."""
        return self._peer.methods

    def _register(self) -> None:
        self._peer.on_initialize(self._initialize, commands=self._commands.names)
        tell = self._peer.on_notification
        tell(types.INITIALIZED, self._initialized)
        tell(types.SET_TRACE, lambda params: None)
        tell(types.TEXT_DOCUMENT_DID_OPEN, self._did_open)
        tell(types.TEXT_DOCUMENT_DID_CHANGE, self._did_change)
        tell(types.TEXT_DOCUMENT_DID_CLOSE, self._did_close)
        tell(types.WORKSPACE_DID_CHANGE_CONFIGURATION, self._configuration.changed)
        tell(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS, self._folders_changed)
        tell(types.WINDOW_WORK_DONE_PROGRESS_CANCEL, self._chat.progress_cancelled)
        tell("laguna/didShowCompletion", self.completion.shown, CompletionEvent)
        tell("laguna/didAcceptCompletion", self.completion.accepted, CompletionEvent)
        tell("laguna/didPartiallyAcceptCompletion", self.completion.partially_accepted, CompletionEvent)
        ask = self._peer.on_request
        # Without options pygls does not advertise it.
        inline = types.InlineCompletionOptions()
        ask(types.TEXT_DOCUMENT_INLINE_COMPLETION, self.completion.inline, options=inline)
        ask(types.TEXT_DOCUMENT_COMPLETION, self.completion.listed, options=types.CompletionOptions())
        ask(types.TEXT_DOCUMENT_CODE_ACTION, self._actions.offered, options=OPTIONS)
        ask(types.CODE_ACTION_RESOLVE, self._actions.resolved)
        ask(types.WORKSPACE_EXECUTE_COMMAND, self._commands.execute)
        ask("laguna/chat", self._chat.chat, ChatParams)
        ask("laguna/context", self._context.context, ContextParams)
        ask("laguna/conversations", self._conversations.conversations, ConversationsParams)
        ask("laguna/warm", self._warming.warm, WarmParams)
        ask("laguna/status", self._status.status, StatusParams)

    def _initialize(self, params: types.InitializeParams, capabilities: types.ServerCapabilities) -> None:
        if params.client_info is not None:
            self.client = f"{params.client_info.name} {params.client_info.version or ''}".rstrip()
        self._editor.watch(params.process_id, self._peer.connection)
        self.documents.encoding = Encoding(choose_encoding(params.capabilities))
        self._configuration.initialize(params)
        for folder in _folders(params):
            self.workspaces.add(folder)
        window = params.capabilities.window
        progress = bool(window and window.work_done_progress)
        self._chat.server_progress = self._status.server_progress = progress
        self._chat.abilities = Abilities.of(params.capabilities)
        self._actions.initialize(params.capabilities)
        own = sorted(method for method in self.methods if method.startswith("laguna/"))
        capabilities.experimental = {"laguna": {"methods": own, "chatModes": ["ask", "edit"]}}
        text_document = params.capabilities.text_document
        if text_document is not None and text_document.inline_completion is not None:
            capabilities.completion_provider = None  # it is the fallback for clients without ghost text
        capabilities.workspace = types.WorkspaceOptions(
            workspace_folders=types.WorkspaceFoldersServerCapabilities(supported=True, change_notifications=True)
        )
        _log.info("session %s: %s, %s", self.id[:8], self.client or "an editor", self.documents.encoding)

    def _initialized(self, params: types.InitializedParams) -> None:
        if self._watching is None:
            self._watching = asyncio.create_task(self._status.watch())
            self._watching.add_done_callback(_log_failure)
            self._configuration.initialized()

    def _did_open(self, params: types.DidOpenTextDocumentParams) -> None:
        self.completion.changed(params.text_document.uri)
        self._sync.did_open(params)

    def _did_change(self, params: types.DidChangeTextDocumentParams) -> None:
        if self._sync.did_change(params) is not None:
            self.completion.typed(params.text_document.uri)

    def _did_close(self, params: types.DidCloseTextDocumentParams) -> None:
        self.completion.closed(params.text_document.uri)
        self._sync.did_close(params)

    def _folders_changed(self, params: types.DidChangeWorkspaceFoldersParams) -> None:
        for folder in params.event.removed:
            if (path := to_path(folder.uri)) is not None:
                self.workspaces.remove(path)
        for folder in params.event.added:
            if (path := to_path(folder.uri)) is not None:
                self.workspaces.add(path)


def _folders(params: types.InitializeParams) -> list[Path]:
    """The workspace folders; from clients without them the root they open."""
    uris = [folder.uri for folder in params.workspace_folders or []]
    if not uris and params.root_uri:
        uris = [params.root_uri]
    paths = [path for path in map(to_path, uris) if path is not None]
    if not paths and not uris and params.root_path:
        paths = [Path(params.root_path)]
    return [path for path in paths if path.is_absolute()]


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("an editor is no longer told of the status", exc_info=error)
