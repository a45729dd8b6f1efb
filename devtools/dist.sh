#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Writes FOLDER/ringtap-VERSION.tar.xz, the sources of this commit: the same bytes whenever and wherever it runs. With --check it
# builds them in a clean root of this machine's suite (root.sh): tests, installs, uses them, and builds them a second time,
# at another hour of the day, in another language and with other rights, which must install the same files.
# usage: dist.sh BUILD FOLDER [--check ROOTS]
set -eu

step() {
	printf '\n#### %s\n' "$*"
}

# ---- in the root

quiet() {
	"$@" >out.log 2>&1 || {
		tail -n 60 out.log
		exit 1
	}
}

unpack() { # always at the same place, which is in the debug information
	rm -rf /srv/ringtap-*
	tar -x -C /srv -f /mnt/ringtap-*.tar.xz
	cd /srv/ringtap-*
}

if [ "${1:-}" = --inside ]; then
	PATH=/usr/local/bin:$PATH
	rm -rf /srv/first /srv/second # left by a run that failed
	quiet apt-get update
	quiet apt-get install -y --no-install-recommends make xz-utils
	step "Build"
	unpack
	quiet devtools/deps.sh build demo
	quiet make probes
	step "Test"
	quiet meson test -C build --timeout-multiplier 10
	sed -n '/^Ok:/,$p' out.log
	step "Install and use"
	quiet make install DESTDIR=/srv/first
	make install DESTDIR= >/dev/null
	ldconfig
	ringtap --version
	ringtap --version | grep -qF "($2)"
	cd /srv
	quiet sh ringtap-*/devtools/demo.sh --installed
	capinfos -c ringtap-demo.pcapng
	step "Build again"
	umask 077
	export TZ=Asia/Kathmandu LC_ALL=C HOME=/srv
	unpack
	quiet make probes MESON_ARGS="-Dtests=false -Dbench=false"
	quiet make install DESTDIR=/srv/second
	diff -r --no-dereference /srv/first /srv/second
	rm -rf /srv/first /srv/second /srv/ringtap-*
	step "Both builds are the same"
	exit
fi

# ---- outside

cd "$(dirname "$0")/.."
src=$PWD
version=$(devtools/version.sh)
name=ringtap-$version.tar.xz
build=$1
mkdir -p "$2"
out=$(cd "$2" && pwd)

# meson gives each file the time at which it ran.
rm -rf "$out/tree"
meson dist -C "$build" --no-tests --formats xztar >"$out/dist.log" 2>&1 || {
	cat "$out/dist.log"
	exit 1
}
mkdir "$out/tree"
tar -x -C "$out/tree" -f "$build/meson-dist/$name"
tar -c -C "$out/tree" --sort=name --mtime="@$(git log -1 --format=%ct)" --owner=0 --group=0 --numeric-owner \
	--mode=u=rwX,go=rX "ringtap-$version" | xz -9 >"$out/$name"
rm -rf "$out/tree" "$out/dist.log" "$build/meson-dist"
(cd "$out" && sha256sum "$name" | tee "$name.sha256")

[ "${3:-}" = --check ] || exit 0
mkdir -p "$4/dist"
roots=$(cd "$4/dist" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
cp "$out/$name" devtools/dist.sh "$work"
devtools/root.sh "$roots/$(. /etc/os-release && echo "$VERSION_CODENAME")" "$work" sh dist.sh --inside \
	"$("$src/devtools/commit.sh")"
