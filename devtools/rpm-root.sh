#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Installs the packages that rpm.sh has built in a new root of this machine's suite by Debian's rpm, whose database has no other
# package, uses them, removes them again, and checks that nothing is left of them. Libraries are those of Debian: this
# cannot show that the names of Fedora's packages are right. The root is removed at the end, whatever happened.
# usage: rpm-root.sh RPM_FOLDER
set -eu
. "$(dirname "$0")/clean-root.sh"

if [ "${1:-}" != --inside ]; then
	make_folder
	find "$1" -name '*.rpm' ! -name '*.src.rpm' -exec cp {} "$test" \;
	# The libraries that the packages need, each in the package of Debian that this machine has it from.
	rpm -qp --requires "$test"/*.rpm | sed -n 's/^\(lib[^( ]*\.so[^( ]*\)(.*/\1/p' | grep -v '^libringtap' | sort -u |
		while read -r library; do
			dpkg-query -S "*/$library" | sed -n '1s/[:,].*//p' | grep . || echo "rpm-root: no package has $library" >&2
		done | sort -u >"$test/libraries"
	run_inside "$(. /etc/os-release && echo "$VERSION_CODENAME")"
	exit
fi

step "Libraries of Debian"
apt update
# shellcheck disable=SC2046 # names
apt install --no-install-recommends $(cat libraries) rpm dpdk dpdk-dev wireshark-common tcpdump gcc libc6-dev pkgconf python3-cffi-backend
echo /usr/lib64 >/etc/ld.so.conf.d/lib64.conf # where Fedora's loader looks by itself
ldconfig
names=$(rpm -qp --queryformat '%{NAME} ' ./*.rpm)
files >before

step "Packages: $names"
rpm -K ./*.rpm
# What is not installed is of others: the packages find what they need of each other.
rpm -i --test ./*.rpm 2>needed || true
if grep -i 'conflict\|ringtap.* is needed by' needed; then
	exit 1
fi
rpm -qp --queryformat '[%{FILEMODES:perms} %{FILENAMES}\n]' ./*.rpm >listed
if grep '^[^l]\{8\}w' listed; then
	echo 'rpm-root: every user may write to the above' >&2
	exit 1
fi
if awk '$1 !~ /^d/ {print $2}' listed | grep -v .build-id | sort | uniq -d | grep .; then
	echo 'rpm-root: several packages have the above' >&2
	exit 1
fi

step "Install"
rpm -i --nodeps ./*.rpm
ldconfig
rpm -V --nodeps $names
# shellcheck disable=SC2046 # paths
if ldd $(rpm -ql $names | grep '/s*bin/\|/lib[^/]*\.so\|/extcap/\|/probe-abi23') | grep 'not found'; then
	exit 1
fi

export PYTHONDONTWRITEBYTECODE=1 PKG_CONFIG_PATH=/usr/lib64/pkgconfig
use
"$(rpm -ql ringtap | grep '/ringtap-extcap$')" --extcap-interfaces | grep ringtap
ringtap run -- tcpdump --version
python3 -c 'import ringtap; print(ringtap.__file__)'

step "A changed file is found"
page=$(rpm -ql ringtap | grep 'ringtap-record.1')
echo >>"$page"
rpm -V --nodeps ringtap | grep "^S.5.*$page"

step "Remove"
rpm -e $names
files >after
# Folders that others own are empty now: rpm removes those of its packages only.
diff before after | sed -n 's/^[<>] //p' | while read -r path; do
	case $path in
	*ringtap*) echo "$path" ;;
	*) [ -z "$(find "$path" ! -type d)" ] || echo "$path" ;;
	esac
done >left
cat left
[ ! -s left ]
[ -z "$(rpm -qa)" ]
passed
