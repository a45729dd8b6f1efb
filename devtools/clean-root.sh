#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What deb-root.sh and rpm-root.sh, which read this file, have in common. A script begins outside, where it puts the packages
# into the folder $test and calls run_inside; in the root it runs again, with --inside, beside them.

src=$(cd "$(dirname "$0")/.." && pwd)

# ---- outside

make_folder() { # $work, which is removed at the end, whatever happened, and $test in it
	work=$(mktemp -d)
	trap 'rm -rf --one-file-system "$work"' EXIT
	trap 'exit 130' INT TERM HUP
	test=$work/test
	mkdir "$test"
	cp "$0" "$src"/devtools/clean-root.sh "$src"/devtools/demo.sh "$src"/examples/count.c "$test"
}

run_inside() { # run_inside SUITE: in a new root of it
	"$src/devtools/root.sh" "$work/$1" "$test" sh "$(basename "$0")" --inside &
	inside=$!
	trap 'kill -KILL $inside; wait $inside || true; exit 130' INT TERM HUP
	wait $inside
}

# ---- in the root

files() { # all but what says what was installed when
	find / -xdev -path '/mnt/*' -prune -o -path '/var/log/*' -prune -o -path '/var/cache/*' -prune \
		-o -path '/var/lib/apt/*' -prune -o -path '/var/lib/dpkg/*' -prune -o -path /root/.rpmdb -prune -o -print | sort
}

apt() {
	apt-get -y -qq -o Dpkg::Use-Pty=0 "$@" >apt.log 2>&1 || {
		cat apt.log
		exit 1
	}
}

step() {
	printf '\n#### %s\n' "$*"
}

use() { # the programs, a recording, and a program of one's own
	step "Run"
	ringtap --version
	sh demo.sh --installed
	capinfos -c ringtap-demo.pcapng | grep 'packets:.*1000 k'
	step "A program of one's own"
	gcc -Wall -Werror count.c -o count $(pkg-config --cflags --libs libringtap)
	ldd count | grep 'libringtap.so.0 => /'
}

passed() {
	printf '\n%s: installed, used and removed without a trace on %s\n' "$(basename "$0" .sh)" \
		"$(. /etc/os-release && echo "$PRETTY_NAME")"
}
