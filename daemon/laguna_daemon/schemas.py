"""Every object that crosses a process boundary, in one place.

HTTP and the command line use the field names as written (snake_case); the language server the camelCase aliases.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

PROTOCOL = 1
"""Version of the objects below; a client and a daemon of different protocols do not talk to each other."""


class Wire(BaseModel):
    """Base of all wire objects: unknown fields are errors, both spellings of a name are read."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=True)


# Usage and events of one answer


class Usage(Wire):
    """What one request cost, and what it found in the engine's cache.

    ``cached_tokens`` is what the first segment found cached, ``prefilled_tokens`` the rest of the prompt;
    times are in milliseconds from submission; ``broke_at`` names the first document that was not reused.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    prefilled_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    ttft_ms: float | None = None
    total_ms: float = 0.0
    broke_at: str | None = None
    snapshot: str = ""
    overlay_seq: int = 0
    profile: str = ""
    finish_reason: str = ""


class ProgressEvent(Wire):
    """Work before the first token: ``stage`` is engine, reading, tokens or prefill; counts may be unknown."""

    kind: Literal["progress"] = "progress"
    stage: str
    message: str
    done: int | None = None
    total: int | None = None


class TextEvent(Wire):
    """A piece of the answer."""

    kind: Literal["text"] = "text"
    text: str


class ThinkingEvent(Wire):
    """A piece of the model's reasoning."""

    kind: Literal["thinking"] = "thinking"
    text: str


class NoticeEvent(Wire):
    """Something the user should know about this answer (unsaved buffers used, a conversation re-based ...)."""

    kind: Literal["notice"] = "notice"
    message: str


class UsageEvent(Wire):
    """The last event of a complete answer."""

    kind: Literal["usage"] = "usage"
    usage: Usage
    conversation: str | None = None
    text: str = ""


class ErrorEvent(Wire):
    """The last event of an answer that failed."""

    kind: Literal["error"] = "error"
    error: str
    advice: str = ""
    exit_code: int = 1


# Refactoring: events of its own kinds, beside those of an answer


class PlannedFile(Wire):
    """A file that a refactoring has to edit, or to pass over with a reason; ``places`` counts the lines found."""

    path: str
    reason: str
    places: int = 0


class PlanEvent(Wire):
    """The files of a refactoring before the first token: found by ``identifiers``, in batches of one turn each."""

    kind: Literal["plan"] = "plan"
    identifiers: list[str]
    files: list[PlannedFile]
    batches: list[list[str]] = []


class RoundEvent(Wire):
    """A round begins: the first one, or one that sends back what was refused, passed over, cut off or failed."""

    kind: Literal["round"] = "round"
    round: int
    rounds: int
    reason: str
    turns: int = 1


class FileEvent(Wire):
    """A block of the answer: begun (``done`` false), then read to its end. Nothing is written yet."""

    kind: Literal["file"] = "file"
    path: str
    operation: str
    done: bool = True


class RefusalEvent(Wire):
    """A block, or a whole set (``path`` None), that cannot be applied; ``message`` is what the model is told."""

    kind: Literal["refusal"] = "refusal"
    path: str | None
    code: str
    message: str


class TurnEvent(Wire):
    """One answer of the model is over; ``continued`` counts how often it went on behind its output limit."""

    kind: Literal["turn"] = "turn"
    round: int
    turn: int
    usage: Usage
    continued: int = 0


class ProposedFile(Wire):
    """One file of a proposal. ``before`` is the sha256 (hex) of the bytes it is for, None for a new file; ``after``
    the new bytes in base 64, None for a deleted one; ``source`` the old path of a renamed one.
    """

    path: str
    source: str | None = None
    before: str | None = None
    after: str | None = None
    executable: bool = False
    encoding: str | None = None


class ProposalEvent(Wire):
    """The whole set of edits, computed and checked, not written."""

    kind: Literal["proposal"] = "proposal"
    root: str
    files: list[ProposedFile]


class CheckEvent(Wire):
    """The user's check command was run by the client; only the client makes this event."""

    kind: Literal["check"] = "check"
    command: str
    exit_code: int
    output: str = ""


class DoneFile(Wire):
    """A file that a proposal changes, creates, deletes or renames (from ``source``); lines, if it is text."""

    path: str
    change: str
    source: str | None = None
    added: int | None = None
    removed: int | None = None


class SkippedFile(Wire):
    """A planned file that is left as it is, and why."""

    path: str
    reason: str


class ReportEvent(Wire):
    """The last event of a refactoring: what is done, what is not and why.

    ``outcome``: complete; incomplete (planned files in ``missing`` were neither edited nor skipped); refused (blocks
    in ``refused`` stayed wrong, so there is no proposal); nothing (no file is to change). ``dirty`` are touched files
    with uncommitted changes, ``unsaved`` those whose text in an editor is not the one on disk.
    """

    kind: Literal["report"] = "report"
    outcome: Literal["complete", "incomplete", "refused", "nothing"]
    done: list[DoneFile] = []
    skipped: list[SkippedFile] = []
    missing: list[str] = []
    refused: list[RefusalEvent] = []
    notes: list[str] = []
    dirty: list[str] = []
    unsaved: list[str] = []
    rounds: int = 0
    turns: int = 0
    conversation: str | None = None
    usage: Usage = Usage()


Event = Annotated[
    ProgressEvent
    | TextEvent
    | ThinkingEvent
    | NoticeEvent
    | UsageEvent
    | ErrorEvent
    | PlanEvent
    | RoundEvent
    | FileEvent
    | RefusalEvent
    | TurnEvent
    | ProposalEvent
    | CheckEvent
    | ReportEvent,
    Field(discriminator="kind"),
]


# Requests


class Reference(Wire):
    """A file, or some of its lines (1-based, both ends included), that a question is about."""

    path: str
    first_line: int | None = None
    last_line: int | None = None


class Diagnostic(Wire):
    """A complaint of a compiler or linter that a question is about; ``line`` counts from 1."""

    path: str
    line: int
    message: str
    severity: str = ""
    source: str = ""


Mode = Literal["ask", "edit"]
Task = Literal["explain", "fix", "tests", "document", "review"]


class AskRequest(Wire):
    """One question about one root; ``root`` may be None only with ``no_context``.

    ``task`` puts a known task's words before the question, which may then be empty; in ``mode`` edit the answer is
    asked for as edit blocks. ``record`` false keeps no conversation of it.
    """

    root: str | None = None
    question: str
    mode: Mode = "ask"
    task: Task | None = None
    diagnostics: list[Diagnostic] = []
    record: bool = True
    conversation: str | None = None
    references: list[Reference] = []
    no_context: bool = False
    thinking: bool | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    temperature: float | None = Field(default=None, ge=0)
    seed: int | None = None
    keep: bool = False
    force: bool = False


class Snippet(Wire):
    """A piece of another file, or of another place, that helps to complete; ``path`` says where it is from."""

    path: str
    text: str


CompletionScope = Literal["local", "repository"]


class CompleteRequest(Wire):
    """Text wanted between ``prefix`` and ``suffix`` of a document (whole, as the editor has it).

    ``snippets`` go in front of it, the most stable first. ``scope`` overrides the setting ``completion.context``;
    ``background`` marks a suggestion that nobody waits for yet.
    """

    root: str | None = None
    path: str
    language: str = ""
    prefix: str
    suffix: str
    snippets: list[Snippet] = []
    scope: CompletionScope | None = None
    background: bool = False
    max_tokens: int | None = Field(default=None, ge=1)


class CompleteResult(Wire):
    """A completion; ``text`` is empty when there is nothing to suggest.

    The usage's ``finish_reason`` is ``length`` or ``timeout`` for a text that was cut off.
    """

    text: str
    usage: Usage


class FailedCheck(Wire):
    """What the user's check command said about edits that are on the disk now."""

    command: str
    exit_code: int
    output: str


class RefactorRequest(Wire):
    """A refactoring of one root. With ``check`` it goes on with ``conversation``: edits are wanted that mend it.

    ``paths`` are globs that limit which files may be touched; ``structured`` constrains the answer to edits of the
    planned lines; with ``target`` editor, unsaved text of open editors is edited instead of refused.
    """

    root: str
    instruction: str
    paths: list[str] = []
    max_rounds: int = Field(default=3, ge=1, le=20)
    conversation: str | None = None
    check: FailedCheck | None = None
    references: list[Reference] = []
    target: Literal["disk", "editor"] = "disk"
    structured: bool = False
    allow_ignored: bool = False
    thinking: bool | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    temperature: float | None = Field(default=None, ge=0)
    seed: int | None = None
    force: bool = False


class UnsavedRequest(Wire):
    """Which of ``paths`` have other text in an editor than on the disk?"""

    root: str
    paths: list[str]


class ContextRequest(Wire):
    """Which root's prompt to describe; ``why`` asks about one path."""

    root: str
    why: str | None = None
    force: bool = False


class ConversationSummary(Wire):
    """One conversation in a list; ``root`` is empty for one without a repository, times are Unix seconds."""

    id: str
    root: str
    title: str
    created: float
    used: float
    turns: int


class ConversationTurn(Wire):
    """One question of a conversation and its answer, as text."""

    question: str
    answer: str
    thinking: str = ""
    mode: Mode = "ask"
    task: Task | None = None
    references: list[Reference] = []
    usage: Usage = Usage()
    created: float = 0.0


class EngineRequest(Wire):
    """Change the engine to ``profile``; without one, start it again as it is. ``auto`` lets the GPUs decide."""

    profile: str | None = None


class Proof(Wire):
    """What small requests to a running engine showed. Token counts; ``abort_s`` is None if an answer went on after its
    reader had gone; ``drafts`` and ``accepted`` since the engine's start, ``..._now`` in this examination alone.
    """

    version: str = ""
    prompt_tokens: int
    cached_first: int
    cached_again: int
    reusable: int
    hit_share: float | None = None
    drafting: bool = False
    drafts: int = 0
    accepted: int = 0
    acceptance_length: float | None = None
    drafts_now: int = 0
    accepted_now: int = 0
    abort_s: float | None = None


class WarmRequest(Wire):
    """Which root to read into the engine (warm), to keep there before others (pin), not to keep any more (unpin), or
    to leave alone until somebody asks about it (stop).
    """

    root: str
    action: Literal["warm", "pin", "unpin", "stop"] = "warm"
    force: bool = False


class ErrorBody(Wire):
    """The body of every HTTP error."""

    error: str
    advice: str = ""
    exit_code: int = 1


# Status


class EngineStatus(Wire):
    """The engine's phase (stopped, starting, ready, backoff, failed, stopping) and the reason for it.

    ``reason`` says why this profile was chosen; ``warnings`` are what the checks before loading found.
    """

    phase: str
    detail: str = ""
    since: float = 0.0
    pid: int | None = None
    restarts: int = 0
    error: str | None = None
    advice: str | None = None
    profile: str = ""
    model: str = ""
    context: int = 0
    reason: str = ""
    warnings: list[str] = []


class WorkspaceStatus(Wire):
    """One open root.

    ``residency`` says where its prefix is: cold, warming, resident, offloaded (in host memory) or evicted, with
    ``warm_tokens`` of ``prefix_tokens``; ``settled``: the copy in host memory is whole; ``evictions``: how often it was
    found lost; ``waits_for``: why it is not being warmed, if it is not warm.
    """

    root: str
    state: str
    snapshot: str = ""
    files: int = 0
    snapshot_tokens: int = 0
    overlay_tokens: int = 0
    overlay_seq: int = 0
    warm_tokens: int = 0
    prefix_tokens: int = 0
    residency: str = "cold"
    settled: bool = False
    pinned: bool = False
    evictions: int = 0
    waits_for: str = ""


class Status(Wire):
    """The daemon as a whole."""

    version: str
    protocol: int = PROTOCOL
    pid: int
    uptime_s: float
    engine: EngineStatus
    workspaces: list[WorkspaceStatus] = []
    sessions: int = 0
    busy: int = 0
    totals: dict[str, int] = {}


# Language server


class LspParams(Wire):
    """Params of our own methods; a newer client may send fields that we do not know."""

    model_config = ConfigDict(extra="ignore", alias_generator=to_camel, populate_by_name=True)


class LspPosition(LspParams):
    """A point of a document: line from 0, character in units of the negotiated encoding."""

    line: int = Field(ge=0)
    character: int = Field(ge=0)


class LspRange(LspParams):
    """From ``start`` up to, not including, ``end``."""

    start: LspPosition
    end: LspPosition


class EditorDiagnostic(LspParams):
    """A diagnostic as the protocol has it; of its fields those that a question needs."""

    range: LspRange
    message: str
    severity: int | None = None
    source: str | None = None


class ChatReference(LspParams):
    """A file, a range of it, or a symbol of it by name, that a question is about, and what is wrong there."""

    uri: str
    range: LspRange | None = None
    symbol: str | None = None
    diagnostics: list[EditorDiagnostic] = []


ProgressToken = int | str


class ChatParams(LspParams):
    """``laguna/chat``: ``root`` is a file URI or an absolute path; without one the first reference's root, then
    the first workspace folder; without any the question is answered without a repository. ``text`` may be empty
    with a ``task``. In ``mode`` edit the answer's edit blocks come back as a WorkspaceEdit.
    """

    text: str = ""
    root: str | None = None
    conversation: str | None = None
    references: list[ChatReference] = []
    mode: Mode = "ask"
    task: Task | None = None
    thinking: bool | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    temperature: float | None = Field(default=None, ge=0)
    seed: int | None = None
    partial_result_token: ProgressToken | None = None
    work_done_token: ProgressToken | None = None


class EditRefusal(Wire):
    """Why a part of an answer cannot be applied; then none of it is. ``places`` are lines it could mean, from 1."""

    path: str | None
    code: str
    message: str
    places: list[int] = []


class ChatResult(Wire):
    """The whole answer; ``notices`` are what the user should know about it.

    In mode edit ``edit`` is a WorkspaceEdit of the protocol, or None with ``refusals`` that say why not.
    """

    text: str
    thinking: str = ""
    usage: Usage
    conversation: str | None = None
    notices: list[str] = []
    edit: dict[str, Any] | None = None
    refusals: list[EditRefusal] = []


class ActionData(LspParams):
    """What a code action carries until it is chosen: the task, for lines of one version of a document."""

    task: Task
    uri: str
    version: int
    range: LspRange
    diagnostics: list[EditorDiagnostic] = []


class ConversationsParams(LspParams):
    """``laguna/conversations``: ``root`` (URI or path) narrows the list; read and delete want a ``conversation``."""

    action: Literal["list", "read", "delete"] = "list"
    conversation: str | None = None
    root: str | None = None


class ConversationsResult(Wire):
    """The conversations, latest used first; for read the one asked for, with its turns."""

    conversations: list[ConversationSummary] = []
    turns: list[ConversationTurn] = []
    deleted: bool = False


class ContextParams(LspParams):
    """``laguna/context``: what is in the prompt of ``root`` (URI or path), or why ``why`` (URI or path) is or is not.

    Without a root that of the path counts, then the first workspace folder.
    """

    root: str | None = None
    why: str | None = None


class ContextFile(Wire):
    """One file of a prompt; ``tier`` is full, outline, path, folder or overlay, ``reason`` why it has no text."""

    model_config = ConfigDict(extra="ignore", alias_generator=to_camel, populate_by_name=True)

    path: str
    tier: str
    tokens: int
    overlay_tokens: int
    version: str
    reason: str
    detail: str


class ContextFinding(Wire):
    """A secret that the model sees as a marker; ``line`` counts from 1."""

    model_config = ConfigDict(extra="ignore", alias_generator=to_camel, populate_by_name=True)

    kind: str
    line: int
    path: str


class ContextWhy(Wire):
    """Why a path is in the prompt or not, the result when one was asked about; ``text`` says it in a sentence."""

    model_config = ConfigDict(extra="ignore", alias_generator=to_camel, populate_by_name=True)

    path: str
    included: bool
    tier: str
    tokens: int
    rule: str
    source: str
    line: int
    reason: str
    text: str


class ContextResult(Wire):
    """What stands in front of every question about a root."""

    model_config = ConfigDict(extra="ignore", alias_generator=to_camel, populate_by_name=True)

    root: str
    snapshot: str = ""
    overlay_seq: int = 0
    prefix_tokens: int = 0
    snapshot_tokens: int = 0
    overlay_tokens: int = 0
    budget: dict[str, int] = {}
    tiers: dict[str, int] = {}
    skipped: dict[str, int] = {}
    left_out: dict[str, int] = {}
    files: list[ContextFile] = []
    findings: list[ContextFinding] = []
    notices: list[str] = []


class WarmParams(LspParams):
    """``laguna/warm``: as WarmRequest, for ``root`` (URI or path) or else the first workspace folder."""

    root: str | None = None
    action: Literal["warm", "pin", "unpin", "stop"] = "warm"
    work_done_token: ProgressToken | None = None


class WarmResult(Wire):
    """How it went; ``usage`` of a warm-up that was awaited."""

    notices: list[str] = []
    usage: Usage | None = None


class StatusCommand(Wire):
    """What the user can do about a status: a command for ``workspace/executeCommand``."""

    title: str
    command: str
    arguments: list[Any] = []


class StatusParams(LspParams):
    """``laguna/status`` takes nothing."""


class EditorStatus(Wire):
    """``laguna/status`` and ``laguna/didChangeStatus``: what a status line shows, and what is behind it."""

    busy: bool
    kind: Literal["Normal", "Warning", "Error", "Inactive"]
    message: str
    command: StatusCommand | None = None
    engine: EngineStatus
    workspaces: list[WorkspaceStatus] = []


class EditorCompletion(LspParams):
    """``laguna.completion``: what is suggested, and when.

    ``languages`` switches automatic suggestions by language identifier, ``*`` for all others. ``debounce`` is adaptive,
    off, or a fixed number of milliseconds. ``context`` overrides the daemon's setting; ``prefetch`` prepares the next
    suggestion while one is shown; ``related`` reads other open and imported files.
    """

    enabled: bool = True
    languages: dict[str, bool] = {}
    debounce: Literal["adaptive", "off"] | Annotated[int, Field(ge=0, le=5000)] = "adaptive"
    context: CompletionScope | None = None
    prefetch: bool = True
    related: bool = True
    max_tokens: int | None = Field(default=None, ge=1)


class EditorSettings(LspParams):
    """The editor's section ``laguna``; it affects this editor's session only."""

    completion: EditorCompletion = EditorCompletion()
    code_actions: bool = True
    thinking: bool | None = None


class CompletionEvent(LspParams):
    """What the user did with a suggestion; ``accepted_length`` counts UTF-16 units. Kept in memory only."""

    id: str
    accepted_length: int | None = Field(default=None, ge=0)
