// Conversations of this workspace, one file each, beside the editor's other state and never in the repository.

import * as vscode from 'vscode';
import type { Turn } from './shared/messages.ts';

/** A conversation as the view shows it; `server` is the daemon's id for it. */
export interface Talk {
  id: string;
  title: string;
  root?: string;
  server?: string;
  changed: number;
  turns: Turn[];
  /** Asked elsewhere: in a shell, or another editor; the daemon has its turns. */
  elsewhere?: number;
}

/** The conversations that this window remembers; `Talks` adds those of the daemon. */
export class History {
  private readonly folder: vscode.Uri | undefined;
  private writing: Promise<void> = Promise.resolve();

  constructor(storage: vscode.Uri | undefined, private readonly output: vscode.LogOutputChannel) {
    this.folder = storage === undefined ? undefined : vscode.Uri.joinPath(storage, 'conversations');
  }

  /** All conversations, the youngest first; a file that cannot be read is reported and left out. */
  async list(): Promise<Talk[]> {
    if (this.folder === undefined) return [];
    await this.writing;
    const entries = await vscode.workspace.fs.readDirectory(this.folder).then(undefined, () => []);
    const talks = await Promise.all(entries.filter(([name]) => name.endsWith('.json')).map(([name]) => this.read(name)));
    return talks.filter((talk) => talk !== undefined).sort((a, b) => b.changed - a.changed);
  }

  /** Write a conversation and forget the oldest ones over the limit. */
  async keep(talk: Talk): Promise<void> {
    const limit = vscode.workspace.getConfiguration('laguna.chat').get<number>('keepConversations', 50);
    if (this.folder === undefined || limit === 0 || talk.turns.length === 0) return;
    const uri = this.file(talk.id);
    this.writing = this.writing.then(async () => {
      if (uri !== undefined) await vscode.workspace.fs.writeFile(uri, Buffer.from(JSON.stringify(talk)));
    });
    await this.writing.catch((error: unknown) => this.output.warn(`The conversation could not be kept: ${String(error)}`));
    this.writing = this.writing.catch(() => undefined);
    for (const old of (await this.list()).slice(limit)) await this.remove(old.id);
  }

  async remove(id: string): Promise<void> {
    const uri = this.file(id);
    if (uri !== undefined) await vscode.workspace.fs.delete(uri).then(undefined, () => undefined);
  }

  private file(id: string): vscode.Uri | undefined {
    return this.folder === undefined ? undefined : vscode.Uri.joinPath(this.folder, `${id}.json`);
  }

  private async read(name: string): Promise<Talk | undefined> {
    if (this.folder === undefined) return undefined;
    try {
      const bytes = await vscode.workspace.fs.readFile(vscode.Uri.joinPath(this.folder, name));
      const talk = JSON.parse(Buffer.from(bytes).toString('utf8')) as Talk;
      return Array.isArray(talk.turns) && typeof talk.title === 'string' ? talk : undefined;
    } catch (error) {
      this.output.warn(`The conversation ${name} cannot be read: ${String(error)}`);
      return undefined;
    }
  }
}
