// The connection to the daemon: found, started, lost and found again under a window that stays open.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { homedir } from 'node:os';
import * as vscode from 'vscode';
import { CloseAction, ErrorAction, LanguageClient, RevealOutputChannelOn, type LanguageClientOptions } from 'vscode-languageclient/node';
import { Backoff } from './backoff.ts';
import { completionMiddleware } from './completion.ts';
import { locate } from './locate.ts';
import { DID_CHANGE_STATUS, offers, type Offers } from './protocol.ts';
import type { EditorStatus } from './wire.ts';

export type Phase =
  | { kind: 'missing'; message: string; advice: string }
  | { kind: 'connecting'; message: string }
  | { kind: 'failed'; message: string; advice: string }
  | { kind: 'connected'; message: string };

const GIVE_UP = 6; // failures in a row, about half a minute: then the user decides
const LASTED = 10_000; // milliseconds after which a connection counts as a good one
const TAIL = 4000;

/** One window's line to the daemon. It starts the program, which starts the daemon if there is none. */
export class Connection implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChange = this.changed.event;
  phase: Phase = { kind: 'connecting', message: 'Connecting to laguna-daemon' };
  status: EditorStatus | undefined;
  offers: Offers = offers(undefined);
  program = '';
  private client: LanguageClient | undefined;
  private readonly backoff = new Backoff();
  private attempt = 0;
  private timer: NodeJS.Timeout | undefined;
  private waiting: (() => void)[] = [];

  constructor(private readonly output: vscode.LogOutputChannel) {}

  /** The client, or an error that the user can read. */
  connected(): LanguageClient {
    if (this.client === undefined || this.phase.kind !== 'connected') throw new Error(this.phase.message);
    return this.client;
  }

  /** Comes back when a connection stands or cannot be had for now. */
  async settled(): Promise<void> {
    while (this.phase.kind === 'connecting') await new Promise<void>((resolve) => this.waiting.push(resolve));
  }

  async start(): Promise<void> {
    this.backoff.reset();
    await this.connect();
  }

  /** Let go of the daemon and connect again; `stopDaemon` ends it for all editors first. */
  async restart(stopDaemon: boolean): Promise<void> {
    this.attempt += 1;
    this.set({ kind: 'connecting', message: 'Restarting laguna-daemon' });
    await this.letGo();
    if (stopDaemon && this.program !== '') await this.run(['stop']);
    await this.start();
  }

  dispose(): void {
    void this.close();
    this.changed.dispose();
  }

  /** End the connection for good. */
  async close(): Promise<void> {
    this.attempt += 1;
    clearTimeout(this.timer);
    await this.letGo();
  }

  private async connect(): Promise<void> {
    clearTimeout(this.timer);
    this.attempt += 1;
    const attempt = this.attempt;
    this.set({ kind: 'connecting', message: 'Connecting to laguna-daemon' });
    const setting = vscode.workspace.getConfiguration('laguna').get<string>('path', '');
    const search = await locate(setting, process.env, homedir());
    if (attempt !== this.attempt) return;
    if ('missing' in search) {
      this.output.warn(`${search.missing} ${search.advice}`);
      this.set({ kind: 'missing', message: search.missing, advice: search.advice });
      return;
    }
    this.program = search.found;
    const said = { tail: '' };
    try {
      const child = await this.spawn(said);
      await this.begin(child, attempt);
    } catch (error) {
      if (attempt === this.attempt) this.failed(reason(said.tail, error));
    }
  }

  private async spawn(said: { tail: string }): Promise<ChildProcess> {
    this.output.info(`Starting ${this.program} lsp`);
    const child = spawn(this.program, ['lsp'], { cwd: homedir(), stdio: 'pipe' });
    child.stderr.setEncoding('utf8').on('data', (text: string) => (said.tail = (said.tail + text).slice(-TAIL)));
    await Promise.race([once(child, 'spawn'), once(child, 'error').then(([error]) => Promise.reject(error as Error))]);
    child.on('error', (error) => this.output.error(error.message));
    return child;
  }

  private async begin(child: ChildProcess, attempt: number): Promise<void> {
    const client = new LanguageClient('laguna', 'Laguna', () => Promise.resolve(child), this.options(attempt));
    this.client = client;
    client.onNotification(DID_CHANGE_STATUS, (status: EditorStatus) => {
      if (attempt !== this.attempt) return;
      this.status = status;
      this.changed.fire();
    });
    await client.start();
    if (attempt !== this.attempt) return;
    this.offers = offers(client.initializeResult);
    this.output.info(`Connected to laguna-daemon ${this.offers.version}`);
    this.timer = setTimeout(() => this.backoff.reset(), LASTED);
    this.set({ kind: 'connected', message: 'Connected' });
  }

  private options(attempt: number): LanguageClientOptions {
    return {
      documentSelector: [{ scheme: 'file' }, { scheme: 'untitled' }],
      outputChannel: this.output,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      middleware: completionMiddleware,
      initializationFailedHandler: () => false,
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        closed: () => {
          if (attempt === this.attempt && this.phase.kind === 'connected') this.lost();
          return { action: CloseAction.DoNotRestart, handled: true };
        },
      },
    };
  }

  private lost(): void {
    this.client = undefined; // it takes itself down
    this.output.warn('The connection to laguna-daemon was lost; connecting again.');
    this.retry('The connection to laguna-daemon was lost; connecting again');
  }

  private failed(why: string): void {
    this.output.error(why);
    void this.letGo();
    if (this.backoff.count + 1 < GIVE_UP) this.retry(`${why} Trying again`);
    else this.set({ kind: 'failed', message: why, advice: 'The output channel says more. Restart when it is mended.' });
  }

  private retry(message: string): void {
    clearTimeout(this.timer);
    const wait = this.backoff.next();
    this.timer = setTimeout(() => void this.connect(), wait);
    this.set({ kind: 'connecting', message });
  }

  private async letGo(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    try {
      await client?.dispose();
    } catch (error) {
      this.output.debug(`The old connection was not closed properly: ${String(error)}`);
    }
  }

  private async run(argv: string[]): Promise<void> {
    const child = spawn(this.program, argv, { cwd: homedir(), stdio: ['ignore', 'pipe', 'pipe'] });
    child.stdout.setEncoding('utf8').on('data', (text: string) => this.output.info(text.trimEnd()));
    child.stderr.setEncoding('utf8').on('data', (text: string) => this.output.warn(text.trimEnd()));
    await Promise.race([once(child, 'close'), once(child, 'error')]).catch(() => undefined);
  }

  private set(phase: Phase): void {
    this.phase = phase;
    if (phase.kind !== 'connected') this.status = undefined;
    void vscode.commands.executeCommand('setContext', 'lagunaDaemon.connected', phase.kind === 'connected');
    if (phase.kind !== 'connecting') for (const resume of this.waiting.splice(0)) resume();
    this.changed.fire();
  }
}

/** The program's own last words if it had any: they say what is wrong and what to do. A traceback's frames do not. */
function reason(tail: string, error: unknown): string {
  const lines = tail.split('\n').filter((line) => /^\S/.test(line) && !line.startsWith('Traceback'));
  const words = lines.slice(-3).join(' ').replace(/^laguna-daemon: /, '');
  if (words !== '') return words;
  return `laguna-daemon could not be started: ${error instanceof Error ? error.message : String(error)}.`;
}
