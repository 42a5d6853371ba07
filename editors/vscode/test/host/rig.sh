#!/usr/bin/env bash
# A real VS Code from the npm registry: code-server, which is VS Code's own server and workbench, on the node it wants.
# usage: rig.sh FOLDER. Does nothing if the folder has these versions already. Nothing is compiled.
set -euo pipefail
node=24.21.0
vscode=4.139.1
folder=$(realpath -m "$1")
stamp="$folder/installed"
[ "$(cat "$stamp" 2>/dev/null)" = "$node $vscode" ] && exit 0

quiet=(--no-audit --no-fund --loglevel=error)
mkdir -p "$folder/node" "$folder/cs"
for part in node cs; do
  [ -f "$folder/$part/package.json" ] || echo '{ "private": true }' > "$folder/$part/package.json"
done
(cd "$folder/node" && npm install "${quiet[@]}" "node@$node") # its script links the binary
export PATH="$folder/node/node_modules/node/bin:$PATH"
(
  cd "$folder/cs"
  npm install "${quiet[@]}" --ignore-scripts "code-server@$vscode"
  cd node_modules/code-server/lib/vscode
  npm install "${quiet[@]}" --ignore-scripts --omit=dev
)
node --version >/dev/null
echo "$node $vscode" > "$stamp"
