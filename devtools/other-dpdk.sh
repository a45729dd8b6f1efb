#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Builds ringtap in another Debian suite, with its DPDK, and runs it on its dpdk-testpmd.
# usage: other-dpdk.sh FOLDER: root of the suite, with the suite's name (trixie, sid); created if missing
set -eu

src=$(cd "$(dirname "$0")/.." && pwd)
if [ "${2:-}" = inside ]; then
	root=$1
	mount --bind "$root" "$root"
	mount -t proc proc "$root/proc"
	mount --rbind /dev "$root/dev"
	mount --rbind /sys "$root/sys"
	mount -t tmpfs tmpfs "$root/run"
	mkdir -p "$root/run/dpdk" "$root/src"
	mount --bind "$src" "$root/src"
	exec chroot "$root" env DEBIAN_FRONTEND=noninteractive sh /src/devtools/other-dpdk.sh / check
fi
if [ "${2:-}" != check ]; then
	root=$1
	suite=$(basename "$root")
	if [ ! -x "$root/usr/bin/apt-get" ]; then
		# The mirror of this machine.
		mirror=$(. /etc/os-release && apt-get indextargets --format '$(REPO_URI)' 'Component: main' \
			"Codename: $VERSION_CODENAME" | head -n 1)
		debootstrap --variant=minbase "$suite" "$root" "$mirror"
	fi
	# A mirror's release file may have expired; it is signed all the same.
	echo 'Acquire::Check-Valid-Until "false";' >"$root/etc/apt/apt.conf.d/90ringtap"
	exec unshare -m --propagation private "$0" "$root" inside
fi

# ---- in the root

/src/devtools/deps.sh build
apt-get install -y -qq --no-install-recommends dpdk dpdk-dev
work=/srv/ringtap
build=$work/build
mkdir -p $work
[ -d $build ] || meson setup $build /src >$work/setup.log || { cat $work/setup.log; exit 1; }
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
$ringtap latency --duration 1 other
$ringtap memory --duration 1 other
$ringtap trace dpdk --duration 1 -o $work/trace other && rm -r $work/trace
printf 'stop\nquit\n' >&9
wait $pmd
trap - EXIT
echo "other-dpdk: ringtap works with DPDK $(pkg-config --modversion libdpdk)"
