// What the user can call for: palette, keys, menus and the status bar.

import * as vscode from 'vscode';
import { ExecuteCommandRequest } from 'vscode-languageclient/node';
import type { Chat } from './chat.ts';
import type { ChatView } from './chatview.ts';
import { toggle } from './completion.ts';
import type { Connection } from './connection.ts';
import type { ContextAccount } from './context.ts';
import { attachment, rootOf, roots, selectionOf, type Root } from './files.ts';
import type { Talk } from './history.ts';
import { chooseProgram, installTerminal, showInstall } from './install.ts';
import { Code, codeOf, warm } from './protocol.ts';
import type { Attachment, Mode, Task } from './shared/messages.ts';
import * as questions from './shared/questions.ts';
import type { Talks } from './talks.ts';
import type { EditorDiagnostic } from './wire.ts';

export interface Parts {
  connection: Connection;
  chat: Chat;
  view: ChatView;
  talks: Talks;
  account: ContextAccount;
  output: vscode.LogOutputChannel;
}

type Handler = (...args: never[]) => unknown;

export function registerCommands(parts: Parts): vscode.Disposable[] {
  const { connection, chat, view, account, output } = parts;
  const handlers: Record<string, Handler> = {
    ask: () => view.compose(),
    explain: () => perform(parts, 'explain', 'ask', questions.explain),
    fix: () => fix(parts),
    tests: () => perform(parts, 'tests', 'edit', (place) => `Write tests for ${place}`),
    document: () => perform(parts, 'document', 'edit', (place) => `Document ${place}`),
    reviewChanges: () => reviewChanges(parts),
    refactor: () => refactor(parts),
    addFile: (uri?: vscode.Uri) => addFile(parts, uri),
    newConversation: async () => {
      chat.reset();
      await view.compose();
    },
    history: () => pickConversation(parts),
    stop: () => chat.stop(),
    warm: () => warmUp(parts),
    context: async () => {
      const root = await pickRoot('Whose context?');
      if (root !== undefined) await account.show(root);
    },
    why: async (uri?: vscode.Uri) => {
      const wanted = uri ?? vscode.window.activeTextEditor?.document.uri;
      if (wanted !== undefined) void vscode.window.showInformationMessage(await account.why(wanted));
    },
    toggleCompletion: async () => vscode.window.setStatusBarMessage(`Laguna: suggestions are ${(await toggle()) ? 'on' : 'off'}`, 3000),
    restart: () => restart(connection),
    output: () => output.show(),
    choosePath: () => chooseProgram(),
    install: () => showInstall(),
    installTerminal: () => installTerminal(),
    menu: () => menu(parts),
  };
  return Object.entries(handlers).map(([name, handler]) =>
    vscode.commands.registerCommand(`lagunaDaemon.${name}`, (...args: unknown[]) => guarded(() => handler(...(args as never[])), output)),
  );
}

/** A command's error becomes a message with a way to the details. */
async function guarded(action: () => unknown, output: vscode.LogOutputChannel): Promise<unknown> {
  try {
    return await action();
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    output.error(text);
    if ((await vscode.window.showErrorMessage(`Laguna: ${text}`, 'Show Output')) === 'Show Output') output.show();
    return undefined;
  }
}

interface Subject {
  editor: vscode.TextEditor;
  range: vscode.Range | undefined;
  item: Attachment;
}

/** What a command is about: the selection, else the function or class around the cursor, else the file. */
async function subject(): Promise<Subject> {
  const editor = vscode.window.activeTextEditor;
  if (editor?.document.uri.scheme !== 'file') throw new Error('Open a file and put the cursor on what this is about.');
  const { document } = editor;
  const selected = selectionOf(editor);
  if (selected !== undefined) return { editor, range: editor.selection, item: selected };
  const range = await enclosing(document.uri, editor.selection.active);
  return { editor, range, item: attachment(document.uri, range) };
}

async function enclosing(uri: vscode.Uri, position: vscode.Position): Promise<vscode.Range | undefined> {
  const symbols = await vscode.commands.executeCommand<vscode.DocumentSymbol[] | undefined>('vscode.executeDocumentSymbolProvider', uri);
  const kinds = [vscode.SymbolKind.Function, vscode.SymbolKind.Method, vscode.SymbolKind.Class, vscode.SymbolKind.Constructor, vscode.SymbolKind.Interface, vscode.SymbolKind.Struct, vscode.SymbolKind.Enum];
  let best: vscode.Range | undefined;
  const visit = (items: readonly vscode.DocumentSymbol[]): void => {
    for (const item of items) {
      if (!('children' in item) || !item.range.contains(position)) continue;
      if (kinds.includes(item.kind)) best = item.range;
      visit(item.children);
    }
  };
  visit(symbols ?? []);
  return best;
}

/** A task whose words the daemon knows, about what the cursor is on. */
async function perform({ chat, view }: Parts, task: Task, mode: Mode, words: (place: string) => string): Promise<void> {
  const { item } = await subject();
  await view.show();
  await chat.ask({ text: words(item.label), mode, task, attachments: [item], review: mode === 'edit' });
}

async function reviewChanges({ chat, view }: Parts): Promise<void> {
  const root = await pickRoot('Whose changes?');
  if (root === undefined) return;
  chat.reset();
  chat.chosenRoot = root.uri.toString();
  await view.show();
  await chat.ask({ text: `Review the uncommitted changes in ${root.name}`, mode: 'ask', task: 'review' });
}

async function fix({ chat, view }: Parts): Promise<void> {
  const { editor, range, item } = await subject();
  const { uri } = editor.document;
  const found = vscode.languages.getDiagnostics(uri).filter((problem) => problem.severity <= vscode.DiagnosticSeverity.Warning);
  const here = found.filter((problem) => range?.intersection(problem.range) !== undefined);
  await view.show();
  if (found.length === 0) {
    chat.pin(item);
    return view.compose(`Fix ${item.label}: `, 'edit');
  }
  const problems = here.length > 0 ? here : found;
  const place = here.length > 0 ? item : attachment(uri);
  const list = problems.map((problem) => ({ line: problem.range.start.line + 1, message: problem.message, ...(problem.source === undefined ? {} : { source: problem.source }) }));
  await chat.ask({ text: questions.fix(place.label, list), mode: 'edit', task: 'fix', attachments: [{ ...place, diagnostics: problems.map(diagnostic) }], review: true });
}

function diagnostic(problem: vscode.Diagnostic): EditorDiagnostic {
  const { start, end } = problem.range;
  return {
    range: { start: { line: start.line, character: start.character }, end: { line: end.line, character: end.character } },
    message: problem.message,
    severity: problem.severity + 1, // the protocol counts from 1
    ...(problem.source === undefined ? {} : { source: problem.source }),
  };
}

async function refactor({ chat, view }: Parts): Promise<void> {
  const { item } = await subject();
  const wish = await vscode.window.showInputBox({ title: `Refactor ${item.label}`, prompt: 'How should it be changed?', placeHolder: 'Split the parsing from the printing' });
  if (wish === undefined || wish.trim() === '') return;
  await view.show();
  await chat.ask({ text: questions.refactor(item.label, wish.trim()), mode: 'edit', attachments: [item], review: true });
}

async function addFile({ chat, view }: Parts, uri: vscode.Uri | undefined): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  const selected = uri === undefined || uri.toString() === editor?.document.uri.toString() ? selectionOf(editor) : undefined;
  const wanted = uri ?? editor?.document.uri;
  if (wanted?.scheme !== 'file') throw new Error('Open the file to add first.');
  chat.pin(selected ?? attachment(wanted));
  await view.compose();
}

/** The root of the active editor if there is one, else the only one, else the one that the user picks. */
async function pickRoot(title: string): Promise<Root | undefined> {
  const all = roots();
  if (all.length === 0) throw new Error('Open a folder first: a context belongs to a repository.');
  const active = vscode.window.activeTextEditor;
  const here = active === undefined ? undefined : rootOf(active.document.uri);
  if (here !== undefined || all.length === 1) return here ?? all[0];
  const picked = await vscode.window.showQuickPick(all.map((root) => ({ label: root.name, description: root.uri.fsPath, root })), { title });
  return picked?.root;
}

async function warmUp({ connection, chat }: Parts): Promise<void> {
  const root = await pickRoot('Which repository?');
  if (root === undefined) return;
  await connection.settled();
  const client = connection.connected();
  const title = `Laguna: warming up ${root.name}`;
  await vscode.window.withProgress({ location: vscode.ProgressLocation.Window, title }, async () => {
    try {
      await client.sendRequest(warm, { root: root.uri.toString() });
    } catch (error) {
      if (codeOf(error) !== Code.noMethod) throw error;
      await chat.warm(root.uri.toString()); // a daemon without the method reads the repository for any question
    }
  });
}

async function restart(connection: Connection): Promise<void> {
  const all = 'Restart the Daemon for All Editors';
  const window = 'Reconnect This Window';
  const choice = await vscode.window.showWarningMessage('Restart laguna-daemon?', { modal: true, detail: 'All editors share the daemon and the model that it has loaded. Reconnecting only this window is quick.' }, window, all);
  if (choice !== undefined) await connection.restart(choice === all);
}

interface Choice extends vscode.QuickPickItem {
  talk: Talk;
}

const FORGET: vscode.QuickInputButton = { iconPath: new vscode.ThemeIcon('trash'), tooltip: 'Delete this conversation' };

async function pickConversation({ chat, talks, view }: Parts): Promise<void> {
  const items = async (): Promise<Choice[]> =>
    (await talks.list()).map((talk) => ({
      label: talk.title,
      description: new Date(talk.changed).toLocaleString(),
      detail: questionsIn(talk),
      buttons: [FORGET],
      talk,
    }));
  const picker = vscode.window.createQuickPick<Choice>();
  picker.title = 'Conversations of this workspace';
  picker.placeholder = 'Choose one to go on with it';
  picker.items = await items();
  picker.onDidTriggerItemButton(async ({ item }) => {
    await talks.remove(item.talk);
    picker.items = await items();
  });
  picker.onDidAccept(async () => {
    const talk = picker.selectedItems[0]?.talk;
    picker.hide();
    if (talk === undefined) return;
    chat.resume(await talks.open(talk));
    await view.compose();
  });
  picker.onDidHide(() => picker.dispose());
  picker.show();
}

function questionsIn(talk: Talk): string {
  const amount = talk.elsewhere ?? talk.turns.length;
  return `${amount} ${amount === 1 ? 'question' : 'questions'}${talk.elsewhere === undefined ? '' : ', asked elsewhere'}`;
}

async function menu({ connection }: Parts): Promise<void> {
  const missing = connection.phase.kind === 'missing';
  const entries: [string, string, string][] = [
    ...(missing ? ([['$(cloud-download) How to install laguna-daemon', 'install', ''], ['$(folder-opened) Choose the program…', 'choosePath', '']] as [string, string, string][]) : []),
    ['$(comment-discussion) Ask', 'ask', 'Open the chat'],
    ['$(flame) Warm up the repository', 'warm', 'Read it now, so that the first question is quick'],
    ['$(list-ordered) Show context', 'context', 'What the model has read, and what was left out'],
    ['$(history) Conversations…', 'history', ''],
    ['$(eye) Turn suggestions on or off', 'toggleCompletion', ''],
    ['$(debug-restart) Restart', 'restart', ''],
    ['$(output) Show output', 'output', ''],
  ];
  const remedy = connection.status?.command ?? undefined;
  const items = entries.map(([label, command, description]) => ({ label, command, description }));
  if (remedy !== undefined) items.unshift({ label: `$(lightbulb) ${remedy.title}`, command: '', description: 'what the daemon advises' });
  const status = connection.status?.message ?? connection.phase.message;
  const picked = await vscode.window.showQuickPick(items, { title: 'Laguna', placeHolder: status });
  if (picked === undefined) return;
  if (picked.command !== '') await vscode.commands.executeCommand(`lagunaDaemon.${picked.command}`);
  else if (remedy !== undefined) await connection.connected().sendRequest(ExecuteCommandRequest.type, { command: remedy.command, arguments: remedy.arguments });
}
