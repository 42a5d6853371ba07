#!/bin/bash
# The daemon and everything it needs as wheels for Python 3.12 on x86-64 Linux, for a machine without network (34 MB).
# usage: wheels.sh FOLDER
set -euo pipefail
out=$(realpath -m "$1")
cd "$(dirname "$0")/../.."
platforms=()
for version in 2_35 2_34 2_31 2_28 2_27 2_26 2_24 2_17; do platforms+=(--platform "manylinux_${version}_x86_64"); done
platforms+=(--platform manylinux2014_x86_64 --platform manylinux1_x86_64)
mkdir -p "$out"
python3 - >"$out/requirements.txt" <<'P'
import tomllib
print("\n".join(tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"]))
P
python3 -m pip wheel -q --no-deps -w "$out" .
python3 -m pip download -q --only-binary=:all: --python-version 3.12 --implementation cp --abi cp312 --abi abi3 --abi none \
  "${platforms[@]}" -d "$out" -r "$out/requirements.txt"
du -sm "$out"
