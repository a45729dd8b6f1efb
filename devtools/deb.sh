#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Builds the Debian packages from a copy of the tree, checks them with lintian, and leaves them in FOLDER.
# usage: deb.sh [FOLDER]
set -eu

cd "$(dirname "$0")/.."
out=${1:-build-deb}
rm -rf "$out"
mkdir -p "$out"
out=$(cd "$out" && pwd)
copy=$out/ringtap
mkdir "$copy"
if git rev-parse --git-dir >/dev/null 2>&1; then
	git ls-files -z --cached --others --exclude-standard
else # not a repository: all files except build folders
	find . -path './build*' -prune -o -type f -print0
fi | xargs -0 sh -c 'for f; do [ ! -e "$f" ] || printf "%s\0" "$f"; done' sh |
	tar -c --null -T - | tar -x -C "$copy"
(cd "$copy" && dpkg-buildpackage --build=full --no-sign --jobs="${JOBS:-$(nproc)}") >"$out/build.log" 2>&1 || {
	tail -n 60 "$out/build.log"
	echo "deb: the build failed; its whole output is in $out/build.log" >&2
	exit 1
}
rm -rf "$copy"
lintian --allow-root --fail-on error --display-info "$out"/*.changes
ls "$out"/*.deb
