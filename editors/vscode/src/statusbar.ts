// The status bar item: the engine's state, what is being read, and a menu of what can be done.

import * as vscode from 'vscode';
import { wanted } from './completion.ts';
import type { Connection } from './connection.ts';
import { rootLine, statusLine, type StatusLine } from './shared/phrases.ts';

export class StatusBar implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem('lagunaDaemon.status', vscode.StatusBarAlignment.Right, 100);
  private readonly listeners: vscode.Disposable[];

  constructor(private readonly connection: Connection) {
    this.item.name = 'Laguna';
    this.item.command = 'lagunaDaemon.menu';
    const draw = (): void => this.draw();
    this.listeners = [
      connection.onDidChange(draw),
      vscode.window.onDidChangeActiveTextEditor(draw),
      vscode.workspace.onDidChangeConfiguration((event) => event.affectsConfiguration('laguna') && this.draw()),
    ];
    this.draw();
    this.item.show();
  }

  dispose(): void {
    this.item.dispose();
    for (const listener of this.listeners) listener.dispose();
  }

  /** What the item says at the moment. */
  get text(): string {
    return this.item.text;
  }

  private draw(): void {
    const line = this.line();
    const silent = vscode.window.activeTextEditor !== undefined && !wanted(vscode.window.activeTextEditor.document);
    this.item.text = line.text + (silent ? ' $(eye-closed)' : '');
    this.item.accessibilityInformation = { label: line.spoken + (silent ? ', suggestions are off here' : '') };
    this.item.tooltip = this.tooltip(line, silent);
    this.item.backgroundColor = line.level === 'normal' ? undefined : new vscode.ThemeColor(`statusBarItem.${line.level}Background`);
    void vscode.commands.executeCommand('setContext', 'lagunaDaemon.ready', this.connection.status?.engine.phase === 'ready');
  }

  private line(): StatusLine {
    const { phase, status } = this.connection;
    const spoken = `Laguna: ${phase.message}`;
    switch (phase.kind) {
      case 'connected':
        return statusLine(status);
      case 'connecting':
        return { text: '$(loading~spin) Laguna', level: 'normal', spoken };
      case 'missing':
        return { text: '$(warning) Laguna: not installed', level: 'warning', spoken };
      case 'failed':
        return { text: '$(error) Laguna', level: 'error', spoken };
    }
  }

  private tooltip(line: StatusLine, silent: boolean): vscode.MarkdownString {
    const text = new vscode.MarkdownString();
    text.appendText(line.spoken);
    const { phase, status } = this.connection;
    if ('advice' in phase) text.appendMarkdown('\n\n').appendText(phase.advice);
    if (status?.engine.model) text.appendMarkdown('\n\n').appendText(`Model: ${status.engine.model} (profile ${status.engine.profile})`);
    for (const workspace of status?.workspaces ?? []) text.appendMarkdown('\n\n').appendText(rootLine(workspace));
    if (silent) text.appendMarkdown('\n\n').appendText('Suggestions are off in this file.');
    return text;
  }
}
