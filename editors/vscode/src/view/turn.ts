// One question and its answer on the page.

import type { Turn } from '../shared/messages.ts';
import { count, short, usageDetails, usageLine } from '../shared/phrases.ts';
import { button, make } from './elements.ts';
import { tell } from './host.ts';
import { Answer } from './render.ts';

export class TurnElement {
  readonly element = make('article', { class: 'turn' });
  private readonly answer: Answer;
  private readonly question = make('div', { class: 'question' });
  private readonly thinking = make('details', { class: 'thinking', hidden: true });
  private readonly thoughts = make('div', { class: 'thoughts' });
  private readonly notices = make('ul', { class: 'notices', hidden: true });
  private readonly progress = make('div', { class: 'progress', hidden: true });
  private readonly foot = make('div', { class: 'foot' });
  private turn: Turn;
  private drawn = '';

  constructor(turn: Turn, last: boolean) {
    this.turn = turn;
    this.answer = new Answer(turn.id);
    this.thinking.append(make('summary', {}, 'Thinking'), this.thoughts);
    this.element.append(this.question, this.notices, this.thinking, this.progress, this.answer.element, this.foot);
    this.update(turn, last);
  }

  get id(): string {
    return this.turn.id;
  }

  /** Show the turn as it is now; `last` turns can be asked again. */
  update(turn: Turn, last: boolean): void {
    const now = JSON.stringify([turn, last]);
    if (now === this.drawn) return;
    this.drawn = now;
    this.turn = turn;
    this.element.setAttribute('aria-busy', String(turn.state === 'working'));
    this.element.setAttribute('aria-label', `Question: ${turn.question.slice(0, 80)}`);
    this.drawQuestion();
    this.notices.hidden = turn.notices.length === 0;
    this.notices.replaceChildren(...turn.notices.map((text) => make('li', {}, text)));
    this.drawProgress();
    this.drawText();
    this.foot.replaceChildren(...this.footer(last));
  }

  /** One more piece of the answer. */
  add(kind: 'text' | 'thinking', text: string): void {
    if (kind === 'text') this.turn = { ...this.turn, answer: this.turn.answer + text };
    else this.turn = { ...this.turn, thinking: this.turn.thinking + text };
    delete this.turn.progress;
    this.drawn = '';
    this.drawProgress();
  }

  /** Bring the text on the page up to date; costs what has changed. */
  drawText(): void {
    this.answer.show(this.turn.answer);
    this.thinking.hidden = this.turn.thinking === '';
    if (this.thoughts.textContent !== this.turn.thinking) this.thoughts.textContent = this.turn.thinking;
  }

  private drawQuestion(): void {
    const { attachments, id, mode, question } = this.turn;
    const chips = attachments.map((item, index) => button(item.label, () => tell({ type: 'attachment', turn: id, index }), { class: 'chip', title: `Open ${item.label}` }));
    this.question.replaceChildren(
      make('div', { class: 'question-text' }, question),
      ...(chips.length > 0 || mode === 'edit' ? [make('div', { class: 'chips' }, mode === 'edit' && make('span', { class: 'chip mode' }, 'Edit'), ...chips)] : []),
    );
  }

  private drawProgress(): void {
    const { progress, state, answer, thinking } = this.turn;
    const waiting = state === 'working' && answer === '' && thinking === '';
    this.progress.hidden = progress === undefined && !waiting;
    if (this.progress.hidden) return;
    const amount = progress?.done !== undefined && progress.total ? ` ${short(progress.done)} of ${short(progress.total)}` : '';
    const bar = make('progress', progress?.done !== undefined && progress.total ? { value: String(progress.done), max: String(progress.total) } : {});
    bar.setAttribute('aria-label', progress?.message ?? 'Waiting for the answer');
    this.progress.replaceChildren(make('span', {}, `${progress?.message ?? 'Waiting for the answer'}${amount}`), bar);
  }

  private footer(last: boolean): HTMLElement[] {
    const { failure, proposal, refusals, state, usage } = this.turn;
    const parts: HTMLElement[] = [];
    if (proposal !== undefined) parts.push(this.proposal());
    if (refusals !== undefined) {
      const rows = refusals.map((item) => make('li', {}, item.path === null ? item.message : `${item.path}: ${item.message}`));
      parts.push(make('div', { class: 'failure', role: 'alert' }, make('strong', {}, 'None of these edits can be applied'), make('ul', {}, ...rows)));
    }
    if (failure !== undefined) {
      parts.push(make('div', { class: 'failure', role: 'alert' }, make('strong', {}, failure.message), failure.advice !== undefined && make('div', {}, failure.advice)));
    }
    if (state === 'stopped') parts.push(make('div', { class: 'stopped' }, 'Stopped'));
    if (last && (state === 'failed' || state === 'stopped')) {
      parts.push(make('div', { class: 'actions' }, button('Ask again', () => tell({ type: 'retry', turn: this.turn.id })), state === 'failed' && button('Show output', () => tell({ type: 'action', name: 'output' }), { class: 'secondary' })));
    }
    if (usage !== undefined) {
      const whole = this.turn.answer;
      const copy = button('Copy answer', () => {
        tell({ type: 'copy', text: whole });
        copy.textContent = 'Copied';
        setTimeout(() => (copy.textContent = 'Copy answer'), 1500);
      }, { class: 'quiet' });
      parts.push(make('div', { class: 'usage' }, make('span', { title: usageDetails(usage) }, usageLine(usage)), copy));
    }
    return parts;
  }

  private proposal(): HTMLElement {
    const { id, proposal } = this.turn;
    const files = proposal?.files ?? [];
    const verbs = { edit: 'changes', create: 'new', delete: 'deleted', rename: 'renamed' };
    const rows = files.map((file) => make('li', {}, make('span', {}, file.label), make('span', { class: 'dim' }, file.change === 'edit' ? `${count(file.count)} ${file.count === 1 ? 'change' : 'changes'}` : verbs[file.change])));
    const applied = proposal?.state === 'applied';
    return make(
      'section',
      { class: 'proposal', 'aria-label': 'Proposed edits' },
      make('div', { class: 'proposal-head' }, make('strong', {}, applied ? 'Edits applied' : 'Proposed edits'), !applied && button('Review and apply', () => tell({ type: 'review', turn: id }))),
      !applied && make('p', {}, 'The preview shows each change. Tick those that you want, then apply.'),
      make('ul', {}, ...rows),
    );
  }
}
