// All conversations about the roots of this window: those that it remembers, and those that the daemon has from elsewhere.

import type { Connection } from './connection.ts';
import { roots } from './files.ts';
import type { History, Talk } from './history.ts';
import { Code, codeOf, conversations } from './protocol.ts';
import type { Attachment, Turn } from './shared/messages.ts';
import type { ConversationSummary, ConversationTurn, Reference } from './wire.ts';
import * as vscode from 'vscode';

export class Talks {
  constructor(
    private readonly connection: Connection,
    private readonly history: History,
  ) {}

  /** The youngest first; without those of the daemon where it has no such list. */
  async list(): Promise<Talk[]> {
    const own = await this.history.list();
    const known = new Set(own.map((talk) => talk.server));
    const others = (await this.summaries()).filter((item) => !known.has(item.id)).flatMap(fromSummary);
    return [...own, ...others].sort((a, b) => b.changed - a.changed);
  }

  /** A conversation with its turns, to go on with. */
  async open(talk: Talk): Promise<Talk> {
    if (talk.elsewhere === undefined || talk.server === undefined) return talk;
    const { turns } = await this.connection.connected().sendRequest(conversations, { action: 'read', conversation: talk.server });
    const opened: Talk = { ...talk, turns: turns.map((turn, index) => fromTurn(turn, `${talk.id}-${index}`, talk.root)) };
    delete opened.elsewhere;
    return opened;
  }

  /** Forget a conversation, here and in the daemon. */
  async remove(talk: Talk): Promise<void> {
    await this.history.remove(talk.id);
    if (talk.server === undefined) return;
    await this.ask(() => this.connection.connected().sendRequest(conversations, { action: 'delete', conversation: talk.server ?? null }));
  }

  private async summaries(): Promise<ConversationSummary[]> {
    if (this.connection.phase.kind !== 'connected') return [];
    const found = await this.ask(() => this.connection.connected().sendRequest(conversations, { action: 'list' }));
    return found?.conversations ?? [];
  }

  private async ask<T>(request: () => Promise<T>): Promise<T | undefined> {
    try {
      return await request();
    } catch (error) {
      if (codeOf(error) === Code.noMethod) return undefined;
      throw error;
    }
  }
}

function fromSummary(item: ConversationSummary): Talk[] {
  const root = roots().find((candidate) => candidate.uri.fsPath === item.root);
  if (root === undefined) return [];
  return [{ id: item.id, title: item.title, root: root.uri.toString(), server: item.id, changed: item.used * 1000, turns: [], elsewhere: item.turns }];
}

function fromTurn(turn: ConversationTurn, id: string, root: string | undefined): Turn {
  const attachments = root === undefined ? [] : turn.references.map((item) => fromReference(item, vscode.Uri.parse(root)));
  return {
    id,
    question: turn.question === '' ? (turn.task ?? '') : turn.question,
    mode: turn.mode,
    attachments,
    state: 'done',
    answer: turn.answer,
    thinking: turn.thinking,
    notices: [],
    usage: turn.usage,
  };
}

function fromReference(item: Reference, root: vscode.Uri): Attachment {
  const uri = vscode.Uri.joinPath(root, item.path).toString();
  if (item.firstLine === null) return { label: item.path, uri };
  const lastLine = item.lastLine ?? item.firstLine;
  return { label: `${item.path}:${item.firstLine}-${lastLine}`, uri, firstLine: item.firstLine, lastLine };
}
