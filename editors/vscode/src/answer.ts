// One question to the daemon and its answer, piece by piece.

import { randomUUID } from 'node:crypto';
import * as vscode from 'vscode';
import { WorkDoneProgress, type LanguageClient } from 'vscode-languageclient/node';
import { rangeOf } from './files.ts';
import { answerProgress, chat, type ChatAnswer } from './protocol.ts';
import type { Attachment, Turn } from './shared/messages.ts';
import type { ChatParams, ChatReference, Event } from './wire.ts';

/** Ask, and hand each event on as it comes; cancelling the token stops the engine. */
export async function ask(client: LanguageClient, question: ChatParams, token: vscode.CancellationToken, onEvent: (event: Event) => void): Promise<ChatAnswer> {
  const partialResultToken = randomUUID();
  const workDoneToken = randomUUID();
  // The view shows the progress itself: with a token of ours the daemon makes no bar of its own.
  const listeners = [
    client.onProgress(answerProgress, partialResultToken, onEvent),
    client.onProgress(WorkDoneProgress.type, workDoneToken, () => undefined),
  ];
  try {
    return await client.sendRequest(chat, { ...question, partialResultToken, workDoneToken }, token);
  } finally {
    for (const listener of listeners) listener.dispose();
  }
}

/** The question of a turn, as the protocol has it. */
export function questionOf(turn: Turn, root: string | undefined, conversation: string | undefined): ChatParams {
  const settings = vscode.workspace.getConfiguration('laguna.chat', root === undefined ? undefined : vscode.Uri.parse(root));
  const maxTokens = settings.get<number>('maxTokens', 0);
  return {
    ...(turn.task === undefined ? { text: turn.question } : { text: '', task: turn.task }),
    mode: turn.mode,
    references: turn.attachments.map(reference),
    ...(root === undefined ? {} : { root }),
    ...(conversation === undefined ? {} : { conversation }),
    ...(maxTokens > 0 ? { maxTokens } : {}),
  };
}

function reference(item: Attachment): ChatReference {
  const range = rangeOf(item);
  return {
    uri: item.uri,
    ...(range === undefined ? {} : { range: { start: { line: range.start.line, character: 0 }, end: { line: range.end.line, character: 0 } } }),
    ...(item.diagnostics === undefined ? {} : { diagnostics: item.diagnostics }),
  };
}

/** Take an event into a turn; true if it is one more piece of text, false if the turn is to be shown anew. */
export function take(turn: Turn, event: Event): boolean {
  switch (event.kind) {
    case 'text':
      turn.answer += event.text;
      delete turn.progress;
      return true;
    case 'thinking':
      turn.thinking += event.text;
      delete turn.progress;
      return true;
    case 'notice':
      turn.notices.push(event.message);
      return false;
    case 'progress':
      turn.progress = {
        message: event.message,
        ...(event.done === null ? {} : { done: event.done }),
        ...(event.total === null ? {} : { total: event.total }),
      };
      return false;
    case 'usage':
      turn.usage = event.usage;
      return false;
    default:
      return false; // the response says the same, or it is nothing that a conversation shows
  }
}
