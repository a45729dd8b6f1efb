#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs each fuzz target for SECONDS, two at a time; fails if one finds something, or if there is none.
# usage: fuzz.sh BUILD SECONDS [TARGET]
set -u
build=$1
seconds=$2

if [ $# -lt 3 ]; then
	found=$(find "$build/fuzz" -maxdepth 1 -name 'fuzz_*' -type f -perm -u+x | sort)
	[ -n "$found" ] || { echo 'no fuzz target was built'; exit 1; }
	echo "$found" | xargs -P 2 -n 1 "$0" "$build" "$seconds"
	exit
fi

fuzzer=$(basename "$3")
seeds=fuzz/corpus/${fuzzer#fuzz_}
[ -d "$seeds" ] || { echo "$fuzzer: no seed corpus in $seeds"; exit 1; }
mkdir -p "$build/new/$fuzzer"
"$3" -max_total_time="$seconds" -timeout=10 -verbosity=0 -print_final_stats=1 -artifact_prefix="$build/" \
	"$build/new/$fuzzer" "$seeds" 2>"$build/$fuzzer.log" || { tail -n 40 "$build/$fuzzer.log"; exit 1; }
echo "$fuzzer: $(grep number_of_executed_units "$build/$fuzzer.log")"
