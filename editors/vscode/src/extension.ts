// Puts the parts together when a window opens, and takes them down when it closes.

import * as vscode from 'vscode';
import { Chat } from './chat.ts';
import { ChatView, VIEW } from './chatview.ts';
import { registerCommands } from './commands.ts';
import { Connection } from './connection.ts';
import { ContextAccount } from './context.ts';
import { History } from './history.ts';
import { offerInstall } from './install.ts';
import { StatusBar } from './statusbar.ts';
import { Talks } from './talks.ts';

/** What other extensions, and tests, may ask for. */
export interface Api {
  /** The state of the connection: missing, connecting, failed or connected. */
  readonly state: () => string;
  /** What the status bar says. */
  readonly statusText: () => string;
  /** Comes back when the connection stands or cannot be had for now. */
  readonly settled: () => Promise<void>;
}

let live: Connection | undefined;

export function activate(context: vscode.ExtensionContext): Api {
  const output = vscode.window.createOutputChannel('Laguna', { log: true });
  const connection = new Connection(output);
  live = connection;
  const history = new History(context.storageUri ?? context.globalStorageUri, output);
  const chat = new Chat(connection, history);
  const view = new ChatView(context.extensionUri, chat, connection);
  const account = new ContextAccount(connection);
  const bar = new StatusBar(connection);
  context.subscriptions.push(
    output,
    connection,
    chat,
    view,
    account,
    bar,
    offerInstall(connection),
    vscode.window.registerWebviewViewProvider(VIEW, view),
    ...registerCommands({ connection, chat, view, talks: new Talks(connection, history), account, output }),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration('laguna.path')) void connection.restart(false);
    }),
  );
  void connection.start();
  return { state: () => connection.phase.kind, statusText: () => bar.text, settled: () => connection.settled() };
}

/** The daemon learns that this window closes; the rest is in the context's subscriptions. */
export async function deactivate(): Promise<void> {
  await live?.close();
}
