#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Builds VPP with few plugins into FOLDER, which is kept for e2e/install/test_vpp.py: `shared` uses the DPDK that is
# installed; `static` has DPDK of the same release inside dpdk_plugin.so, without bpf, as packages of FD.io have it;
# `newest` is a later VPP that has its own release of DPDK there.
# usage: vpp-build.sh VPP_GIT DPDK_GIT FOLDER [BUILD...]: repositories with their tags; shared static newest.
set -eu

vpp=$1
dpdk=$2
mkdir -p "$3"
folder=$(cd "$3" && pwd)
shift 3
[ $# -gt 0 ] || set -- shared static newest
# Debian's interpreter has the modules that the builds need.
PATH=/usr/bin:$PATH

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
	mkdir "$src"
	git -C "$vpp" archive "$tag" src | tar -x --strip-components 1 -C "$src"
	echo "${tag#v}-release" >"$src/scripts/.version"
	for plugin in "$src"/plugins/*/; do
		case $(basename "$plugin") in
		acl | af_packet | dispatch-trace | dpdk | memif | ping | policer) ;;
		*) rm -f "$plugin/CMakeLists.txt" ;;
		esac
	done
	# Debian's package lacks headers of drivers.
	[ "$tag" != v23.06 ] || for header in drivers/bus/pci/bus_pci_driver.h drivers/bus/vmbus/bus_vmbus_driver.h \
		lib/eal/include/bus_driver.h lib/eal/include/dev_driver.h; do
		git -C "$dpdk" show "v$release:$header" >"$src/plugins/$(basename "$header")"
	done
	touch "$src/complete"
}

# The options of VPP's build/external/packages/dpdk.mk, with the drivers that the tests use.
static_dpdk() {
	[ ! -e "$lib/lib/libdpdk.a" ] || return 0
	if [ ! -e "$lib-src/complete" ]; then
		rm -rf "$lib-src" "$lib-build"
		mkdir "$lib-src"
		git -C "$dpdk" archive "v$release" | tar -x -C "$lib-src"
		touch "$lib-src/complete"
	fi
	if [ ! -e "$lib-build/configured" ]; then
		meson setup "$lib-build" "$lib-src" --default-library static --libdir lib --prefix "$lib" \
			--buildtype release -Dtests=false -Denable_apps=test-cmdline -Denable_driver_sdk=true -Db_pie=true \
			-Dplatform=generic -Denable_drivers=bus/pci,bus/vdev,bus/vmbus,mempool/ring,net/af_packet,net/null,net/tap \
			"-Ddisable_libs=$unused"
		sed -i '/RTE_USE_LIBBSD/d' "$lib-build/rte_build_config.h"
		touch "$lib-build/configured"
	fi
	nice ninja -C "$lib-build" -j "$(nproc)" install
	# DPDK 22.11 cannot be built without bpf.
	(cd "$lib/lib" && rm -f librte*.so* librte_bpf.a librte_pdump.a && echo "GROUP ( $(echo librte*.a) )" >libdpdk.a)
}

# build FOLDER OPTION...: one variant, for one kind of CPU. A build that was interrupted goes on.
build() {
	to=$1
	shift
	[ ! -e "$to/complete" ] || return 0
	mkdir -p "$to"
	cd "$to"
	for v in HSW SKX ICL TRM ADL SPR ZNVER3 ZNVER4 X86_64_V3 X86_64_V4 SCALAR; do
		set -- "$@" "-DVPP_MARCH_VARIANT_$v=OFF"
	done
	cmake -G Ninja -DCMAKE_BUILD_TYPE=release -DCMAKE_C_COMPILER=clang -DPython3_EXECUTABLE=/usr/bin/python3 \
		-DVPP_USE_LTO=OFF "$@" "$src"
	set --
	[ "$tag" = v23.06 ] || set -- policer_plugin # it was no plugin before
	CCACHE_BASEDIR=$folder nice ninja -j "$(nproc)" vpp vppctl acl_plugin af_packet_plugin dpdk_plugin memif_plugin \
		ping_plugin dispatch_trace_plugin "$@"
	touch complete
}

build_shared() {
	build "$folder/shared" -DVPP_USE_SYSTEM_DPDK=ON
}

build_static() {
	build "$folder/static" -DVPP_USE_SYSTEM_DPDK=OFF "-DCMAKE_PREFIX_PATH=$lib"
}

build_newest() {
	build "$folder/newest" -DVPP_USE_SYSTEM_DPDK=OFF "-DCMAKE_PREFIX_PATH=$lib"
}

installed=$(pkg-config --modversion libdpdk)
for name in "$@"; do
	tag=v23.06 release=${installed%.0} src=$folder/src lib=$folder/dpdk
	unused=bitratestats,cfgfile,flow_classify,graph,gro,jobstats,kni,latencystats,node,pipeline,port,power,table
	if [ "$name" = newest ]; then
		tag=v26.06 release=26.03 src=$folder/src-newest lib=$folder/dpdk-newest
		unused=acl,bbdev,bitratestats,bpf,cfgfile,distributor,efd,fib,graph,gro,jobstats,latencystats,lpm,member
		unused=$unused,node,pipeline,port,power,rawdev,rib,table
	fi
	logged sources
	[ "$name" = shared ] || logged static_dpdk
	logged "build_$name"
done
