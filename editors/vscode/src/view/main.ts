// The page of the chat view.

import type { Standing, ToView, Turn, ViewState } from '../shared/messages.ts';
import { Composer } from './composer.ts';
import { button, make } from './elements.ts';
import { listen, tell } from './host.ts';
import { TurnElement } from './turn.ts';

const NEAR = 40; // pixels from the end within which the page follows the answer

class View {
  private readonly banner = make('div', { class: 'banner', hidden: true });
  private readonly empty = make('div', { class: 'empty' });
  private readonly log = make('main', { class: 'log', role: 'log', 'aria-live': 'off', 'aria-label': 'Conversation', tabindex: '0' });
  private readonly spoken = make('div', { class: 'spoken', role: 'status', 'aria-live': 'polite' });
  private readonly composer = new Composer();
  private turns: TurnElement[] = [];
  private last: Turn | undefined;
  private drawing = false;

  constructor(place: HTMLElement) {
    this.empty.append(
      make('h2', {}, 'Ask about this repository'),
      make('p', {}, 'The model has read it. Answers come from your own machine.'),
      make('ul', {}, make('li', {}, '@ names a file, @selection the selected lines'), make('li', {}, 'Edit proposes changes; you see them before they are made'), make('li', {}, 'Every answer says what it read and what was in the cache')),
    );
    place.append(this.banner, this.log, this.composer.element, this.spoken);
  }

  take(message: ToView): void {
    switch (message.type) {
      case 'state':
        return this.show(message.state);
      case 'turn':
        return this.keepingPlace(() => this.find(message.turn.id)?.update(message.turn, message.turn.id === this.turns.at(-1)?.id));
      case 'piece':
        this.find(message.turn)?.add(message.kind, message.text);
        return this.draw(message.turn);
      case 'files':
        return this.composer.suggest(message.request, message.paths);
      case 'compose':
        return this.composer.compose(message.text, message.mode);
      case 'copied':
        this.spoken.textContent = 'Copied';
    }
  }

  private show(state: ViewState): void {
    this.drawBanner(state.standing);
    this.keepingPlace(() => this.drawTurns(state.turns));
    this.composer.update(state);
    this.say(state.turns.at(-1));
  }

  private drawTurns(turns: Turn[]): void {
    const known = new Map(this.turns.map((item) => [item.id, item]));
    this.turns = turns.map((turn, index) => {
      const last = index === turns.length - 1;
      const item = known.get(turn.id) ?? new TurnElement(turn, last);
      item.update(turn, last);
      return item;
    });
    const wanted: Node[] = this.turns.length === 0 ? [this.empty] : this.turns.map((item) => item.element);
    const same = wanted.length === this.log.childNodes.length && wanted.every((node, index) => this.log.childNodes[index] === node);
    if (!same) this.log.replaceChildren(...wanted);
  }

  private drawBanner(standing: Standing): void {
    this.banner.hidden = standing.kind === 'connected';
    if (this.banner.hidden) return;
    const actions = {
      missing: [button('How to install', () => tell({ type: 'action', name: 'install' })), button('Choose the program…', () => tell({ type: 'action', name: 'choosePath' }), { class: 'secondary' })],
      failed: [button('Restart', () => tell({ type: 'action', name: 'restart' })), button('Show output', () => tell({ type: 'action', name: 'output' }), { class: 'secondary' })],
      connecting: [],
      connected: [],
    }[standing.kind];
    this.banner.className = `banner ${standing.kind}`;
    this.banner.replaceChildren(make('strong', {}, standing.message), ...(standing.advice === undefined ? [] : [make('div', {}, standing.advice)]), ...(actions.length > 0 ? [make('div', { class: 'actions' }, ...actions)] : []));
  }

  /** Tell a screen reader of an answer's begin and end, not of each word. */
  private say(turn: Turn | undefined): void {
    if (turn !== undefined && (turn.id !== this.last?.id || turn.state !== this.last.state)) {
      const words = { working: 'Answering', done: 'The answer is complete', stopped: 'Stopped', failed: turn.failure?.message ?? 'Failed' };
      this.spoken.textContent = words[turn.state];
    }
    this.last = turn === undefined ? undefined : { ...turn };
  }

  private find(id: string): TurnElement | undefined {
    return this.turns.find((item) => item.id === id);
  }

  private draw(id: string): void {
    if (this.drawing) return;
    this.drawing = true;
    requestAnimationFrame(() => {
      this.drawing = false;
      this.keepingPlace(() => this.find(id)?.drawText());
    });
  }

  /** Follow the end of the conversation if the reader is there, else stay where they read. */
  private keepingPlace(change: () => void): void {
    const before = this.turns.length;
    const atEnd = this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight < NEAR;
    change();
    if (atEnd || this.turns.length > before) this.log.scrollTop = this.log.scrollHeight;
  }
}

const place = document.getElementById('view');
if (place !== null) {
  const view = new View(place);
  listen((message) => view.take(message));
  tell({ type: 'ready' });
}
