// The line to the extension.

import type { ToHost, ToView } from '../shared/messages.ts';

interface Api {
  postMessage(message: ToHost): void;
  getState(): unknown;
  setState(state: unknown): void;
}

declare function acquireVsCodeApi(): Api;

const api = acquireVsCodeApi();

export function tell(message: ToHost): void {
  api.postMessage(message);
}

export function listen(handler: (message: ToView) => void): void {
  window.addEventListener('message', (event: MessageEvent<ToView>) => handler(event.data));
}

/** What has been typed survives the view's being hidden. */
export function draft(): string {
  const state = api.getState();
  return typeof state === 'object' && state !== null && 'draft' in state && typeof state.draft === 'string' ? state.draft : '';
}

export function keepDraft(text: string): void {
  api.setState({ draft: text });
}
