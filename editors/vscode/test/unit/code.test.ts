import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codeInfo, colours, placeOf } from '../../src/shared/code.ts';

test('language and path of a fence', () => {
  assert.deepEqual(codeInfo('python'), { language: 'python' });
  assert.deepEqual(codeInfo('python src/app.py'), { language: 'python', path: 'src/app.py' });
  assert.deepEqual(codeInfo('python:src/app.py'), { language: 'python', path: 'src/app.py' });
  assert.deepEqual(codeInfo('ts title="my src/a.ts" {1,3}'), { language: 'ts', path: 'my src/a.ts' });
  assert.deepEqual(codeInfo('src/a.rs'), { language: 'rs', path: 'src/a.rs' });
  assert.deepEqual(codeInfo('{.python .numberLines}'), { language: '' });
  assert.deepEqual(codeInfo(''), { language: '' });
});

test('colours keep every character', () => {
  const code = 'def f(a: int) -> str:  # "x"\n    """doc # no"""\n    return \'a\\\'b\' + "unclosed\n\n1_000.5e3 é\n';
  for (const language of ['python', 'typescript', 'sql', 'diff', 'text', 'unknown']) {
    assert.equal(colours(code, language).map((piece) => piece.text).join(''), code, language);
  }
  const kinds = new Map(colours(code, 'python').map((piece) => [piece.text, piece.kind]));
  assert.equal(kinds.get('def'), 'keyword');
  assert.equal(kinds.get('# "x"'), 'comment');
  assert.equal(kinds.get('"""doc # no"""'), 'string');
  assert.equal(kinds.get("'a\\'b'"), 'string');
  assert.equal(kinds.get('1_000.5e3'), 'number');
});

test('inline code that names a place', () => {
  assert.deepEqual(placeOf('src/app.py:12'), { path: 'src/app.py', line: 12 });
  assert.deepEqual(placeOf('README.md'), { path: 'README.md' });
  for (const other of ['foo', 'Lamp.dim', 'self.level', 'a b.py', 'x = 1', '3.11', 'f(x)', '/etc/passwd', '../up.py', 'https://x.org']) {
    assert.equal(placeOf(other), undefined, other);
  }
});
