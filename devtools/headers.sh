#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Unpacks the headers of DPDK of suites of Debian, each into FOLDER/SUITE, where its libdpdk.pc is as well. Nothing is
# installed, and a suite that was unpacked is not downloaded again. Prints the files' paths, as -Ddpdk= takes them.
# usage: headers.sh FOLDER SUITE...
set -eu

mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
here=$(cd "$(dirname "$0")" && pwd)

# apt with folders of its own: for another suite than this machine's, without root.
private() { # private FOLDER PROGRAM ARGS...
	at=$1
	shift
	"$@" -qq -o Dir::Etc::SourceList="$at/sources.list" -o Dir::Etc::SourceParts=/dev/null \
		-o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null -o Dir::State="$at/state" \
		-o Dir::State::status="$at/status" -o Dir::Cache="$at/cache" -o Acquire::Languages=none \
		-o Acquire::Check-Valid-Until=false -o APT::Sandbox::User=root
}

unpack() { # unpack SUITE
	new=$folder/$1.new # so that a folder is complete if it exists
	rm -rf "$new"
	mkdir -p "$new/apt/state/lists/partial" "$new/apt/cache/archives/partial" "$new/debs"
	: >"$new/apt/status"
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $("$here/mirror.sh") $1 main" \
		>"$new/apt/sources.list"
	private "$new/apt" apt-get update
	(cd "$new/debs" && private "$new/apt" apt-get download libdpdk-dev)
	dpkg-deb --fsys-tarfile "$new"/debs/*.deb | tar -x -C "$new" --wildcards './usr/include*' './usr/lib/*/pkgconfig*'
	rm -r "$new/apt" "$new/debs"
	# One file of both, without what programs are linked with. The headers of libbsd, which DPDK's include, are this
	# machine's: its own libdpdk-dev needs them.
	pc=$(find "$new" -name libdpdk.pc)
	cflags=$(sed -n 's/^Cflags: *//p' "$(dirname "$pc")/libdpdk-libs.pc")
	sed -e 's|^prefix=.*|prefix=${pcfiledir}/usr|' -e '/^Requires/d' -e '/^Libs/d' -e "s|^Cflags:.*|Cflags: $cflags|" \
		"$pc" >"$new/libdpdk.pc"
	rm -r "$(dirname "$pc")"
	rm -rf "${folder:?}/$1"
	mv "$new" "$folder/$1"
}

paths=
own=$(. /etc/os-release && echo "$VERSION_CODENAME")
for suite in "$@"; do
	[ "$suite" != "$own" ] || continue # has its headers installed
	[ -e "$folder/$suite" ] || unpack "$suite" >&2
	paths=$paths,$folder/$suite/libdpdk.pc
done
echo "${paths#,}"
