// The questions behind the commands: explain, fix, refactor.

export interface Problem {
  line: number; // from 1
  message: string;
  source?: string;
}

export function explain(place: string): string {
  return `Explain ${place}: what it does, how it fits into the repository, and what is easy to get wrong about it.`;
}

export function fix(place: string, problems: readonly Problem[]): string {
  const list = problems.map((item) => `- line ${item.line}: ${item.message}${item.source === undefined ? '' : ` (${item.source})`}`);
  const what = problems.length === 1 ? 'this problem' : 'these problems';
  return `Fix ${what} in ${place} and change nothing else:\n${list.join('\n')}`;
}

export function refactor(place: string, wish: string): string {
  return `Refactor ${place} without changing what it does: ${wish}`;
}
