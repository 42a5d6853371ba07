// Ghost text: the client's own inline completion, kept to the languages for which it is wanted.

import * as vscode from 'vscode';
import type { Middleware } from 'vscode-languageclient/node';

export const completionMiddleware: Middleware = {
  async provideInlineCompletionItems(document, position, context, token, next) {
    const automatic = context.triggerKind === vscode.InlineCompletionTriggerKind.Automatic;
    if (automatic && !wanted(document)) return undefined;
    return next(document, position, context, token);
  },
};

/** Whether suggestions come by themselves in a document. */
export function wanted(document: Pick<vscode.TextDocument, 'languageId' | 'uri'>): boolean {
  const settings = vscode.workspace.getConfiguration('laguna.completion', document.uri);
  if (!settings.get<boolean>('enabled', true)) return false;
  const languages = settings.get<Record<string, boolean>>('languages', {});
  return languages[document.languageId] ?? languages['*'] ?? true;
}

/** Turn suggestions on or off where the setting is made already, else for the user. */
export async function toggle(): Promise<boolean> {
  const settings = vscode.workspace.getConfiguration('laguna.completion');
  const on = !settings.get<boolean>('enabled', true);
  const local = settings.inspect<boolean>('enabled')?.workspaceValue !== undefined;
  await settings.update('enabled', on, local ? vscode.ConfigurationTarget.Workspace : vscode.ConfigurationTarget.Global);
  return on;
}
