#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Makes packages of what Ubuntu 22.04 has in older releases than Debian 12, DPDK 21.11 and meson 0.61. A root named jammy is
# Debian 12 with them: `make test-deb SUITE=jammy OLDER=FOLDER` builds, installs and runs ringtap's packages there.
# usage: jammy.sh DPDK_GIT FOLDER: a repository of DPDK with its tags
set -eu

here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$2"
folder=$(cd "$2" && pwd)
meson=0.61.2
libraries=usr/lib/$(dpkg-architecture -q DEB_HOST_MULTIARCH)

control() { # control ROOT PACKAGE VERSION ARCHITECTURE FIELD...
	root=$1
	mkdir -p "$root/DEBIAN"
	{
		printf 'Package: %s\nVersion: %s\nArchitecture: %s\n' "$2" "$3" "$4"
		shift 4
		printf 'Maintainer: nobody <nobody@localhost>\nDescription: as Ubuntu 22.04 has it\n'
		printf '%s\n' "$@"
	} >"$root/DEBIAN/control"
	dpkg-deb --root-owner-group -Zxz -z1 -b "$root" "$folder" >&2
}

make_meson() {
	root=$work/meson
	/usr/bin/python3 -m pip -q download --no-deps --no-binary :all: -d "$work" meson==$meson
	mkdir -p "$root/usr/bin" "$root/usr/lib/python3/dist-packages"
	tar -x -C "$work" -f "$work/meson-$meson.tar.gz"
	cp -r "$work/meson-$meson/mesonbuild" "$root/usr/lib/python3/dist-packages"
	install -m 755 "$work/meson-$meson/meson.py" "$root/usr/bin/meson"
	control "$root" meson $meson all 'Depends: python3, ninja-build'
}

# With the names of the packages that Ubuntu puts its libraries into.
make_dpdk() {
	root=$work/dpdk
	"$here/dpdk-builds.sh" "$1" "$folder" jammy >&2
	cp -r "$folder/jammy" "$root"
	mkdir "$root/DEBIAN"
	names='libdpdk-dev dpdk dpdk-dev'
	for library in "$root/$libraries"/librte_*.so.22; do
		name=$(basename "$library" .so.22)
		package=$(echo "$name" | tr _ -)22
		names="$names $package"
		echo "$name 22 $package (>= 21.11)"
	done >"$root/DEBIAN/shlibs" # $names is seen below: no subshell
	echo 'activate-noawait ldconfig' >"$root/DEBIAN/triggers"
	provides=$(for name in $names librte-net-af-packet22 librte-net-af-xdp22; do printf '%s (= 21.11.9), ' "$name"; done)
	control "$root" dpdk-jammy 21.11.9 "$(dpkg --print-architecture)" "Provides: ${provides%, }" \
		'Depends: libbsd-dev, libelf-dev, libfdt-dev, libjansson-dev, libnuma-dev, libpcap-dev' 'Conflicts: libdpdk-dev, dpdk, dpdk-dev'
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
make_meson
make_dpdk "$1"
ls "$folder"/*.deb
