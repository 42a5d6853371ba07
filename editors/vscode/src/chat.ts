// The conversation of a window: its turns, the answer that is coming, and what was asked before.

import { randomUUID } from 'node:crypto';
import * as vscode from 'vscode';
import { ask, questionOf, take } from './answer.ts';
import { review } from './apply.ts';
import type { Connection } from './connection.ts';
import { add, label, resolve, rootOf, roots, selectionOf } from './files.ts';
import type { History, Talk } from './history.ts';
import { Code, codeOf, conversations, explained, isLost, type ChatAnswer } from './protocol.ts';
import { isEmpty, summary, type LspEdit } from './shared/edits.ts';
import type { Attachment, Failure, Mode, Task, Turn } from './shared/messages.ts';

export type ChatEvent = { kind: 'all' } | { kind: 'turn'; turn: Turn } | { kind: 'piece'; turn: string; of: 'text' | 'thinking'; text: string };

export interface Question {
  text: string;
  mode: Mode;
  task?: Task;
  attachments?: Attachment[];
  selection?: boolean;
  /** Show the preview of the edits as soon as they are there. */
  review?: boolean;
}

const TITLE = 60;

export class Chat implements vscode.Disposable {
  private readonly changes = new vscode.EventEmitter<ChatEvent>();
  readonly onDidChange = this.changes.event;
  talk: Talk = fresh();
  pinned: Attachment[] = [];
  chosenRoot: string | undefined;
  /** Whether the daemon makes edits; false once it has refused to. */
  edits = true;
  private running: { turn: Turn; source: vscode.CancellationTokenSource } | undefined;
  private readonly proposals = new Map<string, LspEdit>();

  constructor(
    private readonly connection: Connection,
    private readonly history: History,
  ) {}

  dispose(): void {
    this.stop();
    this.changes.dispose();
  }

  get answering(): boolean {
    return this.running !== undefined;
  }

  /** The root of the next question: the conversation's, the chosen one, or that of the active editor. */
  root(): vscode.Uri | undefined {
    const fixed = this.talk.root ?? this.chosenRoot;
    if (fixed !== undefined) return vscode.Uri.parse(fixed);
    const editor = vscode.window.activeTextEditor;
    const active = editor === undefined ? undefined : rootOf(editor.document.uri);
    return (active ?? roots()[0])?.uri;
  }

  /** Ask a question; comes back when it is answered, stopped or refused. */
  async ask(question: Question): Promise<Turn | undefined> {
    if (this.answering || question.text.trim() === '') return undefined;
    const turn = newTurn(question);
    this.talk.turns.push(turn);
    if (this.talk.turns.length === 1) this.talk.title = titleOf(question.text);
    const source = new vscode.CancellationTokenSource();
    this.begin(turn, source);
    try {
      await this.attach(turn, question);
      this.changes.fire({ kind: 'all' });
      await this.connection.settled();
      await this.answer(turn, source.token);
      if (question.review === true) void this.review(turn.id).catch(() => undefined);
    } catch (error) {
      this.fail(turn, error, source.token.isCancellationRequested);
    } finally {
      this.end(turn, source);
    }
    return turn;
  }

  /** Have the daemon read a root: a question of one token, of which nothing is kept. */
  async warm(root: string): Promise<void> {
    const client = this.connection.connected();
    const source = new vscode.CancellationTokenSource();
    try {
      const answer = await ask(client, { text: 'Answer with one word: ready?', root, maxTokens: 1, thinking: false }, source.token, () => undefined);
      if (answer.conversation !== null) await client.sendRequest(conversations, { action: 'delete', conversation: answer.conversation });
    } catch (error) {
      if (codeOf(error) !== Code.noMethod) throw error;
    } finally {
      source.dispose();
    }
  }

  /** Stop the answer; what has come of it stays. */
  stop(): void {
    this.running?.source.cancel();
  }

  /** Ask the last question again, in place of its failed answer. */
  async retry(id: string): Promise<void> {
    const turn = this.talk.turns.at(-1);
    if (turn?.id !== id || this.answering) return;
    this.talk.turns.pop();
    await this.ask({ text: turn.question, mode: turn.mode, attachments: turn.attachments, ...(turn.task === undefined ? {} : { task: turn.task }) });
  }

  reset(): void {
    this.stop();
    this.talk = fresh();
    this.pinned = [];
    this.changes.fire({ kind: 'all' });
  }

  resume(talk: Talk): void {
    this.stop();
    this.talk = talk;
    this.changes.fire({ kind: 'all' });
  }

  pin(item: Attachment): void {
    add(this.pinned, item);
    this.changes.fire({ kind: 'all' });
  }

  unpin(uri: string): void {
    this.pinned = this.pinned.filter((item) => item.uri !== uri);
    this.changes.fire({ kind: 'all' });
  }

  /** Show the edits of an answer in the editor's preview. */
  async review(id: string): Promise<void> {
    const edit = this.proposals.get(id);
    const turn = this.talk.turns.find((item) => item.id === id);
    if (turn?.proposal === undefined) return;
    if (edit === undefined) throw new Error('These edits are from an earlier window and may no longer fit. Ask again.');
    if (!(await review(this.connection.connected(), edit))) return;
    turn.proposal.state = 'applied';
    this.changes.fire({ kind: 'turn', turn });
    await this.history.keep(this.talk);
  }

  private begin(turn: Turn, source: vscode.CancellationTokenSource): void {
    this.running = { turn, source };
    void vscode.commands.executeCommand('setContext', 'lagunaDaemon.answering', true);
    this.changes.fire({ kind: 'all' });
  }

  private end(turn: Turn, source: vscode.CancellationTokenSource): void {
    source.dispose();
    delete turn.progress;
    if (this.running?.turn === turn) {
      this.running = undefined;
      void vscode.commands.executeCommand('setContext', 'lagunaDaemon.answering', false);
    }
    this.changes.fire({ kind: 'all' });
    this.talk.changed = Date.now();
    void this.history.keep(this.talk);
  }

  private async attach(turn: Turn, question: Question): Promise<void> {
    const selected = selectionOf(vscode.window.activeTextEditor);
    const found = await resolve(question.text, this.root());
    const all = [...(question.attachments ?? []), ...this.pinned, ...found.attachments];
    if (selected !== undefined && (question.selection === true || found.selection)) all.unshift(selected);
    this.pinned = [];
    const root = this.talk.root ?? this.chosenRoot ?? firstRoot(all) ?? this.root()?.toString();
    if (root !== undefined) this.talk.root = root;
    for (const item of all) {
      if (root === undefined || rootOf(vscode.Uri.parse(item.uri))?.uri.toString() === root) add(turn.attachments, item);
      else turn.notices.push(`${item.label} was left out: it is not in the folder that this conversation is about.`);
    }
    for (const path of found.unknown) turn.notices.push(`There is no file ${path}; the reference was sent as text.`);
    if (found.selection && selected === undefined) turn.notices.push('Nothing is selected, so @selection was sent as text.');
  }

  private async answer(turn: Turn, token: vscode.CancellationToken): Promise<void> {
    for (;;) {
      try {
        await this.answerOnce(turn, token); return;
      } catch (error) {
        if (!this.adapt(turn, error)) throw error;
        this.changes.fire({ kind: 'turn', turn });
      }
    }
  }

  /** Make the question one that this daemon can answer; false if it is not the question that is wrong. */
  private adapt(turn: Turn, error: unknown): boolean {
    const { message, exitCode } = explained(error);
    if (turn.answer !== '') return false;
    if (turn.task !== undefined && codeOf(error) === Code.badParams && message.includes('empty')) {
      delete turn.task; // a daemon that does not know the task's words gets ours
      return true;
    }
    if (turn.mode === 'edit' && codeOf(error) === Code.badParams && message.includes('mode')) {
      this.edits = false;
      turn.mode = 'ask';
      turn.notices.push('This laguna-daemon makes no edits in the editor yet. Apply the code blocks of the answer instead.');
      return true;
    }
    if (this.talk.server !== undefined && exitCode === 2 && /no conversation/i.test(message)) {
      delete this.talk.server;
      turn.notices.push('The daemon no longer has this conversation: this question was asked without what was said before.');
      return true;
    }
    return false;
  }

  private async answerOnce(turn: Turn, token: vscode.CancellationToken): Promise<void> {
    const client = this.connection.connected();
    const result = await ask(client, questionOf(turn, this.talk.root, this.talk.server), token, (event) => {
      if (this.running?.turn !== turn) return;
      if (take(turn, event) && (event.kind === 'text' || event.kind === 'thinking')) {
        this.changes.fire({ kind: 'piece', turn: turn.id, of: event.kind, text: event.text });
      } else {
        this.changes.fire({ kind: 'turn', turn });
      }
    });
    this.finish(turn, result);
  }

  private finish(turn: Turn, result: ChatAnswer): void {
    turn.answer = result.text;
    turn.thinking = result.thinking;
    turn.usage = result.usage;
    for (const notice of result.notices) if (!turn.notices.includes(notice)) turn.notices.push(notice);
    turn.state = 'done';
    if (result.conversation !== null) this.talk.server = result.conversation;
    if (result.refusals.length > 0) turn.refusals = result.refusals;
    if (result.edit && !isEmpty(result.edit)) {
      this.proposals.set(turn.id, result.edit);
      turn.proposal = { files: summary(result.edit, (uri) => label(vscode.Uri.parse(uri))), state: 'open' };
    }
  }

  private fail(turn: Turn, error: unknown, stopped: boolean): void {
    if (stopped) {
      turn.state = 'stopped';
      if (this.talk.server === undefined && turn.answer !== '') turn.notices.push('The next question starts afresh: the daemon keeps no stopped first answer.');
      return;
    }
    turn.state = 'failed';
    turn.failure = this.reason(error);
  }

  private reason(error: unknown): Failure {
    const { phase } = this.connection;
    if (phase.kind === 'missing' || phase.kind === 'failed') return { message: phase.message, advice: phase.advice };
    if (phase.kind === 'connecting' || isLost(error) || codeOf(error) === Code.cancelled // by the daemon, as it ends
    ) {
      return { message: 'The connection to laguna-daemon was lost, and the answer with it.', advice: 'It is being connected again; then ask again.' };
    }
    const { message, advice } = explained(error);
    return { message, ...(advice === undefined ? {} : { advice }) };
  }
}

function firstRoot(attachments: readonly Attachment[]): string | undefined {
  for (const item of attachments) {
    const root = rootOf(vscode.Uri.parse(item.uri));
    if (root !== undefined) return root.uri.toString();
  }
  return undefined;
}

function fresh(): Talk {
  return { id: randomUUID(), title: '', changed: Date.now(), turns: [] };
}

function newTurn(question: Question): Turn {
  return {
    id: randomUUID(),
    question: question.text.trim(),
    mode: question.mode,
    ...(question.task === undefined ? {} : { task: question.task }),
    attachments: [],
    state: 'working',
    answer: '',
    thinking: '',
    notices: [],
  };
}

function titleOf(text: string): string {
  const line = text.trim().split('\n')[0] ?? '';
  return line.length > TITLE ? `${line.slice(0, TITLE - 1)}…` : line;
}
