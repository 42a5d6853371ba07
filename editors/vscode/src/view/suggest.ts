// The list of files under the question while a reference is typed.

import { SELECTION, typing, written } from '../shared/references.ts';
import { make } from './elements.ts';
import { tell } from './host.ts';

export class FileList {
  readonly element = make('ul', { class: 'files', id: 'files', role: 'listbox', 'aria-label': 'Files', hidden: true });
  private request = 0;
  private paths: string[] = [];
  private at = 0;
  private readonly box: HTMLTextAreaElement;

  constructor(box: HTMLTextAreaElement) {
    this.box = box;
    box.setAttribute('role', 'combobox');
    box.setAttribute('aria-autocomplete', 'list');
    box.setAttribute('aria-controls', 'files');
    box.setAttribute('aria-expanded', 'false');
  }

  get open(): boolean {
    return !this.element.hidden;
  }

  /** Ask for what fits the reference at the cursor, if there is one. */
  follow(): void {
    const found = typing(this.box.value, this.box.selectionStart);
    this.request += 1;
    if (found === undefined) return this.close();
    tell({ type: 'files', request: this.request, query: found.query });
  }

  show(request: number, paths: string[]): void {
    const found = typing(this.box.value, this.box.selectionStart);
    if (request !== this.request || found === undefined) return;
    this.paths = SELECTION.startsWith(found.query) ? [...paths.slice(0, 11), SELECTION] : paths;
    if (this.paths.length === 0) return this.close();
    this.at = 0;
    this.element.replaceChildren(
      ...this.paths.map((path, index) => {
        const slash = path.lastIndexOf('/');
        const item = make('li', { role: 'option', id: `file-${index}` }, make('span', {}, path.slice(slash + 1)), make('span', { class: 'dim' }, path === SELECTION ? 'the selected lines' : path.slice(0, Math.max(0, slash))));
        item.addEventListener('mousedown', (event) => {
          event.preventDefault();
          this.at = index;
          this.take();
        });
        return item;
      }),
    );
    this.element.hidden = false;
    this.box.setAttribute('aria-expanded', 'true');
    this.mark();
  }

  close(): void {
    this.element.hidden = true;
    this.box.setAttribute('aria-expanded', 'false');
    this.box.removeAttribute('aria-activedescendant');
  }

  /** Handle a key while the list is open; true if it was meant for the list. */
  key(event: KeyboardEvent): boolean {
    if (!this.open) return false;
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      this.at = (this.at + (event.key === 'ArrowDown' ? 1 : this.paths.length - 1)) % this.paths.length;
      this.mark();
    } else if (event.key === 'Enter' || event.key === 'Tab') this.take();
    else if (event.key === 'Escape') this.close();
    else return false;
    event.preventDefault();
    return true;
  }

  private mark(): void {
    for (const [index, item] of [...this.element.children].entries()) {
      item.setAttribute('aria-selected', String(index === this.at));
      if (index === this.at) item.scrollIntoView({ block: 'nearest' });
    }
    this.box.setAttribute('aria-activedescendant', `file-${this.at}`);
  }

  private take(): void {
    const path = this.paths[this.at];
    const cursor = this.box.selectionStart;
    const found = typing(this.box.value, cursor);
    this.close();
    if (path === undefined || found === undefined) return;
    const rest = this.box.value.slice(cursor);
    this.box.setRangeText(written(path) + (/^\s/.test(rest) ? '' : ' '), found.start, cursor, 'end');
    this.box.dispatchEvent(new Event('input'));
    this.close();
  }
}
