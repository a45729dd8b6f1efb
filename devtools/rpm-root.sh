#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Installs the packages that rpm.sh has built in a new root of this machine's suite by Debian's rpm, whose database has no other
# package, uses them, removes them again, and checks that nothing is left of them. Libraries are those of Debian: this
# cannot show that the names of Fedora's packages are right. The root is removed at the end, whatever happened.
# usage: rpm-root.sh RPM_FOLDER
set -eu

if [ "${1:-}" != --inside ]; then
	src=$(cd "$(dirname "$0")/.." && pwd)
	suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
	work=$(mktemp -d)
	trap 'rm -rf --one-file-system "$work"' EXIT
	trap 'exit 130' INT TERM HUP
	mkdir "$work/test"
	find "$1" -name '*.rpm' ! -name '*.src.rpm' -exec cp {} "$work/test" \;
	cp "$src"/devtools/demo.sh "$src"/devtools/rpm-root.sh "$src"/examples/count.c "$work/test/"
	# The libraries that the packages need, each in the package of Debian that this machine has it from.
	rpm -qp --requires "$work"/test/*.rpm | sed -n 's/^\(lib[^( ]*\.so[^( ]*\)(.*/\1/p' | grep -v '^libringtap' | sort -u |
		while read -r library; do
			dpkg-query -S "*/$library" | sed -n '1s/[:,].*//p' | grep . || echo "rpm-root: no package has $library" >&2
		done | sort -u >"$work/test/libraries"
	"$src/devtools/root.sh" "$work/$suite" "$work/test" sh rpm-root.sh --inside &
	inside=$!
	trap 'kill -KILL $inside; wait $inside || true; exit 130' INT TERM HUP
	wait $inside
	exit
fi

# ---- in the root

files() { # all but what says what was installed when
	find / -xdev -path '/mnt/*' -prune -o -path '/var/log/*' -prune -o -path '/var/cache/*' -prune \
		-o -path /root/.rpmdb -prune -o -print | sort
}

apt() {
	apt-get -y -qq -o Dpkg::Use-Pty=0 "$@" >apt.log 2>&1 || {
		cat apt.log
		exit 1
	}
}

step() {
	printf '\n#### %s\n' "$*"
}

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

step "Run"
export PYTHONDONTWRITEBYTECODE=1
ringtap --version
sh demo.sh --installed
capinfos -c ringtap-demo.pcapng | grep 'packets:.*1000 k'
"$(rpm -ql ringtap | grep '/ringtap-extcap$')" --extcap-interfaces | grep ringtap
ringtap run -- tcpdump --version
python3 -c 'import ringtap; print(ringtap.__file__)'
export PKG_CONFIG_PATH=/usr/lib64/pkgconfig
gcc -Wall -Werror count.c -o count $(pkg-config --cflags --libs libringtap)
ldd count | grep 'libringtap.so.0 => /'

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
printf '\nrpm-root: installed, used and removed without a trace on %s\n' "$(. /etc/os-release && echo "$PRETTY_NAME")"
