// The daemon's own methods, and which of them this daemon has.

import { ConnectionError, ProgressType, RequestType, ResponseError, type InitializeResult, type NotificationHandler } from 'vscode-languageclient/node';
import type { LspEdit } from './shared/edits.ts';
import type { ChatParams, ChatResult, ContextParams, ContextResult, ContextWhy, ConversationsParams, ConversationsResult, EditorStatus, Event, StatusParams } from './wire.ts';

/** An answer; `edit` is a workspace edit as the protocol has it. */
export type ChatAnswer = Omit<ChatResult, 'edit'> & { edit?: LspEdit | null };

export const chat = new RequestType<ChatParams, ChatAnswer, unknown>('laguna/chat');
export const status = new RequestType<StatusParams, EditorStatus, unknown>('laguna/status');
export const context = new RequestType<ContextParams, ContextResult | ContextWhy, unknown>('laguna/context');
export const conversations = new RequestType<ConversationsParams, ConversationsResult, unknown>('laguna/conversations');
export const warm = new RequestType<{ root: string }, unknown, unknown>('laguna/warm');
export const DID_CHANGE_STATUS = 'laguna/didChangeStatus';
export type StatusHandler = NotificationHandler<EditorStatus>;
export const answerProgress = new ProgressType<Event>();

/** What a daemon says of itself when it is connected; undefined where it does not say. */
export interface Offers {
  version: string;
  methods: readonly string[] | undefined;
  modes: readonly string[] | undefined;
}

export function offers(result: InitializeResult | undefined): Offers {
  const experimental: unknown = result?.capabilities.experimental;
  const own = field(experimental, 'laguna');
  return { version: result?.serverInfo?.version ?? '', methods: strings(field(own, 'methods')), modes: strings(field(own, 'chatModes')) };
}

/** Codes of failed requests that mean something here. */
export const Code = { cancelled: -32800, noMethod: -32601, badParams: -32602, failed: -32803 } as const;

export function codeOf(error: unknown): number | undefined {
  return error instanceof ResponseError ? error.code : undefined;
}

/** Whether a request ended because the connection did. */
export function isLost(error: unknown): boolean {
  if (error instanceof ConnectionError) return true;
  const code = codeOf(error);
  return code !== undefined && code >= -32099 && code <= -32096; // of vscode-jsonrpc: pending, inactive, read, write
}

/** What the user reads of a failed request: what happened, and what to do. */
export function explained(error: unknown): { message: string; advice?: string; exitCode?: number } {
  const text = error instanceof Error ? error.message : String(error);
  const data: unknown = error instanceof ResponseError ? error.data : undefined;
  const advice = field(data, 'advice');
  const exitCode = field(data, 'exitCode');
  const message = typeof advice === 'string' && advice !== '' ? text.replace(`\n${advice}`, '') : text;
  return {
    message,
    ...(typeof advice === 'string' && advice !== '' ? { advice } : {}),
    ...(typeof exitCode === 'number' ? { exitCode } : {}),
  };
}

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

function strings(value: unknown): string[] | undefined {
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : undefined;
}
