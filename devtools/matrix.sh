#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Tests one installation of ringtap, that of BUILD, with the DPDK and the applications of suites of Debian, in roots of
# these (see root.sh), which are made if they are missing and kept. Writes docs/matrix.json and the table of docs/dpdk.md.
# usage: matrix.sh BUILD ROOTS SUITE...
#        matrix.sh BUILD --here          on this machine, with its own applications; writes neither
# DPDK_GIT names a repository of DPDK with its tags, for its examples: needed where the mirror of Debian has no sources.
set -eu

# ---- in the root

names='common l2fwd l3fwd skeleton rxtx_callbacks'

examples() { # examples SOURCES: in the current folder, of the installed DPDK; SOURCES may have those of its release
	version=$(pkg-config --modversion libdpdk)
	[ ! -e "$version/built" ] || return 0
	rm -rf "$version"
	mkdir "$version"
	cd "$version"
	sed 's/^deb /deb-src /' /etc/apt/sources.list >/etc/apt/sources.list.d/ringtap-src.list
	apt-get update -qq
	if apt-get source -qq --download-only dpdk; then
		tar -xf dpdk_*.orig.tar.* --strip-components 2 --wildcards '*/examples/*'
		rm dpdk_*
	else # not every mirror has sources
		cp -r "$1/$(echo "$version" | cut -d. -f1,2)"/* .
	fi
	for name in $names; do
		[ "$name" = common ] || make -C "$name" shared static
	done
	touch built
}

if [ "${1:-}" = --examples ]; then
	mkdir -p /srv/examples
	cd /srv/examples
	examples "$2"
	exit
fi
if [ "${1:-}" = --inside ]; then
	export RINGTAP_PREFIX=/mnt/$2 RINGTAP_BUILD=/mnt/$3 RINGTAP_MATRIX=/mnt/$4
	devtools/deps.sh build matrix >/srv/deps.log 2>&1 || { tail -n 20 /srv/deps.log; exit 1; }
	# A process of its own: a shell ignores -e where a result is checked.
	devtools/matrix.sh --examples "$5" >/srv/examples.log 2>&1 || { tail -n 20 /srv/examples.log; exit 1; }
	RINGTAP_EXAMPLES=/srv/examples/$(pkg-config --modversion libdpdk)
	export RINGTAP_EXAMPLES
	shift 5
	exec /usr/bin/python3 -m pytest -q e2e/matrix "$@"
fi

# ---- outside

cd "$(dirname "$0")/.."
build=$1
roots=$2
shift 2
failed=
work=$build/matrix
rm -rf "$work"
mkdir -p "$work"
meson install -C "$build" --no-rebuild --quiet --destdir "$PWD/$work/tree"
tree=$work/tree$(meson introspect "$build" --buildoptions |
	python3 -c 'import json, sys; print(*[o["value"] for o in json.load(sys.stdin) if o["name"] == "prefix"])')
if [ "$roots" = --here ]; then
	export RINGTAP_PREFIX="$tree" RINGTAP_BUILD="$PWD/$build" RINGTAP_MATRIX="$work/here.json"
	# shellcheck disable=SC2086 # options
	exec /usr/bin/python3 -m pytest -q e2e/matrix ${PYTEST_ARGS:-}
fi
if [ -n "${DPDK_GIT:-}" ]; then
	for tag in $(git -C "$DPDK_GIT" tag --list --sort=version:refname 'v*.11' 'v*.11.*[0-9]' | grep -v rc); do
		release=$(echo "${tag#v}" | cut -d. -f1,2) # the last of its tags remains
		[ "${release%.11}" -ge 22 ] || continue
		rm -rf "$work/sources/$release"
		mkdir -p "$work/sources/$release"
		# shellcheck disable=SC2086 # a list of words
		git -C "$DPDK_GIT" archive "$tag:examples" $names | tar -x -C "$work/sources/$release"
	done
fi
for suite in "$@"; do
	echo "==== matrix: $suite"
	# shellcheck disable=SC2086 # options
	devtools/root.sh "$roots/$suite" . devtools/matrix.sh --inside "$tree" "$build" "$work/$suite.json" "/mnt/$work/sources" \
		${PYTEST_ARGS:-} || failed="$failed $suite"
done
set -- "$work"/*.json
[ -e "$1" ] || { echo "matrix: no suite gave a result:$failed" >&2; exit 1; }
python3 devtools/matrix_table.py merge docs/matrix.json "$@"
python3 devtools/matrix_table.py write
[ -z "$failed" ] || echo "matrix: failed:$failed" >&2
[ -z "$failed" ]
