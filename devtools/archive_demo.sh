#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Three recorders on a path with delay and loss, an archive of what they recorded, and where the packets were lost.
# usage: archive_demo.sh BUILD_FOLDER RINGTAP_ARCHIVE [FOLDER]
#
#     client eth0 -- tocli [dpdk-testpmd] topath -- path0 [delay, loss] path1 -- eth0 server
#     tcpdump             ringtap record                                         dumpcap
#
# The path is netem where the kernel has it, else devtools/lossy_path.py. Everything runs in network namespaces.
set -eu

build=$(cd "$1" && pwd)
archive=$2
out=${3:-archive-demo}
here=$(cd "$(dirname "$0")" && pwd)
seconds=${RINGTAP_DEMO_SECONDS:-5}
forth=15,4,2 # delay in ms, jitter in ms, loss in per cent
back=5,1,0.5
ahead=0.25 # seconds that the server's clock is ahead
name=ringtap-archive-demo-$$
spaces="$name-client $name-switch $name-path $name-server"

[ "$(id -u)" = 0 ] || { echo 'archive-demo: needs root: network namespaces' >&2; exit 1; }

work=
pids=
clean() {
	trap - EXIT INT TERM HUP PIPE
	exec 9>&-
	for pid in $pids; do
		kill "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	for space in $spaces; do
		ip netns del "$space" 2>/dev/null || true
	done
	[ -z "$work" ] || rm -rf "$work"
	rm -rf "/var/run/dpdk/$name"
}
trap clean EXIT
trap 'exit 130' INT TERM HUP PIPE

title() { printf '\n==== %s\n' "$*"; }

in_space() { # in_space NAME COMMAND...
	space=$name-$1
	shift
	nsenter --net="/run/netns/$space" "$@"
}

inside() { # inside NAME COMMAND...: instead of a subshell, so that its id is the command's
	space=$name-$1
	shift
	exec nsenter --net="/run/netns/$space" "$@"
}

# There is no event to wait for: logs are regular files.
wait_for() { # wait_for PID FILE TEXT
	until grep -q "$3" "$2" 2>/dev/null; do
		kill -0 "$1" 2>/dev/null || { cat "$2" >&2; exit 1; }
		sleep 0.1
	done
}

# Not by SIGINT, which jobs of a shell ignore.
finish() { # finish PID
	kill "$1" 2>/dev/null || true
	wait "$1" || true
}

join() { # join SPACE DEVICE SPACE DEVICE
	ip -n "$name-$1" link add "$2" type veth peer name "$4" netns "$name-$3"
	for end in "$1 $2" "$3 $4"; do
		set -- $end
		# No neighbour discovery; frames as a wire has them.
		ip -n "$name-$1" link set "$2" addrgenmode none up
		in_space "$1" ethtool -K "$2" tx off rx off tso off gso off gro off >/dev/null
	done
}

netem() { # netem DEVICE DELAY,JITTER,LOSS
	parts=$(echo "$2" | tr , ' ')
	set -- "$1" $parts
	in_space path tc qdisc add dev "$1" root netem delay "$2ms" "$3ms" loss "$4%" limit 100000
}

make_path() {
	if in_space path tc qdisc add dev lo root netem delay 1ms 2>/dev/null; then
		kind='netem on both interfaces'
		netem path1 "$forth"
		netem path0 "$back"
		ip -n "$name-path" link add bridge type bridge
		ip -n "$name-path" link set bridge up
		ip -n "$name-path" link set path0 master bridge
		ip -n "$name-path" link set path1 master bridge
		path=
	else
		kind='devtools/lossy_path.py, for this kernel has no netem'
		inside path python3 "$here/lossy_path.py" path0 path1 "$forth" "$back" >"$work/path.log" 2>&1 &
		path=$!
		pids="$pids $path"
		wait_for "$path" "$work/path.log" ready
	fi
}

start_switch() {
	mkdir "$work/plugin" "$work/plugin/ringtap"
	cp "$build/probe/libringtap-probe.so" "$work/plugin/"
	cp "$build"/probe/ringtap/probe-abi*.so "$work/plugin/ringtap/"
	mkfifo "$work/stdin"
	inside switch stdbuf -oL dpdk-testpmd --no-huge -m 256 --no-pci --file-prefix "$name" -l 0,1 \
		-d "$work/plugin/libringtap-probe.so" \
		--vdev net_af_packet0,iface=tocli,framecnt=16384 --vdev net_af_packet1,iface=topath,framecnt=16384 -- \
		-i --no-mlockall --total-num-mbufs=8192 --forward-mode=io <"$work/stdin" >"$work/testpmd.log" 2>&1 &
	switch=$!
	pids="$pids $switch"
	exec 9>"$work/stdin"
	echo start >&9
	wait_for "$switch" "$work/testpmd.log" 'packet forwarding - ports=2'
}

start_recorders() {
	inside client tcpdump -i eth0 -s 0 -B 32768 --time-stamp-precision nano -w "$out/client.pcap" ip 2>"$work/client.log" &
	client=$!
	inside server dumpcap -q -i eth0 -f ip -w "$work/server.pcapng" 2>"$work/server.log" &
	server=$!
	"$build/cli/ringtap" record -i "$name:" -f ip -w "$out/switch.pcapng" 2>"$work/switch.log" >&2 &
	recorder=$!
	pids="$pids $client $server $recorder"
	wait_for "$client" "$work/client.log" 'listening on'
	wait_for "$server" "$work/server.log" 'File:'
	until [ -s "$out/switch.pcapng" ]; do
		kill -0 "$recorder" 2>/dev/null || { cat "$work/switch.log" >&2; exit 1; }
		sleep 0.1
	done
}

# Pings, a page over HTTP, datagrams at a steady rate.
traffic() {
	head -c 3000000 /dev/urandom >"$work/page"
	(cd "$work" && inside server python3 -u -m http.server --bind 10.7.0.2 80 >"$work/http.log" 2>&1) &
	pids="$pids $!"
	wait_for $! "$work/http.log" 'Serving HTTP'
	inside client ping -q -i 0.01 -w "$seconds" 10.7.0.2 >"$work/ping.log" &
	ping=$!
	in_space client python3 "$here/archive_demo_traffic.py" 10.7.0.2 "$seconds"
	wait "$ping" || true
	tail -2 "$work/ping.log"
}

rm -rf "$out"
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d /run/ringtap-archive-demo.XXXXXX) # EAL loads no plugin from below a world-writable folder
for space in $spaces; do
	ip netns add "$space"
	ip -n "$space" link set lo up
done
join client eth0 switch tocli
join switch topath path path0
join path path1 server eth0
ip -n "$name-client" addr add 10.7.0.1/24 dev eth0
ip -n "$name-server" addr add 10.7.0.2/24 dev eth0

title 'A client, a DPDK application that forwards, a path with delay and loss, a server'
make_path
echo "The path, by $kind:"
echo "  to the server: $forth (delay in ms, jitter in ms, loss in per cent); to the client: $back"
start_switch
start_recorders

title "Traffic for $seconds seconds, recorded by tcpdump, ringtap and dumpcap"
traffic
finish "$client"
finish "$server"
finish "$recorder"
if [ -n "$path" ]; then
	finish "$path"
	title 'What the path says that it did, frames of all kinds'
	tail -1 "$work/path.log"
fi
title "One machine has one clock: the server's recording is moved by $ahead s, as if its clock were ahead"
editcap -F pcapng -t "$ahead" "$work/server.pcapng" "$out/server.pcapng"

title 'Into an archive'
for recorder in client.pcap switch.pcapng server.pcapng; do
	"$archive" ingest -A "$out/archive" --recorder "${recorder%%.*}" "$out/$recorder"
done
title "ringtap archive hops -A $out/archive"
"$archive" hops -A "$out/archive"
known="--offset client=0 --offset switch=0 --offset server=${ahead}s"
title "The same with the clocks known, as with PTP: ringtap archive hops -A $out/archive $known --between switch,server"
# shellcheck disable=SC2086 # a list of words
"$archive" hops -A "$out/archive" $known --between switch,server
title "ringtap archive hops -A $out/archive --lost --limit 5 --json | the first lost packet"
"$archive" hops -A "$out/archive" --lost --limit 5 --json | python3 -c 'import json, sys
print(json.dumps(json.load(sys.stdin)["lost"][0], indent=2))'
title "ringtap archive top -A $out/archive --view flows"
"$archive" top -A "$out/archive" --view flows
"$archive" report -A "$out/archive" --title 'The demo of ringtap archive' --html "$out/report.html"
title "Done. To read: $out/report.html; to query: ringtap archive query -A $out/archive 'SELECT ...'"
