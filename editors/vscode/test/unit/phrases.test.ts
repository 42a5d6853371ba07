import assert from 'node:assert/strict';
import { test } from 'node:test';
import { count, rootLine, short, statusLine, usageDetails, usageLine } from '../../src/shared/phrases.ts';
import type { EditorStatus, Usage, WorkspaceStatus } from '../../src/wire.ts';

const usage: Usage = {
  promptTokens: 190_123,
  cachedTokens: 189_900,
  prefilledTokens: 223,
  outputTokens: 410,
  reasoningTokens: 0,
  ttftMs: 412,
  totalMs: 9300,
  brokeAt: 'src/app.py',
  snapshot: '0123456789abcdef',
  overlaySeq: 7,
  profile: 'laguna-xs',
  finishReason: 'stop',
};
const root = { root: '/r', state: 'open', files: 5120, prefixTokens: 165_000, warmTokens: 96_000, residency: 'evicted', waitsFor: '' } as WorkspaceStatus;

function status(phase: string, kind: EditorStatus['kind'], more: Partial<EditorStatus> = {}): EditorStatus {
  const engine = { phase, detail: '', since: 0, pid: null, restarts: 0, error: null, advice: null, profile: '', model: '', context: 0 } as EditorStatus['engine'];
  return { busy: false, kind, message: 'As it is', command: null, engine, workspaces: [], ...more };
}

test('an answer says what it read and what was cached', () => {
  assert.equal(usageLine(usage), '190,123 tokens read, 189,900 from the cache (>99%) · first word after 0.41 s · 410 tokens written in 9.3 s');
  assert.match(usageLine({ ...usage, cachedTokens: 0, ttftMs: null, finishReason: 'length' }), /0 from the cache \(0%\) · 410 tokens written in 9\.3 s · cut off/);
  assert.match(usageLine({ ...usage, cachedTokens: usage.promptTokens }), /\(100%\)/);
  assert.match(usageDetails(usage), /223 tokens were read anew\nfrom src\/app\.py on .*\nsnapshot 0123456789ab, overlay 7\nprofile laguna-xs/);
});

test('numbers', () => {
  assert.deepEqual([0, 999, 1000, 1234567].map(count), ['0', '999', '1,000', '1,234,567']);
  assert.deepEqual([0, 950, 1234, 96_400, 190_000].map(short), ['0', '950', '1.2K', '96K', '190K']);
});

test('the status bar tells the engine’s phases apart', () => {
  assert.match(statusLine(undefined).text, /loading/);
  assert.equal(statusLine(status('ready', 'Normal')).text, '$(sparkle) Laguna');
  assert.equal(statusLine(status('ready', 'Normal', { busy: true })).text, '$(sync~spin) Laguna');
  assert.equal(statusLine(status('starting', 'Normal')).text, '$(loading~spin) Laguna: loading the model');
  assert.equal(statusLine(status('backoff', 'Warning')).level, 'warning');
  assert.equal(statusLine(status('failed', 'Error')).level, 'error');
  assert.match(statusLine(status('stopped', 'Inactive')).text, /circle-slash/);
  const warming = status('ready', 'Normal', { workspaces: [root, { ...root, residency: 'warming' }] });
  assert.equal(statusLine(warming).text, '$(loading~spin) Laguna: reading 96K of 165K tokens');
  assert.equal(statusLine(warming).spoken, 'Laguna: As it is, reading 96K of 165K tokens');
  assert.equal(rootLine(root), '/r: open, 5,120 files, 165,000 tokens, evicted (96,000 warm)');
  assert.match(rootLine({ ...root, waitsFor: 'another root is pinned' }), /, another root is pinned$/);
});
