// Markdown blocks as elements.

import { codeInfo, colours, placeOf } from '../shared/code.ts';
import { linkTarget } from '../shared/inline.ts';
import { parse, type Block, type Inline, type ListItem } from '../shared/markdown.ts';
import { button, make } from './elements.ts';
import { tell } from './host.ts';

/** An answer that grows: blocks that have not changed keep their elements, and with them the user's selection. */
export class Answer {
  readonly element = make('div', { class: 'markdown' });
  private sources: string[] = [];
  private readonly turn: string;

  constructor(turn: string) {
    this.turn = turn;
  }

  show(text: string): void {
    const sections = parse(text);
    let same = 0;
    while (same < sections.length && sections[same]?.source === this.sources[same]) same += 1;
    while (this.element.children.length > same) this.element.lastElementChild?.remove();
    for (const section of sections.slice(same)) this.element.append(this.block(section.block));
    this.sources = sections.map((section) => section.source);
  }

  private block(block: Block): HTMLElement {
    switch (block.kind) {
      case 'paragraph':
        return make('p', {}, ...inlines(block.children));
      case 'heading':
        return make(`h${Math.min(6, block.level + 2)}` as 'h3', {}, ...inlines(block.children));
      case 'rule':
        return make('hr');
      case 'quote':
        return make('blockquote', {}, ...block.blocks.map((inner) => this.block(inner)));
      case 'list':
        return this.list(block.ordered, block.start, block.items);
      case 'table':
        return table(block);
      case 'code':
        return this.code(block.info, block.text);
      case 'edit':
        return edit(block);
    }
  }

  private list(ordered: boolean, start: number, items: ListItem[]): HTMLElement {
    const rows = items.map((item) => {
      const only = item.blocks[0];
      const first = only?.kind === 'paragraph' ? inlines(only.children) : only === undefined ? [] : [this.block(only)];
      const rest = item.blocks.slice(1).map((inner) => this.block(inner));
      const box = item.checked === undefined ? undefined : make('input', { type: 'checkbox', disabled: true, checked: item.checked, 'aria-label': item.checked ? 'done' : 'to do' });
      return make('li', { class: item.checked === undefined ? undefined : 'task' }, box, ...first, ...rest);
    });
    return ordered ? make('ol', { start: start === 1 ? undefined : String(start) }, ...rows) : make('ul', {}, ...rows);
  }

  private code(info: string, text: string): HTMLElement {
    const { language, path } = codeInfo(info);
    const name = path ?? (language === '' ? 'text' : language);
    const copy = button('Copy', () => {
      tell({ type: 'copy', text });
      copy.textContent = 'Copied';
      setTimeout(() => (copy.textContent = 'Copy'), 1500);
    }, { title: 'Copy this code' });
    const bar = make(
      'div',
      { class: 'code-bar' },
      path === undefined ? make('span', { class: 'code-name' }, name) : button(path, () => tell({ type: 'open', target: path }), { class: 'link code-name', title: `Open ${path}` }),
      make('span', { class: 'code-actions', role: 'group', 'aria-label': `Code block, ${name}` },
        copy,
        button('Insert', () => tell({ type: 'insert', text }), { title: 'Insert at the cursor of the active editor' }),
        button('Apply', () => tell({ type: 'apply', turn: this.turn, text, ...(path === undefined ? {} : { path }) }), { title: 'Apply to a file, with a preview' }),
      ),
    );
    const pieces = colours(text, language).map((piece) => (piece.kind === 'plain' ? piece.text : make('span', { class: `tok-${piece.kind}` }, piece.text)));
    return make('div', { class: 'code' }, bar, make('pre', { tabindex: '0' }, make('code', {}, ...pieces)));
  }
}

const ACTIONS = { change: 'change', create: 'new file', delete: 'deleted', rename: 'renamed' };

/** A proposed change as a small diff; it is applied as a whole, from below the answer. */
function edit(block: Extract<Block, { kind: 'edit' }>): HTMLElement {
  const lines = (text: string, sign: string, kind: string): HTMLElement[] =>
    text === '' ? [] : text.split('\n').map((line) => make('span', { class: kind }, `${sign} ${line}`));
  const rows = [...lines(block.before, '-', 'tok-removed'), ...lines(block.after, '+', 'tok-added')];
  const name = block.action === 'rename' ? make('span', { class: 'code-name' }, block.path) : button(block.path, () => tell({ type: 'open', target: block.path }), { class: 'link code-name', title: `Open ${block.path}` });
  const bar = make('div', { class: 'code-bar' }, name, make('span', { class: 'dim' }, ACTIONS[block.action]));
  return make('div', { class: 'code edit' }, bar, rows.length > 0 && make('pre', { tabindex: '0' }, make('code', {}, ...rows)));
}

function table(block: Extract<Block, { kind: 'table' }>): HTMLElement {
  const cell = (tag: 'td' | 'th', column: number, content: Inline[]): HTMLElement =>
    make(tag, { class: block.align[column] === undefined ? undefined : `align-${block.align[column]}`, scope: tag === 'th' ? 'col' : undefined }, ...inlines(content));
  const head = make('tr', {}, ...block.head.map((content, column) => cell('th', column, content)));
  const rows = block.rows.map((row) => make('tr', {}, ...row.map((content, column) => cell('td', column, content))));
  return make('div', { class: 'table', tabindex: '0' }, make('table', {}, make('thead', {}, head), make('tbody', {}, ...rows)));
}

function inlines(nodes: Inline[]): (Node | string)[] {
  return nodes.map(inline);
}

function inline(node: Inline): Node | string {
  switch (node.kind) {
    case 'text':
      return node.text;
    case 'break':
      return make('br');
    case 'code':
      return code(node.text);
    case 'link':
      return link(node.href, inlines(node.children));
    default:
      return make(node.kind, {}, ...inlines(node.children));
  }
}

/** Inline code; where it names a file of the repository, a way to it. */
function code(text: string): HTMLElement {
  const place = placeOf(text);
  if (place === undefined) return make('code', {}, text);
  const open = (): void => tell({ type: 'open', target: place.path, ...(place.line === undefined ? {} : { line: place.line }) });
  return make('code', {}, button(text, open, { class: 'link', title: `Open ${text}` }));
}

function link(href: string, children: (Node | string)[]): HTMLElement {
  const found = linkTarget(href);
  if (found === undefined) return make('span', {}, ...children);
  const element = make('a', { href: '#', title: href }, ...children);
  element.addEventListener('click', (event) => {
    event.preventDefault();
    tell({ type: 'open', target: found.target });
  });
  return element;
}
