// Check the style of Lua files as StyLua writes it: node stylua.mjs PACKAGE [--write] FOLDER...
// The npm package is StyLua as WebAssembly: no binary is fetched, but also no command line comes with it.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';

const [packageFolder, ...rest] = process.argv.slice(2);
const write = rest.includes('--write');
const folders = rest.filter((word) => word !== '--write');
const { Config, IndentType, OutputVerification, QuoteStyle, formatCode } = createRequire(import.meta.url)(resolve(packageFolder));

function config() {
  const found = Config.new();
  found.column_width = 110; // as in editors/neovim/stylua.toml, for editors that format on their own
  found.indent_type = IndentType.Spaces;
  found.indent_width = 2;
  found.quote_style = QuoteStyle.AutoPreferSingle;
  return found;
}

function luaFiles(folder) {
  const names = readdirSync(folder, { recursive: true });
  return names.filter((name) => name.endsWith('.lua')).map((name) => join(folder, name));
}

let wrong = 0;
for (const file of folders.flatMap(luaFiles).sort()) {
  const before = readFileSync(file, 'utf8');
  const after = formatCode(before, config(), undefined, OutputVerification.Full);
  if (before === after) continue;
  if (write) {
    writeFileSync(file, after);
    console.log(`${file}: formatted`);
    continue;
  }
  const lines = before.split('\n');
  const first = after.split('\n').findIndex((line, index) => line !== lines[index]);
  console.error(`${file}:${first + 1}: not as StyLua writes it`);
  wrong += 1;
}
process.exitCode = wrong ? 1 : 0;
