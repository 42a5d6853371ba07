#!/bin/bash
# An environment of the daemon's own from the wheels of wheels.sh, without network. PYTHON makes it (default: python3).
# usage: install_daemon.sh WHEELS FOLDER
set -euo pipefail
python=${PYTHON:-python3}
"$python" -m venv --without-pip "$2"
site=$(echo "$2"/lib/python3*/site-packages)
"$python" -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --target "$site" "$1"/*.whl
"$2/bin/python" -m laguna_daemon.cli --version
