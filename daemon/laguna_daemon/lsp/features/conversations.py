"""`laguna/conversations`: list, read and delete."""

from __future__ import annotations

from laguna_daemon.lsp.errors import invalid_params
from laguna_daemon.lsp.ports import ServicePort
from laguna_daemon.lsp.roots import Locator
from laguna_daemon.schemas import ConversationsParams, ConversationsResult


class ConversationList:
    """The user's conversations, whichever client they were held in."""

    def __init__(self, service: ServicePort, locator: Locator) -> None:
        self._service = service
        self._locator = locator

    async def conversations(self, params: ConversationsParams) -> ConversationsResult:
        """What the action asks for; raises InvalidParams, or RequestFailed for an unknown conversation."""
        held = self._service.conversations
        if params.action == "list":
            root = None if params.root is None else self._locator.named(params.root)
            return ConversationsResult(conversations=await held.listed(root))
        if params.conversation is None:
            raise invalid_params(f"The action {params.action} needs a conversation.")
        if params.action == "delete":
            await held.delete(params.conversation)
            return ConversationsResult(deleted=True)
        found = await held.read(params.conversation)
        return ConversationsResult(conversations=[found.summary], turns=found.turns)
