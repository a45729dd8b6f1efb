#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs parts of what does not gate, each at most 90 minutes, and notes the results in docs/results.json.
# usage: nightly.sh BUILD PART..., of the parts lab fwd other matrix packages reproducible qemu kernels cross vpp soak archive busy
# PYTEST_ARGS in the environment are more arguments of pytest, to try a part without a note in
# docs/results.json: PYTEST_ARGS="-k 'nmap or p0f'".
set -u
cd "$(dirname "$0")/.." || exit 1
build=$(realpath "$1")
shift
more=${PYTEST_ARGS:-}
limit=${RINGTAP_NIGHTLY_LIMIT:-5400}
failed=

tests() { # tests NAME TESTS PYTEST_ARGUMENT... : those that are marked nightly
	name=nightly-$1
	tests=$2
	shift 2
	eval "set -- \"\$@\" $more"
	RINGTAP_BUILD="$build" /usr/bin/python3 devtools/run_tests.py e2e "$tests" --name "$name" -- -m nightly "$@"
}

# A tenth of the gating tests beside load, another one each day.
busy() {
	eval "set -- e2e $more"
	RINGTAP_TENTH=${RINGTAP_TENTH:-$(($(date +%s) / 86400 % 10))} RINGTAP_BUILD="$build" devtools/busy.sh 1 "$@"
}

part() {
	case $1 in
	lab) tests lab e2e/lab ;;
	fwd) tests fwd e2e/fwd ;;
	other) tests other e2e --ignore=e2e/lab --ignore=e2e/fwd --ignore=e2e/archive ;;
	matrix) make matrix BUILD="$(realpath --relative-to=. "$build")" ;; # mounted with the checkout in roots
	packages) make test-deb BUILD="$build" SUITE=bookworm && make test-deb BUILD="$build" SUITE=trixie &&
		make compat distcheck dist-binary test-dist-binary test-image BUILD="$(realpath --relative-to=. "$build")" ;;
	reproducible) make reproducible BUILD="$build" ;;
	qemu) make qemu BUILD="$build" ;;
	kernels) make kernels BUILD="$build" ;;
	cross) make test-cross BUILD="$(realpath --relative-to=. "$build")" ;;
	vpp) make vpp BUILD="$build" VPP_GIT="${VPP_GIT:?names no repository of VPP}" DPDK_GIT="${DPDK_GIT:?names no repository of DPDK}" ;;
	soak) make soak BUILD="$build" SOAK=300 SOAK_SECONDS=1800 SOAK_INCIDENTS=250 ;;
	archive) make test-archive BUILD="$build" JOBS= PYTEST_ARGS="-m 'nightly or not nightly' $more" && { [ -n "$more" ] || make bench-archive BUILD="$build"; } ;;
	busy) busy ;;
	esac
}

# timeout runs a program, not a function of this one.
if [ "${1:-}" = --part ]; then
	part "$2"
	exit
fi
parts=' lab fwd other matrix packages reproducible qemu kernels cross vpp soak archive busy '
for name; do
	case $parts in
	*" $name "*) ;;
	*)
		echo "nightly.sh: no such part: $name; there are:$parts" >&2
		exit 2
		;;
	esac
done
for name; do
	echo "==== $name"
	begin=$(date +%s)
	timeout --signal=INT --kill-after=120 "$limit" "$0" "$build" --part "$name"
	status=$?
	[ $status = 0 ] || failed="$failed $name"
	[ -n "$more" ] || /usr/bin/python3 devtools/results.py add "$name" "$status" $(($(date +%s) - begin))
done
[ -z "$failed" ] || { echo "failed:$failed"; exit 1; }
