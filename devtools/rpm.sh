#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Builds the packages of packaging/ringtap.spec with Debian's rpm, whose macros are not Fedora's, and checks
# spec and packages with rpmlint. This finds wrong file lists and syntax, not wrong dependencies.
# The same commit makes the same packages.
# usage: rpm.sh [FOLDER]
set -eu

cd "$(dirname "$0")/.."
out=${1:-build-rpm}
rm -rf "$out"
mkdir -p "$out/SOURCES"
out=$(cd "$out" && pwd)
version=$(devtools/version.sh)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
git ls-files -z --cached --others --exclude-standard |
	xargs -0 sh -c 'for f; do [ ! -e "$f" ] || printf "%s\0" "$f"; done' sh |
	tar -c --null -T - --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
		--transform "s,^,ringtap-$version/,S" | gzip -n >"$out/SOURCES/ringtap-$version.tar.gz"
rpmlint -c packaging/rpmlint.toml packaging/ringtap.spec
# The unit tests ran in the build folder that these sources are from.
rpmbuild -ba --nodeps --without tests --define "_topdir $out" --load packaging/rpm-macros packaging/ringtap.spec \
	>"$out/build.log" 2>&1 || {
	tail -n 40 "$out/build.log"
	exit 1
}
rpmlint -c packaging/rpmlint.toml "$out"/SRPMS/*.rpm "$out"/RPMS/*/*.rpm
ls "$out"/SRPMS/*.rpm "$out"/RPMS/*/*.rpm
