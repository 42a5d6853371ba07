// The tests, run in the extension host of a real VS Code with the packaged extension, the real daemon and the fake engine.

import assert from 'node:assert/strict';
import * as vscode from 'vscode';
import type { Api } from '../../src/extension.ts';
import { act, answers, asked, click, daemon, edit, file, picture, press, say, texts, until } from './tools.ts';

const ID = 'laguna-daemon.laguna-daemon';

const ANSWER = `## How a lamp is dimmed

\`Lamp.dim\` in \`lamp.py:12\` keeps the level **between 0 and 1**; \`on\` sets it to 1.

1. Values below zero become zero.
2. Values above one become one.

| call | level |
|:-----|------:|
| \`dim(0.3)\` | 0.3 |
| \`dim(7)\` | 1.0 |

To switch it off as well:

\`\`\`python lamp.py
    def off(self) -> None:
        # the opposite of on
        self.level = 0.0
\`\`\`
`;
const ENOUGH = 4;
const LONG = 'Dimming takes its time. '.repeat(400);
const EVIL = 'No. <script>alert(1)</script><img src=x onerror=alert(1)> [x](javascript:alert(1)) [y](command:workbench.action.quit) [fine](https://example.org)';
const FIX = `The level is clamped:

<<<<<<< SEARCH lamp.py
        self.level = min(1.0, max(0.0, level))
=======
        self.level = clamp(level)
>>>>>>> REPLACE
`;
const NEW_FILE = 'Here it is:\n\n```python dimmer.py\ndef dimmer() -> float:\n    return 0.5\n```\n';

const RULES = [
  { when: 'self.level = 0.0\n        self.w<CURSOR>', answer: 'arm = True' },
  { when: 'Complete the code at the cursor.', answer: '' },
  { when: 'How is a lamp dimmed?', answer: ANSWER },
  { when: 'And how fast?', answer: 'At once.' },
  { when: 'Tell me everything', answer: LONG },
  { when: 'Say something evil', answer: EVIL },
  { when: 'The level may be above one', answer: FIX },
  { when: 'Make a dimmer', answer: NEW_FILE },
  { when: 'class Lamp:', answer: 'A lamp.' },
  { when: 'def preheat(', answer: 'An oven.' },
];

function api(): Api {
  const extension = vscode.extensions.getExtension<Api>(ID);
  assert.ok(extension?.isActive, 'the extension is active');
  return extension.exports;
}

async function ready(): Promise<void> {
  await until('the connection', () => api().state() === 'connected', 40_000);
  await until('a ready engine', () => api().statusText().includes('$(sparkle)'), 40_000);
}

async function openChat(): Promise<void> {
  await vscode.commands.executeCommand('lagunaDaemon.ask');
  await until('the chat view with the focus', async () => (await act<string>('focused')).startsWith('textarea'));
}

async function ask(question: string): Promise<void> {
  await act('fill', { selector: 'textarea', text: question });
  await press('Enter');
  await until('the question on the page', async () => (await texts('.question-text')).at(-1) === question);
}

async function answered(): Promise<void> {
  await until('the end of the answer', async () => (await texts('.turn[aria-busy="true"]')).length === 0 && (await texts('.turn')).length > 0);
}

async function fresh(): Promise<void> {
  await vscode.commands.executeCommand('lagunaDaemon.newConversation');
  await until('an empty conversation', async () => (await texts('.turn')).length === 0);
}

async function tidy(): Promise<void> {
  await vscode.commands.executeCommand('workbench.action.files.revert').then(undefined, () => undefined);
  await vscode.commands.executeCommand('workbench.action.closeAllEditors');
}

const TESTS: Record<string, () => Promise<void>> = {
  async 'is installed, activated, and connected to a daemon that it started'() {
    const extension = vscode.extensions.getExtension<Api>(ID);
    assert.ok(extension, 'the packaged extension is installed');
    assert.ok(!extension.extensionPath.includes('editors/vscode'), 'it is the package, not the source');
    await extension.activate();
    await ready();
    await answers(...RULES);
  },

  async 'offers every command it declares'() {
    const known = new Set(await vscode.commands.getCommands(true));
    const manifest = vscode.extensions.getExtension(ID)?.packageJSON as { contributes: { commands: { command: string }[] } };
    assert.deepEqual(manifest.contributes.commands.map((item) => item.command).filter((name) => !known.has(name)), []);
  },

  async 'shows ghost text and takes it with Tab'() {
    const editor = await edit(file(0, 'lamp.py'), 6, 24);
    await press('Enter');
    await act('type', { text: 'self.w' });
    await until('ghost text', async () => (await act<string>('ghost')).includes('arm = True'));
    await picture('vscode-ghost-text');
    await press('Tab');
    await until('the text in the document', () => editor.document.lineAt(7).text === '        self.warm = True');
    await tidy();
  },

  async 'suggests nothing by itself in a language that is switched off'() {
    const settings = vscode.workspace.getConfiguration('laguna.completion');
    await settings.update('languages', { '*': true, python: false }, vscode.ConfigurationTarget.Global);
    try {
      await edit(file(0, 'lamp.py'), 6, 24);
      await until('the sign in the status bar', () => api().statusText().includes('$(eye-closed)'));
      const before = (await asked()).length;
      await press('Enter');
      await act('type', { text: 'self.w' });
      await new Promise((resolve) => setTimeout(resolve, 1500));
      assert.equal((await asked()).length, before);
      await press('Escape'); // the editor's own list of words
      await vscode.commands.executeCommand('editor.action.inlineSuggest.trigger');
      await until('a suggestion that was asked for', async () => (await act<string>('ghost')).includes('arm = True'));
    } finally {
      await settings.update('languages', undefined, vscode.ConfigurationTarget.Global);
      await tidy();
    }
  },

  async 'chats: streams, renders safely, reports tokens and cache'() {
    await edit(file(0, 'lamp.py'), 12, 4);
    await openChat();
    await act('drag', { from: [348, 420], to: [520, 420] }); // a view of the width that people give it
    await press('Shift+Tab'); // a focus elsewhere does not keep the view from streaming
    await ask('How is a lamp dimmed?');
    await until('a part of the answer before its end', async () => (await texts('.turn[aria-busy="true"] .markdown h4')).length > 0);
    await answered();
    assert.deepEqual(await texts('.markdown h4'), ['How a lamp is dimmed']);
    assert.deepEqual(await texts('.markdown ol > li'), ['Values below zero become zero.', 'Values above one become one.']);
    assert.deepEqual(await texts('.markdown td'), ['dim(0.3)', '0.3', 'dim(7)', '1.0']);
    await picture('vscode-chat');
    assert.match((await texts('.usage')).join(), /^\d+ tokens read, \d+ from the cache \(\d+%\) · first word after .* · \d+ tokens written/);
    await ask('And how fast?');
    await answered();
    assert.deepEqual((await texts('.markdown')).at(-1), 'At once.');
    const [first, second] = (await asked()).slice(-2);
    assert.deepEqual(second?.prompt.slice(0, first?.prompt.length), first?.prompt, 'the second turn starts with the first');
  },

  async 'makes nothing but text of what a model says'() {
    await ask('Say something evil');
    await answered();
    assert.match((await texts('.markdown p')).join(), /<script>alert\(1\)<\/script><img src=x onerror=alert\(1\)>/);
    assert.deepEqual(await texts('.markdown :is(script, img, style, iframe, form, [onclick], [onerror], [style])'), []);
    assert.deepEqual(await texts('.markdown a'), ['fine'], 'only a page is a link');
    assert.deepEqual(await act<string[]>('violations'), [], 'the page itself keeps to its policy');
  },

  async 'follows a place of an answer into its file'() {
    await click('.markdown code button', 'lamp.py:12');
    await until('the line in the editor', () => vscode.window.activeTextEditor?.selection.active.line === 11);
  },

  async 'works by keyboard alone'() {
    await openChat();
    await fresh();
    await act('type', { text: 'Read @not' });
    await until('the list of files', async () => (await texts('.files li')).length > 0);
    assert.equal(await act<string>('attribute', { selector: 'textarea', name: 'aria-expanded' }), 'true');
    await picture('vscode-files');
    await press('Enter');
    assert.equal(await act<string>('value', { selector: 'textarea' }), 'Read @"lamp/docs/notes on dimming.md" ');
    const seen: string[] = [];
    for (let steps = 0; steps < 3; steps += 1) {
      await press('Tab');
      seen.push(await act<string>('focused'));
    }
    assert.deepEqual(seen.map((text) => text.split(' ')[0]), ['select', 'select', 'button']);
    await press('Enter');
    await answered();
    assert.deepEqual(await texts('.question .chip'), ['lamp/docs/notes on dimming.md']);
    await press('ArrowUp');
  },

  async 'sends the selection, which can be left out'() {
    await fresh();
    const editor = await edit(file(0, 'lamp.py'));
    editor.selection = new vscode.Selection(11, 4, 13, 0);
    await until('the selection in the chat', async () => (await texts('.composer .chip')).some((text) => text.startsWith('lamp/lamp.py:12-13')));
    await openChat();
    await ask('How is a lamp dimmed?');
    await answered();
    assert.deepEqual(await texts('.question .chip'), ['lamp/lamp.py:12-13']);
    await click('.composer .chip .remove');
    await ask('And how fast?');
    await answered();
    assert.equal((await texts('.question .chip')).length, 1);
  },

  async 'copies, inserts and applies code blocks'() {
    await tidy();
    await fresh();
    await ask('Make a dimmer');
    await answered();
    await click('.code-actions button', 'Copy');
    await until('the code on the clipboard', async () => (await vscode.env.clipboard.readText()).includes('def dimmer()'));
    const editor = await edit(file(0, 'README.md'), 1, 0);
    await click('.code-actions button', 'Insert');
    await until('the code in the document', () => editor.document.getText() === '# Lamp\ndef dimmer() -> float:\n    return 0.5');
    await tidy();
    await click('.code-actions button', 'Apply');
    await until('the refactor preview', async () => (await act<string[]>('texts', { selector: '.bulk-edit-panel .monaco-list-row' })).length > 0);
    await act('click', { selector: '.bulk-edit-panel .monaco-list-row input, .bulk-edit-panel .monaco-list-row .monaco-checkbox, .bulk-edit-panel .edit-checkbox' });
    await picture('vscode-preview');
    await assert.rejects(Promise.resolve(vscode.workspace.fs.stat(file(0, 'dimmer.py'))), 'nothing is written before it is seen');
    await act('click', { selector: '.bulk-edit-panel .monaco-button', text: 'Apply' });
    await until('the new file', async () => (await vscode.workspace.fs.readFile(file(0, 'dimmer.py'))).length > 0);
    assert.equal(Buffer.from(await vscode.workspace.fs.readFile(file(0, 'dimmer.py'))).toString(), 'def dimmer() -> float:\n    return 0.5\n');
    await vscode.workspace.fs.delete(file(0, 'dimmer.py'));
  },

  async 'stops an answer, in the engine as well'() {
    await tidy();
    await fresh();
    await ask('Tell me everything');
    await until('a part of the answer', async () => (await texts('.markdown p')).join().includes('Dimming takes its time.'));
    await press('Escape');
    await until('that it stopped', async () => (await texts('.stopped')).length === 1);
    await until('that the engine stopped', async () => (await asked()).at(-1)?.finish === 'abort');
    assert.ok(((await texts('.markdown')).at(-1)?.length ?? 0) < LONG.length);
  },

  async 'keeps conversations, and goes on with one'() {
    await fresh();
    await ask('Make a dimmer');
    await answered();
    await fresh();
    await vscode.commands.executeCommand('lagunaDaemon.history');
    await until('the list of conversations', async () => (await act<string[]>('texts', { selector: '.quick-input-list .monaco-list-row' })).some((text) => text.includes('Make a dimmer')));
    await press('Enter');
    await until('the conversation', async () => (await texts('.question-text')).includes('Make a dimmer'));
    await ask('And how fast?');
    await answered();
    assert.equal((await texts('.failure')).length, 0);
  },

  async 'asks about the root that is meant'() {
    await fresh();
    await act('select', { selector: 'select[aria-label^="Folder"]', label: 'my oven é#1' });
    await ask('Whose repository is this?');
    await answered();
    assert.deepEqual((await texts('.markdown')).at(-1), 'An oven.');
    await fresh();
    await act('select', { selector: 'select[aria-label^="Folder"]', label: 'lamp' });
    await ask('Whose repository is this?');
    await answered();
    assert.deepEqual((await texts('.markdown')).at(-1), 'A lamp.');
    await fresh();
    await ask('Whose is @"my oven é#1/oven.py"?');
    await answered();
    assert.deepEqual((await texts('.notices')).join(), 'my oven é#1/oven.py was left out: it is not in the folder that this conversation is about.');
  },

  async 'explains what the cursor is on'() {
    await fresh();
    const editor = await edit(file(0, 'lamp.py'));
    editor.selection = new vscode.Selection(9, 4, 11, 0);
    await vscode.commands.executeCommand('lagunaDaemon.explain');
    await until('the question', async () => (await texts('.question-text')).at(-1)?.startsWith('Explain lamp/lamp.py:10-11: '));
    await answered();
  },

  async 'fixes what is reported, through the preview'() {
    await fresh();
    const problems = vscode.languages.createDiagnosticCollection('test');
    const uri = file(0, 'lamp.py');
    const editor = await edit(uri, 11, 8);
    const before = editor.document.getText();
    const place = new vscode.Range(12, 8, 12, 30);
    problems.set(uri, [new vscode.Diagnostic(place, 'The level may be above one', vscode.DiagnosticSeverity.Warning)]);
    void vscode.commands.executeCommand('lagunaDaemon.fix');
    await until('the question', async () => (await texts('.question-text')).at(-1)?.includes('- line 13: The level may be above one'));
    await answered();
    assert.deepEqual(await texts('.failure'), []);
    await until('the refactor preview', async () => (await act<string[]>('texts', { selector: '.bulk-edit-panel .monaco-list-row' })).length > 0);
    assert.equal(editor.document.getText(), before, 'nothing is changed before it is seen');
    assert.deepEqual(await texts('.proposal li span'), ['lamp/lamp.py', '1 change']);
    await picture('vscode-edit');
    await act('click', { selector: '.bulk-edit-panel .edit-checkbox' });
    await act('click', { selector: '.bulk-edit-panel .monaco-button', text: 'Apply' });
    await until('the change', () => editor.document.lineAt(12).text === '        self.level = clamp(level)');
    await until('that the answer says so', async () => (await texts('.proposal strong')).join() === 'Edits applied');
    await edit(uri, 0, 0);
    await vscode.commands.executeCommand('undo');
    await until('one undo', () => editor.document.getText() === before);
    problems.dispose();
    await tidy();
  },

  async 'refuses edits of a text that has changed since'() {
    await fresh();
    const editor = await edit(file(0, 'lamp.py'), 0, 0);
    await openChat();
    await act('select', { selector: 'select[title="What is wanted"]', label: 'Edit' });
    await ask('The level may be above one');
    await answered();
    await editor.edit((change) => change.insert(new vscode.Position(0, 0), '# new\n'));
    await click('.proposal button', 'Review and apply');
    await vscode.commands.executeCommand('notifications.showList');
    await until('the refusal', async () => (await act<string[]>('texts', { selector: '.notification-list-item-message' })).join().includes('changed since this answer was made'));
    await act('select', { selector: 'select[title="What is wanted"]', label: 'Ask' });
    await vscode.commands.executeCommand('notifications.clearAll');
    await edit(file(0, 'lamp.py'));
    await tidy();
  },

  async 'offers the server’s fixes in the light bulb menu'() {
    const problems = vscode.languages.createDiagnosticCollection('test');
    const uri = file(0, 'lamp.py');
    await edit(uri, 12, 8);
    const place = new vscode.Range(12, 8, 12, 30);
    problems.set(uri, [new vscode.Diagnostic(place, 'The level may be above one', vscode.DiagnosticSeverity.Warning)]);
    const kind = vscode.CodeActionKind.QuickFix.value;
    const found = await vscode.commands.executeCommand<vscode.CodeAction[]>('vscode.executeCodeActionProvider', uri, place, kind, 1);
    assert.deepEqual(found.map((action) => action.title), ['Laguna: Fix: The level may be above one']);
    assert.equal(found[0]?.edit?.size, 1);
    problems.dispose();
    await tidy();
  },

  async 'shows the context, and why a file is in it'() {
    await edit(file(0, 'lamp.py'));
    await vscode.commands.executeCommand('lagunaDaemon.context');
    await until('the account', () => vscode.window.activeTextEditor?.document.uri.scheme === 'laguna-context');
    const text = vscode.window.activeTextEditor?.document.getText() ?? '';
    assert.match(text, /^ +\d+ {2}full +lamp\.py$/m);
    assert.match(text, /tokens in all/);
    await tidy();
  },

  async 'warms up'() {
    await edit(file(1, 'oven.py'));
    const before = (await asked()).length;
    // What was asked about is warm: something new, which is not.
    await vscode.workspace.fs.writeFile(file(1, 'timer.py'), new TextEncoder().encode('MINUTES = 40\n'));
    await vscode.commands.executeCommand('lagunaDaemon.warm');
    assert.ok((await asked()).length > before);
    await vscode.workspace.fs.delete(file(1, 'timer.py'));
  },

  async 'survives a restart of the daemon'() {
    await fresh();
    await ask('How is a lamp dimmed?');
    await answered();
    await daemon('stop');
    await until('the loss', () => api().state() !== 'connected');
    await ready();
    await answers(...RULES);
    const editor = await edit(file(0, 'lamp.py'), 6, 24);
    await press('Enter');
    await act('type', { text: 'self.w' });
    await until('ghost text', async () => (await act<string>('ghost')).includes('arm = True'));
    await press('Tab');
    await until('the text in the document', () => editor.document.lineAt(7).text === '        self.warm = True');
    await tidy();
    await openChat();
    await ask('And how fast?');
    await answered();
    assert.equal((await texts('.failure')).length, 0);
    assert.equal((await texts('.markdown')).at(-1), 'At once.');
  },

  async 'says when an answer was lost with its daemon, and asks again'() {
    await fresh();
    await ask('Tell me everything');
    await until('a part of the answer', async () => (await texts('.markdown p')).join().includes('Dimming takes its time.'));
    await daemon('stop');
    await until('the failure', async () => (await texts('.failure')).join().includes('lost'));
    await ready();
    await answers({ when: 'Tell me everything', answer: 'That is all.' });
    await click('.actions button', 'Ask again');
    await until('the answer', async () => (await texts('.markdown')).at(-1) === 'That is all.');
    await answers(...RULES);
  },

  async 'explains how to install a daemon that is not there'() {
    const settings = vscode.workspace.getConfiguration('laguna');
    await settings.update('path', '/nowhere/laguna-daemon', vscode.ConfigurationTarget.Global);
    await until('that it is missing', () => api().state() === 'missing');
    await openChat();
    await until('the banner', async () => (await texts('.banner')).join().includes('/nowhere/laguna-daemon is not a program that can be run.'));
    assert.deepEqual(await texts('.banner button'), ['How to install', 'Choose the program…']);
    await picture('vscode-missing');
    await click('.banner button', 'How to install');
    await until('the walkthrough', async () => (await act<string[]>('texts', { selector: '.gettingStarted' })).join().includes('Install laguna-daemon'));
    await picture('vscode-walkthrough');
    await settings.update('path', undefined, vscode.ConfigurationTarget.Global);
    await tidy();
    await ready();
  },

  async 'is legible in the dark and in high contrast'() {
    await edit(file(0, 'lamp.py'), 12, 4);
    await openChat();
    await fresh();
    await ask('How is a lamp dimmed?');
    await answered();
    const workbench = vscode.workspace.getConfiguration('workbench');
    for (const [theme, name] of [['Default Dark Modern', 'dark'], ['Default High Contrast', 'contrast'], ['Default Light Modern', 'light']] as const) {
      await workbench.update('colorTheme', theme, vscode.ConfigurationTarget.Global);
      await until(theme, async () => (await act<number>('contrast', { selector: '.markdown p' })) >= 4.5);
      for (const selector of ['.markdown p', '.usage', '.question-text', '.code code', '.tok-keyword', '.tok-comment', '.tok-number', '.composer textarea']) {
        const ratio = await act<number>('contrast', { selector });
        assert.ok(ratio >= 4.5, `${selector} in ${theme}: ${ratio}`);
      }
      await picture(`vscode-chat-${name}`);
    }
    await workbench.update('colorTheme', undefined, vscode.ConfigurationTarget.Global);
  },
};

async function all(): Promise<void> {
  const failed: string[] = [];
  const only = new RegExp(process.env.LAGUNA_TEST_ONLY ?? '');
  for (const [name, test] of Object.entries(TESTS)) {
    if (!only.test(name) && !name.startsWith('is installed')) continue;
    const began = Date.now();
    try {
      await test();
      await say(`ok    ${name} (${Date.now() - began} ms)`);
    } catch (error) {
      failed.push(name);
      await say(`FAIL  ${name}\n${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
      await picture(`vscode-failed-${failed.length}`).catch(() => undefined);
      if (name.startsWith('is installed') || failed.length === ENOUGH) break; // the rest would only take its time
    }
  }
  if (failed.length > 0) throw new Error(`${failed.length} of ${Object.keys(TESTS).length} tests failed`);
}

/** Called by VS Code. */
export function run(): Promise<void> {
  return all();
}
