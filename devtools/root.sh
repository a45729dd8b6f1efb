#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs a command in the root of a suite of Debian; FOLDER is /mnt there, where the command starts. A root that is
# missing is made by debootstrap; its name is the suite's (bookworm, trixie, sid, or jammy, which is a bookworm: jammy.sh).
# All mounts are those of a namespace, which ends with its processes; these end with the command, and with the process
# that ran this script.
# usage: root.sh ROOT FOLDER COMMAND...
set -eu

if [ "${1:-}" != --inside ]; then
	exec setpriv --pdeathsig KILL unshare --mount --mount-proc --pid --fork --kill-child --propagation private \
		"$0" --inside "$@"
fi
root=$2
folder=$3
shift 3
# Its defaults, and no fsync(): the root need not survive a crash.
export DPKG_FORCE=security-mac,downgrade,unsafe-io

if [ ! -e "$root" ]; then
	new=$root.new # so that a root is complete if it exists
	rm -rf --one-file-system "$new"
	mkdir -p "$new"
	suite=$(basename "$root")
	[ "$suite" != jammy ] || suite=bookworm
	debootstrap --variant=minbase "$suite" "$new" "$("$(dirname "$0")/mirror.sh")" >"$new.log" 2>&1 || {
		tail "$new.log"
		exit 1
	}
	rm "$new.log"
	# A mirror's file may be older than it says it is good for; it is signed all the same.
	echo 'Acquire::Check-Valid-Until "false";' >"$new/etc/apt/apt.conf.d/90ringtap"
	mv "$new" "$root"
fi

mount --bind "$root" "$root"
mount --bind "$folder" "$root/mnt"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --rbind /sys "$root/sys"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mkdir "$root/run/dpdk" "$root/run/old"
cd "$root"
# Not chroot: programs that make namespaces work as on any machine.
pivot_root . run/old
umount -l /run/old
rmdir /run/old
cd /mnt
exec env -u TMPDIR DEBIAN_FRONTEND=noninteractive HOME=/root LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
