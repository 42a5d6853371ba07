// Bundles the extension, the chat view's page and, with --tests, the tests for the extension host.
import { build } from 'esbuild';

const common = { bundle: true, sourcemap: 'linked', sourcesContent: false, logLevel: 'warning', legalComments: 'none' };
const minify = !process.argv.includes('--tests');

await build({
  ...common,
  minify,
  entryPoints: ['src/extension.ts'],
  outfile: 'out/extension.js',
  platform: 'node',
  target: 'node20',
  format: 'cjs',
  external: ['vscode'],
});
await build({
  ...common,
  minify,
  entryPoints: { view: 'src/view/main.ts', style: 'src/view/style.css' },
  outdir: 'out/view',
  platform: 'browser',
  target: 'chrome122',
  format: 'iife',
});
if (process.argv.includes('--tests')) {
  await build({
    ...common,
    sourcemap: 'inline',
    entryPoints: ['test/host/suite.ts'],
    outfile: 'out/test/suite.cjs',
    platform: 'node',
    target: 'node20',
    format: 'cjs',
    external: ['vscode'],
  });
}
