#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Compares the tables of metrics in docs/statistics.md with those that METRICS_DOC (a program of the
# build, common/metrics_doc) prints, or replaces them.
# Usage: devtools/metrics-table.sh METRICS_DOC [--write]
set -eu
page=$(dirname "$0")/../docs/statistics.md
made=$(mktemp)
trap 'rm -f "$made"' EXIT
trap 'exit 130' INT TERM HUP
# meson's, in a build for another architecture.
${MESON_EXE_WRAPPER:-} "$1" >"$made"
new=$(sed -e '/<!-- metrics: begin/,/<!-- metrics: end/!b' -e '/<!-- metrics: end/!d' \
	-e "r $made" -e d "$page")
if [ "${2:-}" = --write ]; then
	printf '%s\n' "$new" >"$page"
elif ! printf '%s\n' "$new" | diff -u "$page" -; then
	echo "docs/statistics.md does not have the metrics of common/metrics.h; to write them:" \
		"devtools/metrics-table.sh $1 --write" >&2
	exit 1
fi
