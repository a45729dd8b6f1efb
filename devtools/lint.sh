#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Checks style and spelling of the files under version control. Prints faults; exit status 1 if there are any.
set -u
cd "$(dirname "$0")/.." || exit 1
python=${PYTHON:-/usr/bin/python3}
lines_max=600
failed=0

list() { # list PATTERN...: the files that match
	git ls-files --cached --others --exclude-standard -- "$@" | while read -r f; do
		[ ! -f "$f" ] || echo "$f"
	done | grep -v '/golden/' # what commands print
}

check() { # check NAME COMMAND...: fails if the command prints anything or fails
	name=$1
	shift
	if out=$("$@" 2>&1) && [ -z "$out" ]; then
		echo "lint: $name: ok"
		return
	fi
	printf '%s\nlint: %s: FAILED\n' "$out" "$name"
	failed=1
}

format() { list '*.c' '*.h' | xargs -r clang-format --dry-run -Werror; }

spelling() {
	list '*.c' '*.h' '*.py' '*.sh' '*.md' '*.txt' '*.build' Makefile .ci/run |
		xargs -r codespell
}

licence() {
	list '*.c' '*.h' '*.js' '*.css' '*.py' '*.sh' '*.map' '*.build' 'meson_options.txt' '*.ini' Makefile .ci/run .clang-format |
		grep -v '^web/uplot/' | xargs -r grep -L 'SPDX-License-Identifier: BSD-3-Clause'
	return 0
}

whitespace() { # and what a merge has left
	list | xargs -r grep -nIE '[[:blank:]]+$|^(<<<<<<<|>>>>>>>) '
	return 0
}

length() {
	list '*.c' '*.h' '*.py' '*.sh' '*.build' Makefile | xargs -r wc -l |
		awk -v max="$lines_max" '$2 != "total" && $1 > max {print $2 ": " $1 " lines"}'
}

python_only_where_it_belongs() {
	list '*.py' | grep -vE '^(archive|e2e|lab|python|examples|devtools)/' |
		sed 's/$/: Python files belong in archive, e2e, lab, python, examples or devtools/'
	return 0
}

clocks() { # unit tests set the time: it is read by common/now.h
	list 'base/*.c' 'cli/*.c' 'reader/*.c' | grep -vE '_test\.c$|/(test|fake)_' |
		xargs grep -nHE '\b(clock_gettime|(clock_)?nanosleep|u?sleep|ppoll|time|pthread_cond_timedwait|rt_time_ns)\('
	return 0
}

python_code() {
	[ -x .venv-lint/bin/ruff ] || { echo 'no .venv-lint/bin/ruff: make lint makes it'; return 1; }
	.venv-lint/bin/ruff check --quiet --output-format concise . && .venv-lint/bin/ruff format --quiet --diff .
}

# Where it is installed: go install github.com/rhysd/actionlint/cmd/actionlint@v1.6.26, which the Go of Debian 12 builds
workflows() { actionlint .github/workflows/*.yml; }

retries() { list 'e2e/*.py' | xargs -r "$python" devtools/check_retries.py; }

traps() { list '*.sh' .ci/run | xargs -r "$python" devtools/check_traps.py; }

man_pages() { # section 3, made of the headers
	command -v mandoc >/dev/null || { echo 'mandoc is missing'; return 1; }
	folder=$(mktemp -d)
	"$python" devtools/man3.py 0 "$folder" include/ringtap/*.h &&
		grep -L '^\.so' "$folder"/*.3 | xargs mandoc -T lint -W warning | grep -v 'missing date'
	rm -rf "$folder"
	return 0
}

check 'C format' format
check spelling spelling
check 'SPDX lines' licence
check 'trailing whitespace' whitespace
check 'file length' length
check 'directions of includes' devtools/includes.sh
check 'one version' devtools/version.sh check
check 'symbols of the packages' devtools/symbols.sh
check 'clocks' clocks
check 'Python folders' python_only_where_it_belongs
check 'Python code' python_code
check 'manual pages' man_pages
check 'subjects of commits' devtools/check_commits.sh
check words "$python" devtools/check_words.py
check 'Markdown' "$python" devtools/check_markdown.py
if command -v actionlint >/dev/null; then
	check workflows workflows
else
	echo 'lint: workflows: skipped: actionlint is not installed'
fi
check 'table of the matrix' "$python" devtools/matrix_table.py check
check 'tables of drivers' "$python" devtools/drivers_table.py check
check 'table of kernels' "$python" devtools/kernels.py check
check 'page of JSON' "$python" devtools/schemas.py check
check 'table of results' "$python" devtools/results.py check
check 'flaky tests' "$python" devtools/check_flaky.py
check 'retries in tests' retries
check 'traps of scripts' traps
check 'cited names and paths' "$python" devtools/check_citations.py
exit $failed
