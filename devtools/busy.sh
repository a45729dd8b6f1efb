#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs tests on a busy machine: beside a testpmd with the probe, a `ringtap top` of it and two busy loops.
# Everything then takes several times as long.
# usage: busy.sh ROUNDS PYTEST_ARGUMENT..., for example: busy.sh 5 e2e/host
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 1 ] || { sed -n '5s/^# //p' "$0" >&2; exit 2; }
[ "$(id -u)" = 0 ] || { echo 'busy.sh: needs root' >&2; exit 2; }
rounds=$1
shift
RINGTAP_BUILD=$(realpath "${RINGTAP_BUILD:-build}")
export RINGTAP_BUILD
python=${PYTHON:-/usr/bin/python3}
# EAL loads plugins only from folders that other users cannot write to.
folder=$(mktemp -d /run/ringtap-busy-XXXXXX)
prefix=${folder##*/}
pids=

finish() {
	for pid in $pids; do
		kill "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	rm -rf "$folder" "/var/run/dpdk/$prefix"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

start() {
	"$@" >"$folder/log-$(basename "$1")" 2>&1 </dev/null &
	pids="$! $pids"
}

cp -r "$RINGTAP_BUILD/probe/libringtap-probe.so" "$RINGTAP_BUILD/probe/ringtap" "$folder"
start dpdk-testpmd --no-huge -m 256 --no-pci --file-prefix "$prefix" -l 0,1 -d "$folder/libringtap-probe.so" \
	--vdev net_null0 --vdev net_null1 -- --no-mlockall --total-num-mbufs=8192 --stats-period=1
for _ in 1 2 3 4 5 6 7 8 9 10; do
	"$RINGTAP_BUILD/cli/ringtap" list 2>/dev/null | grep -q "$prefix" && break
	sleep 1
done
"$RINGTAP_BUILD/cli/ringtap" list | grep -q "$prefix" || { cat "$folder/log-dpdk-testpmd" >&2; exit 1; }
start "$RINGTAP_BUILD/cli/ringtap" top --json "$prefix"
start sh -c 'while :; do :; done'
start sh -c 'while :; do :; done'

failed=0
round=0
while [ "$round" -lt "$rounds" ]; do
	round=$((round + 1))
	echo "==== round $round of $rounds"
	"$python" -m pytest "$@" || failed=$((failed + 1))
	for pid in $pids; do
		kill -0 "$pid" || { echo "busy.sh: a program of the load has ended; its output follows" >&2; tail -n 5 "$folder"/log-* >&2; exit 1; }
	done
done
echo "==== $((rounds - failed)) of $rounds rounds passed"
[ "$failed" = 0 ]
