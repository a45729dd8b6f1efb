#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# An environment of Python with ringtap-archive, of a wheel that is built here, and with its libraries by exact version and
# hash. It sees none of the system's packages, whose versions may not fit.
# usage: archive_env.sh PYTHON FOLDER [test]
set -eu

python=$1 folder=$2 with=${3:-}
source=$(cd "$(dirname "$0")/../archive" && pwd)
built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
trap 'exit 130' INT TERM HUP

pip() {
	"$folder/bin/python" -m pip --disable-pip-version-check --no-input "$@"
}

[ -x "$folder/bin/python" ] && grep -qs '^include-system-site-packages = false' "$folder/pyvenv.cfg" ||
	"$python" -m venv --clear "$folder"
set -- -r "$source/requirements.txt"
[ -z "$with" ] || set -- "$@" -r "$source/requirements-test.txt"
if ! pip install -q --dry-run --no-index "$@" >/dev/null 2>&1; then
	[ -n "$with" ] || echo "archive: fetching Python packages: some 100 MB, 360 MB in $folder" >&2
	pip install -q --require-hashes --only-binary :all: "$@"
fi
"$python" -m build --wheel --no-isolation --outdir "$built" "$source" >"$built/log" 2>&1 || { cat "$built/log" >&2; exit 1; }
pip install -q --no-deps --no-index --force-reinstall "$built"/*.whl
rm -rf "$source/build" "$source"/*.egg-info
