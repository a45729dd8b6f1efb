#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Builds VPP with few plugins twice, into FOLDER, which is kept for e2e/install/test_vpp.py: `shared` uses the DPDK that is
# installed; `static` has DPDK of the same release inside dpdk_plugin.so, without bpf, as packages of FD.io have it.
# usage: vpp-build.sh VPP_GIT DPDK_GIT FOLDER: repositories with their tags.
set -eu

vpp=$1
dpdk=$2
tag=v23.06
mkdir -p "$3"
folder=$(cd "$3" && pwd)
src=$folder/src
# Debian's interpreter has the modules that the builds need.
PATH=/usr/bin:$PATH
release=$(pkg-config --modversion libdpdk)
release=${release%.0}

# Prints the end of its log if the function fails. In the background, as in a condition it would not end at an error.
logged() {
	"$1" >"$folder/$1.log" 2>&1 &
	wait $! || {
		tail -n 30 "$folder/$1.log"
		exit 1
	}
}

sources() {
	[ ! -e "$src/complete" ] || return 0
	rm -rf "$src"
	git -C "$vpp" archive "$tag" src | tar -x -C "$folder"
	echo "${tag#v}-release" >"$src/scripts/.version"
	for plugin in "$src"/plugins/*/; do
		case $(basename "$plugin") in
		acl | af_packet | dpdk | memif | ping) ;;
		*) rm -f "$plugin/CMakeLists.txt" ;;
		esac
	done
	# Debian's package lacks headers of drivers.
	for header in drivers/bus/pci/bus_pci_driver.h drivers/bus/vmbus/bus_vmbus_driver.h \
		lib/eal/include/bus_driver.h lib/eal/include/dev_driver.h; do
		git -C "$dpdk" show "v$release:$header" >"$src/plugins/$(basename "$header")"
	done
	touch "$src/complete"
}

# The options of VPP's build/external/packages/dpdk.mk, with the drivers that the tests use.
static_dpdk() {
	[ ! -e "$folder/dpdk/lib/libdpdk.a" ] || return 0
	rm -rf "$folder/dpdk-src" "$folder/dpdk-build"
	mkdir "$folder/dpdk-src"
	git -C "$dpdk" archive "v$release" | tar -x -C "$folder/dpdk-src"
	meson setup "$folder/dpdk-build" "$folder/dpdk-src" --default-library static --libdir lib --prefix "$folder/dpdk" \
		--buildtype release -Dtests=false -Denable_apps=test-cmdline -Denable_driver_sdk=true -Db_pie=true -Dplatform=generic \
		-Denable_drivers=bus/pci,bus/vdev,bus/vmbus,mempool/ring,net/af_packet,net/null \
		-Ddisable_libs=bitratestats,cfgfile,flow_classify,graph,gro,gso,jobstats,kni,latencystats,node,pipeline,port,power,table
	sed -i '/RTE_USE_LIBBSD/d' "$folder/dpdk-build/rte_build_config.h"
	nice ninja -C "$folder/dpdk-build" -j "$(nproc)" install
	# DPDK 22.11 cannot be built without bpf.
	(cd "$folder/dpdk/lib" && rm -f librte*.so* librte_bpf.a librte_pdump.a && echo "GROUP ( $(echo librte*.a) )" >libdpdk.a)
}

# build FOLDER OPTION...: one variant, for one kind of CPU.
build() {
	to=$1
	shift
	[ ! -e "$to/complete" ] || return 0
	rm -rf "$to"
	mkdir "$to"
	cd "$to"
	for v in HSW SKX ICL TRM ADL SPR ZNVER3 ZNVER4 SCALAR; do
		set -- "$@" "-DVPP_MARCH_VARIANT_$v=OFF"
	done
	cmake -G Ninja -DCMAKE_BUILD_TYPE=release -DCMAKE_C_COMPILER=clang -DPython3_EXECUTABLE=/usr/bin/python3 \
		-DVPP_USE_LTO=OFF "$@" "$src"
	CCACHE_BASEDIR=$folder nice ninja -j "$(nproc)" vpp vppctl acl_plugin af_packet_plugin dpdk_plugin memif_plugin ping_plugin
	touch complete
}

shared_vpp() {
	build "$folder/shared" -DVPP_USE_SYSTEM_DPDK=ON
}

static_vpp() {
	build "$folder/static" -DVPP_USE_SYSTEM_DPDK=OFF "-DCMAKE_PREFIX_PATH=$folder/dpdk"
}

logged sources
logged static_dpdk
logged shared_vpp
logged static_vpp
