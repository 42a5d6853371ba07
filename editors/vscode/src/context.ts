// "Show context" and "why is this file (not) in it".

import { execFile } from 'node:child_process';
import { homedir } from 'node:os';
import { promisify } from 'node:util';
import * as vscode from 'vscode';
import type { Connection } from './connection.ts';
import { label, rootOf, type Root } from './files.ts';
import { Code, codeOf, context } from './protocol.ts';
import { contextText, whyText } from './shared/account.ts';

const SCHEME = 'laguna-context';
const run = promisify(execFile);

export class ContextAccount implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changes = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changes.event;
  private readonly texts = new Map<string, string>();
  private readonly registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);

  constructor(private readonly connection: Connection) {}

  dispose(): void {
    this.registration.dispose();
    this.changes.dispose();
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.path) ?? 'Run "Laguna: Show Context" again: this account is of an earlier window.\n';
  }

  /** Open the account of a root's prompt. */
  async show(root: Root): Promise<void> {
    const found = await vscode.window.withProgress(
      { location: vscode.ProgressLocation.Window, title: `Laguna: reading ${root.name}` },
      () => this.fetch(root),
    );
    const uri = vscode.Uri.from({ scheme: SCHEME, path: `/Context of ${root.name}` });
    this.texts.set(uri.path, contextText(found));
    this.changes.fire(uri);
    await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(uri), { preview: true });
  }

  /** Say why a file is in the prompt or not. */
  async why(uri: vscode.Uri): Promise<string> {
    const root = rootOf(uri);
    if (root === undefined) return `${label(uri)} is in no folder of this workspace, so it is in no context.`;
    const path = vscode.workspace.asRelativePath(uri, false);
    return whyText(await this.fetch(root, path));
  }

  private async fetch(root: Root, why?: string): Promise<unknown> {
    const client = this.connection.connected();
    try {
      return await client.sendRequest(context, { root: root.uri.toString(), ...(why === undefined ? {} : { why }) });
    } catch (error) {
      if (codeOf(error) !== Code.noMethod) throw error;
    }
    // A daemon whose language server lacks the method says the same on its command line.
    const argv = ['context', ...(why === undefined ? [] : ['why', why]), '--repo', root.uri.fsPath, '--json'];
    const { stdout } = await run(this.connection.program, argv, { cwd: homedir(), maxBuffer: 256 * 1024 * 1024 });
    return JSON.parse(stdout) as unknown;
  }
}
