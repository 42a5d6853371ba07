// The chat view's page: nothing but its own script and style may load, and nothing may be reached from it.

import { randomBytes } from 'node:crypto';
import * as vscode from 'vscode';

export function page(webview: vscode.Webview, extension: vscode.Uri): string {
  const nonce = randomBytes(16).toString('base64');
  const file = (name: string): string => webview.asWebviewUri(vscode.Uri.joinPath(extension, 'out', 'view', name)).toString();
  const policy = [`default-src 'none'`, `script-src 'nonce-${nonce}'`, `style-src ${webview.cspSource}`, `base-uri 'none'`, `form-action 'none'`];
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy.join('; ')}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="${file('style.css')}">
<title>Laguna</title>
</head>
<body>
<div id="view"></div>
<script nonce="${nonce}" src="${file('view.js')}"></script>
</body>
</html>`;
}
