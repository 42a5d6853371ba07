import assert from 'node:assert/strict';
import { test } from 'node:test';
import { contextText, whyText } from '../../src/shared/account.ts';
import { fromView } from '../../src/shared/messages.ts';

const manifest = {
  root: '/r',
  snapshot: 'abcdef0123456789',
  overlay_seq: 2,
  prefix_tokens: 1234,
  snapshot_tokens: 1200,
  overlay_tokens: 34,
  budget: { context: 8192 },
  files: [
    { path: 'small.py', tier: 'full', tokens: 10, overlay_tokens: 0, reason: '', detail: '' },
    { path: 'big.py', tier: 'full', tokens: 1000, overlay_tokens: 34, reason: '', detail: '' },
    { path: 'logo.png', tier: 'path', tokens: 0, overlay_tokens: 0, reason: 'binary', detail: 'NUL' },
  ],
  findings: [{ path: 'big.py', line: 3, kind: 'aws key' }],
  left_out: { ignored: 12, none: 0 },
  skipped: { binary: 1 },
  tiers: { full: 2 },
  notices: ['Truncated.'],
};

test('the account of a prompt, in either spelling', () => {
  const text = contextText(manifest);
  const order = ['big.py\n', 'small.py\n', 'logo.png  (binary: NUL)'].map((word) => text.lastIndexOf(word));
  assert.ok(order.every((at, index) => at > (order[index - 1] ?? 0)), text);
  for (const line of ['    1,234  tokens in all', '    8,192  tokens fit', '       12  ignored', 'big.py:3: aws key', 'Truncated.']) assert.ok(text.includes(line), line);
  assert.ok(!text.includes('none'));
  const { overlay_seq: overlaySeq, prefix_tokens: prefixTokens, snapshot_tokens: snapshotTokens, overlay_tokens: overlayTokens, left_out: leftOut, ...rest } = manifest;
  const files = manifest.files.map(({ overlay_tokens: amount, ...file }) => ({ ...file, overlayTokens: amount }));
  assert.equal(contextText({ ...rest, files, overlaySeq, prefixTokens, snapshotTokens, overlayTokens, leftOut }), text);
});

test('an account of nothing is no error', () => {
  for (const value of [undefined, null, {}, { files: 'x', tiers: 3 }]) assert.match(contextText(value), /0 {2}tokens in all/);
});

test('why a path is in the prompt or not', () => {
  assert.equal(whyText({ text: 'Because.' }), 'Because.');
  assert.equal(
    whyText({ path: 'x.log', included: false, reason: 'ignored', rule: '*.log', source: '.gitignore', line: 4 }),
    'x.log is not in the context: ignored. The deciding rule is *.log (.gitignore:4).',
  );
  assert.match(whyText({ path: 'a.py', included: true, tier: 'full', tokens: 1200 }), /^a\.py is in the context: full, 1,200 tokens\.$/);
});

test('the page can say only what is foreseen', () => {
  assert.deepEqual(fromView({ type: 'stop' }), { type: 'stop' });
  assert.ok(fromView({ type: 'ask', text: 'x', mode: 'edit', selection: false }));
  assert.ok(fromView({ type: 'apply', turn: 'a', text: 'b' }));
  for (const bad of [null, 'stop', {}, { type: 'toString' }, { type: '__proto__' }, { type: 'ask', text: 1, mode: 'ask', selection: true }, { type: 'ask', text: 'x', mode: 'run', selection: true }, { type: 'apply', turn: 'a', text: 'b', path: 3 }, { type: 'action', name: 'workbench.action.quit' }]) {
    assert.equal(fromView(bad), undefined, JSON.stringify(bad));
  }
});
