// What the tests in the extension host work with: the desk outside, the fake engine, the home, patience.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { request } from 'node:http';
import { join } from 'node:path';
import * as vscode from 'vscode';

export interface Home {
  env: Record<string, string>;
  folder: string;
  roots: [string, string];
  program: string;
}

export const home = JSON.parse(process.env.LAGUNA_TEST_HOME_JSON ?? '{}') as Home;
const desk = Number(process.env.LAGUNA_TEST_DESK);
const PATIENCE = 20_000;

interface Target {
  port?: number;
  socketPath?: string;
}

async function post(target: Target, path: string, body?: unknown): Promise<unknown> {
  const call = request({ ...target, host: '127.0.0.1', path, method: body === undefined ? 'GET' : 'POST', headers: { 'content-type': 'application/json' } });
  call.end(body === undefined ? undefined : JSON.stringify(body));
  const [response] = (await once(call, 'response')) as [NodeJS.ReadableStream];
  let text = '';
  for await (const part of response) text += String(part);
  return JSON.parse(text);
}

/** Have the person at the screen do something. */
export async function act<T = void>(what: string, details: Record<string, unknown> = {}): Promise<T> {
  const { result, error } = (await post({ port: desk }, '/', { act: what, ...details })) as { result: T; error?: string };
  if (error !== undefined) throw new Error(`${what}: ${error}`);
  return result;
}

export const texts = (selector: string): Promise<string[]> => act<string[]>('texts', { selector, inChat: true });
export const click = (selector: string, text?: string): Promise<void> => act('click', { selector, text, inChat: true });
export const press = (...keys: string[]): Promise<void> => keys.reduce((before, key) => before.then(() => act('press', { keys: key })), Promise.resolve());
export const say = (text: string): Promise<void> => act('say', { text });
export const picture = (name: string): Promise<void> => act('picture', { name });

const engine: Target = { socketPath: join(home.env.LAGUNA_RUNTIME_DIR ?? '', 'engine.sock') };

export interface Answer {
  when: string;
  answer: string;
  delay?: number;
}

/** Give the fake engine its script. */
export async function answers(...rules: Answer[]): Promise<void> {
  await post(engine, '/control/answers', rules);
}

export interface Asked {
  prompt: number[];
  finish?: string;
}

/** What the engine was asked, in order. */
export async function asked(): Promise<Asked[]> {
  return (await post(engine, '/control/requests')) as Asked[];
}

/** Run `laguna-daemon` as the home's user. */
export async function daemon(...argv: string[]): Promise<void> {
  const child = spawn(home.program, argv, { env: home.env, stdio: 'ignore' });
  const [code] = (await once(child, 'exit')) as [number];
  if (code !== 0) throw new Error(`laguna-daemon ${argv.join(' ')}: exit code ${code}`);
}

/** The first true value; an error says what was seen last. */
export async function until<T>(what: string, look: () => T | Promise<T>, patience = PATIENCE): Promise<NonNullable<T>> {
  const deadline = Date.now() + patience;
  let last: unknown;
  for (;;) {
    try {
      const found = await look();
      if (found) return found;
      last = found;
    } catch (error) {
      last = error;
    }
    if (Date.now() > deadline) throw new Error(`not seen in ${patience} ms: ${what} (last: ${String(last).slice(0, 300)})`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export function file(root: 0 | 1, name: string): vscode.Uri {
  return vscode.Uri.joinPath(vscode.Uri.file(home.roots[root]), name);
}

/** Open a file with the cursor at a place, and the keyboard in it. */
export async function edit(uri: vscode.Uri, line = 0, character = 0): Promise<vscode.TextEditor> {
  const editor = await vscode.window.showTextDocument(uri, { viewColumn: vscode.ViewColumn.One });
  const place = new vscode.Position(line, character);
  editor.selection = new vscode.Selection(place, place);
  await vscode.commands.executeCommand('workbench.action.focusActiveEditorGroup');
  return editor;
}
