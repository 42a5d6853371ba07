// The person at the screen: Chromium with the workbench in it, told what to do by the tests over loopback.

import { once } from 'node:events';
import { createServer } from 'node:http';
import path from 'node:path';
import { chromium } from 'playwright-core';

const CHROMIUM = process.env.LAGUNA_TEST_CHROMIUM ?? '/usr/bin/chromium';
const PATIENCE = 15_000;

/** Runs in the page. */
function contrast(element) {
  const canvas = globalThis.document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const style = (node) => globalThis.getComputedStyle(node);
  canvas.fillStyle = style(globalThis.document.documentElement).getPropertyValue('--vscode-sideBar-background');
  canvas.fillRect(0, 0, 1, 1);
  const chain = [];
  for (let node = element; node; node = node.parentElement) chain.unshift(node);
  for (const node of chain) {
    canvas.fillStyle = style(node).backgroundColor;
    canvas.fillRect(0, 0, 1, 1);
  }
  const light = () => {
    const parts = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((value) => value / 255).map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const behind = light();
  canvas.fillStyle = style(element).color;
  canvas.fillRect(0, 0, 1, 1);
  const before = light();
  return (Math.max(behind, before) + 0.05) / (Math.min(behind, before) + 0.05);
}

export class Desk {
  static async open(port, pictures) {
    const browser = await chromium.launch({
      executablePath: CHROMIUM,
      headless: true,
      args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1'],
    });
    const desk = new Desk(browser, pictures);
    desk.server = createServer((request, response) => void desk.answer(request, response)).listen(port, '127.0.0.1');
    await once(desk.server, 'listening');
    return desk;
  }

  constructor(browser, pictures) {
    this.browser = browser;
    this.pictures = pictures;
    this.violations = [];
  }

  async close() {
    this.server.close();
    await this.browser.close();
  }

  /** Open the workbench and run the test module in its extension host; the exit code of the tests. */
  async run(url, workspace, extension, tests, limit) {
    const at = new URL(url);
    const remote = (file) => `vscode-remote://${at.host}${encodeURI(file)}`;
    at.searchParams.set('workspace', workspace);
    at.searchParams.set('payload', JSON.stringify([['extensionDevelopmentPath', remote(extension)], ['extensionTestsPath', remote(tests)]]));
    const context = await this.browser.newContext({ viewport: { width: 1240, height: 780 }, permissions: ['clipboard-read', 'clipboard-write'] });
    this.page = await context.newPage();
    this.page.on('console', (message) => {
      if (/Content Security Policy/i.test(message.text()) && /fake|webview/i.test(message.location().url)) this.violations.push(message.text());
    });
    const done = new Promise((resolve) => void this.page.exposeFunction('codeAutomationExit', resolve));
    await this.page.exposeFunction('codeAutomationLog', () => undefined); // the extension host's own chatter; tests use `say`
    await this.page.goto(at.href);
    const code = await Promise.race([done, new Promise((resolve) => setTimeout(resolve, limit, 'too late'))]);
    if (code !== 0) {
      await this.page.screenshot({ path: path.join(this.pictures, 'vscode-failed.png') });
      console.log(`extension host: ${code}`);
    }
    return code === 0 ? 0 : 1;
  }

  async answer(request, response) {
    let body = '';
    for await (const part of request) body += part;
    try {
      const { act, ...rest } = JSON.parse(body);
      const result = await this[`do_${act}`](rest);
      response.end(JSON.stringify({ result: result ?? null }));
    } catch (error) {
      response.end(JSON.stringify({ error: String(error?.message ?? error) }));
    }
  }

  /** The frame of the chat view. */
  async chat() {
    const deadline = Date.now() + PATIENCE;
    while (Date.now() < deadline) {
      for (const frame of this.page.frames()) {
        if (await frame.locator('#view .composer').count().catch(() => 0)) return frame;
      }
      await this.page.waitForTimeout(50);
    }
    throw new Error(`no chat view among ${this.page.frames().map((frame) => frame.url()).join(' ')}`);
  }

  do_say({ text }) {
    console.log(text);
  }

  do_press({ keys }) {
    return this.page.keyboard.press(keys);
  }

  do_type({ text }) {
    return this.page.keyboard.type(text, { delay: 30 });
  }

  async do_click({ selector, text, inChat }) {
    const place = inChat ? await this.chat() : this.page;
    const found = text === undefined ? place.locator(selector) : place.locator(selector, { hasText: text });
    await found.last().click({ timeout: PATIENCE });
  }

  async do_fill({ selector, text }) {
    await (await this.chat()).locator(selector).fill(text, { timeout: PATIENCE });
  }

  async do_select({ selector, label }) {
    await (await this.chat()).locator(selector).selectOption({ label }, { timeout: PATIENCE });
  }

  /** Texts of all elements, in the chat view or on the page. */
  async do_texts({ selector, inChat }) {
    const place = inChat ? await this.chat() : this.page;
    return place.locator(selector).allTextContents();
  }

  async do_attribute({ selector, name }) {
    return (await this.chat()).locator(selector).last().getAttribute(name);
  }

  async do_value({ selector }) {
    return (await this.chat()).locator(selector).inputValue();
  }

  /** The contrast of a text against what is behind it, as WCAG counts it. */
  async do_contrast({ selector }) {
    return (await this.chat()).locator(selector).last().evaluate(contrast);
  }

  /** What has the focus in the chat view: tag and accessible name. */
  async do_focused() {
    return (await this.chat()).evaluate(() => {
      const element = globalThis.document.activeElement;
      return `${element.tagName.toLowerCase()} ${element.getAttribute('aria-label') ?? element.textContent.trim()}`.slice(0, 60);
    });
  }

  /** The ghost text on the page: what it adds to the line, and its further lines. */
  async do_ghost() {
    const first = await this.page.locator('.ghost-text, .ghost-text-decoration, .ghost-text-decoration-preview').allTextContents();
    return first.join('').replaceAll('\u00a0', ' ');
  }

  async do_drag({ from, to }) {
    await this.page.mouse.move(...from);
    await this.page.mouse.down();
    await this.page.mouse.move(...to, { steps: 5 });
    await this.page.mouse.up();
    await this.page.mouse.move(from[0], 10);
    await this.page.waitForTimeout(400); // the mark of the edge fades
  }

  do_picture({ name }) {
    return this.page.screenshot({ path: path.join(this.pictures, `${name}.png`) });
  }

  async do_clipboard() {
    return this.page.evaluate(() => globalThis.navigator.clipboard.readText());
  }

  do_violations() {
    return this.violations;
  }

  do_viewport({ width, height }) {
    return this.page.setViewportSize({ width, height });
  }
}
