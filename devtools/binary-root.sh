#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Unpacks a tarball of dist-binary.sh in clean roots of suites of Debian, and runs ringtap there: first beside no package but
# the base system's, then with the testpmd of the suite. Each root is a copy of one that root.sh makes if it is missing.
# usage: binary-root.sh TARBALL ROOTS SUITE...
set -eu

# ---- in the root

apt() {
	apt-get -y -qq -o Dpkg::Use-Pty=0 "$@" >apt.log 2>&1 || {
		cat apt.log
		exit 1
	}
}

if [ "${1:-}" = --inside ]; then
	tree=$(echo /opt/ringtap-*)
	ringtap=$tree/bin/ringtap
	plugin=$tree/lib/libringtap-probe.so
	echo "#### nothing installed"
	$ringtap --version >version
	cat version
	grep -q '^ringtap .* ([0-9a-f]\{12\}' version # the commit
	grep -q "ABI 22, 23, 24, 25, 26$" version
	$ringtap list
	"$tree"/lib/wireshark/extcap/ringtap-extcap --extcap-interfaces
	for name in libringtap.so libringtap-pcap.so ringtap/libringtap-archive.so; do # as a program that loads them
		LD_PRELOAD=$tree/lib/$name LD_BIND_NOW=1 ls / >/dev/null
	done
	test -s "$tree"/share/man/man1/ringtap-record.1
	test -s "$tree"/share/bash-completion/completions/ringtap
	apt update
	apt install --no-install-recommends dpdk dpdk-dev tcpdump
	testpmd=$(command -v dpdk-testpmd)
	echo "#### $(basename "$testpmd") of $(dpkg-query -W dpdk)"
	rm -f stdin && mkfifo stdin
	stdbuf -oL $testpmd --no-huge -m 256 --no-pci --file-prefix binary -l 0,1 -d "$plugin" --vdev net_null0 --vdev net_null1 -- \
		-i --no-mlockall --total-num-mbufs=4096 <stdin >pmd.log 2>&1 &
	pmd=$!
	exec 9>stdin
	trap 'kill $pmd 2>/dev/null || true' EXIT
	trap 'exit 130' INT TERM HUP
	echo start >&9
	until grep -q 'packet forwarding - ports=2' pmd.log; do
		kill -0 $pmd || { cat pmd.log; exit 1; }
		sleep 0.1 # no event to wait for: the log is a plain file
	done
	if grep 'ringtap:' pmd.log; then # Debian 11's DPDK is older than the probe
		dpkg-query -W -f '${Version}' dpdk | grep -q '^20\.11'
	else
		$ringtap list
		$ringtap list | grep -q net_null1
		$ringtap record binary -c 1000 -w some.pcapng
		[ "$(tcpdump -r some.pcapng 2>/dev/null | wc -l)" = 1000 ]
		$ringtap record binary -f 'greater 10' -c 1000 -w filtered.pcapng
		$ringtap top --once binary | grep net_null
		$ringtap run -- tcpdump -D | grep 'ringtap:binary:net_null0'
		$ringtap run -- tcpdump -c 10 -i ringtap:binary:net_null0 >/dev/null
	fi
	printf 'stop\nquit\n' >&9
	wait $pmd
	trap - EXIT
	printf 'binary-root: works on %s\n' "$(. /etc/os-release && echo "$PRETTY_NAME")"
	exit
fi

# ---- outside

here=$(cd "$(dirname "$0")" && pwd)
tarball=$1
mkdir -p "$2"
roots=$(cd "$2" && pwd)
shift 2
failed=
for suite; do
	echo "==== $suite"
	"$here/root.sh" "$roots/$suite" "$here" true
	copy=$(mktemp -d)
	trap 'rm -rf --one-file-system "$copy"' EXIT
	trap 'exit 130' INT TERM HUP
	mkdir "$copy/work"
	cp -a "$roots/$suite" "$copy/$suite"
	cp "$here/binary-root.sh" "$copy/work"
	tar -x -C "$copy/$suite/opt" -f "$tarball" # minimal systems have no xz
	"$here/root.sh" "$copy/$suite" "$copy/work" sh binary-root.sh --inside || failed="$failed $suite"
	rm -rf --one-file-system "$copy"
done
[ -z "$failed" ] || echo "binary-root: failed:$failed" >&2
[ -z "$failed" ]
