// Code blocks: what their opening line says, and colours good enough to read them by.

export interface CodeInfo {
  language: string;
  path?: string;
}

export interface Piece {
  kind: 'plain' | 'comment' | 'string' | 'number' | 'keyword';
  text: string;
}

const PATH = /^[\w.@+-]*[\w-]\.\w{1,10}$|^[\w.@+-]+(?:\/[\w.@+-]+)+$/;
const KNOWN_FILES = /^(?:Makefile|Dockerfile|Justfile|Gemfile|Rakefile)$/;

/** Language and path of a fence: `python`, `python src/app.py`, `python:src/app.py`, `ts title="src/a.ts"`. */
export function codeInfo(info: string): CodeInfo {
  const named = /(?:title|file|filename|path)=(?:"([^"]+)"|'([^']+)'|(\S+))/.exec(info);
  const words = info.replace(named?.[0] ?? '', ' ').replace(/\{[^}]*\}/g, ' ').trim().split(/\s+/);
  let language = (words[0] ?? '').toLowerCase();
  let path = named?.[1] ?? named?.[2] ?? named?.[3] ?? words.slice(1).find(isPath);
  const colon = (words[0] ?? '').indexOf(':');
  if (colon > 0 && isPath((words[0] ?? '').slice(colon + 1))) {
    path ??= (words[0] ?? '').slice(colon + 1);
    language = language.slice(0, colon);
  } else if (isPath(words[0] ?? '')) {
    path ??= words[0];
    language = (words[0] ?? '').split('.').at(-1)?.toLowerCase() ?? '';
  }
  return path === undefined ? { language } : { language, path };
}

function isPath(word: string): boolean {
  return PATH.test(word) || KNOWN_FILES.test(word);
}

const FILE_ENDS =
  /\.(?:[ch]|[ch]pp|cc|cs|css|go|html|java|js|json|jsx|kt|lock|lua|md|mjs|php|proto|py|pyi|rb|rs|rst|scss|sh|sql|svg|swift|toml|ts|tsx|txt|vue|xml|ya?ml|zig)$/;

/** Whether inline code reads like a place of the repository, such as `src/app.py:12`. */
export function placeOf(text: string): { path: string; line?: number } | undefined {
  const match = /^((?:[\w.@+-]+\/)*[\w@+-][\w.@+-]*\.\w{1,10})(?::(\d{1,7})(?:-\d{1,7})?)?$/.exec(text);
  if (match?.[1] === undefined || /^\d+(?:\.\d+)+$|(?:^|\/)\.\.(?:\/|$)/.test(match[1])) return undefined;
  // `Lamp.dim` is a method: without a folder or a line only the usual endings make a file.
  if (!match[1].includes('/') && match[2] === undefined && !FILE_ENDS.test(match[1])) return undefined;
  return match[2] === undefined ? { path: match[1] } : { path: match[1], line: Number(match[2]) };
}

const WORDS = new Set(
  ('abstract and as assert async await bool break case catch char class const constexpr continue def default defer del do ' +
    'double elif else enum except export extends extern false finally float fn for from func function go if impl implements ' +
    'import in int interface is lambda let long match mod module mut new nil none not null or package pass private protected ' +
    'pub public raise return self short static struct super switch this throw trait true try type typedef undefined union ' +
    'unless unsafe unsigned until use using var void where while with yield then fi done echo local select end begin ' +
    'True False None Self').split(' '),
);
const HASH = new Set(['python', 'py', 'sh', 'bash', 'shell', 'zsh', 'ruby', 'rb', 'yaml', 'yml', 'toml', 'perl', 'r', 'make', 'makefile', 'dockerfile', 'console', 'ini', 'nix', 'elixir', 'julia', 'cmake']);
const DASHES = new Set(['sql', 'lua', 'haskell', 'hs', 'ada', 'elm']);
const PLAIN = new Set(['', 'text', 'txt', 'plain', 'plaintext', 'markdown', 'md', 'log', 'output']);

/** The code cut into pieces of one colour each; joined they are the code. */
export function colours(code: string, language: string): Piece[] {
  if (PLAIN.has(language)) return [{ kind: 'plain', text: code }];
  if (language === 'diff' || language === 'patch') return diff(code);
  const comment = HASH.has(language) ? '#.*' : DASHES.has(language) ? '--.*' : '//.*|/\\*[^]*?(?:\\*/|$)';
  const long = HASH.has(language) ? '"""[^]*?(?:"""|$)|\'\'\'[^]*?(?:\'\'\'|$)|' : '`(?:\\\\[^]|[^`\\\\])*(?:`|$)|';
  const string = `${long}"(?:\\\\.|[^"\\\\\\n])*"?|'(?:\\\\.|[^'\\\\\\n])*'`;
  const pattern = new RegExp(`(${comment})|(${string})|(\\b\\d[\\w.]*\\b)|([A-Za-z_]\\w*)`, 'g');
  const pieces: Piece[] = [];
  let at = 0;
  for (const match of code.matchAll(pattern)) {
    const kind = kindOf(match);
    if (kind === 'plain') continue;
    if (match.index > at) pieces.push({ kind: 'plain', text: code.slice(at, match.index) });
    pieces.push({ kind, text: match[0] });
    at = match.index + match[0].length;
  }
  if (at < code.length) pieces.push({ kind: 'plain', text: code.slice(at) });
  return pieces;
}

function kindOf(match: RegExpMatchArray): Piece['kind'] {
  if (match[1] !== undefined) return 'comment';
  if (match[2] !== undefined) return 'string';
  if (match[3] !== undefined) return 'number';
  return WORDS.has(match[0]) ? 'keyword' : 'plain';
}

function diff(code: string): Piece[] {
  return code.split(/(?<=\n)/).map((line): Piece => {
    const kind = line.startsWith('+') ? 'string' : line.startsWith('-') ? 'number' : line.startsWith('@@') ? 'comment' : 'plain';
    return { kind, text: line };
  });
}
