// Where a question is written.

import type { Mode, ViewState } from '../shared/messages.ts';
import { button, make } from './elements.ts';
import { draft, keepDraft, tell } from './host.ts';
import { FileList } from './suggest.ts';

export class Composer {
  readonly element = make('form', { class: 'composer', 'aria-label': 'Ask' });
  private readonly box = make('textarea', { rows: '2', 'aria-label': 'Question. @ names a file, Enter sends, Shift+Enter starts a line.', placeholder: 'Ask about the repository. @ names a file' });
  private readonly files = new FileList(this.box);
  private readonly chips = make('div', { class: 'chips' });
  private readonly root = make('select', { 'aria-label': 'Folder that the question is about', title: 'Folder that the question is about' });
  private readonly mode = make('select', { 'aria-label': 'What is wanted', title: 'What is wanted' }, make('option', { value: 'ask' }, 'Ask'), make('option', { value: 'edit' }, 'Edit'));
  private readonly send = button('Send', () => this.submit(), { class: 'send' });
  private withoutSelection = '';
  private asked: string[] = [];
  private back = 0;
  private state: ViewState | undefined;

  constructor() {
    this.box.value = draft();
    this.box.addEventListener('input', () => {
      keepDraft(this.box.value);
      this.files.follow();
      this.fit();
      this.drawSend();
    });
    this.box.addEventListener('keydown', (event) => this.key(event));
    this.box.addEventListener('blur', () => this.files.close());
    this.root.addEventListener('change', () => tell({ type: 'root', uri: this.root.value }));
    this.element.addEventListener('submit', (event) => event.preventDefault());
    this.element.append(this.files.element, this.chips, this.box, make('div', { class: 'composer-bar' }, this.mode, this.root, make('span', { class: 'grow' }), this.send));
  }

  /** Take over what the extension says. */
  update(state: ViewState): void {
    this.state = state;
    this.asked = state.turns.map((turn) => turn.question);
    this.back = this.asked.length;
    this.root.hidden = state.roots.length < 2;
    this.root.disabled = state.rootFixed;
    this.root.replaceChildren(...state.roots.map((root) => make('option', { value: root.uri, selected: root.uri === state.root }, root.name)));
    const edit = this.mode.options[1];
    if (edit !== undefined) {
      edit.disabled = !state.standing.edits;
      edit.title = state.standing.edits ? '' : 'This laguna-daemon makes no edits in the editor yet';
      if (edit.disabled) this.mode.value = 'ask';
    }
    this.drawChips();
    this.drawSend();
  }

  suggest(request: number, paths: string[]): void {
    this.files.show(request, paths);
  }

  /** Put the cursor into the box; a given text only where nothing has been written. */
  compose(text: string | undefined, mode: Mode | undefined): void {
    if (text !== undefined && this.box.value.trim() === '') this.box.value = text;
    if (mode !== undefined && this.state?.standing.edits !== false) this.mode.value = mode;
    this.box.focus();
    this.box.setSelectionRange(this.box.value.length, this.box.value.length);
    this.fit();
    this.drawSend();
  }

  private get working(): boolean {
    return this.state?.turns.at(-1)?.state === 'working';
  }

  private drawChips(): void {
    const { pinned = [], selection } = this.state ?? {};
    const chips = pinned.map((item) => this.chip(item.label, () => tell({ type: 'unpin', uri: item.uri })));
    if (selection !== undefined && selection.label !== this.withoutSelection) {
      chips.unshift(this.chip(selection.label, () => {
        this.withoutSelection = selection.label;
        this.drawChips();
        this.box.focus();
      }));
    }
    this.chips.replaceChildren(...chips);
    this.chips.hidden = chips.length === 0;
  }

  private chip(label: string, remove: () => void): HTMLElement {
    return make('span', { class: 'chip' }, label, button('×', remove, { class: 'remove', 'aria-label': `Leave out ${label}`, title: 'Leave out' }));
  }

  private drawSend(): void {
    this.send.textContent = this.working ? 'Stop' : 'Send';
    this.send.title = this.working ? 'Stop the answer (Escape)' : 'Send the question (Enter)';
    this.send.disabled = !this.working && this.box.value.trim() === '';
  }

  private key(event: KeyboardEvent): void {
    if (this.files.key(event) || event.isComposing) return;
    if (event.key === 'Enter' && !event.shiftKey) {
      event.preventDefault();
      if (!this.working) this.submit();
    } else if (event.key === 'Escape' && this.working) tell({ type: 'stop' });
    else if (event.key === 'ArrowUp' && this.box.selectionEnd === 0) this.recall(-1, event);
    else if (event.key === 'ArrowDown' && this.box.selectionStart === this.box.value.length) this.recall(1, event);
  }

  /** The questions asked before, as in a shell. */
  private recall(step: number, event: KeyboardEvent): void {
    const next = this.back + step;
    if (next < 0 || next > this.asked.length) return;
    event.preventDefault();
    this.back = next;
    this.box.value = this.asked[next] ?? '';
    const at = step < 0 ? 0 : this.box.value.length;
    this.box.setSelectionRange(at, at);
    keepDraft(this.box.value);
    this.fit();
    this.drawSend();
  }

  private submit(): void {
    if (this.working) return tell({ type: 'stop' });
    const text = this.box.value.trim();
    if (text === '') return;
    const { selection } = this.state ?? {};
    tell({ type: 'ask', text, mode: this.mode.value === 'edit' ? 'edit' : 'ask', selection: selection !== undefined && selection.label !== this.withoutSelection });
    this.box.value = '';
    this.withoutSelection = '';
    keepDraft('');
    this.files.close();
    this.fit();
  }

  private fit(): void {
    this.box.rows = Math.min(12, Math.max(2, this.box.value.split('\n').length));
  }
}
