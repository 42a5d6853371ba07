// References in a question: `@src/app.py`, `@src/app.py:3-9`, `@"a path with blanks.md"`, `@selection`.

/** One reference as written: offsets into the text, lines from 1, both ends included. */
export interface Mention {
  start: number;
  end: number;
  path: string;
  firstLine?: number;
  lastLine?: number;
}

/** The word that stands for the selection of the active editor. */
export const SELECTION = 'selection';

const BEFORE = /[\s([{,;]/;
const QUOTED = /"([^"\n]+)"/y;
const BARE = /[^\s@"'`,;()[\]{}<>]+/y;
const LINES = /(?::(\d{1,7})(?:-(\d{1,7}))?|#L(\d{1,7})(?:-L?(\d{1,7}))?)$/;
const LINES_BEHIND = /(?::(\d{1,7})(?:-(\d{1,7}))?|#L(\d{1,7})(?:-L?(\d{1,7}))?)(?![\w/])/y;
const PUNCTUATION = /[.:!?…]+$/;

/** Every reference in a question, in order. Whether there is such a file is for others to find out. */
export function mentions(text: string): Mention[] {
  const found: Mention[] = [];
  for (let at = text.indexOf('@'); at !== -1; at = text.indexOf('@', at + 1)) {
    if (at > 0 && !BEFORE.test(text.charAt(at - 1))) continue;
    const mention = quoted(text, at) ?? bare(text, at);
    if (mention === undefined) continue;
    found.push(mention);
    at = mention.end - 1;
  }
  return found;
}

/** The reference as it is written into a question. */
export function written(path: string, firstLine?: number, lastLine?: number): string {
  const plain = new RegExp(`^${BARE.source}$`).test(path) && !PUNCTUATION.test(path) && !LINES.test(path);
  const name = plain ? `@${path}` : `@"${path}"`;
  if (firstLine === undefined) return name;
  return lastLine === undefined || lastLine === firstLine ? `${name}:${firstLine}` : `${name}:${firstLine}-${lastLine}`;
}

/** The reference being typed at the cursor: where its `@` stands and what has been typed of the path. */
export function typing(text: string, cursor: number): { start: number; query: string } | undefined {
  const at = text.lastIndexOf('@', cursor - 1);
  if (at === -1 || (at > 0 && !BEFORE.test(text.charAt(at - 1)))) return undefined;
  const query = text.slice(at + 1, cursor);
  if (query.startsWith('"')) return /["\n]/.test(query.slice(1)) ? undefined : { start: at, query: query.slice(1) };
  return new RegExp(`^(?:${BARE.source})?$`).test(query) ? { start: at, query } : undefined;
}

function quoted(text: string, at: number): Mention | undefined {
  QUOTED.lastIndex = at + 1;
  const match = QUOTED.exec(text);
  if (match?.[1] === undefined) return undefined;
  LINES_BEHIND.lastIndex = QUOTED.lastIndex;
  const lines = LINES_BEHIND.exec(text);
  const end = lines === null ? at + 1 + match[0].length : LINES_BEHIND.lastIndex;
  return { start: at, end, path: match[1], ...range(lines) };
}

function bare(text: string, at: number): Mention | undefined {
  BARE.lastIndex = at + 1;
  const word = BARE.exec(text)?.[0].replace(PUNCTUATION, '');
  if (!word) return undefined;
  const lines = LINES.exec(word);
  const path = lines === null ? word : word.slice(0, lines.index);
  return path === '' ? undefined : { start: at, end: at + 1 + word.length, path, ...range(lines) };
}

function range(match: RegExpExecArray | null): { firstLine?: number; lastLine?: number } {
  const first = Number(match?.[1] ?? match?.[3] ?? 0);
  if (first === 0) return {};
  const last = Number(match?.[2] ?? match?.[4] ?? first);
  return { firstLine: Math.min(first, last), lastLine: Math.max(first, last) };
}
