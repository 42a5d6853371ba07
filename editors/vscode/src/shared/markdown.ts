// Markdown of an answer to a tree of blocks. There is no HTML in it: tags are text, images are links.
import { type Inline, parseInline } from './inline.ts';

export type { Inline } from './inline.ts';

export interface ListItem {
  checked?: boolean;
  blocks: Block[];
}

export type Align = 'left' | 'center' | 'right' | undefined;

export type Block =
  | { kind: 'paragraph'; children: Inline[] }
  | { kind: 'heading'; level: number; children: Inline[] }
  | { kind: 'code'; info: string; text: string; closed: boolean }
  | { kind: 'edit'; action: 'change' | 'create' | 'delete' | 'rename'; path: string; before: string; after: string; closed: boolean }
  | { kind: 'quote'; blocks: Block[] }
  | { kind: 'list'; ordered: boolean; start: number; items: ListItem[] }
  | { kind: 'table'; align: Align[]; head: Inline[][]; rows: Inline[][][] }
  | { kind: 'rule' };

/** A block of the top level and the text it was made of: equal text, equal block. */
export interface Section {
  source: string;
  block: Block;
}

const DEPTH = 12;
const FENCE = /^( {0,3})(`{3,}|~{3,})[ \t]*(.*?)[ \t]*$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+(.*))?$/;
const RULE = /^ {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])([ \t]+|$)/;
const EDIT = /^<{5,} ?(SEARCH|CREATE|DELETE|RENAME)\b[ \t]*(.*?)[ \t]*$/;
const EDIT_END = /^>{5,} ?(?:REPLACE|END)[ \t]*$/;
const TASK = /^\[([ xX])\][ \t]+/;
const DELIMITERS = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;

/** The blocks of the top level with their sources; the last one may still be growing. */
export function parse(text: string): Section[] {
  const lines = text.replace(/\r\n?/g, '\n').split('\n');
  return blocks(lines, 0).map(({ block, from, to }) => ({ source: lines.slice(from, to).join('\n'), block }));
}

interface Found {
  block: Block;
  from: number;
  to: number;
}

function blocks(lines: string[], depth: number): Found[] {
  const found: Found[] = [];
  let at = 0;
  while (at < lines.length) {
    if (blank(lines[at])) {
      at += 1;
      continue;
    }
    const next = block(lines, at, depth);
    found.push({ block: next.block, from: at, to: next.to });
    at = next.to;
  }
  return found;
}

function nested(lines: string[], depth: number): Block[] {
  return blocks(lines, depth + 1).map((item) => item.block);
}

function block(lines: string[], at: number, depth: number): { block: Block; to: number } {
  const line = lines[at] ?? '';
  const fence = fenceOf(line);
  if (fence !== undefined) return code(lines, at, fence);
  const edit = EDIT.exec(line);
  if (edit !== null) return editAt(lines, at, edit);
  const heading = HEADING.exec(line);
  if (heading?.[1] !== undefined) {
    const title = (heading[2] ?? '').replace(/(?:^|[ \t]+)#+[ \t]*$/, '').trim();
    return { block: { kind: 'heading', level: heading[1].length, children: parseInline(title) }, to: at + 1 };
  }
  if (RULE.test(line)) return { block: { kind: 'rule' }, to: at + 1 };
  if (depth < DEPTH && QUOTE.test(line)) return quote(lines, at, depth);
  if (depth < DEPTH && ITEM.test(line)) return list(lines, at, depth);
  if (tableAt(lines, at)) return table(lines, at);
  return paragraph(lines, at, depth);
}

interface Fence {
  indent: number;
  mark: string;
  info: string;
}

function fenceOf(line: string): Fence | undefined {
  const match = FENCE.exec(line);
  if (match?.[2] === undefined) return undefined;
  const info = match[3] ?? '';
  if (match[2].startsWith('`') && info.includes('`')) return undefined;
  return { indent: match[1]?.length ?? 0, mark: match[2], info };
}

function code(lines: string[], at: number, fence: Fence): { block: Block; to: number } {
  const body: string[] = [];
  let to = at + 1;
  let closed = false;
  for (; to < lines.length && !closed; to += 1) {
    const line = lines[to] ?? '';
    const end = /^ {0,3}(`{3,}|~{3,})[ \t]*$/.exec(line)?.[1];
    closed = end?.[0] === fence.mark[0] && (end?.length ?? 0) >= fence.mark.length;
    if (!closed) body.push(line.replace(new RegExp(`^ {0,${fence.indent}}`), ''));
  }
  return { block: { kind: 'code', info: fence.info, text: body.join('\n'), closed }, to };
}

/** A change to a file, in the form in which models are asked to write it. */
function editAt(lines: string[], at: number, match: RegExpExecArray): { block: Block; to: number } {
  const before: string[] = [];
  const after: string[] = [];
  let part = match[1] === 'SEARCH' ? before : after;
  let to = at + 1;
  let closed = false;
  for (; to < lines.length && !closed; to += 1) {
    const line = lines[to] ?? '';
    closed = EDIT_END.test(line);
    if (closed) continue;
    if (part === before && /^={5,}[ \t]*$/.test(line)) part = after;
    else part.push(line);
  }
  const action = ({ SEARCH: 'change', CREATE: 'create', DELETE: 'delete', RENAME: 'rename' } as const)[match[1] as 'SEARCH'];
  return { block: { kind: 'edit', action, path: match[2] ?? '', before: before.join('\n'), after: after.join('\n'), closed }, to };
}

function quote(lines: string[], at: number, depth: number): { block: Block; to: number } {
  const body: string[] = [];
  let to = at;
  for (; to < lines.length; to += 1) {
    const line = lines[to] ?? '';
    if (QUOTE.test(line)) body.push(line.replace(QUOTE, ''));
    else if (continues(line, body.at(-1))) body.push(line);
    else break;
  }
  return { block: { kind: 'quote', blocks: nested(body, depth) }, to };
}

function list(lines: string[], at: number, depth: number): { block: Block; to: number } {
  const mark = ITEM.exec(lines[at] ?? '')?.[2] ?? '-';
  const ordered = /\d/.test(mark);
  const items: ListItem[] = [];
  let to = at;
  while (to < lines.length) {
    const match = ITEM.exec(lines[to] ?? '');
    if (match?.[2] === undefined || match[2].at(-1) !== mark.at(-1) || /\d/.test(match[2]) !== ordered) break;
    if (RULE.test(lines[to] ?? '')) break;
    const item = itemAt(lines, to, match);
    items.push(itemOf(item.body, depth));
    to = item.to;
    let next = to;
    while (next < lines.length && blank(lines[next])) next += 1;
    if (next > to && ITEM.test(lines[next] ?? '')) to = next;
  }
  return { block: { kind: 'list', ordered, start: ordered ? Number.parseInt(mark, 10) : 1, items }, to };
}

function itemAt(lines: string[], at: number, match: RegExpExecArray): { body: string[]; to: number } {
  const gap = match[3] ?? '';
  const lead = (match[1]?.length ?? 0) + (match[2]?.length ?? 0);
  const indent = lead + (gap.length > 4 || gap.length === 0 ? 1 : gap.length);
  const body = [(lines[at] ?? '').slice(indent)];
  let to = at + 1;
  for (; to < lines.length; to += 1) {
    const line = lines[to] ?? '';
    const own = depthOf(line);
    if (blank(line)) {
      let next = to;
      while (next < lines.length && blank(lines[next])) next += 1;
      if (depthOf(lines[next] ?? '') < indent) break;
      body.push('');
    } else if (own >= indent) body.push(line.slice(indent));
    else if (own >= 2 && ITEM.test(line.trimStart())) body.push(line.trimStart()); // sloppy nesting is common
    else if (continues(line, body.at(-1))) body.push(line);
    else break;
  }
  return { body, to };
}

function itemOf(body: string[], depth: number): ListItem {
  const task = TASK.exec(body[0] ?? '');
  if (task === null) return { blocks: nested(body, depth) };
  const rest = [(body[0] ?? '').slice(task[0].length), ...body.slice(1)];
  return { checked: task[1] !== ' ', blocks: nested(rest, depth) };
}

function tableAt(lines: string[], at: number): boolean {
  const head = lines[at] ?? '';
  const rule = lines[at + 1] ?? '';
  if (!head.includes('|') || !rule.includes('-') || !DELIMITERS.test(rule)) return false;
  return cells(head).length === cells(rule).length;
}

function table(lines: string[], at: number): { block: Block; to: number } {
  const align = cells(lines[at + 1] ?? '').map(
    (cell): Align =>
      cell.endsWith(':') ? (cell.startsWith(':') ? 'center' : 'right') : cell.startsWith(':') ? 'left' : undefined,
  );
  const rows: Inline[][][] = [];
  let to = at + 2;
  for (; to < lines.length && !blank(lines[to]) && (lines[to] ?? '').includes('|'); to += 1) {
    const row = cells(lines[to] ?? '').map((cell) => parseInline(cell));
    while (row.length < align.length) row.push([]);
    rows.push(row.slice(0, align.length));
  }
  const head = cells(lines[at] ?? '').map((cell) => parseInline(cell));
  return { block: { kind: 'table', align, head, rows }, to };
}

function cells(line: string): string[] {
  const row = line.trim().replace(/^\|/, '').replace(/(?<!\\)\|$/, '');
  return row.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|'));
}

function paragraph(lines: string[], at: number, depth: number): { block: Block; to: number } {
  let to = at + 1;
  while (to < lines.length && !blank(lines[to]) && !interrupts(lines, to, depth)) to += 1;
  const text = lines
    .slice(at, to)
    .map((line) => line.trimStart())
    .join('\n')
    .trimEnd();
  return { block: { kind: 'paragraph', children: parseInline(text) }, to };
}

function interrupts(lines: string[], at: number, depth: number): boolean {
  const line = lines[at] ?? '';
  const item = ITEM.exec(line);
  if (item !== null && depth < DEPTH) return item[3] !== '' && (!/\d/.test(item[2] ?? '') || /^1[.)]$/.test(item[2] ?? ''));
  if (fenceOf(line) !== undefined || EDIT.test(line) || HEADING.test(line) || RULE.test(line)) return true;
  return (depth < DEPTH && QUOTE.test(line)) || tableAt(lines, at);
}

/** Whether a line carries on a paragraph of the container before it without the container's mark. */
function continues(line: string, before: string | undefined): boolean {
  if (blank(line) || before === undefined || blank(before)) return false;
  return !(fenceOf(line) ?? fenceOf(before)) && !HEADING.test(line) && !RULE.test(line) && !ITEM.test(line) && !QUOTE.test(line);
}

function blank(line: string | undefined): boolean {
  return line === undefined || line.trim() === '';
}

function depthOf(line: string): number {
  return line.length - line.trimStart().length;
}
