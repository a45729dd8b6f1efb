#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Builds VPP with the DPDK that is installed and few plugins, into FOLDER/build, which is kept: e2e/install/test_vpp.py uses it.
# usage: vpp-build.sh VPP_GIT DPDK_GIT FOLDER: repositories with their tags. DPDK's has headers of drivers, which Debian's
# package lacks.
set -eu

vpp=$1
dpdk=$2
tag=v23.06
mkdir -p "$3"
folder=$(cd "$3" && pwd)
src=$folder/src
build=$folder/build
[ ! -e "$build/complete" ] || exit 0
rm -rf "$src" "$build"
mkdir -p "$build"
git -C "$vpp" archive "$tag" src | tar -x -C "$folder"
echo "${tag#v}-release" >"$src/scripts/.version"
for plugin in "$src"/plugins/*/; do
	case $(basename "$plugin") in
	acl | dpdk | ping) ;;
	*) rm -f "$plugin/CMakeLists.txt" ;;
	esac
done
release=$(pkg-config --modversion libdpdk | cut -d. -f1,2)
for header in drivers/bus/pci/bus_pci_driver.h drivers/bus/vmbus/bus_vmbus_driver.h \
	lib/eal/include/bus_driver.h lib/eal/include/dev_driver.h; do
	git -C "$dpdk" show "v$release:$header" >"$src/plugins/$(basename "$header")"
done
# One variant for one kind of CPU. Debian's interpreter has the module that the build needs.
(
	cd "$build"
	PATH=/usr/bin:$PATH
	off=$(for v in HSW SKX ICL TRM ADL SPR ZNVER3 ZNVER4 SCALAR; do echo "-DVPP_MARCH_VARIANT_$v=OFF"; done)
	# shellcheck disable=SC2086 # words
	cmake -G Ninja -DCMAKE_BUILD_TYPE=release -DCMAKE_C_COMPILER=clang -DPython3_EXECUTABLE=/usr/bin/python3 \
		-DVPP_USE_LTO=OFF -DVPP_USE_SYSTEM_DPDK=ON $off "$src" &&
		nice ninja vpp vppctl dpdk_plugin acl_plugin ping_plugin
) >"$folder/build.log" 2>&1 || {
	tail -n 30 "$folder/build.log"
	exit 1
}
touch "$build/complete"
