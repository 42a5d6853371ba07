import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rank } from '../../src/shared/fuzzy.ts';
import { mentions, typing, written } from '../../src/shared/references.ts';

const paths = (text: string): string[] => mentions(text).map((item) => item.path);

test('a reference ends where the sentence goes on', () => {
  assert.deepEqual(paths('See @src/app.py, (@lib/a-b.ts) and @Makefile.'), ['src/app.py', 'lib/a-b.ts', 'Makefile']);
  assert.deepEqual(paths('What does @src/app.py?'), ['src/app.py']);
  assert.deepEqual(paths('@.gitignore and @a/.env.example: why'), ['.gitignore', 'a/.env.example']);
});

test('what merely holds an @ is no reference', () => {
  assert.deepEqual(paths('mail me@example.org, x@y, git@host:repo'), []);
  assert.deepEqual(paths('alone @ or @" unclosed or @, here'), []);
});

test('lines from one, in both spellings and any order', () => {
  const [one, two, three, four] = mentions('@a.py:7 @a.py:3-9 @a.py#L9-L3 @"b c.py":2-4');
  assert.deepEqual([one?.firstLine, one?.lastLine], [7, 7]);
  assert.deepEqual([two?.firstLine, two?.lastLine], [3, 9]);
  assert.deepEqual([three?.path, three?.firstLine, three?.lastLine], ['a.py', 3, 9]);
  assert.deepEqual([four?.path, four?.firstLine, four?.lastLine], ['b c.py', 2, 4]);
});

test('offsets cut the reference out exactly', () => {
  const text = 'Compare @"my notes/é 1.md":2 with @src/x.ts:4-5.';
  assert.deepEqual(
    mentions(text).map((item) => text.slice(item.start, item.end)),
    ['@"my notes/é 1.md":2', '@src/x.ts:4-5'],
  );
});

test('what is written is read back', () => {
  for (const path of ['a.py', 'my project é#1/a b.py', 'x/(y).ts', "it's.txt", 'end.', 'odd:12', 'a@b.txt', 'z#L3']) {
    for (const [first, last] of [[undefined, undefined], [3, undefined], [3, 9]] as const) {
      const [found] = mentions(`Look at ${written(path, first, last)} now`);
      assert.equal(found?.path, path);
      assert.equal(found.firstLine, first);
      assert.equal(found.lastLine, last ?? first);
    }
  }
});

test('the reference being typed is the one at the cursor', () => {
  assert.deepEqual(typing('see @src/ap', 11), { start: 4, query: 'src/ap' });
  assert.deepEqual(typing('@', 1), { start: 0, query: '' });
  assert.deepEqual(typing('see @"my no', 11), { start: 4, query: 'my no' });
  assert.equal(typing('see @src/app.py now', 19), undefined);
  assert.equal(typing('me@exam', 7), undefined);
  assert.equal(typing('none', 4), undefined);
});

test('a file is found by its name before its folder', () => {
  const files = ['app/readme.md', 'src/app.py', 'src/apple/x.py', 'docs/a_p_p.md', 'zzz.txt'];
  assert.deepEqual(rank('app', files), ['src/app.py', 'app/readme.md', 'src/apple/x.py', 'docs/a_p_p.md']);
  assert.equal(rank('APP.PY', files)[0], 'src/app.py');
  assert.equal(rank('', files).length, files.length);
  assert.equal(rank('a', files, 2).length, 2);
});
