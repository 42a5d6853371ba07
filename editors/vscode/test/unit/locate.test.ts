import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Backoff } from '../../src/backoff.ts';
import { locate, places } from '../../src/locate.ts';

async function program(folder: string, mode = 0o755): Promise<string> {
  await mkdir(folder, { recursive: true });
  const path = join(folder, 'laguna-daemon');
  await writeFile(path, '#!/bin/sh\n');
  await chmod(path, mode);
  return path;
}

test('the program is found on the PATH, then where installers put it', async () => {
  const home = await mkdtemp(join(tmpdir(), 'laguna-locate-'));
  try {
    const env = { PATH: `${home}/none:${home}/a:${home}/b` };
    const local = await program(join(home, '.local', 'bin'));
    assert.deepEqual(await locate('', env, home), { found: local });
    await program(join(home, 'a'), 0o644); // there, but cannot be run
    const b = await program(join(home, 'b'));
    assert.deepEqual(await locate('', env, home), { found: b });
    assert.deepEqual(await locate('~/.local/bin/laguna-daemon', env, home), { found: local });
    for (const wrong of [join(home, 'a', 'laguna-daemon'), home, '/nowhere']) {
      const search = await locate(wrong, env, home);
      assert.ok('missing' in search && search.missing.startsWith(wrong), wrong);
    }
  } finally {
    await rm(home, { recursive: true });
  }
});

test('a workspace is never searched', () => {
  assert.ok(places({ PATH: '/usr/bin' }, '/home/me').every((path) => path.startsWith('/')));
  assert.ok(!places({ PATH: '/usr/bin' }, '/home/me').some((path) => path.includes('.venv')));
});

test('waiting grows to half a minute and starts anew', () => {
  const backoff = new Backoff();
  const waits = Array.from({ length: 9 }, () => backoff.next());
  assert.deepEqual(waits, [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
  backoff.reset();
  assert.equal(backoff.next(), 500);
});
