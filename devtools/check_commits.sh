#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Checks subjects of commits: `area: Imperative phrase`, at most 72 characters.
#   check_commits.sh         the commits since this rule began
#   check_commits.sh FILE    the message in FILE: as a hook, by `ln -s ../../devtools/check_commits.sh .git/hooks/commit-msg`
set -u
first=8dff4b8

subjects() {
	if [ $# = 1 ]; then
		grep -v '^#' "$1" | head -n 1
	elif git cat-file -e "$first^{commit}" 2>/dev/null; then
		git log --no-merges --format=%s "$first..HEAD"
	fi # else a shallow clone
}

subjects "$@" | awk '
	length > 72 { print $0 ": " length " characters, more than 72"; bad = 1 }
	!/^(fixup! )*[a-z][a-z0-9_.\/, -]*: [^ ]/ { print $0 ": not `area: Imperative phrase`"; bad = 1 }
	END { exit bad }'
