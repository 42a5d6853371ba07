// Bundles the extension and the chat view's page; with --only-tests, the tests for the extension host.
import { build } from 'esbuild';

const common = { bundle: true, sourcesContent: false, logLevel: 'warning', legalComments: 'none' };
const node = { ...common, platform: 'node', target: 'node20', format: 'cjs', external: ['vscode'] };

if (process.argv.includes('--only-tests')) {
  await build({ ...node, sourcemap: 'inline', entryPoints: ['test/host/suite.ts'], outfile: 'out/test/suite.cjs' });
} else {
  await build({ ...node, minify: true, sourcemap: 'linked', entryPoints: ['src/extension.ts'], outfile: 'out/extension.js' });
  await build({
    ...common,
    minify: true,
    sourcemap: 'linked',
    entryPoints: { view: 'src/view/main.ts', style: 'src/view/style.css' },
    outdir: 'out/view',
    platform: 'browser',
    target: 'chrome122',
    format: 'iife',
  });
}
