#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Makes FOLDER/vmlinuz and FOLDER/initramfs: Debian's kernel of this release, nothing installed, and a root in memory that
# mounts the host's root folder by 9p and runs a program there (e2e/qemu/init).
# usage: guest.sh FOLDER
set -eu

mkdir -p "$1"
folder=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
init=$here/../e2e/qemu/init
modules='9p 9pnet_virtio virtio_pci virtio_console vfio_iommu_type1 vfio-pci'
package=$(apt-cache depends linux-image-amd64 | sed -n 's/^ *Depends: //p' | head -n 1)
version=${package#linux-image-}

if [ ! -e "$folder/$package" ]; then
	rm -rf "$folder"
	mkdir -p "$folder/debs"
	(cd "$folder/debs" && apt-get -qq -o APT::Sandbox::User=root download "$package")
	dpkg-deb -x "$folder"/debs/*.deb "$folder/new"
	rm -r "$folder/debs"
	depmod -b "$folder/new" "$version"
	mv "$folder/new" "$folder/$package" # so that it is complete if it exists
fi
[ ! "$folder/initramfs" -nt "$init" ] || exit 0

files=$folder/$package/lib/modules/$version
root=$folder/root
rm -rf "$root"
mkdir -p "$root/bin" "$root/modules" "$root/proc" "$root/sys" "$root/dev" "$root/host"
cp "$(command -v busybox)" "$root/bin/busybox"
cp "$init" "$root/init"
for module in $modules; do # what it needs first
	needs=$(sed -n "s|^.*/$module\.ko: *||p" "$files/modules.dep")
	for path in $(echo "$needs" | tr ' ' '\n' | tac) $(cd "$files" && find . -name "$module.ko"); do
		cp "$files/$path" "$root/modules"
		echo "$(basename "$path")" >>"$root/modules/order"
	done
done
(cd "$root" && find . | cpio --quiet -o -H newc) | gzip -1 >"$folder/initramfs.new"
cp "$folder/$package/boot/vmlinuz-$version" "$folder/vmlinuz"
mv "$folder/initramfs.new" "$folder/initramfs"
