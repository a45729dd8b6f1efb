# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures: whatever a test starts is gone when the test is over."""

import collections
import fcntl
import importlib.util
import os
import shutil
import signal
import zlib

import pytest
from harness import browser as browser_module
from harness import corpus, documents, dpdk, sandbox, turns
from harness import ovs as ovs_module
from harness.fwd import FWD, Fwd
from harness.netns import Net
from harness.ovs import Ovs
from harness.paths import BUILD, E2E, REPO, RINGTAP, Plugin, private_folder
from harness.play import Play, Visitor
from harness.proc import check
from harness.ringtap import Recorder
from harness.testpmd import Testpmd
from ringtap_lab.tools import cgroup

documents.install()

# Background jobs of a shell ignore SIGINT, and so would all programs that are started here.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Not the applications of other test runs, which have other mount namespaces.
os.environ["RINGTAP_CONTAINERS"] = "no"

# Fixtures that start or look for a third-party program, which may not be installed.
TOOLS = {"babeltrace", "podman", "bpftrace", "browser", "listen", "lttng", "ovs", "prom", "terminal"}
SLOW_WEIGHT = 15  # seconds of a test that is marked so; others take about one

# Targets of their own run them: `make test-deb`, `make test-image`, `make matrix`, `make vpp`, `make libpcap`, `make soak`, `make test-spark`, and devtools/other-dpdk.sh.
collect_ignore = [
    path
    for path, needs in (
        ("packages", "RINGTAP_PACKAGES"),
        ("containers/test_image.py", "RINGTAP_IMAGE"),
        ("install/test_builds.py", "RINGTAP_DPDK_BUILDS"),
        ("install/test_other_dpdk.py", "RINGTAP_ROOTS"),
        ("pcap/test_plugin.py", "RINGTAP_LIBPCAP"),
        ("install/test_vpp.py", "RINGTAP_VPP"),
        ("install/test_vpp_buffers.py", "RINGTAP_VPP"),
        ("matrix", "RINGTAP_PREFIX"),
        ("attach/test_soak.py", "RINGTAP_SOAK"),
        ("secondary/test_soak.py", "RINGTAP_SOAK"),
        ("archive/test_spark.py", "RINGTAP_SPARK"),
        ("archive/test_spark_hops.py", "RINGTAP_SPARK"),
    )
    if needs not in os.environ
]
# `make test-archive` runs them, with an interpreter that has these.
if not all(map(importlib.util.find_spec, ("duckdb", "pyarrow", "zstandard"))):
    collect_ignore.append("archive")


def pytest_configure(config):
    """With -n, each worker has a sandbox; the controller owns huge pages and turns."""
    if not hasattr(config, "workerinput"):
        config.add_cleanup(turns.prepare())
    if os.geteuid() != 0 or "RINGTAP_DRIVERS" in os.environ:  # guests have a system of their own, but these files
        return
    if config.option.collectonly:
        return
    workers = config.getoption("numprocesses", None)
    if not workers:
        sandbox.enter()
    if not hasattr(config, "workerinput"):
        config.add_cleanup(sandbox.HugePages(workers or 1).close)
        config.add_cleanup(sandbox.OneGroup().close)


def _is_alone(item):
    return item is not None and item.get_closest_marker("alone") is not None


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item, nextitem):
    with turns.turn(_is_alone(item), _is_alone(nextitem)):
        yield


def _smoke_is_one_case(items):
    """The first case of a test with parameters is a smoke test."""
    seen = set()
    for item in items:
        if not item.get_closest_marker("smoke"):
            continue
        test = (item.path, item.originalname)
        if test in seen:
            item.own_markers = [mark for mark in item.own_markers if mark.name != "smoke"]
        seen.add(test)


def _order(items):
    """With -n, a file is one worker's. Tests that run alone come first, one after the other: before each of them, the other
    workers would have to end what they run. Then the long files: one that starts last leaves the other workers idle."""
    weights, alone = collections.Counter(), collections.Counter()
    for item in items:
        weights[item.path] += SLOW_WEIGHT if item.get_closest_marker("slow") else 1
        alone[item.path] += _is_alone(item)
    items.sort(
        key=lambda item: (-alone[item.path] / weights[item.path], -weights[item.path], item.path, not _is_alone(item))
    )


def _mark_by_place(items):
    for item in items:
        if item.path.parent == E2E / "lab":
            item.add_marker(pytest.mark.lab)
        if item.path.parent == E2E / "containers":  # finds, and connects to, the applications of other workers
            item.add_marker(pytest.mark.alone)
        if TOOLS.intersection(item.fixturenames):
            item.add_marker(pytest.mark.tools)


def _keep_a_tenth(config, items):
    """With RINGTAP_TENTH=0 to 9, by the names of the tests: `make nightly PART=busy` takes another one each day."""
    tenth = os.environ.get("RINGTAP_TENTH")
    if tenth is None:
        return
    left_out = [item for item in items if zlib.crc32(item.nodeid.encode()) % 10 != int(tenth)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def _leave_out_nightly(config, items):
    """Tests that do not gate run where -m names their mark only."""
    if "nightly" in (config.option.markexpr or ""):
        return
    left_out = [item for item in items if item.get_closest_marker("nightly")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Skips all tests for one reason if none can run. With RINGTAP_BUILD set, that is an error."""
    _leave_out_nightly(config, items)
    _keep_a_tenth(config, items)
    _smoke_is_one_case(items)
    _mark_by_place(items)
    if hasattr(config, "workerinput"):
        _order(items)
    reason = None
    if os.geteuid() != 0:
        reason = "needs root: network namespaces and DPDK's run-time folders"
    elif not RINGTAP.exists():
        reason = f"{RINGTAP} is not built"
    elif not (BUILD / "probe" / "libringtap-probe.so").exists():
        reason = "built without the probe"
    elif not shutil.which("dpdk-testpmd"):
        reason = "dpdk-testpmd is not installed (dpdk-dev)"
    if reason and "RINGTAP_BUILD" in os.environ:
        raise pytest.UsageError(reason)
    if reason:
        for item in items:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def plugin():
    """Path of the probe, in a folder from which EAL loads plugins."""
    it = Plugin()
    yield it.path
    it.close()


@pytest.fixture
def closing():
    """closing(x) returns x and calls x.close() after the test, in reverse order."""
    things = []

    def keep(thing):
        things.append(thing)
        return thing

    yield keep
    for thing in reversed(things):
        thing.close()


@pytest.fixture
def testpmd(plugin, closing):
    def start(*vdevs, **kwargs):
        return closing(Testpmd(vdevs, kwargs.pop("plugin", plugin), **kwargs))

    return start


@pytest.fixture
def play(plugin, closing):
    def start(linkin=False, **kwargs):
        return closing(Play(None if linkin else kwargs.pop("plugin", plugin), **kwargs))

    return start


@pytest.fixture
def deeds_and_visitor(play, closing):
    """rt_deeds with a secondary process, to which `leave=1` of its command run gives packets."""

    def start():
        if dpdk.HugePages.free_mb() < 128:
            pytest.skip("needs 128 MB of free huge pages")
        app = play(program="rt_deeds", huge_dir="/dev/hugepages", memory_mb=128)
        closing(Visitor(app))
        return app

    return start


@pytest.fixture(scope="module")
def module_app(plugin):
    """As app, shared by the tests of a file, which restore its state."""
    it = Play(plugin)
    it.ring("a")
    yield it
    it.close()


@pytest.fixture
def app(play):
    """An application that sends on command, on one port."""
    it = play()
    it.ring("a")
    return it


@pytest.fixture
def busy(play):
    """An application that receives as fast as it can."""
    it = play()
    it.plug("net_null0")
    it.do("loop 0 0")
    return it


@pytest.fixture
def record(closing, tmp_path):
    """record(app, option...) starts `ringtap record` on an application. With attach=True it returns
    once packets are captured. out: a file name; None: no -w."""
    count = iter(range(1000))

    def start(app, *args, out="", attach=True, ports=(None,), **kwargs):
        if out == "":
            out = tmp_path / f"out{next(count)}.pcapng"
        which = []
        for port in ports:
            which += ["-i", f"{app.prefix}:{'' if port is None else port}"]
        # Options such as filters apply to the preceding -i.
        recorder = closing(Recorder([*which, *args], out, **kwargs))
        return recorder.attached() if attach else recorder

    return start


@pytest.fixture
def memory_limit(closing):
    """memory_limit(bytes) makes a memory cgroup."""
    if not cgroup.BASE:
        pytest.skip("no memory cgroup")
    return lambda limit: closing(cgroup.MemoryGroup(limit))


@pytest.fixture
def fwd(closing):
    """fwd(option...) starts ringtap-fwd."""
    if not FWD.exists():
        pytest.skip("built without ringtap-fwd")

    def start(*args, **kwargs):
        return closing(Fwd([str(a) for a in args], **kwargs))

    return start


@pytest.fixture
def net(closing):
    return closing(Net())


@pytest.fixture
def wire(net, testpmd):
    """A device of the hub to which another testpmd sends one flow at its maximum rate."""
    host, device = net.add_host("192.0.2.1")

    def send():
        sender = testpmd("net_af_packet0,iface=eth0", plugin=None, namespace=host, args=("--forward-mode=txonly",))
        sender.start()
        return sender

    wire.send = send
    wire.device = device
    wire.hub = net.hub
    return wire


@pytest.fixture
def ovs(plugin, net, closing):
    reason = ovs_module.missing()
    if reason:
        pytest.skip(reason)

    def start(attached=False, **kwargs):
        """attached: without the probe, which is attached later."""
        return closing(Ovs(net.hub, None if attached else plugin, **kwargs))

    return start


@pytest.fixture(scope="session")
def installation(tmp_path_factory):
    """An installation in a temporary folder, which its .pc files name as prefix."""
    path = tmp_path_factory.mktemp("root")
    check(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", path])
    for file in path.rglob("*.pc"):
        file.write_text(file.read_text().replace("prefix=/", f"prefix={path}/", 1))
    return path


@pytest.fixture(scope="session")
def corpus_files(tmp_path_factory):
    """Made once for all workers: it takes many seconds."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "corpus"
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            part = folder.with_suffix(".part")
            part.mkdir()
            corpus.make(part)
            part.rename(folder)
    return corpus.files(folder)


@pytest.fixture
def private_dir():
    """A folder that is not below a world-writable one."""
    path = private_folder()
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    reason = browser_module.missing()
    if reason:
        pytest.skip(reason)
    it = browser_module.Chromium(tmp_path_factory.mktemp("profile"))
    yield it
    it.close()


@pytest.fixture
def browser(chromium, closing):
    return closing(browser_module.Browser(chromium))


@pytest.fixture(scope="module")
def python_env(tmp_path_factory):
    """The environment of a Python that finds the module of the build folder."""
    built = next((BUILD / "python").glob("_ringtap*.so"), None)
    if not built:
        pytest.skip("the Python module is not built: it needs python3-cffi and python3-dev")
    package = tmp_path_factory.mktemp("python") / "ringtap"
    package.mkdir()
    for file in [built, *(REPO / "python" / "ringtap").glob("*.py")]:
        (package / file.name).symlink_to(file)
    return {"PYTHONPATH": str(package.parent), "LD_LIBRARY_PATH": str(BUILD / "reader")}
