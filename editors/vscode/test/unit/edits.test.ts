import assert from 'node:assert/strict';
import { test } from 'node:test';
import { confirmed, difference, isEmpty, outdated, summary, type LspEdit } from '../../src/shared/edits.ts';

const range = { start: { line: 0, character: 0 }, end: { line: 0, character: 1 } };
const EDIT: LspEdit = {
  documentChanges: [
    { textDocument: { uri: 'file:///a.py', version: 3 }, edits: [{ range, newText: 'x', annotationId: 'theirs' }, { range, newText: 'y' }] },
    { kind: 'create', uri: 'file:///b.py' },
    { kind: 'rename', oldUri: 'file:///c.py', newUri: 'file:///d.py' },
    { textDocument: { uri: 'file:///e.py', version: null }, edits: [{ range, newText: '' }] },
  ],
  changeAnnotations: { theirs: { label: 'A reason', needsConfirmation: false } },
};

test('no part of an edit goes unconfirmed', () => {
  for (const edit of [EDIT, { changes: { 'file:///a.py': [{ range, newText: 'x' }] } }, { changes: {} }]) {
    const safe = confirmed(edit, 'Laguna');
    const ids = (safe.documentChanges ?? []).flatMap((change) => ('edits' in change ? change.edits.map((item) => item.annotationId) : [change.annotationId]));
    for (const id of ids) assert.equal(safe.changeAnnotations?.[id ?? '']?.needsConfirmation, true);
  }
  assert.equal(confirmed(EDIT, 'Laguna').changeAnnotations?.theirs?.label, 'A reason');
  assert.equal(EDIT.changeAnnotations?.theirs?.needsConfirmation, false, 'what was given stays as it was');
});

test('what changes, file by file', () => {
  assert.deepEqual(summary(EDIT, (uri) => uri.slice(8)), [
    { label: 'a.py', change: 'edit', count: 2 },
    { label: 'b.py', change: 'create', count: 1 },
    { label: 'd.py', change: 'rename', count: 1 },
    { label: 'e.py', change: 'edit', count: 1 },
  ]);
  assert.ok(isEmpty({}) && isEmpty({ changes: { 'file:///a.py': [] } }) && !isEmpty(EDIT));
});

test('an edit of an older version is found', () => {
  assert.deepEqual(outdated(EDIT, () => 3), []);
  assert.deepEqual(outdated(EDIT, () => undefined), [], 'what is not open is as on disk');
  assert.deepEqual(outdated(EDIT, () => 4), ['file:///a.py']);
});

test('the difference is small, of whole lines, and makes the new text', () => {
  const texts = ['', 'a', 'a\n', 'a\nb\nc\n', 'a\nB\nc\n', 'a\nb\nc', 'b\nc\n', 'a\nb\nb\nc\n', 'x\ny\n', 'a\r\nb\r\nc\r\n', 'a\nc\n', '\n\n', '\n'];
  for (const before of texts) {
    for (const after of texts) {
      const { start, end, text } = difference(before, after);
      assert.ok(start <= end, JSON.stringify([before, after]));
      assert.equal(before.slice(0, start) + text + before.slice(end), after, JSON.stringify([before, after]));
      assert.ok(start === 0 || before[start - 1] === '\n' || start === before.length);
    }
  }
  assert.deepEqual(difference('a\nb\nc\n', 'a\nB\nc\n'), { start: 2, end: 4, text: 'B\n' });
});
