// The chat view: a page that shows the conversation and says what the user does.

import * as vscode from 'vscode';
import { applyBlock, insert } from './apply.ts';
import type { Chat, ChatEvent } from './chat.ts';
import type { Connection } from './connection.ts';
import { FileIndex, find, roots, selectionOf } from './files.ts';
import { page } from './page.ts';
import { fromView, type Attachment, type Mode, type Standing, type ToHost, type ToView, type ViewState } from './shared/messages.ts';

export const VIEW = 'lagunaDaemon.chat';
const SETTLE = 150; // milliseconds after which a moving selection is shown

export class ChatView implements vscode.WebviewViewProvider, vscode.Disposable {
  private view: vscode.WebviewView | undefined;
  private isReady = false;
  private composing: ToView | undefined;
  private selecting: NodeJS.Timeout | undefined;
  private readonly files = new FileIndex();
  private readonly listeners: vscode.Disposable[];

  constructor(
    private readonly extension: vscode.Uri,
    private readonly chat: Chat,
    private readonly connection: Connection,
  ) {
    const renew = (): void => this.sendState();
    const selected = (): void => {
      clearTimeout(this.selecting);
      this.selecting = setTimeout(renew, SETTLE);
    };
    this.listeners = [
      chat.onDidChange((event) => this.follow(event)),
      connection.onDidChange(renew),
      vscode.workspace.onDidChangeWorkspaceFolders(renew),
      vscode.workspace.onDidChangeConfiguration((event) => event.affectsConfiguration('laguna.chat') && this.sendState()),
      vscode.window.onDidChangeTextEditorSelection(selected),
      vscode.window.onDidChangeActiveTextEditor(selected),
    ];
  }

  dispose(): void {
    clearTimeout(this.selecting);
    for (const listener of this.listeners) listener.dispose();
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    this.view = view;
    this.isReady = false;
    view.webview.options = { enableScripts: true, localResourceRoots: [vscode.Uri.joinPath(this.extension, 'out', 'view')] };
    view.webview.onDidReceiveMessage((value: unknown) => {
      const message = fromView(value);
      if (message !== undefined) void this.handle(message).catch((error: unknown) => this.complain(error));
    });
    view.onDidDispose(() => (this.view = undefined));
    view.webview.html = page(view.webview, this.extension);
  }

  /** Open the view with the cursor in the question; `text` goes there if the user has written nothing. */
  async compose(text?: string, mode?: Mode): Promise<void> {
    const message: ToView = { type: 'compose', ...(text === undefined ? {} : { text }), ...(mode === undefined ? {} : { mode }) };
    this.composing = message;
    this.send(message); // now, if the page is there; and once more when the view has the focus or the page is ready
    await vscode.commands.executeCommand(`${VIEW}.focus`);
    if (this.isReady) this.flush();
  }

  async show(): Promise<void> {
    await vscode.commands.executeCommand(`${VIEW}.focus`);
  }

  private flush(): void {
    if (this.composing !== undefined) this.send(this.composing);
    this.composing = undefined;
  }

  private send(message: ToView): void {
    if (this.isReady) void this.view?.webview.postMessage(message);
  }

  private follow(event: ChatEvent): void {
    if (event.kind === 'turn') this.send({ type: 'turn', turn: event.turn });
    else if (event.kind === 'piece') this.send({ type: 'piece', turn: event.turn, kind: event.of, text: event.text });
    else this.sendState();
  }

  private sendState(): void {
    if (this.isReady) this.send({ type: 'state', state: this.state() });
  }

  private state(): ViewState {
    const { talk, pinned } = this.chat;
    const root = this.chat.root()?.toString();
    const selection = this.includesSelection() ? selectionOf(vscode.window.activeTextEditor) : undefined;
    return {
      title: talk.title,
      turns: talk.turns,
      standing: this.standing(),
      roots: roots().map((item) => ({ uri: item.uri.toString(), name: item.name })),
      rootFixed: talk.root !== undefined && talk.turns.length > 0,
      pinned,
      ...(root === undefined ? {} : { root }),
      ...(selection === undefined ? {} : { selection }),
    };
  }

  private includesSelection(): boolean {
    return vscode.workspace.getConfiguration('laguna.chat').get<boolean>('includeSelection', true);
  }

  private standing(): Standing {
    const { phase, status, offers } = this.connection;
    const edits = this.chat.edits && (offers.modes === undefined || offers.modes.includes('edit'));
    const advice = 'advice' in phase ? { advice: phase.advice } : {};
    if (phase.kind !== 'connected') return { kind: phase.kind, message: phase.message, edits, ...advice };
    return { kind: 'connected', message: status?.message ?? '', edits };
  }

  private async handle(message: ToHost): Promise<void> {
    switch (message.type) {
      case 'ready':
        this.isReady = true;
        this.sendState();
        { this.flush(); return; }
      case 'ask':
        await this.chat.ask({ text: message.text, mode: message.mode, selection: message.selection && this.includesSelection() });
        return;
      case 'stop':
        { this.chat.stop(); return; }
      case 'retry':
        return this.chat.retry(message.turn);
      case 'root':
        this.chat.chosenRoot = roots().find((root) => root.uri.toString() === message.uri)?.uri.toString();
        { this.sendState(); return; }
      case 'unpin':
        { this.chat.unpin(message.uri); return; }
      case 'files':
        { this.send({ type: 'files', request: message.request, paths: await this.files.search(message.query) }); return; }
      default:
        return this.act(message);
    }
  }

  private async act(message: Exclude<ToHost, { type: 'ready' | 'ask' | 'stop' | 'retry' | 'root' | 'unpin' | 'files' }>): Promise<void> {
    switch (message.type) {
      case 'copy':
        await vscode.env.clipboard.writeText(message.text);
        { this.send({ type: 'copied', ok: true }); return; }
      case 'insert':
        return insert(message.text);
      case 'apply': {
        const turn = this.chat.talk.turns.find((item) => item.id === message.turn);
        await applyBlock(message.text, message.path, turn?.attachments ?? [], this.chat.root());
        return;
      }
      case 'review':
        return this.chat.review(message.turn);
      case 'open':
        return open(message.target, message.line, this.chat.root());
      case 'attachment': {
        const item = this.chat.talk.turns.find((turn) => turn.id === message.turn)?.attachments[message.index];
        return item === undefined ? undefined : openAttachment(item);
      }
      case 'action':
        await vscode.commands.executeCommand(`lagunaDaemon.${message.name}`);
    }
  }

  private complain(error: unknown): void {
    void vscode.window.showErrorMessage(`Laguna: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Follow a link of an answer: a page outside (the editor asks first), or a file of the workspace. */
async function open(target: string, line: number | undefined, root: vscode.Uri | undefined): Promise<void> {
  if (/^(?:https?:\/\/|mailto:)/i.test(target)) {
    await vscode.env.openExternal(vscode.Uri.parse(target, true));
    return;
  }
  const [path = '', lines] = target.split(/#L?|:(?=\d)/);
  const uri = await find(decodeURIComponent(path), root);
  if (uri === undefined) throw new Error(`There is no file ${path} in the workspace.`);
  const at = line ?? (lines === undefined ? undefined : Number.parseInt(lines, 10));
  await reveal(uri, at === undefined || Number.isNaN(at) ? undefined : new vscode.Range(at - 1, 0, at - 1, 0));
}

async function openAttachment(item: Attachment): Promise<void> {
  const first = item.firstLine;
  const range = first === undefined ? undefined : new vscode.Range(first - 1, 0, (item.lastLine ?? first) - 1, 0);
  await reveal(vscode.Uri.parse(item.uri), range);
}

async function reveal(uri: vscode.Uri, range: vscode.Range | undefined): Promise<void> {
  await vscode.window.showTextDocument(uri, { ...(range === undefined ? {} : { selection: range }) });
}
