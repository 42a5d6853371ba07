// Made from daemon/laguna_daemon/schemas.py by scripts/wire.py; change it there.

export const PROTOCOL = 1;

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

/** A file, or some of its lines (1-based, both ends included), that a question is about. */
export interface Reference {
  path: string;
  firstLine: number | null;
  lastLine: number | null;
}

/** One question about one root; `root` may be None only with `no_context`. */
export interface AskRequest {
  root: string | null;
  question: string;
  conversation: string | null;
  references: Reference[];
  noContext: boolean;
  thinking: boolean | null;
  maxTokens: number | null;
  temperature: number | null;
  seed: number | null;
  keep: boolean;
  force: boolean;
}

/** Text wanted between `prefix` and `suffix` of a document (whole, as the editor has it). */
export interface CompleteRequest {
  root: string | null;
  path: string;
  language: string;
  prefix: string;
  suffix: string;
  maxTokens: number | null;
}

/** A completion; `text` is empty when there is nothing to suggest. */
export interface CompleteResult {
  text: string;
  usage: Usage;
}

/** Which root's prompt to describe; `why` asks about one path. */
export interface ContextRequest {
  root: string;
  why: string | null;
  force: boolean;
}

/** The body of every HTTP error. */
export interface ErrorBody {
  error: string;
  advice: string;
  exitCode: number;
}

/** The engine's phase (stopped, starting, ready, backoff, failed, stopping) and the reason for it. */
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
}

/** One open root. */
export interface WorkspaceStatus {
  root: string;
  state: string;
  snapshot: string;
  files: number;
  snapshotTokens: number;
  overlayTokens: number;
  overlaySeq: number;
  warmTokens: number;
}

/** The daemon as a whole. */
export interface Status {
  version: string;
  protocol: number;
  pid: number;
  uptimeS: number;
  engine: EngineStatus;
  workspaces: WorkspaceStatus[];
  sessions: number;
  busy: number;
  totals: Record<string, number>;
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

/** A file, or a range of it, that a question is about. */
export interface ChatReference {
  uri: string;
  range?: LspRange | null;
}

/** `laguna/chat`: `root` is a file URI or an absolute path; without one the first reference's root, then
 *  the first workspace folder; without any the question is answered without a repository. */
export interface ChatParams {
  text: string;
  root?: string | null;
  conversation?: string | null;
  references?: ChatReference[];
  mode?: 'ask';
  thinking?: boolean | null;
  maxTokens?: number | null;
  temperature?: number | null;
  seed?: number | null;
  partialResultToken?: number | string | null;
  workDoneToken?: number | string | null;
}

/** The whole answer; `notices` are what the user should know about it. */
export interface ChatResult {
  text: string;
  thinking: string;
  usage: Usage;
  conversation: string | null;
  notices: string[];
}

/** `laguna/status` takes nothing. */
export type StatusParams = Record<string, never>;

/** `laguna/status` and `laguna/didChangeStatus`: what a status line shows, and what is behind it. */
export interface EditorStatus {
  busy: boolean;
  kind: 'Normal' | 'Warning' | 'Error' | 'Inactive';
  message: string;
  engine: EngineStatus;
  workspaces: WorkspaceStatus[];
}

/** `laguna.completion`: automatic suggestions on or off, and their longest length. */
export interface EditorCompletion {
  enabled?: boolean;
  maxTokens?: number | null;
}

/** The editor's section `laguna`; it affects this editor's session only. */
export interface EditorSettings {
  completion?: EditorCompletion;
  thinking?: boolean | null;
}

/** What the user did with a suggestion; `accepted_length` counts UTF-16 units. Kept in memory only. */
export interface CompletionEvent {
  id: string;
  acceptedLength?: number | null;
}

export type Event = ProgressEvent | TextEvent | ThinkingEvent | NoticeEvent | UsageEvent | ErrorEvent;
