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
JOBS ?= 4
PYTEST_ARGS ?=
# Network namespaces, raw sockets and huge pages need root; building does not.
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
AS_ROOT = $(SUDO) env RINGTAP_BUILD=$(abspath $(BUILD))
RUN_E2E = devtools/run_tests.py e2e $(if $(JOBS),--jobs $(JOBS))

.PHONY: all probes matrix matrix-here builds vpp libpcap qemu kernels cross test-cross deps demo demo-incident check test nightly results test-unit test-e2e test-archive fuzz-archive test-spark archive-demo soak bench bench-archive lab archive report pictures lint abi abi-update format \
	set-prefix install uninstall deb test-deb rpm dist image test-image distcheck dist-binary test-dist-binary reproducible compat clean

all: $(BUILD)/build.ninja
	ninja -C $(BUILD)

$(BUILD)/build.ninja:
	devtools/deps.sh build
	meson setup $(BUILD) --prefix "$(PREFIX)" $(MESON_ARGS)

# The probe for the DPDK of other ABIs as well, whose headers are in packaging/dpdk and are unpacked below the build folder.
# DPDK=/path/libdpdk.pc,... names more.
DPDK ?=
comma := ,
probes: $(BUILD)/build.ninja
	pcs=$$(devtools/headers.sh $(BUILD)/dpdk) && \
		meson setup --reconfigure $(BUILD) -Ddpdk=$$pcs$(addprefix $(comma),$(DPDK))
	ninja -C $(BUILD)

# One installation with the applications of each suite, in roots of these that are kept; minutes, the first time an
# hour. SUITES="trixie" tests one of them. The result is docs/matrix.json.
ROOTS ?= $(BUILD)/roots
SUITES ?= bookworm trixie sid
matrix: probes
	devtools/deps.sh packages
	$(SUDO) devtools/matrix.sh $(BUILD) $(abspath $(ROOTS)) $(SUITES)

# A part of a row on this machine, in no root: the installation with the testpmd of its own DPDK, a minute.
matrix-here: all
	devtools/deps.sh test
	$(SUDO) env PYTEST_ARGS="-k testpmd $(PYTEST_ARGS)" devtools/matrix.sh $(BUILD) --here

# DPDK of releases and with options that no suite has: built, kept in DPDK_BUILDS, and its testpmd with this build's probe.
# DPDK_GIT names a repository of DPDK with its tags; BUILDS="26.07 many" builds some. An hour, the first time.
DPDK_GIT ?=
DPDK_BUILDS ?= $(BUILD)/dpdk-builds
BUILDS ?= 21.11.9 21.11-static 23.11.4 23.11-static 26.07 many few iova-va history
builds: probes
	devtools/deps.sh build test builds
	devtools/dpdk-builds.sh "$(DPDK_GIT)" $(DPDK_BUILDS) $(BUILDS)
	$(SUDO) env RINGTAP_BUILD=$(abspath $(BUILD)) RINGTAP_DPDK_BUILDS=$(abspath $(DPDK_BUILDS)) \
		$(PYTHON) -m pytest e2e/install/test_builds.py $(PYTEST_ARGS)

# VPP with the DPDK that is installed, with DPDK inside its plugin, and a later one with its own DPDK: built, kept in VPP_BUILD, and tested with this
# probe. VPP_GIT and DPDK_GIT name repositories with their tags. An hour, the first time. VPP_BUILDS=shared builds one.
VPP_BUILDS ?= shared static newest
VPP_GIT ?=
VPP_BUILD ?= $(BUILD)/vpp
vpp: $(if $(filter newest,$(VPP_BUILDS)),probes,all)
	devtools/deps.sh build test vpp
	devtools/vpp-build.sh "$(VPP_GIT)" "$(DPDK_GIT)" $(VPP_BUILD) $(VPP_BUILDS)
	$(SUDO) env RINGTAP_BUILD=$(abspath $(BUILD)) RINGTAP_VPP=$(abspath $(VPP_BUILD)) \
		$(PYTHON) -m pytest -m "nightly or not nightly" $(addprefix e2e/install/test_vpp,.py _buffers.py _flight.py _ports.py _service.py) $(PYTEST_ARGS)
	$(SUDO) env RINGTAP_BUILD=$(abspath $(BUILD)) RINGTAP_VPP=$(abspath $(VPP_BUILD)) \
		$(PYTHON) -m pytest -s -m nightly e2e/install/test_vpp_cost.py

# pcap-ringtap.so in a libpcap that loads plug-ins, which is built and kept in LIBPCAP_BUILD. LIBPCAP_GIT names a
# repository of libpcap with its pull requests. Two minutes.
LIBPCAP_GIT ?=
LIBPCAP_BUILD ?= $(BUILD)/libpcap
libpcap: all
	devtools/deps.sh build test libpcap
	devtools/libpcap-build.sh "$(LIBPCAP_GIT)" $(LIBPCAP_BUILD)
	$(SUDO) env RINGTAP_BUILD=$(abspath $(BUILD)) RINGTAP_LIBPCAP=$(abspath $(LIBPCAP_BUILD)) \
		$(PYTHON) -m pytest e2e/pcap/test_plugin.py $(PYTEST_ARGS)

# The drivers of network cards that QEMU models, in virtual machines behind an emulated IOMMU; 15 minutes. The result is
# docs/drivers.json. CARDS="igb vmxnet3" tests some, and keeps the results of others.
CARDS ?= e1000 e1000e igb vmxnet3 virtio-net-pci
qemu: all
	devtools/deps.sh build qemu
	$(SUDO) env RINGTAP_BUILD=$(abspath $(BUILD)) PYTHON=$(PYTHON) \
		devtools/qemu.sh $(abspath $(ROOTS)) "$(CARDS)" $(PYTEST_ARGS)

# The smoke tests with kernels of other releases of Debian, in QEMU. What has not run after these seconds is left for the next
# run. The result is docs/kernels.json; PYTEST_ARGS choose some of them.
KERNELS ?= bullseye bookworm
KERNELS_SECONDS ?= 5000
kernels: all
	devtools/deps.sh build test qemu
	$(SUDO) env RINGTAP_BUILD=$(abspath $(BUILD)) $(PYTHON) devtools/kernels.py run --seconds $(KERNELS_SECONDS) $(KERNELS) \
		$(if $(PYTEST_ARGS),-- $(PYTEST_ARGS))

# Everything for arm64, in a root of this machine's suite that is kept; test-cross also runs unit tests there, by qemu-user.
cross test-cross:
	devtools/deps.sh packages
	$(SUDO) devtools/cross.sh $(ROOTS) $(if $(findstring test,$@),--test)

deps:
	devtools/deps.sh build demo test lint

demo: $(BUILD)/build.ninja
	devtools/deps.sh build demo
	ninja -C $(BUILD) demo
	devtools/demo.sh $(BUILD)

# A flight recorder, a stall of testpmd, and the page of the incident; leaves ringtap-demo-incidents/.
demo-incident: $(BUILD)/build.ninja
	devtools/deps.sh build demo
	ninja -C $(BUILD) demo
	devtools/demo.sh --incident $(BUILD)

# Unit tests of what differs from the upstream branch, and 45 s of tests of every subject.
check: deps all
	$(PYTHON) devtools/run_tests.py unit $(BUILD) --changed
	$(AS_ROOT) $(PYTHON) $(RUN_E2E) $(TESTS) -- -m smoke $(PYTEST_ARGS)

test: deps test-unit test-e2e

test-unit: all
	$(PYTHON) devtools/run_tests.py unit $(BUILD)

test-e2e: all
	$(AS_ROOT) $(PYTHON) $(RUN_E2E) $(TESTS) -- $(PYTEST_ARGS)

# What does not gate, by part, each at most 90 minutes: measurements, matrices, soak tests, rare environments.
PART ?= lab fwd other matrix packages reproducible qemu kernels cross $(if $(VPP_GIT),vpp) soak archive busy
nightly: all
	$(SUDO) env PYTEST_ARGS="$(PYTEST_ARGS)" VPP_GIT="$(VPP_GIT)" DPDK_GIT="$(DPDK_GIT)" devtools/nightly.sh $(BUILD) $(PART)

# The table of docs/testing.md, with the last runs of this build folder.
results:
	$(PYTHON) devtools/results.py outcomes $(wildcard $(BUILD)/outcomes-unit.json $(BUILD)/outcomes-e2e.json $(BUILD)/outcomes-e2e-archive.json)
	$(PYTHON) devtools/results.py write

# Attaches to SOAK processes under traffic, and kills as many attaches, and secondary processes. Then a flight recorder for
# SOAK_SECONDS, with SOAK_INCIDENTS incidents, of an application that forwards at this rate.
SOAK ?= 1000
SOAK_SECONDS ?= 3600
SOAK_INCIDENTS ?= 500
SOAK_RATE ?= 250k
soak: all archive
	$(SUDO) env RINGTAP_SOAK=$(SOAK) RINGTAP_SOAK_SECONDS=$(SOAK_SECONDS) RINGTAP_SOAK_INCIDENTS=$(SOAK_INCIDENTS) \
		RINGTAP_SOAK_RATE=$(SOAK_RATE) RINGTAP_BUILD=$(abspath $(BUILD)) \
		$(PYTHON) -m pytest e2e/attach/test_soak.py e2e/secondary/test_soak.py e2e/flight/test_soak.py -m "nightly or not nightly" $(PYTEST_ARGS)
	$(SUDO) env RINGTAP_ARCHIVE_KILLS=100 RINGTAP_BUILD=$(abspath $(BUILD)) $(ARCHIVE_PYTHON) -m pytest e2e/archive/test_robust.py

# ONLY=aims: what recording loses and costs, against what it should; ONLY=page: a page of a million points in Chromium;
# ONLY=copy,push: some parts of the rest.
ONLY ?=
BENCH_ARGS ?=
bench: all
	devtools/deps.sh build demo bench
	cd lab && $(SUDO) env RINGTAP_BUILD=$(abspath $(BUILD)) $(PYTHON) -m ringtap_lab.run.$(if \
		$(filter aims page,$(ONLY)),$(ONLY),bench $(if $(ONLY),--only $(ONLY))) $(BENCH_ARGS)

# Archives beside tshark, tcpdump and capinfos; BENCH_ARGS="--only growth --growth 1M,10M,100M": `ringtap archive bench --help`.
bench-archive: $(if $(RINGTAP_ARCHIVE_PYTHON),all,archive)
	devtools/deps.sh bench-archive
	RINGTAP_BUILD=$(abspath $(BUILD)) PYTHONPATH=archive $(ARCHIVE_PYTHON) -m ringtap_archive.main bench $(BENCH_ARGS)

# Makes .venv/bin/ringtap-lab. Its libraries are Debian's; nothing is fetched by pip.
lab: all .venv/bin/ringtap-lab

.venv/bin/ringtap-lab: lab/pyproject.toml
	devtools/deps.sh lab
	$(PYTHON) -m venv --system-site-packages .venv
	.venv/bin/pip --disable-pip-version-check install -q --no-build-isolation --no-index -e lab

# Makes .venv-archive/bin/ringtap-archive, which `ringtap archive` runs. pip fetches its libraries: Debian has no pyarrow
# and no DuckDB.
ARCHIVE_PYTHON ?= $(or $(RINGTAP_ARCHIVE_PYTHON),.venv-archive/bin/python)
ARCHIVE_SOURCES := $(wildcard archive/*.t* archive/ringtap_archive/* archive/ringtap_archive/*/*)
archive: all .venv-archive/bin/ringtap-archive

.venv-archive/bin/ringtap-archive: devtools/archive_env.sh $(filter-out %/__pycache__,$(ARCHIVE_SOURCES))
	devtools/deps.sh archive
	devtools/archive_env.sh $(PYTHON) .venv-archive
	touch $@

.venv-archive/bin/pytest: .venv-archive/bin/ringtap-archive
	devtools/archive_env.sh $(PYTHON) .venv-archive test
	touch $@

# Three recorders on a path with delay and loss: where and how much is lost. Leaves archive-demo/.
archive-demo: archive
	devtools/deps.sh demo
	$(SUDO) devtools/archive_demo.sh $(BUILD) $(abspath .venv-archive/bin/ringtap-archive) archive-demo

# Tests of the archive, in that environment and with pytest of their own; those of `make test` have no part of it.
test-archive: $(if $(RINGTAP_ARCHIVE_PYTHON),all,archive .venv-archive/bin/pytest)
	$(AS_ROOT) $(ARCHIVE_PYTHON) $(RUN_E2E) $(if $(filter-out e2e,$(TESTS)),$(TESTS),e2e/archive) -- $(PYTEST_ARGS)

# Its parsers in Python with damaged input, SECONDS for each.
fuzz-archive: $(if $(RINGTAP_ARCHIVE_PYTHON),all,archive)
	PYTHONPATH=archive $(ARCHIVE_PYTHON) devtools/fuzz_archive.py $(or $(SECONDS),3)

# Do Spark, as a cluster of two processes, and DuckDB compute the same? Minutes, and 450 MB that pip fetches.
test-spark: $(if $(RINGTAP_ARCHIVE_PYTHON),all,archive)
	devtools/deps.sh spark
	$(ARCHIVE_PYTHON) -c 'import pyspark' 2>/dev/null || \
		$(ARCHIVE_PYTHON) -m pip --disable-pip-version-check install -q 'pyspark>=4.0'
	$(SUDO) env RINGTAP_SPARK=1 RINGTAP_BUILD=$(abspath $(BUILD)) $(ARCHIVE_PYTHON) -m pytest e2e/archive/test_spark.py \
		e2e/archive/test_spark_hops.py $(PYTEST_ARGS)

# Makes docs/report of a folder of results (RESULTS=lab-results), or the page again from the data that is there.
RESULTS ?= docs/report
report:
	devtools/deps.sh lab
	[ $(abspath $(RESULTS)) = $(abspath docs/report) ] || \
		{ mkdir -p docs/report && rm -f docs/report/* && cp $(RESULTS)/*.json docs/report; }
	PYTHONPATH=lab $(PYTHON) -m ringtap_lab.run.cli report -w docs/report

# Makes docs/images again, with programs and a screen of its own.
pictures: all
	devtools/deps.sh pictures
	$(SUDO) env RINGTAP_BUILD=$(abspath $(BUILD)) $(PYTHON) devtools/pictures.py
	$(SUDO) env RINGTAP_BUILD=$(abspath $(BUILD)) $(PYTHON) devtools/look.py

lint: .venv-lint/bin/ruff
	devtools/deps.sh lint
	PYTHON=$(PYTHON) devtools/lint.sh

# A formatter and linter of Python that Debian does not have: one wheel, of PyPI.
.venv-lint/bin/ruff: devtools/requirements-lint.txt
	devtools/deps.sh archive
	$(PYTHON) -m venv .venv-lint
	.venv-lint/bin/pip --disable-pip-version-check install -q -r $<
	touch $@

# Is the interface of the libraries, in binaries and in headers, what devtools/abi holds? abi-update writes it again.
abi abi-update: all
	devtools/deps.sh lint
	devtools/abi.sh $(if $(findstring update,$@),update,check) $(BUILD)

# In place, with the same tools and rules as lint.
format: .venv-lint/bin/ruff
	git ls-files -z -- "*.c" "*.h" | xargs -0 clang-format -i
	.venv-lint/bin/ruff format --quiet .
	.venv-lint/bin/ruff check --quiet --fix .

# A PREFIX that is named replaces the one that the build folder was made with.
ifeq ($(filter file default,$(origin PREFIX)),)
install uninstall: set-prefix
endif

set-prefix: all
	meson configure $(BUILD) -Dprefix="$(PREFIX)"
	ninja -C $(BUILD)

install uninstall: all
	$(PYTHON) devtools/install.py $@ $(BUILD) "$(DESTDIR)"

# Debian's packages, in build-deb/.
deb:
	devtools/deps.sh build packages
	devtools/deb.sh build-deb

# Builds them, for another suite in a root of it, and installs, runs and removes them in a clean root of that
# suite. Needs a mirror of Debian, and takes minutes. SUITE=jammy with OLDER=FOLDER: what devtools/jammy.sh made.
SUITE ?= bookworm
OLDER ?=
test-deb: all
	devtools/deps.sh build test packages
	$(SUDO) env RINGTAP_PACKAGES=$(SUITE) OLDER=$(OLDER) RINGTAP_BUILD=$(abspath $(BUILD)) $(PYTHON) -m pytest e2e/packages $(PYTEST_ARGS)

# As far as Debian's tools can check a package for Fedora, in build-rpm/.
rpm:
	devtools/deps.sh build packages
	devtools/rpm.sh build-rpm

# The sources of this commit as a tarball, in build-dist/.
dist: $(BUILD)/build.ninja
	devtools/dist.sh $(BUILD) build-dist

# An image of containers from them; BASE is a Debian by its digest, or a local image: docs/containers.md.
BASE ?=
image: $(if $(BASE),dist)
	@[ -n "$(BASE)" ] || { echo "make: cannot make the image: BASE is not given; name a Debian by its digest, or a local image:" \
		"make image BASE=docker.io/library/debian@sha256:... (docs/containers.md)" >&2; exit 1; }
	devtools/deps.sh containers
	podman build -f packaging/container/Containerfile --build-arg BASE=$(BASE) $(IMAGE_ARGS) -t ringtap build-dist

# Makes it on a base of debootstrap, and uses it without rights.
test-image: dist all
	devtools/deps.sh test containers
	$(SUDO) devtools/image.sh build-dist $(ROOTS)/image
	$(AS_ROOT) RINGTAP_IMAGE=localhost/ringtap-test $(PYTHON) -m pytest e2e/containers/test_image.py $(PYTEST_ARGS); \
		status=$$?; $(SUDO) podman image rm -f ringtap-test >/dev/null; exit $$status

# Builds, tests, installs and uses them in a clean root, twice: both builds must be the same. 15 minutes.
distcheck: $(BUILD)/build.ninja
	devtools/deps.sh packages
	$(SUDO) devtools/dist.sh $(BUILD) build-dist --check $(ROOTS)

# ringtap for Linux on x86-64 with glibc 2.31 or later, in build-dist/; made in a root of Debian 11.
dist-binary:
	devtools/deps.sh packages
	$(SUDO) devtools/dist-binary.sh build-dist $(ROOTS)

# Runs it in clean roots, with the testpmd of each.
test-dist-binary: SUITES = bullseye bookworm trixie sid
test-dist-binary:
	$(SUDO) devtools/binary-root.sh build-dist/ringtap-$$(devtools/version.sh)-x86_64.tar.xz $(ROOTS)/clean $(SUITES)

# Builds all of these of the last commit twice, in different surroundings, and compares them; half an hour. KINDS="deb rpm"
# builds some.
KINDS ?= dist deb rpm dist-binary
reproducible:
	devtools/deps.sh build packages reproducible
	$(SUDO) devtools/reproducible.sh $(BUILD)/reproducible $(ROOTS) $(KINDS)

# The reader of the protocol's first revision with this probe, and the reverse; it is built once, in minutes.
compat: all
	devtools/deps.sh build test
	$(SUDO) devtools/compat.sh $(BUILD) $(BUILD)/compat

clean:
	rm -rf $(BUILD) .venv .venv-archive .venv-lint lab/*.egg-info archive/*.egg-info
