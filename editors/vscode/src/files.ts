// Files of the workspace: for completing references, and for finding what a reference names.

import * as vscode from 'vscode';
import { rank } from './shared/fuzzy.ts';
import type { Attachment } from './shared/messages.ts';
import { mentions, SELECTION, type Mention } from './shared/references.ts';

const MOST_FILES = 20_000;
const FRESH = 10_000; // milliseconds for which a listing serves

export interface Root {
  uri: vscode.Uri;
  name: string;
}

/** The folders that questions can be about. */
export function roots(): Root[] {
  return (vscode.workspace.workspaceFolders ?? []).filter((folder) => folder.uri.scheme === 'file');
}

/** The nearest folder that holds a file. */
export function rootOf(uri: vscode.Uri): Root | undefined {
  const folder = vscode.workspace.getWorkspaceFolder(uri);
  return folder?.uri.scheme === 'file' ? folder : undefined;
}

/** A file as people write it: by its path in the root, with the root's name where there are several. */
export function label(uri: vscode.Uri): string {
  return vscode.workspace.asRelativePath(uri, roots().length > 1);
}

/** The lines of an editor's selection, or undefined if nothing is selected. */
export function selectionOf(editor: vscode.TextEditor | undefined): Attachment | undefined {
  if (editor === undefined || editor.selection.isEmpty || editor.document.uri.scheme !== 'file') return undefined;
  return attachment(editor.document.uri, editor.selection);
}

/** A file, or the lines that a range touches. */
export function attachment(uri: vscode.Uri, range?: vscode.Range): Attachment {
  if (range === undefined) return { label: label(uri), uri: uri.toString() };
  const first = range.start.line + 1;
  const last = Math.max(first, range.end.character === 0 ? range.end.line : range.end.line + 1);
  return lines(uri, first, last);
}

function lines(uri: vscode.Uri, firstLine: number, lastLine: number): Attachment {
  const amount = firstLine === lastLine ? String(firstLine) : `${firstLine}-${lastLine}`;
  return { label: `${label(uri)}:${amount}`, uri: uri.toString(), firstLine, lastLine };
}

/** The range that an attachment names, in the document's lines. */
export function rangeOf(item: Attachment): vscode.Range | undefined {
  if (item.firstLine === undefined) return undefined;
  return new vscode.Range(item.firstLine - 1, 0, item.lastLine ?? item.firstLine, 0);
}

export interface Found {
  attachments: Attachment[];
  /** References that look like paths and name no file. */
  unknown: string[];
  /** Whether the text itself asks for the selection. */
  selection: boolean;
}

/** What the references of a question name; `root` is looked into first. */
export async function resolve(text: string, root: vscode.Uri | undefined): Promise<Found> {
  const found: Found = { attachments: [], unknown: [], selection: false };
  for (const mention of mentions(text)) {
    if (mention.path === SELECTION) {
      found.selection = true;
      continue;
    }
    const uri = await find(mention.path, root);
    if (uri !== undefined) add(found.attachments, named(uri, mention));
    else if (/[./]/.test(mention.path)) found.unknown.push(mention.path);
  }
  return found;
}

/** Add an attachment unless it is there already. */
export function add(list: Attachment[], item: Attachment): void {
  if (!list.some((other) => other.label === item.label && other.uri === item.uri)) list.push(item);
}

function named(uri: vscode.Uri, mention: Mention): Attachment {
  if (mention.firstLine === undefined) return attachment(uri);
  return lines(uri, mention.firstLine, mention.lastLine ?? mention.firstLine);
}

/** The file of a path written by somebody: in `root`, in another root, or behind a root's name. */
export async function find(path: string, root: vscode.Uri | undefined): Promise<vscode.Uri | undefined> {
  const parts = path.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.length === 0 || parts.includes('..')) return undefined;
  const all = roots();
  const candidates = [...(root === undefined ? [] : [vscode.Uri.joinPath(root, ...parts)])];
  candidates.push(...all.map((item) => vscode.Uri.joinPath(item.uri, ...parts)));
  const owner = all.find((item) => item.name === parts[0]);
  if (owner !== undefined && parts.length > 1) candidates.push(vscode.Uri.joinPath(owner.uri, ...parts.slice(1)));
  for (const uri of candidates) if (await isFile(uri)) return uri;
  return undefined;
}

async function isFile(uri: vscode.Uri): Promise<boolean> {
  try {
    return ((await vscode.workspace.fs.stat(uri)).type & vscode.FileType.File) !== 0;
  } catch {
    return false;
  }
}

/** The files of all roots, listed at most every few seconds. */
export class FileIndex {
  private listed = 0;
  private paths: Promise<string[]> = Promise.resolve([]);

  /** Paths that match what has been typed of one; open files come first while nothing is typed. */
  async search(query: string): Promise<string[]> {
    if (Date.now() - this.listed > FRESH) {
      this.listed = Date.now();
      this.paths = this.list();
    }
    const all = await this.paths;
    if (query !== '') return rank(query, all, 12);
    const open = vscode.window.tabGroups.all.flatMap((group) => group.tabs).map((tab) => tab.input);
    const first = open.filter((input) => input instanceof vscode.TabInputText).map((input) => label(input.uri));
    const known = new Set(all);
    return [...new Set([...first.filter((path) => known.has(path)), ...rank('', all, 12)])].slice(0, 12);
  }

  private async list(): Promise<string[]> {
    const found = await Promise.all(
      roots().map((root) => vscode.workspace.findFiles(new vscode.RelativePattern(root.uri, '**/*'), excluded(root.uri), MOST_FILES)),
    );
    return found.flat().map(label).sort();
  }
}

/** What the editor's search leaves out is not offered either. */
function excluded(root: vscode.Uri): string {
  const globs: string[] = [];
  for (const section of ['files.exclude', 'search.exclude']) {
    const rules = vscode.workspace.getConfiguration(undefined, root).get<Record<string, unknown>>(section, {});
    globs.push(...Object.keys(rules).filter((glob) => rules[glob] === true && !/[{}]/.test(glob)));
  }
  return `{${[...new Set(globs), '**/.venv/**', '**/__pycache__/**'].join(',')}}`;
}
