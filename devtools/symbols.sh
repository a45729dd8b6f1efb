#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Compares Debian's symbols files with the version maps of the libraries. Prints what is in one of them only.
# A new symbol gets a line with the release that has it first; one that goes makes a new version of the library.
set -eu
cd "$(dirname "$0")/.."

mapped() { # mapped MAP: NAME@NODE of all symbols
	awk '/^[A-Z_0-9.]+ \{/ {node = $1; print node "@" node} /^\t[a-z_0-9]+;/ {sub(";", ""); print $1 "@" node}' "$1"
}

for pair in reader/libringtap.map:libringtap0 probe/libringtap-probe.map:ringtap-probe; do
	symbols=debian/${pair#*:}.symbols
	{
		mapped "${pair%:*}" | sed "s,$, is missing in $symbols,"
		sed -n 's/^ \([A-Za-z_0-9.]*@[A-Z_0-9.]*\) .*/\1/p' "$symbols" | sed "s,$, is missing in ${pair%:*},"
	} | sort | awk '{found[$1]++; line[$1] = $0} END {for (name in found) if (found[name] == 1) print line[name]}'
done
