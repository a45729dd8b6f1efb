#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Installs the missing Debian packages of the named sets. Quick if none is missing.
# usage: deps.sh build|demo|test|matrix|builds|vpp|libpcap|qemu|packages|reproducible|lint|ci|cross|containers|bench|bench-archive|lab|archive|spark|pictures...
set -eu

packages() {
	case $1 in
	# With dpkg-dev meson finds the folder of libraries in which Debian's loader looks: without, it takes lib64.
	build) echo gcc libc6-dev dpkg-dev meson ninja-build pkg-config libdpdk-dev libpcap-dev liburing-dev \
		libzstd-dev liblz4-dev libjansson-dev libcmocka-dev libncurses-dev libsmartcols-dev libmicrohttpd-dev \
		nettle-dev libelf-dev systemtap-sdt-dev liblttng-ust-dev python3-cffi python3-dev ;;
	demo) echo dpdk dpdk-dev wireshark-common ;;
	test) echo jq systemd dpdk dpdk-dev tshark wireshark-common tcpdump ngrep nmap softflowd nfdump nfdump-sflow pmacct python3-pytest \
		python3-pytest-xdist python3-scapy python3-yaml python3-jsonschema python3-fastjsonschema python3-jinja2 \
		python3-cryptography argus-server argus-client arpalert arpwatch darkstat httpry iftop libnet-pcap-perl netdiscover \
		p0f python3-pcapy tcpflow \
		openvswitch-switch-dpdk iproute2 iputils-ping ethtool zstd lz4 util-linux procps \
		zsh fish \
		python3-venv python3-setuptools python3-wheel python3-matplotlib python3-numpy chromium \
		tmux strace prometheus poppler-utils bpftrace binutils \
		lttng-tools babeltrace2 openssh-client dropbear-bin ;;
	# In the root of a suite: devtools/matrix.sh. With the build's packages come the libraries that ringtap needs.
	matrix) echo dpdk dpdk-dev make xz-utils libsystemd-dev python3-pytest python3-pytest-xdist python3-scapy python3-yaml \
		wireshark-common tcpdump iproute2 iputils-ping ethtool procps bpftrace lttng-tools babeltrace2 openvswitch-switch-dpdk ;;
	# With kernel and QEMU that make qemu downloads into its folders; igb needs the QEMU of Debian 13, in a root of it.
	qemu) echo qemu-system-x86 ipxe-qemu busybox-static cpio kmod debootstrap dpdk dpdk-dev tshark python3-pytest python3-scapy ;;
	builds) echo python3-pyelftools libnuma-dev ;;
	vpp) echo cmake clang python3-ply python3-pyelftools libssl-dev uuid-dev libnuma-dev ;;
	libpcap) echo cmake flex bison tcpdump ;;
	packages) echo dpkg-dev debhelper dh-python fakeroot lintian debootstrap rpm rpmlint ;;
	reproducible) echo diffoscope-minimal faketime git ;;
	lint) echo git clang-format codespell python3 python3-jsonschema python3-venv abigail-tools mandoc ;;
	ci) echo ccache g++ clang libclang-rt-dev ;;
	# In a root: devtools/cross.sh. Libraries of arm64, tools of this machine.
	cross) echo crossbuild-essential-arm64 qemu-user-static ccache $(packages build | tr ' ' '\n' |
		sed -E 's/^(lib.*|systemtap-sdt)-dev$/&:arm64/; s/^python3-dev$/libpython3-dev:arm64/') ;;
	# Not in CI, whose tests of containers use unshare(1), and podman where it is installed.
	containers) echo podman crun buildah debootstrap ;;
	bench) echo python3-matplotlib iftop pmacct softflowd ;;
	bench-archive) echo tshark wireshark-common tcpdump zstd util-linux ;;
	lab) echo dpdk dpdk-dev python3-venv python3-setuptools python3-wheel python3-jinja2 \
		python3-matplotlib python3-numpy iproute2 ethtool procps util-linux binutils bpftrace lttng-tools ;;
	archive) echo python3-venv python3-build python3-setuptools python3-wheel ;;
	spark) echo default-jre-headless ;;
	pictures) echo dpdk dpdk-dev iproute2 ethtool tmux tshark wireshark xvfb xdotool openbox imagemagick pngquant \
		python3-rich fonts-dejavu-core ;;
	*) echo "deps.sh: no such set: $1; the sets are in the usage line of the script" >&2; return 1 ;;
	esac
}

installed() {
	dpkg-query -W -f '${db:Status-Status}\n' "$1" 2>/dev/null | grep -qx installed
}

wanted=
for set in "$@"; do
	wanted="$wanted $(packages "$set")"
done

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
	echo "deps: not a Debian system; install these packages:$wanted" >&2
	exit 0
fi

missing=
for package in $wanted; do
	installed "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

echo "deps: installing$missing"
as_root=
if [ "$(id -u)" != 0 ]; then
	as_root=sudo
	command -v sudo >/dev/null || {
		echo "deps: cannot install packages: not root, and no sudo; run as root or install sudo" >&2
		exit 1
	}
fi
services=
for service in openvswitch-switch:openvswitch-switch prometheus:prometheus lttng-tools:lttng-sessiond \
	argus-server:argus arpalert:arpalert arpwatch:arpwatch darkstat:darkstat; do
	installed "${service%:*}" || services="$services $service"
done

$as_root apt-get update -qq
# shellcheck disable=SC2086 # a list of words
$as_root env DEBIAN_FRONTEND=noninteractive \
	apt-get install -y -qq --no-install-recommends $missing

# The tests run these programs themselves, in private folders. The services that the packages start would
# only use CPU time.
for service in $services; do
	if [ -d /run/systemd/system ] && installed "${service%:*}"; then
		$as_root systemctl disable --now "${service#*:}.service" || true
	fi
done
