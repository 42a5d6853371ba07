// When there is no laguna-daemon: say so once, and show the way.

import * as vscode from 'vscode';
import type { Connection } from './connection.ts';

const WALKTHROUGH = 'laguna-daemon.laguna-daemon#start';
/** For a clone of the daemon's repository. Typed into a terminal for the user to look at and run; nothing is installed unasked. */
const INSTALL = 'pipx install . && laguna-daemon engine install cpu';

/** Tell the user, once per window, that the program is missing. */
export function offerInstall(connection: Connection): vscode.Disposable {
  let told = false;
  return connection.onDidChange(() => {
    const { phase } = connection;
    if (phase.kind !== 'missing' || told) return;
    told = true;
    void tell(`Laguna: ${phase.message} ${phase.advice}`);
  });
}

async function tell(message: string): Promise<void> {
  const how = 'How to Install';
  const choose = 'Choose the Program…';
  const choice = await vscode.window.showWarningMessage(message, how, choose);
  if (choice === how) await showInstall();
  if (choice === choose) await chooseProgram();
}

export async function showInstall(): Promise<void> {
  await vscode.commands.executeCommand('workbench.action.openWalkthrough', WALKTHROUGH, false);
}

export function installTerminal(): void {
  const terminal = vscode.window.createTerminal('Install laguna-daemon');
  terminal.show();
  terminal.sendText(INSTALL, false);
}

/** Ask for the program; the connection starts anew when the setting changes. */
export async function chooseProgram(): Promise<void> {
  const picked = await vscode.window.showOpenDialog({ canSelectMany: false, openLabel: 'Use This Program', title: 'Where is laguna-daemon?' });
  const path = picked?.[0]?.fsPath;
  if (path !== undefined) await vscode.workspace.getConfiguration('laguna').update('path', path, vscode.ConfigurationTarget.Global);
}
