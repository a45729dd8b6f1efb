#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Compares the binary interface of the public libraries, the layout of all public structures, and what programs
# compile in (values of macros and enumerators, inline functions) with what devtools/abi holds. usage: abi.sh check|update [BUILD_FOLDER [INCLUDE_FOLDER]]
# Before 1.0 a change may be recorded by `make abi-update`; afterwards only one that old programs survive.
set -eu
cd "$(dirname "$0")/.."
what=$1
build=${2:-build}
include=${3:-include}
stored=devtools/abi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

dump() { # dump LIBRARY FILE: what of it is public, without places in the source
	abidw --headers-dir "$include" --drop-private-types --exported-interfaces-only --no-corpus-path --no-comp-dir-path --no-show-locs \
		--no-elf-needed --type-id-style hash --out-file "$2" "$1" &&
		sed -i "s|$work/||" "$2"
}

# Entries of arrays are reached by a stride: no exported function has them in its type.
structures() {
	printf '#include "ringtap/%s"\n' fates.h monitor.h probe.h reason.h
	sed -nE 's/^(struct|enum) (ringtap_[a-z_]+) \{.*/\1 \2 *\2_layout(\1 \2 *p) { return p; }/p' "$include"/ringtap/*.h
}

public() { # public OPTION...: preprocesses all public headers
	printf '#include "ringtap/%s"\n' fates.h monitor.h probe.h reason.h | ${CC:-gcc} -E "$@" -I"$include" -x c -
}

# What abidiff does not see, as it is in no library: macros, enumerators (also of enumerations without a name), and
# the bodies of inline functions. Behind the preprocessor, what is still called RINGTAP_ is an enumerator.
compiled_in() {
	public -dM | grep -E '^#define RINGTAP_' | grep -vE '_H ?$|^#define RINGTAP_INLINE' | sort
	echo
	{
		echo '#include <stdio.h>'
		printf '#include "ringtap/%s"\n' fates.h monitor.h probe.h reason.h
		echo 'int main(void) {'
		public -P | grep -oE '\<RINGTAP_[A-Z0-9_]+\>' | sort -u | sed 's/.*/printf("& = %lld\\n", (long long)&);/'
		echo '}'
	} >"$work/constants.c"
	${CC:-gcc} -I"$include" -o "$work/constants" "$work/constants.c" && "$work/constants"
	echo
	# A line each, whatever lines and blanks the header has.
	public -P | awk '/^static inline .*ringtap_/ {text = ""; inside = 1} inside {text = text " " $0}
		/^}/ && inside {print text; inside = 0}' | sed 's/[[:space:]]\+/ /g; s/^ //; s/( /(/g'
}

[ "$(uname -m)" = x86_64 ] || { echo "abi: stored for x86_64 only"; exit 0; }
structures >"$work/structures.c"
${CC:-gcc} -g -O0 -shared -fPIC -w -I"$include" -o "$work/structures.so" "$work/structures.c"
dump "$work/structures.so" "$work/structures.abi"
dump "$build/reader/libringtap.so" "$work/libringtap.abi"
[ ! -e "$build/probe/libringtap-probe.so" ] || dump "$build/probe/libringtap-probe.so" "$work/libringtap-probe.abi"
compiled_in >"$work/compiled-in.txt"

differ() { # differ STORED NEW
	case $1 in
	*.abi) abidiff "$1" "$2" ;;
	*) diff -u "$1" "$2" ;;
	esac
}

failed=0
for new in "$work"/*.abi "$work"/*.txt; do
	name=$(basename "$new")
	if [ "$what" = update ]; then
		cp "$new" "$stored/$name"
	elif out=$(differ "$stored/$name" "$new" 2>&1); then
		echo "abi: ${name%.*}: unchanged"
	else
		printf '%s\nabi: %s: CHANGED; if old programs go on working, or before 1.0: make abi-update\n' "$out" "${name%.*}"
		failed=1
	fi
done
exit $failed
