#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Installs the packages that deb.sh has built in a new root of their release of Debian, uses them, removes them
# again, and checks that nothing is left of them. The root is removed at the end, whatever happened.
# usage: deb-root.sh DEBS_FOLDER [SUITE]: this machine's suite if none is named. OLDER: a folder of packages to install first
# (jammy.sh)
set -eu
. "$(dirname "$0")/clean-root.sh"

if [ "${1:-}" != --inside ]; then
	make_folder
	cp "$1"/*.deb "$test"
	rm -f "$test"/*dbgsym*
	[ -z "${OLDER:-}" ] || { mkdir "$test/older" && cp "$OLDER"/*.deb "$test/older"; }
	run_inside "${2:-$(. /etc/os-release && echo "$VERSION_CODENAME")}"
	exit
fi

depends() { # what our packages need from the others
	for deb in /mnt/*.deb; do
		dpkg-deb -f "$deb" Depends
		dpkg-deb -f "$deb" Recommends
	done | tr '\n' ',' | tr ',' '\n' | sed 's/^ *//' | grep -v -e ringtap -e '^$' | sort -u | paste -sd ,
}

step "Packages of others"
apt update
[ ! -d older ] || apt install ./older/*.deb
apt satisfy --no-install-recommends "$(depends), dpdk, dpdk-dev, wireshark-common, tcpdump, gcc, libc6-dev, pkgconf"
names=$(for deb in /mnt/*.deb; do dpkg-deb -f "$deb" Package; done)
files >before

step "Install: $(echo $names)"
apt install --no-install-recommends /mnt/*.deb
if find / -xdev -path '*ringtap*' -perm -o+w ! -type l ! -path '/mnt/*' | grep .; then
	echo 'deb-root: every user may write to the above' >&2
	exit 1
fi
plugin=$(dpkg -L ringtap-probe | grep 'libringtap-probe.so$')

use
gcc -shared -fPIC -Wl,--no-as-needed -x c /dev/null -o linked.so $(pkg-config --cflags --libs libringtap-probe)

step "Programs that use libpcap, Wireshark, Python, the service"
stdbuf -oL dpdk-testpmd --no-huge -m 256 --no-pci --file-prefix pkg -l 0,1 -d "$plugin" --vdev net_null0 \
	-- --no-mlockall --total-num-mbufs=4096 --tx-first --stats-period 1 >pmd.log 2>&1 </dev/null &
pmd=$!
until grep -q 'Port statistics' pmd.log; do
	kill -0 $pmd || { cat pmd.log; exit 1; }
	sleep 0.1 # no event to wait for: the log is a plain file
done
ringtap run -- tcpdump -D | grep 'ringtap:pkg:net_null0'
/usr/lib/*/wireshark/extcap/ringtap-extcap --extcap-interfaces | grep ringtap:pkg
ringtap trace list | grep burst
[ "$(ringtap doctor --json pkg | grep -c '"name":"pkg"\|"name": "pkg"')" -ge 1 ]
# Fails if the module lacks what it imports; the talkers' addresses are whatever the buffers hold.
python3 /usr/share/doc/python3-ringtap/examples/talkers.py pkg 2 >talkers
cat talkers
grep -q '^[0-9a-f:]\{17\}: [1-9][0-9]* packets$' talkers
grep -q '^thread .*: busy [0-9.]* %$' talkers
unit=$(dpkg -L ringtap | grep 'ringtap-export.service$')
[ ! -e /etc/systemd/system/multi-user.target.wants/ringtap-export.service ]
# With the rights that the unit leaves it, and a disk that it cannot write to.
options=$(sed -n 's/^ExecStart=//p' "$unit" | sed 's/ \$.*//')
unshare -m sh -c 'mount -o remount,bind,ro / && exec setpriv --bounding-set -all,+dac_override --inh-caps -all \
	--no-new-privs "$@"' sh $options --listen 127.0.0.1:0 >export.log 2>&1 &
exporter=$!
until url=$(sed -n 's/^Exporting at //p' export.log) && [ -n "$url" ]; do
	kill -0 $exporter || { cat export.log; exit 1; }
	sleep 0.1
done
metrics() {
	perl -MIO::Socket::INET -e 'my ($h) = $ARGV[0] =~ m{//([^/]+)/}; my $s = IO::Socket::INET->new($h) or die;
		print $s "GET /metrics HTTP/1.0\r\n\r\n"; print while <$s>' "$url"
}
until metrics | grep 'ringtap_up{app="pkg"} 1'; do
	kill -0 $exporter
	sleep 0.1
done
kill $exporter $pmd
wait || true

step "Remove"
apt purge $names
files >after
diff before after
[ -z "$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' '*ringtap*' 2>/dev/null | grep -v not-installed)" ]
passed
