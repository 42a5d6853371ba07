// Which of many paths somebody means who has typed a few characters of one.

/** The paths that contain the query's characters in order, best first, at most `limit`. */
export function rank(query: string, paths: readonly string[], limit = 30): string[] {
  const wanted = query.toLowerCase();
  const scored: { path: string; score: number }[] = [];
  for (const path of paths) {
    const score = rate(wanted, path);
    if (score !== undefined) scored.push({ path, score });
  }
  scored.sort((a, b) => b.score - a.score || a.path.length - b.path.length || (a.path < b.path ? -1 : 1));
  return scored.slice(0, limit).map((item) => item.path);
}

function rate(wanted: string, path: string): number | undefined {
  const lower = path.toLowerCase();
  const name = lower.slice(lower.lastIndexOf('/') + 1);
  if (wanted === '') return 0;
  if (name === wanted || lower === wanted) return 1000;
  if (name.startsWith(wanted)) return 800;
  if (name.includes(wanted)) return 600;
  if (lower.includes(wanted)) return 400;
  return inOrder(wanted, name) ? 200 : inOrder(wanted, lower) ? 100 : undefined;
}

function inOrder(wanted: string, text: string): boolean {
  let at = -1;
  for (const character of wanted) {
    at = text.indexOf(character, at + 1);
    if (at === -1) return false;
  }
  return true;
}
