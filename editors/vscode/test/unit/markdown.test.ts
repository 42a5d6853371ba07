import assert from 'node:assert/strict';
import { test } from 'node:test';
import { linkTarget } from '../../src/shared/inline.ts';
import { type Block, type Inline, parse } from '../../src/shared/markdown.ts';

/** A tree as one line, to compare by eye. */
function show(node: Block | Inline): string {
  switch (node.kind) {
    case 'text':
      return node.text;
    case 'break':
      return '⏎';
    case 'rule':
      return '---';
    case 'code':
      return 'info' in node ? `code(${node.info}${node.closed ? '' : '…'}|${node.text})` : `\`${node.text}\``;
    case 'edit':
      return `${node.action}(${node.path}|${node.before}|${node.after}${node.closed ? '' : '…'})`;
    case 'link':
      return `link(${node.href}|${all(node.children)})`;
    case 'strong':
    case 'em':
    case 'del':
      return `${node.kind}(${all(node.children)})`;
    case 'paragraph':
      return `p(${all(node.children)})`;
    case 'heading':
      return `h${node.level}(${all(node.children)})`;
    case 'quote':
      return `quote(${all(node.blocks)})`;
    case 'list':
      return `${node.ordered ? `ol${node.start}` : 'ul'}(${node.items.map((item) => (item.checked === undefined ? '' : item.checked ? '☑' : '☐') + all(item.blocks)).join(', ')})`;
    case 'table':
      return `table(${[node.head, ...node.rows].map((row) => row.map(all).join('|')).join(' / ')})`;
  }
}

const all = (nodes: (Block | Inline)[]): string => nodes.map(show).join('');
const read = (text: string): string => all(parse(text).map((section) => section.block));

const CASES: [string, string, string][] = [
  ['paragraphs', 'one\ntwo\n\nthree', 'p(one two)p(three)'],
  ['headings', '# A\n## B ##\n###### C\n####### D', 'h1(A)h2(B)h6(C)p(####### D)'],
  ['emphasis', 'a *b* **c** ***d*** ~~e~~ _f_ __g__', 'p(a em(b) strong(c) em(strong(d)) del(e) em(f) strong(g))'],
  ['words with underscores', 'snake_case_name and __init__.py', 'p(snake_case_name and strong(init).py)'],
  ['stars that are none', '2 * 3 * 4 and **open', 'p(2 * 3 * 4 and **open)'],
  ['code spans', 'a `b*c*` ``d`e`` `f', 'p(a `b*c*` `d`e` `f)'],
  ['escapes', '\\*a\\* \\` \\x', 'p(*a* ` \\x)'],
  ['links', '[a](https://x.org/(1)) [b](src/x.py "t") <https://y.org>', 'p(link(https://x.org/(1)|a) link(src/x.py|b) link(https://y.org|https://y.org))'],
  ['bare addresses', 'see https://x.org/a_b(c). And (https://y.org).', 'p(see link(https://x.org/a_b(c)|https://x.org/a_b(c)). And (link(https://y.org|https://y.org)).)'],
  ['images are links', '![alt](https://x.org/i.png)', 'p(link(https://x.org/i.png|alt))'],
  ['html is text', '<script>alert(1)</script> <b>x</b>', 'p(<script>alert(1)</script> <b>x</b>)'],
  ['no link to a scheme that does things', '[x](javascript:alert(1)) [y](command:z) [z](data:text/html,a)', 'p(x y z)'],
  ['fences', '```python src/a.py\nx = 1\n\n# no heading\n```\nafter', 'code(python src/a.py|x = 1\n\n# no heading)p(after)'],
  ['a fence still open', 'a\n~~~\nb\n```', 'p(a)code(…|b\n```)'],
  ['a longer fence holds a shorter one', '````md\n```\nx\n```\n````', 'code(md|```\nx\n```)'],
  ['edits', 'Do:\n<<<<<<< SEARCH a b.py\n# x\n=======\n- y\n>>>>>>> REPLACE\nso', 'p(Do:)change(a b.py|# x|- y)p(so)'],
  ['a new file and a file that goes', '<<<<<<< CREATE a.py\n=======\n>>>>>>> END\n<<<<<<< DELETE b.py\n>>>>>>> END', 'create(a.py||=======)delete(b.py||)'],
  ['an edit still open', '<<<<<<< SEARCH a.py\nx\n=======\ny', 'change(a.py|x|y…)'],
  ['a conflict is no edit', '<<<<<<< HEAD\nx', 'p(<<<<<<< HEAD x)'],
  ['lists', '- a\n- b\n  - c\n\n1. d\n2. e', 'ul(p(a), p(b)ul(p(c)))ol1(p(d), p(e))'],
  ['a list that starts at three', '3) a\n4) b', 'ol3(p(a), p(b))'],
  ['code in a list', '1. a\n   ```sh\n   ls\n   ```\n2. b', 'ol1(p(a)code(sh|ls), p(b))'],
  ['loose lists', '- a\n\n- b\n\n  c', 'ul(p(a), p(b)p(c))'],
  ['tasks', '- [x] a\n- [ ] b', 'ul(☑p(a), ☐p(b))'],
  ['sloppy nesting', '1. a\n  - b', 'ol1(p(a)ul(p(b)))'],
  ['a list after a line', 'Files:\n- a\n- b', 'p(Files:)ul(p(a), p(b))'],
  ['a number that begins a line', 'It is from\n1986. Good.', 'p(It is from 1986. Good.)'],
  ['quotes', '> a\n> > b\n\nc', 'quote(p(a)quote(p(b)))p(c)'],
  ['rules', 'a\n\n---\n\n* * *', 'p(a)------'],
  ['tables', '| a | b |\n|:--|--:|\n| `c` | d \\| e |\n| f |', 'table(a|b / `c`|d | e / f|)'],
  ['hard breaks', 'a  \nb\\\nc', 'p(a⏎b⏎c)'],
  ['carriage returns', 'a\r\n\r\n- b\r- c', 'p(a)ul(p(b), p(c))'],
  ['nothing', ' \n\n', ''],
];

for (const [name, text, wanted] of CASES) {
  test(`Markdown: ${name}`, () => assert.equal(read(text), wanted));
}

test('a text that grows changes only its last block', () => {
  const text = CASES.filter(([name]) => name !== 'a fence still open' && name !== 'an edit still open')
    .map(([, source]) => source.replaceAll('\r', '\n'))
    .join('\n\n');
  let before = parse('');
  for (let end = 1; end <= text.length; end += 7) {
    const now = parse(text.slice(0, end));
    const kept = before.slice(0, -2);
    assert.deepEqual(now.slice(0, kept.length), kept, `at ${end}`);
    before = now;
  }
});

test('no text is slow to read', () => {
  const size = 20_000;
  const evil = ['*a '.repeat(size), '[', '`'.repeat(3).padEnd(9, 'a'), '_*~~'.repeat(size), '> '.repeat(size), '![]('.repeat(size), '<https://'.repeat(size), '- '.repeat(size), '|'.repeat(size), '`` ` '.repeat(size)];
  const base = 'word '.repeat(size);
  const time = (text: string): number => {
    const began = process.cpuUsage();
    parse(text);
    return process.cpuUsage(began).user;
  };
  time(base);
  const plain = Math.max(time(base), 20_000);
  for (const text of [...evil, '['.repeat(size)]) assert.ok(time(text) < 200 * plain, text.slice(0, 20));
});

test('links lead to pages and files only', () => {
  assert.deepEqual(linkTarget('src/a.py:12'), { kind: 'file', target: 'src/a.py:12' });
  assert.deepEqual(linkTarget('app.py:12-14'), { kind: 'file', target: 'app.py:12-14' });
  assert.deepEqual(linkTarget('HTTPS://x.org'), { kind: 'page', target: 'HTTPS://x.org' });
  for (const bad of ['javascript:1+1', 'vscode://x', 'command:a', 'file:///etc/passwd', '//x.org', 'data:x', 'JaVaScRiPt:alert(1)']) {
    assert.equal(linkTarget(bad), undefined, bad);
  }
});
