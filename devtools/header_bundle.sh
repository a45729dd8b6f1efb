#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Packs those headers of a DPDK that the probe includes, with a libdpdk.pc, into packaging/dpdk/RELEASE.tar.xz: a build
# without that DPDK, and without a network, then makes the probe for its ABI (headers.sh). The same headers make the
# same file.
# usage: header_bundle.sh LIBDPDK.PC LICENSE: the licence of these headers, license/bsd-3-clause.txt of DPDK's sources
set -eu

pc=$(realpath "$1")
licence=$(realpath "$2")
cd "$(dirname "$0")/.."
query() {
	PKG_CONFIG_PATH=$(dirname "$pc") pkg-config "$@" "$pc"
}
release=$(query --modversion | cut -d. -f1,2)
# Folders of DPDK's headers; one that is inside another comes first.
folders=$(query --cflags-only-I | tr ' ' '\n' | sed -n 's/^-I//p' | xargs realpath | awk '{print length, $0}' | sort -rn |
	cut -d' ' -f2 | uniq)
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT
trap 'exit 130' INT TERM HUP
mkdir "$new/include"
for source in $(find probe -name '*.c' ! -name '*_test.c' ! -name 'test_*.c' ! -path '*/lttng/*'); do
	# shellcheck disable=SC2046 # flags
	cc -M -I. -Iinclude -DALLOW_EXPERIMENTAL_API $(query --cflags) "$source"
done | tr ' \\' '\n\n' | grep ^/ | xargs realpath | sort -u >"$new/all"
for folder in $folders; do
	grep "^$folder/" "$new/all" | while read -r header; do
		mkdir -p "$new/include/$(dirname "${header#"$folder"/}")"
		[ -e "$new/include/${header#"$folder"/}" ] || cp "$header" "$new/include/${header#"$folder"/}"
	done
done
rm "$new/all"
# The flags that these headers need: which instructions they may use.
cat >"$new/libdpdk.pc" <<EOF
prefix=\${pcfiledir}
Name: DPDK
Description: Headers that the probe of ringtap includes
Version: $(query --modversion)
Cflags: -I\${prefix}/include $(query --cflags-only-other)
EOF
cp "$licence" "$new/LICENSE"
tar -c -C "$new" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX . |
	xz -9e >"packaging/dpdk/$release.tar.xz"
