"""`textDocument/codeAction` and its resolution: offered at once, made by the model when one is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lsprotocol import types
from pydantic import ValidationError

from laguna_daemon.lsp.configuration import Configuration
from laguna_daemon.lsp.errors import Code, ResponseError, invalid_params
from laguna_daemon.lsp.features.chat import Chat
from laguna_daemon.lsp.text import symbols
from laguna_daemon.lsp.text.documents import Document, Documents
from laguna_daemon.schemas import ActionData, ChatParams, ChatReference, EditorDiagnostic, LspPosition, LspRange, Task

EDIT = "laguna.edit"
"""Command of an action for clients that cannot resolve: the server makes the edit and applies it through the client."""
FIX = types.CodeActionKind.QuickFix
DOCUMENT = "refactor.laguna.document"
TESTS = "refactor.laguna.tests"
OPTIONS = types.CodeActionOptions(code_action_kinds=[FIX, DOCUMENT, TESTS], resolve_provider=True)

_MOST_FIXES = 3
_AROUND = 10  # lines shown around a diagnostic that stands in no declaration
_TITLE = 60


class Actions:
    """One client's code actions."""

    def __init__(self, documents: Documents, chat: Chat, configuration: Configuration) -> None:
        self._documents = documents
        self._chat = chat
        self._configuration = configuration
        self._literals = self._resolves = False

    def initialize(self, capabilities: types.ClientCapabilities) -> None:
        """Learn what the client can do with an action."""
        text = capabilities.text_document
        found = text.code_action if text is not None else None
        if found is not None:
            self._literals = found.code_action_literal_support is not None
            lazy = found.resolve_support
            self._resolves = bool(found.data_support and lazy is not None and "edit" in lazy.properties)

    def offered(self, params: types.CodeActionParams) -> list[types.CodeAction | types.Command]:
        """Fixes for what is wrong at the range; documentation and tests for a selection, or when asked for."""
        document = self._documents.get(params.text_document.uri)
        if document is None or not self._configuration.settings.code_actions:
            return []
        found: list[types.CodeAction | types.Command] = []
        if _wanted(FIX, params.context.only):
            found += self._fixes(document, params)
        automatic = params.context.trigger_kind == types.CodeActionTriggerKind.Automatic
        # A light bulb on every line would say nothing: by itself only a selection offers these.
        if params.range.start != params.range.end or not automatic:
            tasks: tuple[tuple[str, Task, str], ...] = (
                (DOCUMENT, "document", "Write the documentation"),
                (TESTS, "tests", "Write tests"),
            )
            for kind, task, title in tasks:
                span = _subject(document, params.range)
                if span is not None and _wanted(kind, params.context.only):
                    found.append(self._action(title, kind, _data(document, task, span, ()), ()))
        return found

    async def resolved(self, action: types.CodeAction) -> types.CodeAction | dict[str, Any]:
        """The action with its edit; raises ResponseError if there is none that fits."""
        if action.data is None:
            return action
        # Plain JSON: the edit holds no Python types, and its spelling is the protocol's already.
        plain = {"title": action.title, "kind": action.kind, "data": action.data}
        return {**plain, "edit": await self.edit(action.data)}

    async def edit(self, raw: Any) -> dict[str, Any]:
        """The WorkspaceEdit of an action's data; raises ResponseError."""
        try:
            data = ActionData.model_validate(raw)
        except ValidationError as error:
            raise invalid_params("The data of the code action is not ours.") from error
        document = self._documents.get(data.uri)
        if document is None or document.version != data.version:
            raise ResponseError(Code.CONTENT_MODIFIED, "The document has changed: ask for its code actions again.")
        reference = ChatReference(uri=data.uri, range=data.range, diagnostics=data.diagnostics)
        params = ChatParams(task=data.task, mode="edit", references=[reference])
        result = await self._chat.chat(params, record=False)
        if result.edit is None:
            raise ResponseError(Code.REQUEST_FAILED, "\n".join(result.notices) or "The answer holds no edit.")
        return result.edit

    def _fixes(self, document: Document, params: types.CodeActionParams) -> list[types.CodeAction | types.Command]:
        wrong = list(params.context.diagnostics)
        groups = [[each] for each in wrong[:_MOST_FIXES]] + ([wrong] if len(wrong) > 1 else [])
        found: list[types.CodeAction | types.Command] = []
        for group in groups:
            title = f"Fix: {_short(group[0].message)}" if len(group) == 1 else f"Fix all {len(group)} problems here"
            first = min(each.range.start.line for each in group)
            last = max(each.range.end.line for each in group)
            span = _lines(document, *_around(document, first, last))
            found.append(self._action(title, FIX, _data(document, "fix", span, group), group))
        return found

    def _action(
        self, title: str, kind: str, data: ActionData, wrong: Sequence[types.Diagnostic]
    ) -> types.CodeAction | types.Command:
        plain = data.model_dump(mode="json", by_alias=True)
        command = types.Command(title=title, command=EDIT, arguments=[plain])
        if not self._literals:
            return command
        action = types.CodeAction(title=f"Laguna: {title}", kind=kind, diagnostics=list(wrong) or None)
        if self._resolves:
            action.data = plain
        else:
            action.command = command
        return action


def _wanted(kind: str, only: Sequence[str] | None) -> bool:
    return only is None or any(kind == each or kind.startswith(f"{each}.") for each in map(_text, only))


def _text(kind: str) -> str:
    return str(getattr(kind, "value", kind))


def _subject(document: Document, span: types.Range) -> LspRange | None:
    """The selected lines; without a selection those of the declaration around the cursor."""
    if span.start != span.end:
        return _lines(document, span.start.line, span.end.line + (span.end.character > 0))
    found = symbols.enclosing(document.lines, span.start.line)
    return None if found is None else _lines(document, found.first, found.end)


def _around(document: Document, first: int, last: int) -> tuple[int, int]:
    found = symbols.enclosing(document.lines, first)
    if found is not None and found.end > last:
        return found.first, found.end
    return first - _AROUND, last + _AROUND + 1


def _lines(document: Document, first: int, end: int) -> LspRange:
    """Whole lines, clamped into the document."""
    last = len(document.lines)
    start, behind = max(0, min(first, last - 1)), max(1, min(end, last))
    return LspRange(start=LspPosition(line=start, character=0), end=LspPosition(line=behind, character=0))


def _data(document: Document, task: Task, span: LspRange, wrong: Sequence[types.Diagnostic]) -> ActionData:
    found = [
        EditorDiagnostic(
            range=LspRange(
                start=LspPosition(line=each.range.start.line, character=each.range.start.character),
                end=LspPosition(line=each.range.end.line, character=each.range.end.character),
            ),
            message=each.message if isinstance(each.message, str) else each.message.value,
            severity=None if each.severity is None else int(each.severity),
            source=each.source,
        )
        for each in wrong
    ]
    return ActionData(task=task, uri=document.uri, version=document.version, range=span, diagnostics=found)


def _short(message: Any) -> str:
    text = message if isinstance(message, str) else message.value
    line = text.strip().partition("\n")[0]
    return line if len(line) <= _TITLE else line[: _TITLE - 1] + "…"
