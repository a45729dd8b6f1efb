#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Makes the image localhost/ringtap-test from the tarball in FOLDER, on a base made by debootstrap, in ROOT. Its
# containers have the network of the host, and no namespaces of their own where the kernel refuses these.
# usage: image.sh FOLDER ROOT
set -eu
here=$(dirname "$0")
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
mkdir -p "$2"
"$here/root.sh" "$2/$suite" "$2" true # makes it
tar -C "$2/$suite" --one-file-system -c . | podman import - "ringtap-base:$suite"
podman build --network host --isolation chroot -f "$here/../packaging/container/Containerfile" \
	--build-arg "BASE=localhost/ringtap-base:$suite" -t ringtap-test "$1"
podman image rm -f "ringtap-base:$suite"
podman image prune -f >/dev/null
