// The packaged extension in a real VS Code: installs it, opens two roots in Chromium, runs the tests in the extension host.
//
//     node test/host/run.mjs RIG PYTHON PICTURES
//
// RIG: what .ci/vscode has installed; PYTHON: one that has laguna-daemon; PICTURES: a folder for screenshots.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Desk } from './desk.mjs';

const LIMIT = 420_000; // milliseconds for all tests
const here = path.dirname(fileURLToPath(import.meta.url));
const extension = path.join(here, '..', '..');
const [rig, python, pictures] = process.argv.slice(2);

const vscode = path.join(rig, 'cs', 'node_modules', 'code-server', 'lib', 'vscode', 'out', 'server-main.js');
const data = await mkdtemp(path.join(tmpdir(), 'laguna-vscode-'));
const ends = [() => rm(data, { recursive: true, force: true, maxRetries: 5 })];

/** A home of its own, with its daemon and engine. */
async function makeHome() {
  const child = spawn(python, [path.join(here, 'home.py')], { stdio: ['pipe', 'pipe', 'inherit'] });
  ends.push(async () => {
    child.stdin.end();
    if (child.exitCode === null) await once(child, 'exit');
  });
  const [line] = await once(createInterface(child.stdout), 'line');
  return JSON.parse(line);
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

async function install(env) {
  const argv = [vscode, '--install-extension', path.join(extension, 'out', 'laguna-daemon.vsix'), '--server-data-dir', data, '--accept-server-license-terms'];
  const child = spawn(process.execPath, argv, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (said += text));
  const [code] = await once(child, 'close');
  if (code !== 0 || !/successfully installed/.test(said)) throw new Error(`the .vsix cannot be installed:\n${said}`);
}

async function serve(env, port) {
  const argv = [vscode, '--host', '127.0.0.1', '--port', String(port), '--without-connection-token', '--accept-server-license-terms', '--server-data-dir', data, '--enable-smoke-test-driver', '--telemetry-level', 'off', '--disable-workspace-trust'];
  const child = spawn(process.execPath, argv, { env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  let log = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (log += text));
  ends.push(async () => {
    try {
      process.kill(-child.pid);
    } catch {
      // it has ended
    }
    await writeFile(path.join(pictures, 'vscode-server.log'), log);
  });
  for (let tries = 0; tries < 150; tries += 1) {
    const up = await fetch(`http://127.0.0.1:${port}/version`).then((answer) => answer.ok, () => false);
    if (up) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`VS Code's server does not answer:\n${log}`);
}

async function main() {
  await mkdir(pictures, { recursive: true });
  const home = await makeHome();
  const env = { ...home.env, EXTENSIONS_GALLERY: '{}', LAGUNA_TEST_HOME_JSON: JSON.stringify(home), LAGUNA_TEST_ONLY: process.env.LAGUNA_TEST_ONLY ?? '' };
  const settings = {
    'files.autoSave': 'off',
    'workbench.startupEditor': 'none',
    'workbench.tips.enabled': false,
    'chat.commandCenter.enabled': false,
    'chat.disableAIFeatures': true,
    'workbench.secondarySideBar.defaultVisibility': 'hidden',
    'git.openRepositoryInParentFolders': 'never',
    'editor.minimap.enabled': false,
    'window.menuBarVisibility': 'hidden',
  };
  await mkdir(path.join(data, 'data', 'Machine'), { recursive: true });
  await writeFile(path.join(data, 'data', 'Machine', 'settings.json'), JSON.stringify(settings));
  await install(env);
  const [port, deskPort] = [await freePort(), await freePort()];
  await serve({ ...env, LAGUNA_TEST_DESK: String(deskPort) }, port);
  const desk = await Desk.open(deskPort, pictures);
  ends.push(() => desk.close());
  return desk.run(`http://127.0.0.1:${port}/`, home.workspace, path.join(here, 'harness'), path.join(extension, 'out', 'test', 'suite.cjs'), LIMIT);
}

let code = 1;
try {
  code = await main();
} catch (error) {
  console.error(error);
} finally {
  for (const end of ends.reverse()) await end().catch?.((error) => console.error(error));
}
process.exit(code);
