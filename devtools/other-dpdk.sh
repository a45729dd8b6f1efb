#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Builds ringtap in another Debian suite, with its DPDK, and runs it on its dpdk-testpmd.
# usage: other-dpdk.sh FOLDER: root of the suite, with the suite's name (trixie, sid); created if missing
set -eu

if [ "${1:-}" != --inside ]; then
	src=$(cd "$(dirname "$0")/.." && pwd)
	exec "$src/devtools/root.sh" "$1" "$src" devtools/other-dpdk.sh --inside
fi

# ---- in the root

devtools/deps.sh build
apt-get install -y -qq --no-install-recommends dpdk dpdk-dev
work=/srv/ringtap
build=$work/build
mkdir -p $work
[ -d $build ] || meson setup $build /mnt >$work/setup.log || { cat $work/setup.log; exit 1; }
ninja -C $build -j2 >$work/build.log || { tail -n 40 $work/build.log; exit 1; }
meson test -C $build --no-rebuild --print-errorlogs trace teardown control session
ringtap=$build/cli/ringtap
rm -f $work/stdin && mkfifo $work/stdin
stdbuf -oL dpdk-testpmd --no-huge -m 256 --no-pci --file-prefix other -l 0,1 -d $build/probe/libringtap-probe.so \
	--vdev net_null0 --vdev net_null1 -- -i --no-mlockall --total-num-mbufs=4096 \
	<$work/stdin >$work/testpmd.log 2>&1 &
pmd=$!
exec 9>$work/stdin
trap 'kill $pmd 2>/dev/null; cat $work/testpmd.log' EXIT
trap 'exit 130' INT TERM HUP
echo start >&9
until grep -q 'packet forwarding - ports=2' $work/testpmd.log; do
	kill -0 $pmd
	sleep 0.1 # there is no event to wait for: the log is a regular file
done
! grep 'ringtap:' $work/testpmd.log
$ringtap list >$work/list
cat $work/list
grep -q net_null1 $work/list
$ringtap top --once other
$ringtap record -i other: -f 'greater 10' -c 1000 -w $work/some.pcapng
$ringtap latency --duration 1s other
$ringtap memory --duration 1s other
$ringtap trace dpdk --duration 1s -w $work/trace other && rm -r $work/trace
printf 'stop\nquit\n' >&9
wait $pmd
trap - EXIT
echo "other-dpdk: ringtap works with DPDK $(pkg-config --modversion libdpdk)"
