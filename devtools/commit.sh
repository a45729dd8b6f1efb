#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The commit that these sources are of: that of their own repository, not of one that they were unpacked into, or the one that
# `meson dist` has written (write) into its tarball. Fails where neither is known.
# usage: commit.sh [write]
set -eu
cd "$(dirname "$0")/.."
if [ "${1:-}" = write ]; then
	commit=$("$MESON_SOURCE_ROOT/devtools/commit.sh")
	echo "$commit" >"$MESON_DIST_ROOT/.commit"
elif [ -e .git ]; then
	git rev-parse --short=12 HEAD
else
	cat .commit
fi
