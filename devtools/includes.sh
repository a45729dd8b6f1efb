#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The allowed directions of includes between folders: prints each include that is not among them.
# Programs and libpcap's drop-in use the public library only. Tests may use what they test against: a
# probe's or libpcap's test the reader, common's the helpers of base.
set -u
cd "$(dirname "$0")/.." || exit 1

git ls-files --cached --others --exclude-standard -- '*.c' '*.h' | while read -r f; do
	[ ! -f "$f" ] || grep -nH '^#include "' "$f"
done | awk -F'[":]' '
BEGIN {
	allow("common", "")
	allow("base", "common")
	allow("include", "")
	allow("reader", "common include")
	allow("pcap", "common include")
	allow("probe", "common include")
	allow("host", "common include")
	allow("fwd", "base common include")
	allow("cli", "base common include")
	allow("cli/monitor", "base common include")
	allow("extcap", "cli base include")
	allow("bench", "common include")
	allow("examples", "include")
	allow("e2e", "include")
	allow("fuzz", "common include reader probe")
}
function allow(from, to,    n, list, i) {
	known[from] = 1
	n = split(to, list, " ")
	for (i = 1; i <= n; i++)
		allowed[from, list[i]] = 1
}
# The folder that a file counts as: cli/monitor, which the commands share, stands below them.
function folder(path) {
	if (path ~ /^cli\/monitor\//)
		return "cli/monitor"
	if (path ~ /^cli\/[^\/]*$/ && path !~ /\/(main|commands)\./)
		return "cli/monitor" # finding applications: below the commands, too
	return substr(path, 1, index(path, "/") - 1)
}
{
	file = $1; target = $4
	if (target ~ /^ringtap\//)
		target = "include/" target
	if (target !~ /\//)
		next # its own folder
	from = folder(file); to = folder(target)
	test = file ~ /_test\.c$/ || file ~ /\/(test|fake)_[^\/]*$/
	if (from == to || (from == "cli" && to == "cli/monitor") || (from == "extcap" && to == "cli/monitor"))
		next
	if (from == "cli/monitor" && target == "cli/commands.h")
		next
	if (test && (((from == "probe" || from == "pcap") && to == "reader") || (from == "common" && to == "base")))
		next
	if (!known[from])
		print file ": its folder is not in devtools/includes.sh"
	else if (!((from, to) in allowed))
		print file ":" $2 ": " from " must not include " target
}'
