#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Builds libpcap with its loader of plug-ins (pull request 1659, which is open) into FOLDER, for e2e/pcap/test_plugin.py.
# FOLDER/lib has it under Debian's name as well; it loads plug-ins from FOLDER/plugins.
# usage: libpcap-build.sh LIBPCAP_GIT FOLDER: a repository that has the request as refs/pull/1659/head.
set -eu

mkdir -p "$2/plugins" "$2/lib"
folder=$(cd "$2" && pwd)
src=$folder/src
commit=$(git -C "$1" rev-parse --verify --quiet refs/pull/1659/head) || {
	echo "libpcap-build.sh: '$1' has no refs/pull/1659/head; fetch it from libpcap's repository" >&2
	exit 1
}
[ "$(cat "$folder/complete" 2>/dev/null)" != "$commit" ] || exit 0
rm -rf "$src"
mkdir "$src"
git -C "$1" archive "$commit" | tar -x -C "$src"
cmake -G Ninja -S "$src" -B "$src/build" -DCMAKE_BUILD_TYPE=Release -DPLUGIN_DIR="$folder/plugins" -DENABLE_REMOTE=OFF \
	-DDISABLE_DBUS=ON -DDISABLE_RDMA=ON -DDISABLE_USB=ON -DDISABLE_BLUETOOTH=ON -DBUILD_WITH_LIBNL=OFF >"$folder/log" ||
	{ tail -n 30 "$folder/log"; exit 1; }
nice ninja -C "$src/build" pcap >>"$folder/log" || { tail -n 30 "$folder/log"; exit 1; }
cp -a "$src"/build/libpcap.so* "$folder/lib"
ln -sf libpcap.so.1 "$folder/lib/libpcap.so.0.8"
echo "$commit" >"$folder/complete"
