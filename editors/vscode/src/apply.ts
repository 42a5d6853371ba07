// Changes to files: always through the editor's refactor preview, never behind the user's back.

import * as vscode from 'vscode';
import type { LanguageClient, WorkspaceEdit as ProtocolEdit } from 'vscode-languageclient/node';
import { find, label, rangeOf } from './files.ts';
import { confirmed, difference, outdated, type LspEdit } from './shared/edits.ts';
import type { Attachment } from './shared/messages.ts';

/** Show an answer's edit in the preview; true if the user applied it. */
export async function review(client: LanguageClient, edit: LspEdit): Promise<boolean> {
  const converted = await client.protocol2CodeConverter.asWorkspaceEdit(confirmed(edit, 'Laguna') as ProtocolEdit);
  const stale = outdated(edit, versionOf);
  if (stale.length > 0) {
    const names = stale.map((uri) => label(vscode.Uri.parse(uri))).join(', ');
    throw new Error(`${names} changed since this answer was made, so its edits may no longer fit. Ask again.`);
  }
  return preview(converted);
}

function versionOf(uri: string): number | undefined {
  const wanted = vscode.Uri.parse(uri).toString();
  return vscode.workspace.textDocuments.find((document) => document.uri.toString() === wanted)?.version;
}

async function preview(edit: vscode.WorkspaceEdit): Promise<boolean> {
  return vscode.workspace.applyEdit(edit, { isRefactoring: true });
}

interface Target extends vscode.QuickPickItem {
  edit: () => Promise<vscode.WorkspaceEdit>;
}

/** Apply a code block: where to is asked unless there is only one place it can go. */
export async function applyBlock(text: string, path: string | undefined, attachments: readonly Attachment[], root: vscode.Uri | undefined): Promise<boolean> {
  const targets = await targetsOf(text, path, attachments, root);
  const only = targets.length === 1 ? targets[0] : undefined;
  const target = only ?? (await vscode.window.showQuickPick(targets, { title: 'Apply the code block', placeHolder: 'You see the change before it is made' }));
  return target === undefined ? false : preview(await target.edit());
}

async function targetsOf(text: string, path: string | undefined, attachments: readonly Attachment[], root: vscode.Uri | undefined): Promise<Target[]> {
  const targets: Target[] = [];
  for (const item of attachments) {
    const range = rangeOf(item);
    if (range !== undefined) targets.push({ label: `Replace ${item.label}`, edit: () => replaceLines(vscode.Uri.parse(item.uri), range, text) });
  }
  const editor = vscode.window.activeTextEditor;
  if (editor !== undefined && !editor.selection.isEmpty) {
    targets.push({ label: `Replace the selection in ${label(editor.document.uri)}`, edit: () => Promise.resolve(replace(editor.document.uri, editor.selection, text)) });
  }
  const named = path === undefined ? undefined : await find(path, root);
  if (named !== undefined) targets.push({ label: `Replace all of ${label(named)}`, edit: () => replaceAll(named, text) });
  else if (path !== undefined && root !== undefined && !path.split('/').includes('..')) {
    const uri = vscode.Uri.joinPath(root, path);
    targets.push({ label: `Create ${label(uri)}`, edit: () => Promise.resolve(create(uri, text)) });
  }
  if (editor !== undefined) {
    const uri = editor.document.uri;
    targets.push({ label: `Insert at the cursor in ${label(uri)}`, edit: () => Promise.resolve(replace(uri, new vscode.Range(editor.selection.active, editor.selection.active), text)) });
    if (named?.toString() !== uri.toString()) targets.push({ label: `Replace all of ${label(uri)}`, edit: () => replaceAll(uri, text) });
  }
  if (targets.length === 0) throw new Error('No editor is open to apply this to. Open the file first.');
  return targets;
}

function note(what: string): vscode.WorkspaceEditEntryMetadata {
  return { label: 'Laguna', description: what, needsConfirmation: true };
}

function replace(uri: vscode.Uri, range: vscode.Range, text: string): vscode.WorkspaceEdit {
  const edit = new vscode.WorkspaceEdit();
  edit.replace(uri, range, text, note('Code block of an answer'));
  return edit;
}

async function replaceLines(uri: vscode.Uri, range: vscode.Range, text: string): Promise<vscode.WorkspaceEdit> {
  const document = await vscode.workspace.openTextDocument(uri);
  const whole = document.validateRange(range);
  const ended = whole.end.character === 0 && !text.endsWith('\n') ? `${text}\n` : text;
  return replace(uri, whole, ended);
}

async function replaceAll(uri: vscode.Uri, text: string): Promise<vscode.WorkspaceEdit> {
  const document = await vscode.workspace.openTextDocument(uri);
  const before = document.getText();
  const ended = before.endsWith('\n') && !text.endsWith('\n') ? `${text}\n` : text;
  const after = document.eol === vscode.EndOfLine.CRLF ? ended.replace(/\r?\n/g, '\r\n') : ended;
  const least = difference(before, after);
  return replace(uri, new vscode.Range(document.positionAt(least.start), document.positionAt(least.end)), least.text);
}

function create(uri: vscode.Uri, text: string): vscode.WorkspaceEdit {
  const edit = new vscode.WorkspaceEdit();
  const contents = Buffer.from(text.endsWith('\n') ? text : `${text}\n`, 'utf8');
  edit.createFile(uri, { overwrite: false, contents }, note('New file of an answer'));
  return edit;
}

/** Put a code block where the cursor is, as one step to undo. */
export async function insert(text: string): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (editor === undefined) throw new Error('No editor is open to insert into. Open a file first.');
  await editor.edit((edit) => edit.replace(editor.selection, text));
  await vscode.window.showTextDocument(editor.document, editor.viewColumn);
}
