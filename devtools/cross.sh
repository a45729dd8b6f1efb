#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Builds everything for arm64 by Debian's cross compiler, in a root of this machine's suite (root.sh), which is made if it is
# missing and kept, with its build folder and ccache. With --test the unit tests run there by qemu-user, but for those that
# devtools/cross_tests.txt names with the reason.
# usage: cross.sh ROOTS [--test [TEST...]]
set -eu

# ---- in the root

quiet() {
	"$@" >/srv/out.log 2>&1 || {
		tail -n 60 /srv/out.log
		exit 1
	}
}

if [ "${1:-}" = --inside ]; then
	tests=false
	[ "${2:-}" != --test ] || tests=true
	build=/srv/arm64-tests-$tests
	shift
	if ! dpkg --print-foreign-architectures | grep -qx arm64; then
		dpkg --add-architecture arm64
		apt-get update -qq
	fi
	quiet devtools/deps.sh cross
	# For meson: flags and suffixes of Python's modules.
	export _PYTHON_SYSCONFIGDATA_NAME=_sysconfigdata__aarch64-linux-gnu
	export CCACHE_DIR=/srv/ccache CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1
	if [ ! -e $build/build.ninja ]; then
		rm -rf $build
		quiet meson env2mfile --cross --debarch arm64 -o /srv/cross.txt
		echo "[binaries]
exe_wrapper = 'qemu-aarch64-static'" >/srv/wrapper.txt
		sed -i "s,^c = \['\(.*\)'\],c = ['ccache'\, '\1']," /srv/cross.txt
		quiet meson setup --cross-file /srv/cross.txt --cross-file /srv/wrapper.txt $build -Db_pch=false -Dbench=false \
			-Dprobe=enabled -Dfwd=enabled -Dusdt=enabled -Dlttng=enabled -Dpython=enabled -Dtests=$tests
	fi
	quiet ninja -k 0 -C $build
	readelf -h $build/cli/ringtap | grep 'Machine: *AArch64'
	if [ $tests = true ]; then
		shift
		# shellcheck disable=SC2046 # names
		[ $# != 0 ] || set -- $(meson test -C $build --list 2>/dev/null | sed 's,.* / ,,' | sort |
			grep -vxF "$(sed -n 's/^\([^# ]*\) .*/\1/p' devtools/cross_tests.txt)")
		aarch64-linux-gnu-gcc -D_GNU_SOURCE -O2 -shared -fPIC devtools/qemu_user.c -o /srv/qemu_user.so
		export QEMU_SET_ENV=LD_PRELOAD=/srv/qemu_user.so
		# Ten times as slow, and more.
		meson test -C $build --no-rebuild --timeout-multiplier 20 --print-errorlogs "$@"
	fi
	exit
fi

# ---- outside

cd "$(dirname "$0")/.."
mkdir -p "$1/cross"
root=$(cd "$1/cross" && pwd)/$(. /etc/os-release && echo "$VERSION_CODENAME")
shift
exec devtools/root.sh "$root" . devtools/cross.sh --inside "$@"
