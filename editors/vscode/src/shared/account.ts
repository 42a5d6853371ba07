// What is in a root's prompt, as a text to read; the daemon's manifest in either spelling of its names.

import { count } from './phrases.ts';

type Plain = Record<string, unknown>;

/** The account of a prompt: totals, then every file from the largest, then what is not in it and why. */
export function contextText(value: unknown): string {
  const found = camel(value);
  const files = objects(found.files);
  const sized = files.map((file) => ({ file, tokens: number(file.tokens) + number(file.overlayTokens) }));
  sized.sort((a, b) => b.tokens - a.tokens || (text(a.file.path) < text(b.file.path) ? -1 : 1));
  const lines = [
    `What stands in front of every question about ${text(found.root)}`,
    '',
    `${pad(found.prefixTokens)}  tokens in all`,
    `${pad(found.snapshotTokens)}  tokens in snapshot ${text(found.snapshot).slice(0, 12)}`,
    `${pad(found.overlayTokens)}  tokens of changes since (${count(number(found.overlaySeq))} entries)`,
    `${pad(camel(found.budget).context)}  tokens fit into the model's context`,
    '',
    ...section('Files by how they are shown', found.tiers),
    ...section('Files without text, by reason', found.skipped),
    ...section('Left out, by reason', found.leftOut),
    ...findings(found.findings),
    ...notes(found.notices),
    '   Tokens  Shown as   Path',
    ...sized.map(({ file, tokens }) => row(file, tokens)),
  ];
  return `${lines.join('\n')}\n`;
}

/** Why a path is in the prompt or not, in a sentence or two. */
export function whyText(value: unknown): string {
  const found = camel(value);
  if (typeof found.text === 'string' && found.text !== '') return found.text;
  const path = text(found.path);
  const reason = text(found.reason);
  const source = text(found.source);
  const rule = text(found.rule);
  const decided = rule === '' ? '' : ` The deciding rule is ${rule}${source === '' ? '' : ` (${source}${number(found.line) > 0 ? `:${number(found.line)}` : ''})`}.`;
  if (found.included === true) return `${path} is in the context: ${text(found.tier)}, ${count(number(found.tokens))} tokens. ${reason}${decided}`.trim();
  return `${path} is not in the context: ${reason === '' ? 'no reason given' : reason}.${decided}`;
}

function row(file: Plain, tokens: number): string {
  const why = [text(file.reason), text(file.detail)].filter((part) => part !== '').join(': ');
  return `${pad(tokens)}  ${text(file.tier).padEnd(9)}  ${text(file.path)}${why === '' ? '' : `  (${why})`}`;
}

function section(title: string, value: unknown): string[] {
  const rows = Object.entries(typeof value === 'object' && value !== null ? value : {}).filter(([, amount]) => number(amount) > 0);
  if (rows.length === 0) return [];
  return [title, ...rows.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, amount]) => `${pad(amount)}  ${name}`), ''];
}

function findings(value: unknown): string[] {
  const rows = objects(value).map((item) => `           ${text(item.path)}:${number(item.line)}: ${text(item.kind)}`);
  return rows.length === 0 ? [] : ['Secrets replaced by markers', ...rows, ''];
}

function notes(value: unknown): string[] {
  const rows = Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : [];
  return rows.length === 0 ? [] : ['Notes', ...rows.map((line) => `           ${line}`), ''];
}

/** The object with its own names in camelCase; anything else is an empty object. */
function camel(value: unknown): Plain {
  if (typeof value !== 'object' || value === null) return {};
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()), item as unknown]));
}

function objects(value: unknown): Plain[] {
  return Array.isArray(value) ? value.map(camel) : [];
}

function number(value: unknown): number {
  return typeof value === 'number' ? value : 0;
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function pad(value: unknown): string {
  return count(number(value)).padStart(9);
}
