#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The version is that of meson.build; programs, libraries, man pages and scripts read it there. Files of other formats repeat
# it: this prints the version, those that differ (check), or writes another one into all (set). Then the texts in golden/
# are written again (docs/testing.md); debian/changelog, the spec's %changelog and CHANGELOG.md get their entries by hand.
# usage: version.sh [check | set VERSION]
set -eu
cd "$(dirname "$0")/.."
version=$(sed -n "s/^  version: '\(.*\)',/\1/p" meson.build)

numbers="archive/pyproject.toml lab/pyproject.toml packaging/ringtap.spec debian/changelog CHANGELOG.md"
texts="README.md docs/usage.md docs/compatibility.md"
number='[0-9][0-9]*\.[0-9][0-9]*\.[0-9][0-9]*'
before='ringtap[ -]\|probe \|Versions of ' # a version in a text

repeated() { # FILE: the versions that it has, one a line
	case $1 in
	*.toml) sed -n 's/^version = "\(.*\)"/\1/p' "$1" ;;
	*.spec) sed -n 's/^Version: *//p; /^%changelog/,$ { /^\*/ { s/.* - \(.*\)-[0-9]*$/\1/p; q; }; }' "$1" | sort -u ;;
	README.md | docs/*) grep -o "\($before\)$number" "$1" | sed 's/.*[ -]//' | sort -u ;;
	*/changelog) sed -n '1s/^ringtap (\([^)~-]*\).*/\1/p' "$1" ;;
	CHANGELOG.md) sed -n 's/^## \[\(Unreleased\] \)\{0,1\}\([0-9.]*\).*/\2/p' "$1" | head -n 1 ;;
	esac
}

case ${1:-} in
'') echo "$version" ;;
check)
	for file in $numbers $texts; do
		# shellcheck disable=SC2046,SC2116 # on one line
		[ "$(repeated "$file")" = "$version" ] || echo "$file: version $(echo $(repeated "$file")); meson.build has $version"
	done
	;;
set)
	sed -i "s/^  version: '.*',/  version: '$2',/" meson.build
	sed -i "s/^version = \".*\"/version = \"$2\"/" archive/pyproject.toml lab/pyproject.toml
	sed -i "s/^\(Version: *\).*/\1$2/" packaging/ringtap.spec
	# shellcheck disable=SC2086 # names
	sed -i "s/\($before\)$number/\1$2/g" $texts
	"$0" check
	;;
*)
	echo "version.sh: check, or set VERSION" >&2
	exit 2
	;;
esac
