#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Records an unmodified testpmd: two ports, no NIC, no huge pages; then one with huge pages, where they are, beside dpdk-dumpcap,
# which needs them. With --incident a flight recorder waits for a stall of testpmd, which this causes, and shows the thread and
# the packets around it.
# usage: demo.sh [--incident] BUILD_FOLDER | --installed
set -eu

incident=
forward=--forward-mode=io
if [ "${1:-}" = --incident ]; then
	incident=yes
	# It reads memory between reception and sending: that is where it will stall, with packets in hand.
	forward='--forward-mode=noisy --noisy-lkup-memory=8 --noisy-lkup-num-reads=100'
	shift
fi

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
runtime=/var/run/dpdk

work=
pmd=
recorder=
folder=
fail() { # fail WORDS...: in one line
	echo "demo: $*" >&2
	exit 1
}

# Files and answers of other processes have no event to wait for. False: process PID ended before the command succeeded.
await() { # await PID COMMAND...: until it succeeds
	of=$1
	shift
	until "$@"; do
		kill -0 "$of" 2>/dev/null || { "$@" && return || return 1; }
		sleep 0.1
	done
}

stop_testpmd() {
	exec 9>&-
	[ -n "$pmd" ] || return 0
	# It ends at the end of its input as well: a signal that it handles meanwhile could find it there.
	kill -KILL "$pmd" 2>/dev/null || true
	wait "$pmd" 2>/dev/null || true
	pmd=
	rm -rf "${runtime:?}/$name"
	# Files of huge pages, which EAL leaves for its next start.
	sed -n 's/^[^ ]* \([^ ]*\) hugetlbfs .*/\1/p' /proc/mounts | while read -r pages; do
		rm -f "$pages/$name"map_*
	done
}

clean() {
	trap - EXIT
	trap '' INT TERM HUP PIPE
	[ -z "$recorder" ] || kill "$recorder" 2>/dev/null || true
	stop_testpmd
	[ -z "$recorder" ] || wait "$recorder" || true
	[ -z "$work" ] || rm -rf "$work"
	[ -n "$(ls "$folder" 2>/dev/null)" ] || rm -rf "$folder" # without incidents
}
trap clean EXIT
trap 'exit 130' INT TERM HUP PIPE

# EAL loads no plugin from a folder that is below a world-writable one.
exposed() {
	dir=$1
	while :; do
		[ -z "$(find "$dir" -maxdepth 0 -perm -o+w)" ] || return 0
		[ "$dir" != / ] || return 1
		dir=$(dirname "$dir")
	done
}

private_folder() {
	for parent in /run "${XDG_RUNTIME_DIR:-}" "${HOME:-}"; do
		if [ -n "$parent" ] && [ -w "$parent" ] && ! exposed "$parent"; then
			mktemp -d "$parent/ringtap-demo.XXXXXX"
			return
		fi
	done
	echo 'demo: cannot copy the plugin: /run, XDG_RUNTIME_DIR and HOME are not writable, or below world-writable folders' >&2
	return 1
}

start_testpmd() { # start_testpmd [EAL_OPTION...]
	rm -f "$work/stdin"
	mkfifo "$work/stdin"
	: >"$work/testpmd.log" # the run before left one
	# Both ways: opening does not wait for testpmd, and writing does not end this shell where testpmd has ended.
	exec 9<>"$work/stdin"
	# Line-buffered, so that its log is always complete.
	# In a session of its own: Ctrl-C ends ringtap before testpmd, not while it attaches to a testpmd that ends.
	# shellcheck disable=SC2086 # words
	setsid stdbuf -oL dpdk-testpmd "$@" -m 256 --no-pci --file-prefix "$name" -l 0,1 -d "$plugin" \
		--vdev net_ring0 --vdev net_ring1 -- \
		-i --no-mlockall --total-num-mbufs=4096 --txonly-multi-flow $forward \
		<"$work/stdin" >"$work/testpmd.log" 2>&1 9>&- &
	pmd=$!
	# 128 packets, which then circulate through both ports as fast as the CPU forwards them. The second command's output
	# follows whatever comes of the first.
	printf '%s\n' 'start tx_first 2' 'show port summary all' >&9
}

reason() { # the first error that testpmd printed before the summary of ports, or else its last line
	sed -e '/Number of available ports/,$d' -e '/show port summary/d' "$work/testpmd.log" |
		awk '/[^ ]/ {last = $0} /Error|Cannot/ {print; found = 1; exit} END {if (!found) print last}'
}

wait_for_traffic() {
	await "$pmd" grep -q 'Number of available ports' "$work/testpmd.log" || fail "dpdk-testpmd has ended: $(reason)"
	grep -q 'packet forwarding - ports=2' "$work/testpmd.log" || fail "dpdk-testpmd does not forward: $(reason)"
}

wait_for_recorder() { # wait_for_recorder COMMAND...: until it succeeds
	await "$recorder" "$@" || fail "ringtap flight has ended without an incident: $(tail -n 1 "$work/flight.log")"
}

# A gap is known of a thread only that has polled twice under the recorder: then its condition has a value.
has_polled() {
	"$ringtap" flight top --once --json "$name" 2>/dev/null | grep -q '"value": "'
}

title() {
	printf '\n==== %s\n' "$*"
}

# dpdk-dumpcap captures nothing without testpmd's drivers, in the order in which testpmd loads them: mempools name their
# operations by it. CPU 0 gives it an lcore that does not poll.
beside_dumpcap() {
	command -v dpdk-dumpcap >/dev/null || return 0
	free=$(cat /sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages 2>/dev/null || echo 0)
	if [ "$(id -u)" != 0 ] || [ "$free" -lt 192 ] || ! grep -q ' hugetlbfs ' /proc/mounts; then
		title 'dpdk-dumpcap is left out: it needs root, and 192 free huge pages of 2 MiB in a mounted hugetlbfs'
		return
	fi
	title 'Beside dpdk-dumpcap: one after the other, three seconds each, on a testpmd with huge pages'
	stop_testpmd
	start_testpmd
	wait_for_traffic
	"$ringtap" record -i "$name:" -a duration:3 -w /dev/null >"$work/record.log" 2>&1 ||
		fail "recording failed: $(tail -n 1 "$work/record.log")"
	drivers=$(ldd "$(command -v dpdk-testpmd)" | sed -nE 's/.* => (.*librte_(bus|common|crypto|mempool|net)_.*) \(.*/\1/p')
	env LD_PRELOAD="$(echo $drivers)" timeout -k 5 60 taskset -c 0 dpdk-dumpcap --file-prefix "$name" -q -i 0 -i 1 -a duration:3 \
		-w /dev/null >"$work/dumpcap.log" 2>&1 || true
	sed -n 's/^written.*, \(.*packets\/s\).*/ringtap       \1/p' "$work/record.log"
	sed -n 's|.*interface.*: \([0-9]*\)/\([0-9]*\).*|\1 \2|p' "$work/dumpcap.log" |
		awk '{n += $1 - $2; lost += $2} END {printf "dpdk-dumpcap  %.1f M packets/s, and %.1f M/s for which it had no room\n", n / 3e6, lost / 3e6}'
}

work=$(private_folder)
# /tmp/dpdk may be another user's.
if [ "$(id -u)" != 0 ]; then
	export XDG_RUNTIME_DIR="$work"
	runtime=$work/dpdk
fi
if [ -n "$build" ] && exposed "$(dirname "$plugin")"; then
	mkdir "$work/ringtap"
	cp "$plugin" "$work/"
	cp "$build"/probe/ringtap/probe-abi*.so "$work/ringtap/"
	plugin=$work/libringtap-probe.so
fi
[ -n "$incident" ] || rm -f "$out"

title "An unmodified dpdk-testpmd, started with: -d $plugin"
start_testpmd --no-huge
wait_for_traffic
"$ringtap" list "$name"

if [ -n "$incident" ]; then
	folder=${RINGTAP_DEMO_FILE:-ringtap-demo-incidents}
	rm -rf "$folder"
	: >"$work/flight.log" # it is read before the recorder makes it
	title 'Keep the last packets in memory, until a thread does not poll for 300 ms'
	"$ringtap" flight --buffer 256M --before 20ms --after 20ms --ids --collectors all --on 'gap > 300ms' \
		--duration 60s -w "$folder" "$name" >"$work/flight.log" 2>&1 &
	recorder=$!
	wait_for_recorder grep -q '^Keeping' "$work/flight.log"
	cat "$work/flight.log"
	wait_for_recorder has_polled
	title 'testpmd stalls for 400 ms (SIGSTOP)'
	kill -STOP "$pmd" 2>/dev/null || fail "dpdk-testpmd has ended: $(tail -n 1 "$work/testpmd.log")"
	sleep 0.4
	kill -CONT "$pmd"
	wait_for_recorder grep -q '^Incident .*-gap:' "$work/flight.log"
	kill -INT "$recorder" 2>/dev/null || true
	status=0
	wait "$recorder" || status=$?
	recorder=
	[ "$status" = 0 ] || fail "ringtap flight failed: $(tail -n 1 "$work/flight.log")"
	title 'What happened'
	set -- "$folder"/*-gap
	"$ringtap" flight show --folder "$folder" "$(basename "$1")"
	title 'What became of the packets around it'
	"$ringtap" explain "$1/packets.pcapng" --limit 3
	title 'The slowest of them; the page lists more'
	"$ringtap" explain "$1/packets.pcapng" --csv >"$work/packets.csv"
	awk -F, '/^sent/ && $13 > most {
			most = $13
			packet = sprintf("%s, id %s: received at %s (frame %s), sent %.1f ms later at %s (frame %s)", $17, $2, $5, $3, $13 / 1e6, $10, $8)
		}
		END {print packet ? packet : "none: no packet around the stall was received and sent"}' "$work/packets.csv"
	title "Done. To open its page: xdg-open $1/index.html"
	exit
fi

title 'Capture all packets of both ports and directions for three seconds, to /dev/null'
"$ringtap" record -i "$name:" -a duration:3 -w /dev/null

title "Capture $packets packets to $out, the rest of the last batch is discarded; with --on-full wait the application waits for
     ringtap, so no packet is lost"
"$ringtap" record -i "$name:" --on-full wait -c "$packets" -a duration:60 -w "$out"

if command -v capinfos >/dev/null; then
	title "The file, read by Wireshark's capinfos and tshark"
	capinfos -t -E -c -o -a -e "$out" 2>/dev/null || capinfos "$out"
	capinfos -o "$out" | grep -q 'Strict time order:   True' && echo 'Time order: strict'
fi
if command -v tshark >/dev/null; then
	tshark -r "$out" -c 4 2>/dev/null || fail "tshark cannot read $out"
fi
beside_dumpcap
title "Done. To open the file: wireshark $out"
