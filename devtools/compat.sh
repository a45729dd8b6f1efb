#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Does each reader work with each probe of the same protocol? Builds the revision that began this version of the protocol,
# in FOLDER, where it stays, and runs its reader with the probe of BUILD and the reader of BUILD with its probe.
# usage: compat.sh BUILD FOLDER
set -eu

first=ab11e7e5 # the first with protocol 4, segment 5, statistics 6
cd "$(dirname "$0")/.."
build=$(cd "$1" && pwd)
mkdir -p "$2"
folder=$(cd "$2" && pwd)
versions() { # versions GIT_SHOW_PREFIX
	for define in common/proto.h:RT_PROTO_VERSION common/segment.h:RT_SEG_VERSION common/stats.h:RT_STAT_VERSION; do
		git show "$1:${define%:*}" | sed -n "s/^#define ${define#*:} *//p"
	done | xargs
}
[ "$(versions $first)" = "$(versions HEAD)" ] || {
	echo "compat: versions are $(versions HEAD), and $(versions $first) in $first: name another revision" >&2
	exit 1
}
old=$folder/$first
if [ ! -e "$old" ]; then
	rm -rf "$old.new"
	mkdir "$old.new"
	git archive $first | tar -x -C "$old.new"
	(cd "$old.new" && meson setup build -Dtests=false -Dbench=false -Dpython=disabled -Dlttng=disabled &&
		nice -n 5 ninja -C build demo) >"$folder/build.log" 2>&1 || {
		tail -n 40 "$folder/build.log"
		exit 1
	}
	mv "$old.new" "$old"
fi
work=$(mktemp -d)
pmd=
trap '[ -z "$pmd" ] || kill $pmd 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

with() { # with READER_BUILD PROBE_BUILD
	ringtap=$1/cli/ringtap
	rm -f "$work/stdin"
	mkfifo "$work/stdin"
	stdbuf -oL dpdk-testpmd --no-huge -m 256 --no-pci --file-prefix compat -l 0,1 -d "$2/probe/libringtap-probe.so" --vdev net_ring0 \
		--vdev net_ring1 -- -i --no-mlockall --total-num-mbufs=4096 <"$work/stdin" >"$work/pmd.log" 2>&1 &
	pmd=$!
	exec 9>"$work/stdin"
	printf 'start tx_first\n' >&9
	until grep -q 'packet forwarding - ports=2' "$work/pmd.log"; do
		kill -0 $pmd || { cat "$work/pmd.log"; exit 1; }
		sleep 0.1 # no event to wait for: the log is a plain file
	done
	$ringtap list compat >"$work/out"
	grep -q net_ring1 "$work/out"
	$ringtap record compat -c 1000 -f 'greater 10' -w "$work/some.pcapng" >"$work/out" 2>&1
	[ "$(tcpdump -r "$work/some.pcapng" 2>/dev/null | wc -l)" = 1000 ]
	$ringtap record compat --ids --fates --duration 1s -w "$work/fates.pcapng" >>"$work/out" 2>&1
	$ringtap top --once --json compat | jq -e '[.applications[0].ports[].rx.packets] | add > 0' >/dev/null
	$ringtap latency --duration 1s --json compat | jq -e '[.. | objects | .pairs // [] | .[].packets] | add > 0' >/dev/null
	$ringtap memory --duration 1s --json compat | jq -e '[.. | objects | .pools // [] | length] | add > 0' >/dev/null
	printf 'stop\nquit\n' >&9
	wait $pmd
	pmd=
	! grep 'ringtap:' "$work/pmd.log"
	echo "compat: reader of $3, probe of $4: works"
}

with "$build" "$old/build" 'this build' $first
with "$old/build" "$build" $first 'this build'
