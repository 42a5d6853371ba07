// Workspace edits as the protocol has them: what they change, whether they are out of date, and never unconfirmed.

import type { Proposal } from './messages.ts';

interface TextEdit {
  range: unknown;
  newText: string;
  annotationId?: string;
}

interface DocumentEdit {
  textDocument: { uri: string; version?: number | null };
  edits: TextEdit[];
}

interface FileOperation {
  kind: 'create' | 'rename' | 'delete';
  uri?: string;
  oldUri?: string;
  newUri?: string;
  annotationId?: string;
}

export type Change = DocumentEdit | FileOperation;

export interface LspEdit {
  changes?: Record<string, TextEdit[]>;
  documentChanges?: Change[];
  changeAnnotations?: Record<string, { label: string; needsConfirmation?: boolean; description?: string }>;
}

const OURS = 'laguna';

/** The same edit, every part of it annotated and to be confirmed: the editor shows its preview. */
export function confirmed(edit: LspEdit, label: string): LspEdit {
  const annotations = Object.entries(edit.changeAnnotations ?? {}).map(
    ([id, annotation]) => [id, { ...annotation, needsConfirmation: true }] as const,
  );
  return {
    documentChanges: changesOf(edit).map((change) =>
      'edits' in change
        ? { ...change, edits: change.edits.map((item) => ({ ...item, annotationId: item.annotationId ?? OURS })) }
        : { ...change, annotationId: change.annotationId ?? OURS },
    ),
    changeAnnotations: { ...Object.fromEntries(annotations), [OURS]: { label, needsConfirmation: true } },
  };
}

/** What the edit does to which file, for a list that people read. */
export function summary(edit: LspEdit, label: (uri: string) => string): Proposal['files'] {
  return changesOf(edit).map((change) => {
    if ('edits' in change) return { label: label(change.textDocument.uri), change: 'edit', count: change.edits.length };
    const uri = change.newUri ?? change.uri ?? '';
    return { label: label(uri), change: change.kind, count: 1 };
  });
}

/** The documents that have changed since the edit was made, by a look-up of the version of an open document. */
export function outdated(edit: LspEdit, version: (uri: string) => number | undefined): string[] {
  const uris: string[] = [];
  for (const change of changesOf(edit)) {
    if (!('edits' in change) || typeof change.textDocument.version !== 'number') continue;
    const now = version(change.textDocument.uri);
    if (now !== undefined && now !== change.textDocument.version) uris.push(change.textDocument.uri);
  }
  return uris;
}

/** Whether an edit changes anything at all. */
export function isEmpty(edit: LspEdit): boolean {
  return changesOf(edit).every((change) => 'edits' in change && change.edits.length === 0);
}

function changesOf(edit: LspEdit): Change[] {
  if (edit.documentChanges !== undefined) return edit.documentChanges;
  return Object.entries(edit.changes ?? {}).map(([uri, edits]) => ({ textDocument: { uri, version: null }, edits }));
}

/** The least that must be replaced to make `after` of `before`: whole lines between equal starts and ends. */
export function difference(before: string, after: string): { start: number; end: number; text: string } {
  const [old, now] = [linesOf(before), linesOf(after)];
  let head = 0;
  while (head < old.length && old[head] === now[head]) head += 1;
  let tail = 0;
  while (tail < Math.min(old.length, now.length) - head && old.at(-1 - tail) === now.at(-1 - tail)) tail += 1;
  const start = old.slice(0, head).join('').length;
  const text = now.slice(head, now.length - tail).join('');
  return { start, end: start + old.slice(head, old.length - tail).join('').length, text };
}

function linesOf(text: string): string[] {
  return text.split(/(?<=\n)/);
}
