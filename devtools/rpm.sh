#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Builds the packages of packaging/ringtap.spec with Debian's rpm, whose macros are not Fedora's, and checks
# spec and packages with rpmlint. This finds wrong file lists and syntax, not wrong dependencies.
# The same commit makes the same packages. A bill of materials is beside them.
# usage: rpm.sh [FOLDER]
set -eu
umask 022

cd "$(dirname "$0")/.."
out=${1:-build-rpm}
rm -rf "$out"
mkdir -p "$out/SOURCES"
out=$(cd "$out" && pwd)
version=$(devtools/version.sh)
tree=$out/ringtap-$version
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

sbom() { # sbom RPM...: packages, and what they need
	for rpm; do
		rpm -qp --queryformat 'package %{NAME} %{VERSION}-%{RELEASE} %{LICENSE}\n' "$rpm"
		rpm -qp --requires "$rpm" | sed -n '/^rpmlib\|^rtld/d; s/^\([^ (]*\).*/depends \1/p' | sort -u
	done | devtools/sbom.py ringtap
}

devtools/sources.sh "$tree"
tar -c -C "$out" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner "ringtap-$version" |
	xz >"$out/SOURCES/ringtap-$version.tar.xz"
rpmlint -c packaging/rpmlint.toml packaging/ringtap.spec
# The unit tests ran in the build folder that these sources are from. The source package has the paths of the build: it is always
# in /mnt. It has the spec, with its permissions, as well.
user=
[ "$(id -u)" = 0 ] || user=--map-root-user
# shellcheck disable=SC2086,SC2016 # a word or none; the words of the inner shell
unshare --mount $user sh -c 'mount --bind "$0" /mnt && exec "$@"' "$out" rpmbuild -ba --nodeps --without tests \
	--define "_topdir /mnt" --load packaging/rpm-macros "/mnt/ringtap-$version/packaging/ringtap.spec" \
	>"$out/build.log" 2>&1 || {
	tail -n 40 "$out/build.log"
	exit 1
}
rpmlint -c packaging/rpmlint.toml "$out"/SRPMS/*.rpm "$out"/RPMS/*/*.rpm
sbom "$out"/RPMS/*/*.rpm >"$out/ringtap.spdx.json"
rm -rf "$tree"
ls "$out"/SRPMS/*.rpm "$out"/RPMS/*/*.rpm
