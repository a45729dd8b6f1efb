#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs what pack.sh packed, on a machine with a GPU: tests of the kinds of memory, and the experiments memory and cores. Each part has
# a time limit, and its log and results are in results.tar.gz even if a later part fails. parts.json: status and seconds of each.
# usage: run.sh OUT_FOLDER [quick|full] [PART...]   as root; beside pack.tar.gz; parts: machine kinds tests cores memory
set -u

here=$(cd "$(dirname "$0")" && pwd)
out=$1
mode=${2:-full}
shift $(($# > 2 ? 2 : $#))
parts=${*:-machine kinds tests cores memory}
target=/opt/ringtap-gpu
results=/tmp/ringtap-gpu-results
begin=$(date +%s%N)

now() { echo $((($(date +%s%N) - begin) / 1000000)); }

# part NAME SECONDS COMMAND...
part() {
	local name=$1 limit=$2 from status
	shift 2
	[[ " $parts " == *" $name "* ]] || return 0
	from=$(now)
	timeout -s INT -k 10 "$limit" "$@" >"$results/$name.log" 2>&1 </dev/null
	status=$?
	echo "{\"part\": \"$name\", \"status\": $status, \"limit_s\": $limit, \"took_ms\": $(($(now) - from))}" >>"$results/parts.jsonl"
	echo "== $name: status $status after $((($(now) - from) / 1000)) s"
	tail -n "${TAIL:-12}" "$results/$name.log" | cut -c1-300
	(echo '['; sed '$!s/$/,/' "$results/parts.jsonl"; echo ']') >"$out/parts.json"
	tar -C "$results" -czf "$out/results.tar.gz" .
}

mkdir -p $target "$results" "$out"
tar -C $target -xzf "$here/pack.tar.gz" || exit 1
mkdir -p /usr/lib/x86_64-linux-gnu/dpdk
[ -e /usr/lib/x86_64-linux-gnu/dpdk/pmds-23.0 ] || cp -a $target/drivers /usr/lib/x86_64-linux-gnu/dpdk/pmds-23.0
command -v pkg-config >/dev/null || { # the tests find out the version of DPDK by it
	printf '#!/bin/sh\necho 22.11.11\n' >$target/bin/pkg-config
	chmod +x $target/bin/pkg-config
}
export PATH=$target/bin:$PATH RINGTAP_BUILD=$target/build PYTHONPATH=$target/source/lab:$target/python PYTHONDONTWRITEBYTECODE=1
RINGTAP_COMMIT=$(cat $target/commit)
export RINGTAP_COMMIT MPLCONFIGDIR=/tmp/ringtap-gpu-mpl
cd $target/source || exit 1
[ "${HUGE_PAGES:=4608}" = 0 ] || echo "$HUGE_PAGES" >/proc/sys/vm/nr_hugepages # 9 GiB
grep -q hugetlbfs /proc/mounts || { mkdir -p /dev/hugepages && mount -t hugetlbfs none /dev/hugepages; }

# The driver initializes a GPU that nobody uses again for each program: one keeps it in use.
python3 devtools/gpu/memory_kinds.py --hold &
keeper=$!
trap 'kill $keeper 2>/dev/null' EXIT
trap 'exit 130' INT TERM HUP

part machine 40 bash devtools/gpu/machine.sh "$results"
part kinds 60 python3 devtools/gpu/memory_kinds.py "$results/kinds.json"
part tests 120 python3 -m pytest -q --maxfail 4 e2e/fwd/test_gpu.py e2e/fwd/test_memory.py -m "nightly or not nightly" -k "not scatter_a_pool and not 1G" --junitxml "$results/tests.xml"
if [ "$mode" = quick ]; then
	part cores 60 python3 -m ringtap_lab.run.cli cores --quick --repetitions 1 -w "$results" --cpus "$(seq -s, 0 $(($(nproc) - 1)))" \
		--only record-1x1,record-6x,merge-4,tour
	part memory 60 python3 -m ringtap_lab.run.cli memory --quick --repetitions 1 -w "$results" --only gpu-drop,read,cost-gpu-managed
else
	part cores 240 python3 -m ringtap_lab.run.cli cores -w "$results" --cpus "$(seq -s, 0 $(($(nproc) - 1)))"
	part memory 300 python3 -m ringtap_lab.run.cli memory --repetitions 2 -w "$results"
fi
