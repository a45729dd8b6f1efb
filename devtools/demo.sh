#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Records an unmodified testpmd: two ports, no NIC, no huge pages. usage: demo.sh BUILD_FOLDER | --installed
set -eu

if [ "${1:-}" = --installed ]; then
	build=
	ringtap=ringtap
	plugin=libringtap-probe.so # the loader knows the folder
else
	build=$(cd "${1:-build}" && pwd)
	ringtap=$build/cli/ringtap
	plugin=$build/probe/libringtap-probe.so
fi
name=ringtap-demo-$$
out=${RINGTAP_DEMO_FILE:-ringtap-demo.pcapng}
packets=1000000
if [ "$(id -u)" = 0 ]; then
	runtime=/var/run/dpdk
else
	runtime=${XDG_RUNTIME_DIR:-/tmp}/dpdk
fi

work=
pmd=
clean() {
	trap - EXIT INT TERM
	exec 9>&- # end of its input: testpmd ends by itself
	if [ -n "$pmd" ]; then
		kill "$pmd" 2>/dev/null || true
		wait "$pmd" 2>/dev/null || true
	fi
	[ -z "$work" ] || rm -rf "$work"
	rm -rf "${runtime:?}/$name"
}
trap clean EXIT
trap 'exit 130' INT TERM

# EAL takes no plugin from a folder that lies below one which anybody may write to.
exposed() {
	dir=$1
	while :; do
		[ -z "$(find "$dir" -maxdepth 0 -perm -o+w)" ] || return 0
		[ "$dir" != / ] || return 1
		dir=$(dirname "$dir")
	done
}

private_folder() {
	for parent in /run "${XDG_RUNTIME_DIR:-}" "$HOME"; do
		if [ -n "$parent" ] && [ -w "$parent" ] && ! exposed "$parent"; then
			mktemp -d "$parent/ringtap-demo.XXXXXX"
			return
		fi
	done
	echo 'demo: no folder to be found whose parents only their owner may write to' >&2
	return 1
}

start_testpmd() {
	mkfifo "$work/stdin"
	# Line by line, so that its log says at once what happens.
	stdbuf -oL dpdk-testpmd --no-huge -m 256 --no-pci --file-prefix "$name" -l 0,1 -d "$plugin" \
		--vdev net_ring0 --vdev net_ring1 -- \
		-i --no-mlockall --total-num-mbufs=4096 --txonly-multi-flow --forward-mode=io \
		<"$work/stdin" >"$work/testpmd.log" 2>&1 &
	pmd=$!
	exec 9>"$work/stdin"
	# 128 packets, which then circle through both ports as fast as the CPU can forward them.
	echo 'start tx_first 2' >&9
}

wait_for_traffic() {
	until grep -q 'packet forwarding - ports=2' "$work/testpmd.log"; do
		if ! kill -0 "$pmd" 2>/dev/null; then
			cat "$work/testpmd.log" >&2
			exit 1
		fi
		# No event to wait for here: the log is a plain file.
		sleep 0.1
	done
}

title() {
	printf '\n==== %s\n' "$*"
}

work=$(private_folder)
if [ -n "$build" ] && exposed "$(dirname "$plugin")"; then
	mkdir "$work/ringtap"
	cp "$plugin" "$work/"
	cp "$build"/probe/ringtap/probe-abi*.so "$work/ringtap/"
	plugin=$work/libringtap-probe.so
fi
rm -f "$out"

title "The stock dpdk-testpmd, started with: -d $plugin"
start_testpmd
wait_for_traffic
"$ringtap" list

title 'Three seconds at full rate, every packet of both ports and directions, to /dev/null'
"$ringtap" record -i "$name:" -a duration:3 -w /dev/null

title "$packets packets to $out; --on-full wait: the application waits rather than lose one"
"$ringtap" record -i "$name:" --on-full wait -c "$packets" -w "$out"

if command -v capinfos >/dev/null; then
	title 'What Wireshark says of the file'
	capinfos -t -E -c -o -a -e "$out" 2>/dev/null || capinfos "$out"
	capinfos -o "$out" | grep -q 'Strict time order:   True' && echo 'Time order: strict, no step back'
fi
if command -v tshark >/dev/null; then
	tshark -r "$out" -c 4 2>/dev/null
fi
title "Done. Open it: wireshark $out"
