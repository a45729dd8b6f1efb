#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Tests the drivers of network cards that QEMU models; writes docs/drivers.json and the tables of docs/drivers.md. igb came
# with QEMU 8: this card's QEMU is that of Debian 13, from a root of it, which is made if it is missing and kept.
# usage: qemu.sh ROOTS CARDS [PYTEST_ARGS...]   with the interpreter PYTHON
#        qemu.sh --of ROOT ARGS...              the QEMU of that root, with the files of this machine
set -eu

library=usr/lib/x86_64-linux-gnu

if [ "${1:-}" = --of ]; then
	root=$2
	shift 2
	# Its modules only: those of another QEMU are refused, with an assertion.
	exec unshare --mount --propagation private sh -euc '
		root=$1 library=$2
		shift 2
		mount --bind "$root/$library/qemu" "/$library/qemu"
		exec "$root/usr/lib64/ld-linux-x86-64.so.2" --library-path "$root/$library" "$root/usr/bin/qemu-system-x86_64" \
			-L "$root/usr/share/qemu" -L "$root/usr/share/seabios" "$@"' sh "$root" "$library" "$@"
fi

cd "$(dirname "$0")/.."
roots=$1
cards=$2
shift 2
work=$RINGTAP_BUILD/drivers
mkdir -p "$work"
failed=
for card in $cards; do
	unset RINGTAP_QEMU
	if [ "$card" = igb ]; then
		root=$roots/trixie
		[ -e "$root/usr/bin/qemu-system-x86_64" ] || devtools/root.sh "$root" . sh -c \
			'apt-get update -qq && apt-get install -y -qq --no-install-recommends qemu-system-x86 >/srv/qemu.log'
		export RINGTAP_QEMU="$PWD/devtools/qemu.sh --of $root"
	fi
	rm -f "$work/$card.json"
	# Not the conftest.py of all tests: in its mount namespace are not all drivers.
	RINGTAP_CARD=$card RINGTAP_DRIVERS=$work/$card.json nice "${PYTHON:-python3}" -m pytest -q --confcutdir e2e/qemu \
		e2e/qemu "$@" || failed="$failed $card"
	[ ! -e "$work/$card.json" ] || python3 devtools/drivers_table.py merge "$work/$card.json"
done
python3 devtools/drivers_table.py write
[ -z "$failed" ] || echo "qemu: failed:$failed" >&2
[ -z "$failed" ]
