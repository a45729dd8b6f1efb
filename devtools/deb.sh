#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Builds the Debian packages from a copy of the tree, checks them with lintian, and leaves them in FOLDER, with a bill of
# materials.
# usage: deb.sh [FOLDER [ROOT]]: with ROOT, in the root of another suite, with the suite's name (trixie, sid);
# created if missing. OLDER: a folder of packages to install there first (jammy.sh)
set -eu

build() { # FOLDER, with the copy in it
	(cd "$1/ringtap" && dpkg-buildpackage --build=full --no-sign --jobs="${JOBS:-$(nproc)}") >"$1/build.log" 2>&1 || {
		tail -n 60 "$1/build.log"
		echo "deb: the build failed; its whole output is in build.log, beside the packages" >&2
		exit 1
	}
	lintian --allow-root --fail-on error --display-info "$1"/*.changes
	sbom "$1"/*.deb >"$1/ringtap.spdx.json"
}

sbom() { # sbom DEB...: packages, and what they need, in the versions that they were built with; one that is not installed has none
	for deb; do
		echo "package $(dpkg-deb -W --showformat '${Package} ${Version}' "$deb") BSD-3-Clause"
		dpkg-deb -f "$deb" Depends | tr ',' '\n' | sed 's/^ *//; s/[ :(|].*//' | while read -r name; do
			echo "depends $name $(dpkg-query -W -f '${Version}\n' "$name" 2>/dev/null | head -n 1)"
		done
	done | SOURCE_DATE_EPOCH=$(dpkg-parsechangelog -l "$(dirname "$1")/ringtap/debian/changelog" -S Timestamp) \
		"$(dirname "$1")/ringtap/devtools/sbom.py" ringtap
}

quiet() {
	"$@" >deps.log 2>&1 || {
		cat deps.log
		exit 1
	}
}

if [ "${1:-}" = --inside ]; then
	quiet apt-get update
	quiet apt-get install -y --no-install-recommends dpkg-dev fakeroot lintian
	[ ! -d older ] || quiet apt-get install -y --no-install-recommends ./older/*.deb
	quiet apt-get build-dep -y --no-install-recommends ./ringtap
	rm deps.log
	build .
	exit
fi

cd "$(dirname "$0")/.."
out=${1:-build-deb}
root=${2:-}
rm -rf "$out"
mkdir -p "$out"
out=$(cd "$out" && pwd)
copy=$out/ringtap
devtools/sources.sh "$copy"
if [ -n "$root" ]; then
	[ -z "${OLDER:-}" ] || cp -r "$OLDER" "$out/older"
	devtools/root.sh "$root" "$out" ringtap/devtools/deb.sh --inside
else
	build "$out"
fi
rm -rf "$copy" "$out/older"
ls "$out"/*.deb
