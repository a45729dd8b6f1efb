#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Builds what is released of the last commit twice, and compares: the tarball of the sources (dist), Debian's packages (deb),
# those for Fedora (rpm), the tarball of binaries (dist-binary). The second build is in another folder, on another day (but for
# dist-binary, whose root has no faketime), without ccache, with another time zone, language, HOME and umask. diffoscope
# shows the differences. Roots are in ROOTS.
# usage: reproducible.sh FOLDER ROOTS [KIND...]
#        reproducible.sh --compare FIRST SECOND   folders: fails unless they have the same files
set -eu

kinds='dist deb rpm dist-binary'

# ---- a part of it, in the clone

if [ "${1:-}" = --build ]; then
	case $2 in
	dist)
		meson setup build -Dtests=false -Dbench=false
		devtools/dist.sh build ../dist
		;;
	deb) DEB_BUILD_OPTIONS=nocheck devtools/deb.sh ../deb ;;
	rpm) devtools/rpm.sh ../rpm ;;
	dist-binary) devtools/dist-binary.sh ../dist-binary "$3" ;;
	esac
	exit
fi

released() { # released FOLDER: the files, without logs and descriptions of the build itself
	(cd "$1" && find . -type f ! -name '*.log' ! -name '*.buildinfo' ! -name '*.changes' ! -path './BUILD*' | sort)
}

compare() { # compare FIRST SECOND
	[ -n "$(released "$1")" ] || { echo "reproducible: no files in $1"; return 1; }
	[ "$(released "$1")" = "$(released "$2")" ] || {
		echo "reproducible: not the same files:"
		for folder; do released "$folder"; done | sort | uniq -u
		return 1
	}
	different=
	for file in $(released "$1"); do
		cmp -s "$1/$file" "$2/$file" && continue
		different="$different $file"
		! command -v diffoscope >/dev/null || diffoscope --no-progress "$1/$file" "$2/$file" | head -n 100 || true
	done
	[ -z "$different" ] || { echo "reproducible: not the same:$different"; return 1; }
	echo "reproducible: the same twice: $(released "$1" | wc -l) files, $(du -ch --apparent-size "$1" | sed -n 's/\ttotal//p')"
}

if [ "${1:-}" = --compare ]; then
	compare "$2" "$3"
	exit
fi

# ---- all of it

here=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1" "$2"
work=$(cd "$1" && pwd)
roots=$(cd "$2" && pwd)
shift 2
# shellcheck disable=SC2086 # names
[ $# != 0 ] || set -- $kinds
rm -rf "$work/first" "$work/elsewhere" "$work/home"
mkdir -p "$work/first" "$work/elsewhere/second" "$work/home"

quiet() { # quiet LOG COMMAND...
	log=$1
	shift
	"$@" >"$log" 2>&1 || { tail -n 40 "$log"; echo "reproducible: failed; its whole output is in $log"; return 1; }
}

git clone -q "$here" "$work/first/ringtap"
(umask 002 && git clone -q "$here" "$work/elsewhere/second/another-name")

first() {
	cd "$work/first/ringtap"
	quiet "../$1.log" env TZ=UTC devtools/reproducible.sh --build "$1" "$roots"
}

second() {
	cd "$work/elsewhere/second/another-name"
	umask 002
	# Times of files are the real ones: where tar writes those of another day, ninja makes its files for ever.
	later='env NO_FAKE_STAT=1 faketime -m -f +400d'
	[ "$1" != dist-binary ] || later=
	# shellcheck disable=SC2086 # words
	quiet "../$1.log" env TZ=Asia/Kathmandu LC_ALL=C LANGUAGE=de HOME="$work/home" CCACHE_DISABLE=1 $later \
		devtools/reproducible.sh --build "$1" "$roots"
}

failed=
for kind; do
	echo "==== $kind"
	if ! (first "$kind") || ! (second "$kind") || ! compare "$work/first/$kind" "$work/elsewhere/second/$kind"; then
		failed="$failed $kind"
	fi
done
[ -z "$failed" ] || { echo "reproducible: failed:$failed"; exit 1; }
rm -rf "$work/first" "$work/elsewhere" "$work/home"
