#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Builds DPDK, in releases and with options that no release of Debian has, with few drivers: FOLDER/NAME has the
# installation, which is kept. The tests of e2e/install/test_builds.py use them.
# usage: dpdk-builds.sh DPDK_GIT FOLDER [NAME...]: a repository of DPDK with its tags; without names, all of them
set -eu

git=$1
mkdir -p "$2"
folder=$(cd "$2" && pwd)
shift 2
# No test and few libraries and applications: what testpmd needs.
without=bitratestats,cfgfile,gpudev,graph,gro,gso,jobstats,latencystats,node,pdump,pipeline,port,power,table,vhost
drivers=net/null,net/ring,bus/vdev,bus/pci,mempool/ring,mempool/stack
apps=dumpcap,graph,pdump,proc-info,test-acl,test-bbdev,test-cmdline,test-compress-perf,test-crypto-perf,test-dma-perf
apps=$apps,test-eventdev,test-fib,test-flow-perf,test-gpudev,test-mldev,test-pipeline,test-regex,test-sad,test-security-perf

build() { # build NAME TAG MESON_ARGS...
	name=$1
	tag=$2
	shift 2
	src=$folder/src-$name
	[ ! -e "$folder/$name" ] || return 0
	rm -rf "$src"
	mkdir -p "$src"
	git -C "$git" archive "$tag" | tar -x -C "$src"
	if [ "$name" = few ]; then # these are not options of meson
		sed -i -e 's/\(RTE_MEMPOOL_CACHE_MAX_SIZE\) 512/\1 1024/' \
			-e '$a #define RTE_LIBRTE_MEMPOOL_STATS 1\n#define RTE_LIBRTE_MEMPOOL_DEBUG 1' "$src/config/rte_config.h"
	fi
	# 21.11 cannot leave out applications.
	case $tag in v21.*) ;; *) set -- -Ddisable_apps=$apps "$@" ;; esac
	# Debian's interpreter has the module that it needs.
	PATH=/usr/bin:$PATH nice meson setup "$src/build" "$src" --prefix "${prefix:-$folder/$name}" \
		--libdir "${libdir:-lib}" -Dplatform=generic \
		-Dbuildtype=release -Dtests=false -Denable_drivers=$drivers -Ddisable_libs=$without "$@" \
		>"$folder/$name.log" 2>&1 &&
		PATH=/usr/bin:$PATH nice ninja -C "$src/build" >>"$folder/$name.log" 2>&1 &&
		DESTDIR=${prefix:+$folder/$name} meson install -C "$src/build" --no-rebuild --quiet \
			>>"$folder/$name.log" 2>&1 ||
		{ tail -n 30 "$folder/$name.log"; return 1; }
	rm -rf "$src"
}

[ $# -gt 0 ] || set -- 21.11.9 21.11-static 23.11.4 23.11-static 26.07 many few iova-va history
for name in "$@"; do
	echo "==== DPDK: $name"
	case $name in
	many) build many v22.11.11 -Dmax_ethports=1024 -Dmax_lcores=512 ;;
	few) build few v22.11.11 -Dmax_ethports=8 -Dmax_lcores=16 ;;
	iova-va) build iova-va v22.11.11 -Denable_iova_as_pa=false ;;
	# Under $folder/jammy, for /usr: a package (jammy.sh).
	jammy) prefix=/usr libdir=lib/$(dpkg-architecture -q DEB_HOST_MULTIARCH) build jammy v21.11.9 -Ddefault_library=shared ;;
	history) build history v25.11.2 -Dc_args=-DRTE_MBUF_HISTORY_DEBUG ;; # notes operations on mbufs
	21.11-static) build "$name" v21.11.9 -Ddefault_library=static ;;
	23.11-static) build "$name" v23.11.4 -Ddefault_library=static ;;
	# The distributions that have these link with libraries; the end of 21.11 is noticed in calls of them.
	21.11.* | 23.11.*) build "$name" "v$name" -Ddefault_library=shared ;;
	[0-9]*) build "$name" "v$name" ;; # static, as by default
	*) echo "dpdk-builds.sh: no such build: $name" >&2; exit 2 ;;
	esac
done
