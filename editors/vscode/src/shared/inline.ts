// Markdown within a line: emphasis, code, links. Linear in the length of the text, whatever it holds.

export type Inline =
  | { kind: 'text'; text: string }
  | { kind: 'code'; text: string }
  | { kind: 'strong' | 'em' | 'del'; children: Inline[] }
  | { kind: 'link'; href: string; children: Inline[] }
  | { kind: 'break' };

const ESCAPED = /[!-/:-@[-`{-~]/;
const URL_HERE = /https?:\/\/[^\s<>"`\\^{|}]+/y;
const ANGLE = /<((?:https?:\/\/|mailto:)[^\s<>]+)>/y;
const TARGET = /\(\s*(<[^<>\n]*>|[^\s()<>]*(?:\([^\s()<>]*\)[^\s()<>]*)*)(?:\s+(?:"[^"\n]*"|'[^'\n]*'))?\s*\)/y;
const OPEN_MARKS = 64;
const LABEL = 1000;

interface Mark {
  at: number; // index into the nodes
  character: string;
  count: number;
}

/** The inline nodes of a paragraph. */
export function parseInline(text: string, links = true): Inline[] {
  return new Scanner(text, links).run();
}

/** What a link may lead to: a page, a mail address, or a path of the workspace. Anything else is no link. */
export function linkTarget(href: string): { kind: 'page' | 'file'; target: string } | undefined {
  if (/^(?:https?:\/\/|mailto:)/i.test(href)) return { kind: 'page', target: href };
  if (href === '' || href.startsWith('#') || href.startsWith('//') || /^[a-z][a-z0-9+.-]*:(?!\d+(?:-\d+)?$)/i.test(href)) {
    return undefined;
  }
  return { kind: 'file', target: href };
}

class Scanner {
  private readonly nodes: Inline[] = [];
  private readonly marks: Mark[] = [];
  private readonly unclosed = new Set<number>(); // lengths of backtick runs that nothing closes
  private at = 0;
  private pending = '';
  private readonly text: string;
  private readonly links: boolean;

  constructor(text: string, links: boolean) {
    this.text = text;
    this.links = links;
  }

  run(): Inline[] {
    while (this.at < this.text.length) this.step();
    this.flush();
    while (this.marks.length > 0) this.giveUp();
    return merged(this.nodes);
  }

  private step(): void {
    const character = this.text.charAt(this.at);
    if (character === '\\') return this.escape();
    if (character === '`') return this.code();
    if (character === '\n') return this.newline();
    if (character === '*' || character === '_' || character === '~') return this.mark(character);
    if (this.links && (character === '[' || character === '!') && this.link()) return;
    if (this.links && character === '<' && this.address(ANGLE)) return;
    if (this.links && character === 'h' && !/\w/.test(this.before()) && this.address(URL_HERE)) return;
    this.pending += character;
    this.at += 1;
  }

  private before(): string {
    return this.at === 0 ? ' ' : this.text.charAt(this.at - 1);
  }

  private flush(): void {
    if (this.pending !== '') this.nodes.push({ kind: 'text', text: this.pending });
    this.pending = '';
  }

  private push(node: Inline): void {
    this.flush();
    this.nodes.push(node);
  }

  private escape(): void {
    const next = this.text.charAt(this.at + 1);
    if (next === '\n') {
      this.push({ kind: 'break' });
    } else {
      this.pending += next !== '' && ESCAPED.test(next) ? next : `\\${next}`;
    }
    this.at += 2;
  }

  private newline(): void {
    if (/ {2,}$/.test(this.pending)) {
      this.pending = this.pending.trimEnd();
      this.push({ kind: 'break' });
    } else {
      this.pending += ' ';
    }
    this.at += 1;
  }

  private code(): void {
    let length = 1;
    while (this.text.charAt(this.at + length) === '`') length += 1;
    const end = this.unclosed.has(length) ? -1 : closing(this.text, this.at + length, length);
    if (end === -1) {
      this.unclosed.add(length);
      this.pending += '`'.repeat(length);
      this.at += length;
      return;
    }
    const inside = this.text.slice(this.at + length, end).replaceAll('\n', ' ');
    const padded = inside.startsWith(' ') && inside.endsWith(' ') && inside.trim() !== '';
    this.push({ kind: 'code', text: padded ? inside.slice(1, -1) : inside });
    this.at = end + length;
  }

  private mark(character: string): void {
    let count = 1;
    while (this.text.charAt(this.at + count) === character) count += 1;
    const before = this.before();
    const after = this.text.charAt(this.at + count) || ' ';
    this.at += count;
    const wordy = character === '_' && /[\p{L}\p{N}_]/u.test(before) && /[\p{L}\p{N}_]/u.test(after);
    const closes = !/\s/.test(before) && !wordy;
    const opens = !/\s/.test(after) && !wordy;
    if (count > 3 || (character === '~' && count !== 2) || !(closes || opens)) {
      this.pending += character.repeat(count);
      return;
    }
    const left = closes ? this.close(character, count) : count;
    if (left === 0) return;
    if (!opens || this.marks.length >= OPEN_MARKS) {
      this.pending += character.repeat(left);
      return;
    }
    this.flush();
    this.marks.push({ at: this.nodes.length, character, count: left });
    this.nodes.push({ kind: 'text', text: character.repeat(left) });
  }

  /** Close as much of `count` as the open marks allow; returns what is left of it. */
  private close(character: string, count: number): number {
    let left = count;
    while (left > 0) {
      const index = this.marks.findLastIndex((mark) => mark.character === character);
      const mark = this.marks[index];
      if (mark === undefined) return left;
      const used = character === '~' ? 2 : Math.min(left, mark.count, 2);
      this.flush();
      const children = merged(this.nodes.splice(mark.at + 1));
      if (children.length === 0) return left;
      const kind = character === '~' ? 'del' : used === 2 ? 'strong' : 'em';
      this.marks.length = index; // marks inside stay the text they are
      mark.count -= used;
      left -= used;
      if (mark.count > 0) {
        this.nodes[mark.at] = { kind: 'text', text: character.repeat(mark.count) };
        this.marks.push(mark);
      } else {
        this.nodes.length = mark.at;
      }
      this.nodes.push({ kind, children });
    }
    return left;
  }

  private giveUp(): void {
    this.marks.pop();
  }

  private link(): boolean {
    const image = this.text.charAt(this.at) === '!';
    const start = image ? this.at + 1 : this.at;
    if (this.text.charAt(start) !== '[') return false;
    const end = labelEnd(this.text, start);
    if (end === -1) return false;
    TARGET.lastIndex = end + 1;
    const match = TARGET.exec(this.text);
    if (match?.[1] === undefined) return false;
    const href = match[1].replace(/^<|>$/g, '');
    const label = this.text.slice(start + 1, end);
    const children = parseInline(label === '' ? href : label, false);
    this.flush();
    if (linkTarget(href) === undefined) this.nodes.push(...children);
    else this.nodes.push({ kind: 'link', href, children });
    this.at = TARGET.lastIndex;
    return true;
  }

  private address(pattern: RegExp): boolean {
    pattern.lastIndex = this.at;
    const match = pattern.exec(this.text);
    if (match === null) return false;
    let href = match[1] ?? match[0];
    let length = match[0].length;
    if (match[1] === undefined) {
      href = trimmed(href);
      length = href.length;
    }
    this.push({ kind: 'link', href, children: [{ kind: 'text', text: href }] });
    this.at += length;
    return true;
  }
}

/** A bare address ends before the punctuation of the sentence it stands in. */
function trimmed(address: string): string {
  let end = address.replace(/[.,:;!?'*_~]+$/, '');
  while (end.endsWith(')') && count(end, ')') > count(end, '(')) end = end.slice(0, -1);
  return end.endsWith(']') && !end.includes('[') ? end.slice(0, -1) : end;
}

function count(text: string, character: string): number {
  return text.split(character).length - 1;
}

function closing(text: string, from: number, length: number): number {
  let at = text.indexOf('`', from);
  while (at !== -1) {
    let end = at;
    while (text.charAt(end) === '`') end += 1;
    if (end - at === length) return at;
    at = text.indexOf('`', end);
  }
  return -1;
}

function labelEnd(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length && at - start < LABEL; at += 1) {
    const character = text.charAt(at);
    if (character === '\\') at += 1;
    else if (character === '[') depth += 1;
    else if (character === ']') {
      depth -= 1;
      if (depth === 0) return at;
    }
  }
  return -1;
}

function merged(nodes: Inline[]): Inline[] {
  const out: Inline[] = [];
  for (const node of nodes) {
    const last = out.at(-1);
    if (node.kind === 'text' && last?.kind === 'text') out[out.length - 1] = { kind: 'text', text: last.text + node.text };
    else out.push(node);
  }
  return out;
}
