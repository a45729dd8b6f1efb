#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Unpacks the headers of packaging/dpdk, each release's into FOLDER/RELEASE, but not of the release whose DPDK is
# installed. Prints the paths of their libdpdk.pc, as -Ddpdk= takes them.
# usage: headers.sh FOLDER
set -eu

mkdir -p "$1"
folder=$(cd "$1" && pwd)
own=$(pkg-config --modversion libdpdk 2>/dev/null || echo none)
cd "$(dirname "$0")/../packaging/dpdk"
paths=
for bundle in *.tar.xz; do
	release=${bundle%.tar.xz}
	case $own in "$release".*) continue ;; esac
	if [ ! -e "$folder/$release/libdpdk.pc" ] || [ "$bundle" -nt "$folder/$release/libdpdk.pc" ]; then
		rm -rf "${folder:?}/$release" "$folder/$release.new" # a folder is complete if it exists
		mkdir "$folder/$release.new"
		tar -x -m -C "$folder/$release.new" -f "$bundle"
		mv "$folder/$release.new" "$folder/$release"
	fi
	paths=$paths,$folder/$release/libdpdk.pc
done
echo "${paths#,}"
