#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Packs what devtools/gpu/run.sh needs on a machine with a GPU that has neither this repository nor DPDK, and no network: programs of
# the build folder, Debian's testpmd, their libraries, lab and tests. That machine needs x86-64, a C library as new as this
# machine's, python3 with numpy, matplotlib and jinja2 (and pytest for the tests), and NVIDIA's driver.
# usage: pack.sh BUILD_FOLDER OUT_FOLDER   makes OUT_FOLDER/pack.tar.gz and OUT_FOLDER/run.sh; needs patchelf
set -eu

cd "$(dirname "$0")/../.."
build=$1
out=$2
library=/usr/lib/x86_64-linux-gnu
drivers=$(echo $library/dpdk/pmds-*)
target=/opt/ringtap-gpu
limit=$((60 << 20))
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
trap 'exit 130' INT TERM HUP

for file in cli/ringtap fwd/ringtap-fwd reader/libringtap.so.0 probe/libringtap-probe.so bench/machine_probe bench/merge_bench; do
	install -D "$build/$file" "$stage/build/$file"
done
install -D -t "$stage/build/probe/ringtap" "$build"/probe/ringtap/probe-abi*.so
install -D -t "$stage/bin" "$(command -v dpdk-testpmd)" "$(command -v dpdk-dumpcap)"

# Libraries but those of the C library: the driver's own need that of the other machine.
needed() {
	ldd "$@" 2>/dev/null | sed -n 's/.* => \(\/.*\) (.*/\1/p' | sort -u |
		grep -Ev '/(lib(c|m|dl|rt|pthread|resolv|stdc\+\+|gcc_s)|ld-linux.*)\.so|libringtap'
}
mkdir -p "$stage/lib" "$stage/drivers"
loaded=
for name in bus_vdev mempool_ring mempool_stack net_memif net_null net_ring net_tap; do
	loaded="$loaded $drivers/librte_$name.so"
done
# shellcheck disable=SC2086
for path in $(needed "$stage"/build/*/* "$stage"/bin/* $loaded) $loaded; do
	real=$(readlink -f "$path")
	case $real in
	# A driver is one file, by whichever path it is loaded: in two it would register itself twice.
	"$drivers"/*)
		cp -n "$real" "$stage/drivers/"
		ln -sf "$drivers/${real##*/}" "$stage/lib/${path##*/}"
		;;
	*) cp -n "$real" "$stage/lib/${path##*/}" ;;
	esac
done
for path in $loaded; do
	ln -sf "$(basename "$(readlink -f "$path")")" "$stage/drivers/${path##*/}"
	rm -f "$stage/lib/${path##*/}"
done
# DT_RPATH, not DT_RUNPATH: also for what the libraries and drivers need.
for program in "$stage"/bin/* "$stage"/build/cli/ringtap "$stage"/build/fwd/ringtap-fwd "$stage"/build/bench/*; do
	patchelf --force-rpath --set-rpath "$target/build/reader:$target/lib" "$program"
done
strip --strip-debug "$stage"/build/*/* "$stage"/build/probe/ringtap/* 2>/dev/null || true

mkdir -p "$stage/source"
git ls-files -z lab e2e devtools/gpu devtools/run_tests.py devtools/changed_tests.py \
	devtools/slow_tests.py devtools/pytest_outcomes.py | xargs -0 cp --parents -t "$stage/source"
# The tests import it.
mkdir "$stage/python"
cp -r "$(/usr/bin/python3 -c 'import scapy; print(scapy.__path__[0])')" "$stage/python/"
find "$stage/python" -name __pycache__ -prune -exec rm -r {} +
git describe --always --dirty --abbrev=12 --exclude='*' >"$stage/commit"

mkdir -p "$out"
tar -C "$stage" -czf "$out/pack.tar.gz" .
cp devtools/gpu/run.sh "$out/"
size=$(stat -c %s "$out/pack.tar.gz")
echo "$out/pack.tar.gz: $((size >> 20)) MiB"
[ "$size" -lt $limit ]
