// What the chat view and the extension say to each other.

import type { ChatParams, EditorDiagnostic, EditRefusal, Usage } from '../wire.ts';

export type Mode = 'ask' | 'edit';
/** A task whose words the daemon knows. */
export type Task = NonNullable<ChatParams['task']>;

/** A file or some of its lines that goes along with a question; lines from 1. */
export interface Attachment {
  label: string;
  uri: string;
  firstLine?: number;
  lastLine?: number;
  /** What is reported to be wrong there. */
  diagnostics?: EditorDiagnostic[];
}

/** What the edit-mode answer proposes: one line a file. */
export interface Proposal {
  files: { label: string; change: 'edit' | 'create' | 'delete' | 'rename'; count: number }[];
  state: 'open' | 'applied';
}

export interface Failure {
  message: string;
  advice?: string;
}

/** One question and what has come of it. */
export interface Turn {
  id: string;
  question: string;
  mode: Mode;
  task?: Task;
  attachments: Attachment[];
  state: 'working' | 'done' | 'stopped' | 'failed';
  answer: string;
  thinking: string;
  notices: string[];
  progress?: { message: string; done?: number; total?: number };
  usage?: Usage;
  failure?: Failure;
  proposal?: Proposal;
  /** Why no part of the answer's edits can be applied. */
  refusals?: EditRefusal[];
}

/** What the view needs to know about the daemon. */
export interface Standing {
  kind: 'missing' | 'connecting' | 'failed' | 'connected';
  message: string;
  advice?: string;
  /** Whether questions may ask for edits; undefined while that is not known. */
  edits: boolean;
}

export interface ViewState {
  title: string;
  turns: Turn[];
  standing: Standing;
  roots: { uri: string; name: string }[];
  root?: string;
  /** The conversation's root cannot change once a question was asked. */
  rootFixed: boolean;
  selection?: Attachment;
  pinned: Attachment[];
}

export type ToView =
  | { type: 'state'; state: ViewState }
  | { type: 'turn'; turn: Turn }
  | { type: 'piece'; turn: string; kind: 'text' | 'thinking'; text: string }
  | { type: 'files'; request: number; paths: string[] }
  | { type: 'compose'; text?: string; mode?: Mode }
  | { type: 'copied'; ok: boolean };

export const ACTIONS = ['install', 'choosePath', 'restart', 'output', 'context'] as const;

export type ToHost =
  | { type: 'ready' }
  | { type: 'ask'; text: string; mode: Mode; selection: boolean }
  | { type: 'stop' }
  | { type: 'retry'; turn: string }
  | { type: 'root'; uri: string }
  | { type: 'unpin'; uri: string }
  | { type: 'files'; request: number; query: string }
  | { type: 'copy'; text: string }
  | { type: 'insert'; text: string }
  | { type: 'apply'; turn: string; text: string; path?: string }
  | { type: 'review'; turn: string }
  | { type: 'open'; target: string; line?: number }
  | { type: 'attachment'; turn: string; index: number }
  | { type: 'action'; name: (typeof ACTIONS)[number] };

/** A message of the view if it is one: what a page sends is not to be trusted. */
export function fromView(value: unknown): ToHost | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const message = value as Record<string, unknown>;
  const wanted = SHAPES[message.type as ToHost['type']] as Record<string, string> | undefined;
  if (wanted === undefined || !Object.hasOwn(SHAPES, String(message.type))) return undefined;
  for (const [name, kind] of Object.entries(wanted)) {
    const found = message[name];
    if (kind.endsWith('?') && found === undefined) continue;
    if (typeof found !== kind.replace('?', '')) return undefined;
  }
  if (message.type === 'ask' && message.mode !== 'ask' && message.mode !== 'edit') return undefined;
  if (message.type === 'action' && !(ACTIONS as readonly unknown[]).includes(message.name)) return undefined;
  return value as ToHost;
}

const SHAPES: Record<ToHost['type'], Record<string, string>> = {
  ready: {},
  ask: { text: 'string', mode: 'string', selection: 'boolean' },
  stop: {},
  retry: { turn: 'string' },
  root: { uri: 'string' },
  unpin: { uri: 'string' },
  files: { request: 'number', query: 'string' },
  copy: { text: 'string' },
  insert: { text: 'string' },
  apply: { turn: 'string', text: 'string', path: 'string?' },
  review: { turn: 'string' },
  open: { target: 'string', line: 'number?' },
  attachment: { turn: 'string', index: 'number' },
  action: { name: 'string' },
};
