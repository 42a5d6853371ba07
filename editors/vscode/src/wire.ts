// Made from daemon/laguna_daemon/schemas.py by scripts/wire.py; change it there.

/** What one request cost, and what it found in the engine's cache.
 *
 *  `cached_tokens` is what the first segment found cached, `prefilled_tokens` the rest of the prompt;
 *  times are in milliseconds from submission; `broke_at` names the first document that was not reused. */
export interface Usage {
  promptTokens: number;
  cachedTokens: number;
  prefilledTokens: number;
  outputTokens: number;
  reasoningTokens: number;
  ttftMs: number | null;
  totalMs: number;
  brokeAt: string | null;
  snapshot: string;
  overlaySeq: number;
  profile: string;
  finishReason: string;
}

/** Work before the first token: `stage` is engine, reading, tokens or prefill; counts may be unknown. */
export interface ProgressEvent {
  kind: 'progress';
  stage: string;
  message: string;
  done: number | null;
  total: number | null;
}

/** A piece of the answer. */
export interface TextEvent {
  kind: 'text';
  text: string;
}

/** A piece of the model's reasoning. */
export interface ThinkingEvent {
  kind: 'thinking';
  text: string;
}

/** Something the user should know about this answer (unsaved buffers used, a conversation re-based ...). */
export interface NoticeEvent {
  kind: 'notice';
  message: string;
}

/** The last event of a complete answer. */
export interface UsageEvent {
  kind: 'usage';
  usage: Usage;
  conversation: string | null;
  text: string;
}

/** The last event of an answer that failed. */
export interface ErrorEvent {
  kind: 'error';
  error: string;
  advice: string;
  exitCode: number;
}

/** A file that a refactoring has to edit, or to pass over with a reason; `places` counts the lines found. */
export interface PlannedFile {
  path: string;
  reason: string;
  places: number;
}

/** The files of a refactoring before the first token: found by `identifiers`, in batches of one turn each. */
export interface PlanEvent {
  kind: 'plan';
  identifiers: string[];
  files: PlannedFile[];
  batches: string[][];
}

/** A round begins: the first one, or one that sends back what was refused, passed over, cut off or failed. */
export interface RoundEvent {
  kind: 'round';
  round: number;
  rounds: number;
  reason: string;
  turns: number;
}

/** A block of the answer: begun (`done` false), then read to its end. Nothing is written yet. */
export interface FileEvent {
  kind: 'file';
  path: string;
  operation: string;
  done: boolean;
}

/** A block, or a whole set (`path` None), that cannot be applied; `message` is what the model is told. */
export interface RefusalEvent {
  kind: 'refusal';
  path: string | null;
  code: string;
  message: string;
}

/** One answer of the model is over; `continued` counts how often it went on behind its output limit. */
export interface TurnEvent {
  kind: 'turn';
  round: number;
  turn: number;
  usage: Usage;
  continued: number;
}

/** One file of a proposal. `before` is the sha256 (hex) of the bytes it is for, None for a new file; `after`
 *  the new bytes in base 64, None for a deleted one; `source` the old path of a renamed one. */
export interface ProposedFile {
  path: string;
  source: string | null;
  before: string | null;
  after: string | null;
  executable: boolean;
  encoding: string | null;
}

/** The whole set of edits, computed and checked, not written. */
export interface ProposalEvent {
  kind: 'proposal';
  root: string;
  files: ProposedFile[];
}

/** The user's check command was run by the client; only the client makes this event. */
export interface CheckEvent {
  kind: 'check';
  command: string;
  exitCode: number;
  output: string;
}

/** A file that a proposal changes, creates, deletes or renames (from `source`); lines, if it is text. */
export interface DoneFile {
  path: string;
  change: string;
  source: string | null;
  added: number | null;
  removed: number | null;
}

/** A planned file that is left as it is, and why. */
export interface SkippedFile {
  path: string;
  reason: string;
}

/** The last event of a refactoring: what is done, what is not and why.
 *
 *  `outcome`: complete; incomplete (planned files in `missing` were neither edited nor skipped); refused (blocks
 *  in `refused` stayed wrong, so there is no proposal); nothing (no file is to change). `dirty` are touched files
 *  with uncommitted changes, `unsaved` those whose text in an editor is not the one on disk. */
export interface ReportEvent {
  kind: 'report';
  outcome: 'complete' | 'incomplete' | 'refused' | 'nothing';
  done: DoneFile[];
  skipped: SkippedFile[];
  missing: string[];
  refused: RefusalEvent[];
  notes: string[];
  dirty: string[];
  unsaved: string[];
  rounds: number;
  turns: number;
  conversation: string | null;
  usage: Usage;
}

/** A file, or some of its lines (1-based, both ends included), that a question is about. */
export interface Reference {
  path: string;
  firstLine: number | null;
  lastLine: number | null;
}

/** One conversation in a list; `root` is empty for one without a repository, times are Unix seconds. */
export interface ConversationSummary {
  id: string;
  root: string;
  title: string;
  created: number;
  used: number;
  turns: number;
}

/** One question of a conversation and its answer, as text. */
export interface ConversationTurn {
  question: string;
  answer: string;
  thinking: string;
  mode: 'ask' | 'edit';
  task: 'explain' | 'fix' | 'tests' | 'document' | 'review' | null;
  references: Reference[];
  usage: Usage;
  created: number;
}

/** The engine's phase (stopped, starting, ready, backoff, failed, stopping) and the reason for it.
 *
 *  `reason` says why this profile was chosen; `warnings` are what the checks before loading found. */
export interface EngineStatus {
  phase: string;
  detail: string;
  since: number;
  pid: number | null;
  restarts: number;
  error: string | null;
  advice: string | null;
  profile: string;
  model: string;
  context: number;
  reason: string;
  warnings: string[];
}

/** One open root.
 *
 *  `residency` says where its prefix is: cold, warming, resident, offloaded (in host memory) or evicted, with
 *  `warm_tokens` of `prefix_tokens`; `settled`: the copy in host memory is whole; `evictions`: how often it was
 *  found lost; `waits_for`: why it is not being warmed, if it is not warm. */
export interface WorkspaceStatus {
  root: string;
  state: string;
  snapshot: string;
  files: number;
  snapshotTokens: number;
  overlayTokens: number;
  overlaySeq: number;
  warmTokens: number;
  prefixTokens: number;
  residency: string;
  settled: boolean;
  pinned: boolean;
  evictions: number;
  waitsFor: string;
}

/** A point of a document: line from 0, character in units of the negotiated encoding. */
export interface LspPosition {
  line: number;
  character: number;
}

/** From `start` up to, not including, `end`. */
export interface LspRange {
  start: LspPosition;
  end: LspPosition;
}

/** A diagnostic as the protocol has it; of its fields those that a question needs. */
export interface EditorDiagnostic {
  range: LspRange;
  message: string;
  severity?: number | null;
  source?: string | null;
}

/** A file, a range of it, or a symbol of it by name, that a question is about, and what is wrong there. */
export interface ChatReference {
  uri: string;
  range?: LspRange | null;
  symbol?: string | null;
  diagnostics?: EditorDiagnostic[];
}

/** `laguna/chat`: `root` is a file URI or an absolute path; without one the first reference's root, then
 *  the first workspace folder; without any the question is answered without a repository. `text` may be empty
 *  with a `task`. In `mode` edit the answer's edit blocks come back as a WorkspaceEdit. */
export interface ChatParams {
  text?: string;
  root?: string | null;
  conversation?: string | null;
  references?: ChatReference[];
  mode?: 'ask' | 'edit';
  task?: 'explain' | 'fix' | 'tests' | 'document' | 'review' | null;
  thinking?: boolean | null;
  maxTokens?: number | null;
  temperature?: number | null;
  seed?: number | null;
  partialResultToken?: number | string | null;
  workDoneToken?: number | string | null;
}

/** Why a part of an answer cannot be applied; then none of it is. `places` are lines it could mean, from 1. */
export interface EditRefusal {
  path: string | null;
  code: string;
  message: string;
  places: number[];
}

/** The whole answer; `notices` are what the user should know about it.
 *
 *  In mode edit `edit` is a WorkspaceEdit of the protocol, or None with `refusals` that say why not. */
export interface ChatResult {
  text: string;
  thinking: string;
  usage: Usage;
  conversation: string | null;
  notices: string[];
  edit: Record<string, unknown> | null;
  refusals: EditRefusal[];
}

/** What a code action carries until it is chosen: the task, for lines of one version of a document. */
export interface ActionData {
  task: 'explain' | 'fix' | 'tests' | 'document' | 'review';
  uri: string;
  version: number;
  range: LspRange;
  diagnostics?: EditorDiagnostic[];
}

/** `laguna/conversations`: `root` (URI or path) narrows the list; read and delete want a `conversation`. */
export interface ConversationsParams {
  action?: 'list' | 'read' | 'delete';
  conversation?: string | null;
  root?: string | null;
}

/** The conversations, latest used first; for read the one asked for, with its turns. */
export interface ConversationsResult {
  conversations: ConversationSummary[];
  turns: ConversationTurn[];
  deleted: boolean;
}

/** `laguna/context`: what is in the prompt of `root` (URI or path), or why `why` (URI or path) is or is not.
 *
 *  Without a root that of the path counts, then the first workspace folder. */
export interface ContextParams {
  root?: string | null;
  why?: string | null;
}

/** One file of a prompt; `tier` is full, outline, path, folder or overlay, `reason` why it has no text. */
export interface ContextFile {
  path: string;
  tier: string;
  tokens: number;
  overlayTokens: number;
  version: string;
  reason: string;
  detail: string;
}

/** A secret that the model sees as a marker; `line` counts from 1. */
export interface ContextFinding {
  kind: string;
  line: number;
  path: string;
}

/** Why a path is in the prompt or not, the result when one was asked about; `text` says it in a sentence. */
export interface ContextWhy {
  path: string;
  included: boolean;
  tier: string;
  tokens: number;
  rule: string;
  source: string;
  line: number;
  reason: string;
  text: string;
}

/** What stands in front of every question about a root. */
export interface ContextResult {
  root: string;
  snapshot: string;
  overlaySeq: number;
  prefixTokens: number;
  snapshotTokens: number;
  overlayTokens: number;
  budget: Record<string, number>;
  tiers: Record<string, number>;
  skipped: Record<string, number>;
  leftOut: Record<string, number>;
  files: ContextFile[];
  findings: ContextFinding[];
  notices: string[];
}

/** `laguna/warm`: as WarmRequest, for `root` (URI or path) or else the first workspace folder. */
export interface WarmParams {
  root?: string | null;
  action?: 'warm' | 'pin' | 'unpin' | 'stop';
  workDoneToken?: number | string | null;
}

/** What the user can do about a status: a command for `workspace/executeCommand`. */
export interface StatusCommand {
  title: string;
  command: string;
  arguments: unknown[];
}

/** `laguna/status` takes nothing. */
export type StatusParams = Record<string, never>;

/** `laguna/status` and `laguna/didChangeStatus`: what a status line shows, and what is behind it. */
export interface EditorStatus {
  busy: boolean;
  kind: 'Normal' | 'Warning' | 'Error' | 'Inactive';
  message: string;
  command: StatusCommand | null;
  engine: EngineStatus;
  workspaces: WorkspaceStatus[];
}

/** `laguna.completion`: what is suggested, and when.
 *
 *  `languages` switches automatic suggestions by language identifier, `*` for all others. `debounce` is adaptive,
 *  off, or a fixed number of milliseconds. `context` overrides the daemon's setting; `prefetch` prepares the next
 *  suggestion while one is shown; `related` reads other open and imported files. */
export interface EditorCompletion {
  enabled?: boolean;
  languages?: Record<string, boolean>;
  debounce?: 'adaptive' | 'off' | number;
  context?: 'local' | 'repository' | null;
  prefetch?: boolean;
  related?: boolean;
  maxTokens?: number | null;
}

/** The editor's section `laguna`; it affects this editor's session only. */
export interface EditorSettings {
  completion?: EditorCompletion;
  codeActions?: boolean;
  thinking?: boolean | null;
}

/** What the user did with a suggestion; `accepted_length` counts UTF-16 units. Kept in memory only. */
export interface CompletionEvent {
  id: string;
  acceptedLength?: number | null;
}

export type Event = ProgressEvent | TextEvent | ThinkingEvent | NoticeEvent | UsageEvent | ErrorEvent | PlanEvent | RoundEvent | FileEvent | RefusalEvent | TurnEvent | ProposalEvent | CheckEvent | ReportEvent;
