#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Makes FOLDER/vmlinuz and FOLDER/initramfs: the kernel of a release of Debian, this one's if none is named, nothing installed,
# and a root in memory that mounts the host's root folder by 9p and runs a program there (e2e/qemu/init).
# usage: guest.sh FOLDER [SUITE]
set -eu

mkdir -p "$1"
folder=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
init=$here/../e2e/qemu/init
modules='9p 9pnet_virtio virtio_pci virtio_console vfio_iommu_type1 vfio-pci overlay'
# Loaded when a program needs them.
on_demand='veth tun bridge dummy sch_netem sch_tbf sch_ingress cls_u32 act_mirred openvswitch vport-vxlan af_packet_diag loop vhost_net
	uio_pci_generic ip_tables iptable_filter nf_tables xt_conntrack'
of_suite=
if [ -n "${2:-}" ]; then
	mkdir -p "$folder/lists/partial"
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $("$here/mirror.sh") $2 main" >"$folder/sources.list"
	of_suite="-o Dir::Etc::SourceList=$folder/sources.list -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists=$folder/lists
		-o Dir::Cache::PkgCache= -o Dir::Cache::SrcPkgCache= -o Acquire::Check-Valid-Until=false -o APT::Sandbox::User=root"
	# shellcheck disable=SC2086 # options
	[ -e "$folder/vmlinuz" ] || apt-get -qq $of_suite update
fi
# shellcheck disable=SC2086 # options
package=$(apt-cache $of_suite depends linux-image-amd64 | sed -n 's/^ *Depends: //p' | head -n 1)
version=${package#linux-image-}
[ -n "$version" ]

if [ ! -e "$folder/$package" ]; then
	rm -rf "$folder/linux-image"* "$folder/initramfs"
	mkdir -p "$folder/debs"
	# shellcheck disable=SC2086 # options
	(cd "$folder/debs" && apt-get -qq $of_suite -o APT::Sandbox::User=root download "$package")
	dpkg-deb -x "$folder"/debs/*.deb "$folder/new"
	rm -r "$folder/debs"
	depmod -b "$folder/new" "$version"
	mv "$folder/new" "$folder/$package" # so that it is complete if it exists
fi
[ ! "$folder/initramfs" -nt "$init" ] || [ ! "$folder/initramfs" -nt "$0" ] || exit 0

files=$folder/$package/lib/modules/$version
root=$folder/root
needed() { # needed MODULE: files, what it needs first; none for a part of the kernel itself
	sed -n "s|^.*/$1\.ko: *||p" "$files/modules.dep" | tr ' ' '\n' | tac
	(cd "$files" && find . -name "$1.ko")
}
rm -rf "$root"
mkdir -p "$root/bin" "$root/modules" "$root/proc" "$root/sys" "$root/dev" "$root/host" "$root/lib/modules/$version"
cp "$(command -v busybox)" "$root/bin/busybox"
cp "$init" "$root/init"
for module in $modules; do
	for path in $(needed "$module"); do
		cp "$files/$path" "$root/modules"
		echo "$(basename "$path")" >>"$root/modules/order"
	done
done
for module in $on_demand; do
	for path in $(needed "$module"); do
		cp "$files/$path" "$root/lib/modules/$version"
	done
done
cp "$files"/modules.builtin* "$files"/modules.order "$root/lib/modules/$version"
depmod -b "$root" "$version"
(cd "$root" && find . | cpio --quiet -o -H newc) | gzip -1 >"$folder/initramfs.new"
cp "$folder/$package/boot/vmlinuz-$version" "$folder/vmlinuz"
mv "$folder/initramfs.new" "$folder/initramfs"
