# SPDX-License-Identifier: BSD-3-Clause
# A thin layer over meson and ninja: everything here is one command that could be typed.

BUILD ?= build
# Debian's interpreter: its packages (pytest, scapy) are invisible to one from elsewhere.
PYTHON ?= /usr/bin/python3
DESTDIR ?=
PREFIX ?= /usr/local
MESON_ARGS ?=
# What runs of the tests with real programs, and how many at a time.
TESTS ?= e2e
JOBS ?= 3
PYTEST_ARGS ?=
# Network namespaces, raw sockets and huge pages need root; building does not.
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
PYTEST = $(SUDO) env RINGTAP_BUILD=$(abspath $(BUILD)) $(PYTHON) -m pytest $(if $(JOBS),-n $(JOBS) --dist loadfile)

.PHONY: all deps demo check test test-unit test-e2e soak bench lab report pictures lint abi abi-update format \
	set-prefix install uninstall deb test-deb rpm clean

all: $(BUILD)/build.ninja
	ninja -C $(BUILD)

$(BUILD)/build.ninja:
	devtools/deps.sh build
	meson setup $(BUILD) --prefix $(PREFIX) $(MESON_ARGS)

deps:
	devtools/deps.sh build demo test lint

demo:
	devtools/deps.sh build demo
	$(MAKE) all
	devtools/demo.sh $(BUILD)

# Unit tests and a few tests of every subject, in a minute.
check: deps test-unit
	$(PYTEST) -m smoke $(TESTS) $(PYTEST_ARGS)

test: deps test-unit test-e2e

test-unit: all
	meson test -C $(BUILD) --print-errorlogs

test-e2e: all
	$(PYTEST) $(TESTS) $(PYTEST_ARGS)

# Attaches to that many processes under traffic, and kills as many attaches.
SOAK ?= 1000
soak: all
	$(SUDO) env RINGTAP_SOAK=$(SOAK) RINGTAP_BUILD=$(abspath $(BUILD)) $(PYTHON) -m pytest e2e/attach/test_soak.py $(PYTEST_ARGS)

bench: all
	devtools/deps.sh build demo bench
	cd lab && $(SUDO) env RINGTAP_BUILD=$(abspath $(BUILD)) $(PYTHON) -m ringtap_lab.run.bench

# Makes .venv/bin/ringtap-lab. Its libraries are Debian's; nothing is fetched by pip.
lab: all .venv/bin/ringtap-lab

.venv/bin/ringtap-lab: lab/pyproject.toml
	devtools/deps.sh lab
	$(PYTHON) -m venv --system-site-packages .venv
	.venv/bin/pip --disable-pip-version-check install -q --no-build-isolation --no-index -e lab

# Makes docs/report of a folder of results (RESULTS=lab-results), or the page anew of the data that is there.
RESULTS ?= docs/report
report:
	devtools/deps.sh lab
	[ $(abspath $(RESULTS)) = $(abspath docs/report) ] || \
		{ mkdir -p docs/report && rm -f docs/report/* && cp $(RESULTS)/*.json docs/report; }
	PYTHONPATH=lab $(PYTHON) -m ringtap_lab.run.cli report -o docs/report

# Makes docs/images anew, with programs and a screen of its own.
pictures: all
	devtools/deps.sh pictures
	$(SUDO) env RINGTAP_BUILD=$(abspath $(BUILD)) $(PYTHON) devtools/pictures.py

lint:
	devtools/deps.sh lint
	PYTHON=$(PYTHON) devtools/lint.sh

# Is the interface of the libraries, in binaries and in headers, what devtools/abi holds? abi-update writes it anew.
abi abi-update: all
	devtools/deps.sh lint
	devtools/abi.sh $(if $(findstring update,$@),update,check) $(BUILD)

# In place, with the same tool and rules as lint.
format:
	git ls-files -z -- "*.c" "*.h" | xargs -0 clang-format -i

# A PREFIX that is named replaces the one that the build folder was made with.
ifeq ($(filter file default,$(origin PREFIX)),)
install uninstall: set-prefix
endif

set-prefix: all
	meson configure $(BUILD) -Dprefix=$(PREFIX)
	ninja -C $(BUILD)

install: all
	DESTDIR=$(DESTDIR) meson install -C $(BUILD) --no-rebuild

# What an install would put there now; of folders only our own.
uninstall: all
	@set -e; stage=$$(mktemp -d); trap 'rm -rf "$$stage"' EXIT; \
	meson install -C $(BUILD) --no-rebuild --quiet --destdir "$$stage"; \
	(cd "$$stage" && find . ! -type d -print0) | (cd "$(DESTDIR)/" && xargs -0 rm -fv); \
	(cd "$$stage" && find . -depth -type d -path '*ringtap*' -print0) | \
		(cd "$(DESTDIR)/" && xargs -0 rmdir 2>/dev/null || true)

# Debian's packages, in build-deb/.
deb:
	devtools/deps.sh build packages
	devtools/deb.sh build-deb

# Builds them, for another suite in a root of it, and installs, runs and removes them in a clean root of that
# suite. Needs a mirror of Debian, and takes minutes.
SUITE ?= bookworm
test-deb: all
	devtools/deps.sh build test packages
	$(SUDO) env RINGTAP_PACKAGES=$(SUITE) RINGTAP_BUILD=$(abspath $(BUILD)) $(PYTHON) -m pytest e2e/packages $(PYTEST_ARGS)

# As far as Debian's tools can check a package for Fedora, in build-rpm/.
rpm:
	devtools/deps.sh build packages
	devtools/rpm.sh build-rpm

clean:
	rm -rf $(BUILD) .venv lab/*.egg-info
