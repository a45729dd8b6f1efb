#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Prints each #include that crosses folders in a direction that is not allowed.
# Programs and libpcap's drop-in use the public library only. Tests may also use their counterpart:
# those of the probe and of libpcap the reader, those of the probe also packet, those of common the
# helpers of base; so do the programs of e2e that compare a whole session with the truth.
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
	# Rooms: each includes its own folder, the headers of reader/ itself, and these.
	room("reader/find", "")
	room("reader/conn", "find")
	room("reader/memory", "")
	room("reader/capture", "find conn memory")
	room("reader/stats", "find conn memory")
	# Calls that go up are in probe/above.h.
	room("probe/dpdk", "")
	room("probe/memory", "dpdk")
	room("probe/hook", "dpdk memory")
	room("probe/trace", "dpdk memory hook")
	room("probe/capture", "dpdk memory hook trace")
	room("probe/monitor", "dpdk memory hook trace capture")
	room("probe/control", "dpdk memory hook trace capture monitor")
	room("probe/burst", "dpdk memory hook trace capture monitor")
	allow("pcap", "common include")
	allow("archive", "base common packet")
	allow("probe", "common include")
	allow("host", "common include")
	allow("fwd", "base common include")
	allow("inject", "common")
	# What commands are made of. A command includes no other command.
	allow("target", "base common include inject packet")
	allow("measure", "base common include target web")
	allow("packet", "base common include")
	allow("show", "base common measure web")
	allow("judge", "base include measure web")
	allow("counted", "base common show")
	allow("fates", "base common include measure packet show target")
	allow("flows", "base common fates include measure packet target")
	allow("usdt", "base common")
	allow("anonymize", "base common packet")
	allow("sink", "anonymize base common include")
	allow("recorder", "base common measure target")
	allow("serve", "base common")
	allow("web", "base")
	allow("cli", "base common include target measure packet show judge counted fates flows usdt anonymize sink recorder serve web")
	allow("extcap", "base include cli target measure packet")
	allow("bench", "base cli common include probe flows")
	allow("examples", "include")
	allow("e2e", "include")
	allow("fuzz", "anonymize archive base cli common counted include inject packet probe reader recorder usdt")
}
function allow(from, to,    n, list, i) {
	known[from] = 1
	n = split(to, list, " ")
	for (i = 1; i <= n; i++)
		allowed[from, list[i]] = 1
}
function room(path, to,    n, list, i, top) {
	is_room[path] = 1
	top = path
	sub(/\/.*/, "", top)
	n = split(to, list, " ")
	for (i = 1; i <= n; i++)
		opens[path, top "/" list[i]] = 1
}
function place(path) {
	sub(/\/[^\/]*$/, "", path)
	return path
}
function folder(path) {
	return substr(path, 1, index(path, "/") - 1)
}
# Commands of cli/ have folders of their own; what is in cli/ itself is for all of them.
function command(path) {
	return path ~ /^cli\/[^\/]*\// ? place(path) : ""
}
{
	file = $1; target = $4
	if (target ~ /^ringtap\//)
		target = "include/" target
	if (target !~ /\//)
		next # the same folder
	from = folder(file); to = folder(target)
	test = file ~ /_test\.c$/ || file ~ /\/(test|fake)_[^\/]*$/
	if (is_room[place(file)] && is_room[place(target)] && !test && place(file) != place(target) &&
		!((place(file), place(target)) in opens))
		print file ":" $2 ": " place(file) " must not include " target
	if (from == "cli" && command(target) != "" && command(file) != command(target))
		print file ":" $2 ": a command must not include " target ", which is of another"
	if (from == to)
		next
	if (test && (((from == "probe" || from == "pcap") && to == "reader") || (from == "probe" && to == "packet") ||
		(from == "common" && to == "base")))
		next
	if (file ~ /^e2e\/apps\/check_/ && (to == "reader" || to == "common"))
		next
	if (!known[from])
		print file ": its folder is not in devtools/includes.sh"
	else if (!((from, to) in allowed))
		print file ":" $2 ": " from " must not include " target
}'
