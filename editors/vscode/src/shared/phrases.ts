// Sentences made of figures: what an answer cost, what the status bar says.

import type { EditorStatus, Usage, WorkspaceStatus } from '../wire.ts';

/** Tokens and cache of an answer in one line. */
export function usageLine(usage: Usage): string {
  const parts = [`${count(usage.promptTokens)} tokens read, ${count(usage.cachedTokens)} from the cache${share(usage)}`];
  if (usage.ttftMs !== null) parts.push(`first word after ${seconds(usage.ttftMs)}`);
  parts.push(`${count(usage.outputTokens)} tokens written in ${seconds(usage.totalMs)}`);
  if (usage.finishReason === 'length') parts.push('cut off at the longest answer allowed');
  return parts.join(' · ');
}

/** What stands behind the line: for the tooltip. */
export function usageDetails(usage: Usage): string {
  const lines = [`${count(usage.prefilledTokens)} tokens were read anew`];
  if (usage.brokeAt !== null) lines.push(`from ${usage.brokeAt} on the prompt differs from the one before`);
  if (usage.reasoningTokens > 0) lines.push(`${count(usage.reasoningTokens)} of the tokens written were reasoning`);
  if (usage.snapshot !== '') lines.push(`snapshot ${usage.snapshot.slice(0, 12)}, overlay ${usage.overlaySeq}`);
  if (usage.profile !== '') lines.push(`profile ${usage.profile}`);
  return lines.join('\n');
}

function share(usage: Usage): string {
  if (usage.promptTokens === 0) return '';
  const percent = (100 * usage.cachedTokens) / usage.promptTokens;
  return ` (${percent > 99 && percent < 100 ? '>99' : Math.round(percent)}%)`;
}

/** A number with its thousands set apart. */
export function count(value: number): string {
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** A number of tokens, short: 950, 1.2K, 96K. */
export function short(value: number): string {
  if (value < 1000) return String(value);
  return value < 10_000 ? `${(value / 1000).toFixed(1)}K` : `${Math.round(value / 1000)}K`;
}

function seconds(milliseconds: number): string {
  if (milliseconds < 1000) return `${(milliseconds / 1000).toFixed(2)} s`;
  return milliseconds < 100_000 ? `${(milliseconds / 1000).toFixed(1)} s` : `${Math.round(milliseconds / 60_000)} min`;
}

export interface StatusLine {
  text: string;
  level: 'normal' | 'warning' | 'error';
  spoken: string;
}

/** The status bar's text for a connected daemon; the icons are VS Code's. */
export function statusLine(status: EditorStatus | undefined): StatusLine {
  if (status === undefined) return { text: '$(loading~spin) Laguna', level: 'normal', spoken: 'Laguna: connecting' };
  const spoken = `Laguna: ${status.message}`;
  const warming = status.engine.phase === 'ready' ? status.workspaces.find(isWarming) : undefined;
  if (warming !== undefined) {
    const amount = `${short(warming.warmTokens)} of ${short(warming.prefixTokens)}`;
    return { text: `$(loading~spin) Laguna: reading ${amount} tokens`, level: 'normal', spoken: `${spoken}, reading ${amount} tokens` };
  }
  switch (status.kind) {
    case 'Error':
      return { text: '$(error) Laguna', level: 'error', spoken };
    case 'Warning':
      return { text: '$(warning) Laguna', level: 'warning', spoken };
    case 'Inactive':
      return { text: '$(circle-slash) Laguna', level: 'normal', spoken };
    case 'Normal':
      if (status.engine.phase === 'starting') return { text: '$(loading~spin) Laguna: loading the model', level: 'normal', spoken };
      return { text: status.busy ? '$(sync~spin) Laguna' : '$(sparkle) Laguna', level: 'normal', spoken };
  }
}

function isWarming(workspace: WorkspaceStatus): boolean {
  return workspace.residency === 'warming' && workspace.prefixTokens > 0;
}

/** One line about a root: what of it is in the engine's cache, and why not more. */
export function rootLine(workspace: WorkspaceStatus): string {
  const parts = [workspace.state, `${count(workspace.files)} files`, `${count(workspace.prefixTokens)} tokens`, `${workspace.residency} (${count(workspace.warmTokens)} warm)`];
  if (workspace.waitsFor !== '') parts.push(workspace.waitsFor);
  return `${workspace.root}: ${parts.join(', ')}`;
}
