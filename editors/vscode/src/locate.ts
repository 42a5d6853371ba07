// Where the laguna-daemon program is.

import { access, constants, stat } from 'node:fs/promises';
import { delimiter, join } from 'node:path';

export const PROGRAM = 'laguna-daemon';

export type Search = { found: string } | { missing: string; advice: string };

/** The places to look at, in order, when the settings name none. */
export function places(env: Readonly<Record<string, string | undefined>>, home: string): string[] {
  const folders = (env.PATH ?? '').split(delimiter).filter((folder) => folder !== '');
  const data = env.XDG_DATA_HOME ?? join(home, '.local', 'share');
  folders.push(
    join(home, '.local', 'bin'), // pip --user, pipx, uv tool
    join(data, 'uv', 'tools', PROGRAM, 'bin'),
    join(data, 'pipx', 'venvs', PROGRAM, 'bin'),
    join(home, '.local', 'pipx', 'venvs', PROGRAM, 'bin'),
    '/usr/local/bin',
    '/opt/homebrew/bin',
  );
  return [...new Set(folders)].map((folder) => join(folder, PROGRAM));
}

/** The program to start. Never one of the workspace itself: a repository does not choose what is run. */
export async function locate(setting: string, env: Readonly<Record<string, string | undefined>>, home: string): Promise<Search> {
  if (process.platform === 'win32') {
    return {
      missing: 'laguna-daemon runs on Linux and macOS.',
      advice: 'Open the folder in WSL or on a remote machine; the extension then runs there.',
    };
  }
  if (setting.trim() !== '') {
    const path = setting.trim().replace(/^~(?=\/|$)/, home);
    if (await runnable(path)) return { found: path };
    return { missing: `${path} is not a program that can be run.`, advice: 'Correct the setting laguna.path, or empty it to search for laguna-daemon.' };
  }
  for (const path of places(env, home)) {
    if (await runnable(path)) return { found: path };
  }
  return {
    missing: 'laguna-daemon was not found on this machine.',
    advice: 'Install it, or choose where it is (setting laguna.path).',
  };
}

async function runnable(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}
