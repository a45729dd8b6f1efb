#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copies the sources, with changed and new files, into FOLDER, which it makes: for packages, which are built of the copy. Its
# .commit has the commit that they are of, with "-changed" where a file differs. Permissions do not depend on the umask.
# usage: sources.sh FOLDER
set -eu
umask 022

mkdir -p "$1"
folder=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
commit=$(devtools/commit.sh 2>/dev/null) || commit=
if [ -n "$commit" ] && [ -e .git ] && [ -n "$(git status --porcelain)" ]; then
	commit=$commit-changed
fi
if [ -e .git ]; then
	git ls-files -z --cached --others --exclude-standard
else # a tarball: all files except build folders
	find . -path './build*' -prune -o -type f -print0
fi | xargs -0 sh -c 'for f; do [ ! -e "$f" ] || printf "%s\0" "$f"; done' sh |
	tar -c --null -T - --mode=u=rwX,go=rX | tar -x -C "$folder"
[ -z "$commit" ] || echo "$commit" >"$folder/.commit"
