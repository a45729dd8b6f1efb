#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Builds FOLDER/ringtap-VERSION-x86_64.tar.xz: ringtap for Linux with glibc 2.31 or later, whatever the distribution, in a root
# of Debian 11 (root.sh), which is made if it is missing and kept. It has the libraries that ringtap needs beside glibc, with
# their licences, found by $ORIGIN; no LTTng, no Python module, and neither ringtap-fwd nor ringtap-host, which need DPDK.
# usage: dist-binary.sh FOLDER ROOTS
set -eu

prefix=/opt/ringtap

# ---- in the root; the copy of the sources is in the folder ringtap

quiet() { # a step in a process of its own: a shell ignores -e where a result is checked
	"$0" "$@" >build.log 2>&1 || {
		tail -n 40 build.log
		exit 1
	}
}

packages() { # Debian 11 has an older meson, and a liburing that is too old
	cat >/etc/apt/preferences.d/ringtap <<-END
		Package: *
		Pin: release n=bookworm
		Pin-Priority: -1

		Package: meson liburing2 liburing-dev
		Pin: release n=bookworm
		Pin-Priority: 600
	END
	sed 's/ bullseye / bookworm /' /etc/apt/sources.list >/etc/apt/sources.list.d/bookworm.list
	apt-get update
	apt-get install -y --no-install-recommends ccache gcc libc6-dev meson ninja-build pkg-config patchelf xz-utils libpcap-dev \
		liburing-dev libzstd-dev liblz4-dev libjansson-dev libncurses-dev libsmartcols-dev libmicrohttpd-dev nettle-dev libelf-dev \
		libbsd-dev systemtap-sdt-dev python3
}

build() {
	pcs=$(devtools/headers.sh build/dpdk)
	# Without debug information, which the tarball would not have, and in which gcc 10 ends by an internal error.
	PKG_CONFIG_PATH=$PWD/build/dpdk/22.11 meson setup build --prefix $prefix --libdir lib -Dprobe=enabled -Dfwd=disabled \
		-Dtests=false -Dbench=false -Dusdt=enabled -Dlttng=disabled -Dpython=disabled -Ddebug=false -Db_pch=false -Dextcapdir=$prefix/lib/wireshark/extcap \
		-Dpkgconfig.relocatable=true -Ddpdk="$pcs"
	ninja -C build
	meson install -C build --no-rebuild --strip --destdir "$PWD/build/tree"
	strip -g "build/tree$prefix"/lib/*.a
}

elf_files() { # programs and libraries in the tree; the shim of libpcap names libraries of the system
	find . -type f ! -path './lib/ringtap/libpcap.so.*' -exec sh -c 'head -c 4 "$1" | grep -q ELF' sh {} \; -print | sort
}

libraries() { # all that ours load, but those of the tree and of glibc
	for file in $(elf_files); do
		LD_LIBRARY_PATH=$PWD/lib ldd "$file"
	done | sed -n 's/.* => \(\/.*\) (.*/\1/p' | grep -v "^$PWD" | sort -u
}

# The owner of a file; packages of before the merge of /lib into /usr name it by its former path.
owner() {
	dpkg-query -S "$(realpath "$1")" 2>/dev/null || dpkg-query -S "$(realpath "$1" | sed 's,^/usr,,')"
}

bundle() {
	bundled=lib/ringtap/bundled
	licences=share/doc/ringtap/licences
	mkdir -p $bundled $licences
	for file in $(libraries); do
		package=$(owner "$file" | sed 's/:.*//')
		[ "$package" != libc6 ] || continue
		cp -L "$file" $bundled
		cp "/usr/share/doc/$package/copyright" "$licences/$package"
	done
	for file in $(elf_files); do
		case $file in
		./$bundled/*) path=\$ORIGIN ;;
		*) path=\$ORIGIN/$(realpath --relative-to="$(dirname "$file")" $bundled) ;;
		esac
		[ "$file" != ./bin/ringtap ] || path=\$ORIGIN/../lib:$path
		# The probe has no library but glibc's: it is mapped into applications.
		readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | while read -r name; do
			[ ! -e "$bundled/$name" ] && [ ! -e "lib/$name" ] || echo found
		done | grep -q found || continue
		# An RPATH, which the libraries of a library inherit; it goes before LD_LIBRARY_PATH.
		patchelf --force-rpath --set-rpath "$path" "$file"
	done
}

sbom() { # what is in the tree, of which package of Debian or other project
	sources=/mnt/ringtap
	{
		echo "package ringtap $version BSD-3-Clause"
		# Inline functions of these headers are in the probe.
		for headers in "$sources"/packaging/dpdk/*.tar.xz; do
			echo "contains dpdk $(basename "$headers" .tar.xz) BSD-3-Clause"
		done
		echo "contains uPlot $(sed -n 's/.*uPlot (v\([0-9.]*\)).*/\1/p' "$sources/web/uplot/uPlot.iife.min.js") MIT"
		# shellcheck disable=SC2046 # names
		dpkg-query -W -f 'contains ${binary:Package} ${Version}\n' $(ls $licences | grep -vx uPlot)
		echo "depends glibc"
	} | "$sources/devtools/sbom.py" "ringtap-$version-x86_64" >"share/doc/ringtap/ringtap-$version.spdx.json"
}

newest_glibc() { # the newest version of glibc's symbols that a file of the tree needs
	for file in $(elf_files); do
		readelf -V "$file"
	done | grep -o 'GLIBC_2\.[0-9]*' | sort -uV | tail -n 1
}

case ${1:-} in
--packages)
	packages
	touch /srv/packages
	exit
	;;
--build)
	cd ringtap
	build
	exit
	;;
--inside)
	version=$2
	[ -e /srv/packages ] || quiet --packages
	quiet --build
	cd ringtap
	mkdir -p "build/tree$prefix/share/doc/ringtap"
	cp README.md CHANGELOG.md "build/tree$prefix/share/doc/ringtap"
	cd "build/tree$prefix"
	bundle
	sbom
	glibc=$(newest_glibc)
	echo "needs $glibc"
	[ "$(printf '%s\nGLIBC_2.31\n' "$glibc" | sort -V | tail -n 1)" = GLIBC_2.31 ]
	cd ..
	tar -c --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
		--transform "s,^ringtap,ringtap-$version,S" ringtap | xz -9 >"/mnt/ringtap-$version-x86_64.tar.xz"
	exit
	;;
esac

# ---- outside

cd "$(dirname "$0")/.."
mkdir -p "$1" "$2"
out=$(cd "$1" && pwd)
root=$(cd "$2" && pwd)/bullseye
version=$(devtools/version.sh)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
work=$out/work
rm -rf "$work"
devtools/sources.sh "$work/ringtap"
devtools/root.sh "$root" "$work" ringtap/devtools/dist-binary.sh --inside "$version"
mv "$work/ringtap-$version-x86_64.tar.xz" "$out"
rm -rf "$work"
(cd "$out" && sha256sum "ringtap-$version-x86_64.tar.xz" | tee "ringtap-$version-x86_64.tar.xz.sha256")
