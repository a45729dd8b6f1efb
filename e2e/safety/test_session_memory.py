# SPDX-License-Identifier: BSD-3-Clause
"""The reader owns the memory of a capture session: allocates it, is charged for it, and frees
it."""
import mmap
import os
import random
import resource
import signal
import tempfile
import threading
from pathlib import Path

import pytest

from harness import dpdk, wire
from harness.paths import RINGTAP
from harness.play import Play
from harness.proc import run, until
from harness.ringtap import FAILED, listing, sessions

MIB = 1 << 20
GROWTH = 2 * MIB  # of the application's memory charge in a session, without page tables


@pytest.fixture
def app(module_app):
    return module_app.unhooked()


@pytest.fixture(scope="module")
def locked_app(plugin):
    it = Play(plugin)
    it.ring("a")
    it.do("lock")
    yield it
    it.close()


def page_tables(pid):
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.split("VmPTE:")[1].split()[0]) * 1024


# ---- Limits of memory ------------------------------------------------------------------------


@pytest.mark.parametrize("limit, args", [(80, []), (450, ["--buffer", "512M"])])
def test_recorder_is_charged_for_the_rings(memory_limit, testpmd, record, limit, args):
    """The rings exceed the memory limit of the application."""
    group = memory_limit(limit * MIB)
    pmd = testpmd("net_null0", "net_null1", namespace=group, memory_mb=64, mbufs=2048)
    pmd.start()
    until(lambda: pmd.stats(0)["RX-packets"] > 100_000, 20, "traffic")
    listing()  # starts the thread of the probe
    before, tables = group.usage, page_tables(pmd.pid)
    assert before < limit * MIB / 2
    recorder = record(pmd, "-s", "64", *args, "-c", "200000", buffer=None)
    recorder.done()
    assert len(recorder.file().packets) == 200_000
    recorder = record(pmd, "-s", "64", *args, out="/dev/null", buffer=None)
    start = pmd.stats(0)["RX-packets"]
    until(lambda: pmd.stats(0)["RX-packets"] > start + 1_000_000, 30, "traffic under a session")
    assert sessions(pmd)[0]["buffer_bytes"] > limit * MIB
    grown = group.usage - before - (page_tables(pmd.pid) - tables)
    assert grown < GROWTH, f"{grown} bytes more"
    recorder.finish()
    assert group.oom_kills == 0
    assert pmd.quit() == 0


def test_recorder_without_memory_reports_the_error(memory_limit, app, tmp_path):
    """The recorder gets the error, before the kernel kills it; the application continues."""
    group = memory_limit(64 * MIB)
    out = tmp_path / "none.pcapng"
    done = run([*group.prefix, RINGTAP, "record", "-i", f"{app.prefix}:", "-w", out, "--buffer", "64M"])
    assert done.returncode == FAILED
    assert "not enough memory: " in done.stderr and "--buffer" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not out.exists()
    assert group.oom_kills == 0
    until(lambda: app.one("callbacks 0") == 0, 5, "callbacks gone")


@pytest.mark.parametrize("files, left", [
    ({"a/b/memory.max": 100 * MIB, "a/b/memory.current": 40 * MIB}, 60),
    ({"a/memory.max": 90 * MIB, "a/memory.current": 50 * MIB, "a/b/memory.max": "max",
      "a/b/memory.current": 5 * MIB}, 40),
    ({"memory.max": 80 * MIB, "memory.current": 60 * MIB,
      "memory.stat": f"anon 1\ninactive_file {20 * MIB}\nactive_file {10 * MIB}"}, 50),
])
def test_limits_of_version_2_groups(app, tmp_path, files, left):
    """Files with the contents of the kernel's, as this machine may have version 1 groups only. The
    last one: a container, whose group is the root."""
    for name, content in files.items():
        file = tmp_path / "cgroup" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{content}\n")
    (tmp_path / "mine").write_text("0::/a/b\n")
    script = (f"mount --bind {tmp_path}/cgroup /sys/fs/cgroup && "
              f"mount --bind {tmp_path}/mine /proc/$$/cgroup && exec \"$@\"")
    done = run(["unshare", "-m", "sh", "-c", script, "sh", RINGTAP, "record", "-i",
                f"{app.prefix}:", "-w", tmp_path / "none.pcapng", "--buffer", "64M"])
    assert done.returncode == FAILED
    assert f"half of the {left} MiB that are available" in done.stderr


def test_recorder_with_just_enough_memory(memory_limit, app, record):
    group = memory_limit(64 * MIB)
    recorder = record(app, "--buffer", "1M", prefix=group.prefix)
    app.rx(n=100)
    recorder.finish()
    assert len(recorder.file().packets) == 100
    assert group.oom_kills == 0


# ---- An application that locks its memory ----------------------------------------------------


def test_application_that_locks_its_memory(locked_app, record):
    recorder = record(locked_app, "--buffer", "1M")
    locked_app.rx(n=500)
    recorder.finish()
    assert len(recorder.file().packets) == 500


# ---- Memory that the application must not take -----------------------------------------------


@pytest.fixture
def reader(closing):
    def start(app, **kwargs):
        listing()  # wakes the probe
        return closing(wire.Reader(dpdk.RUN_DIR / app.prefix, **kwargs))
    return start


def refused(app, reader, spoil):
    """Passes memory in which spoil(fds, sizes) has replaced something; returns the sentence."""
    it = reader(app)
    sizes = it.request().sizes
    it.fds = [wire.memfd(size) for size in sizes]
    spoil(it.fds, sizes)
    before = dpdk.Resources(app.pid)
    kind, body = it.pass_memory(it.fds)
    assert kind == wire.ERROR
    assert it.receive()[0] is None
    until(lambda: app.one("callbacks 0") == 0, 5, "callbacks gone")
    until(lambda: dpdk.Resources(app.pid).fds <= before.fds, 5, "descriptors closed")
    assert dpdk.Resources(app.pid).maps <= before.maps
    app.rx(n=10)
    return body[4:].split(b"\0")[0].decode()


def other(fd, new):
    os.dup2(new, fd)
    os.close(new)


def as_disk_file(fds, sizes):
    with tempfile.TemporaryFile(dir="/var/tmp") as file:
        os.truncate(file.fileno(), sizes[1])
        os.dup2(file.fileno(), fds[1])


def as_hugetlb(fds, sizes):
    other(fds[1], os.memfd_create("huge", os.MFD_HUGETLB | os.MFD_ALLOW_SEALING))


SPOILT = {
    "sparse": ("it has holes", lambda f, s: other(f[1], wire.memfd(s[1], fill=False))),
    "too small": ("not of the size", lambda f, s: os.truncate(f[1], s[1] - 4096)),
    "too large": ("not of the size", lambda f, s: os.truncate(f[0], s[0] + 4096)),
    "a pipe": ("not a memfd", lambda f, s: other(f[2], os.pipe()[0])),
    "/dev/zero": ("not a memfd", lambda f, s: other(f[1], os.open("/dev/zero", os.O_RDWR))),
    "read-only": ("cannot be written", lambda f, s: other(
        f[1], os.open(f"/proc/self/fd/{f[1]}", os.O_RDONLY))),
}


@pytest.mark.parametrize("locked", [False, True])
@pytest.mark.parametrize("what", SPOILT)
def test_unusable_memory_is_refused(request, reader, what, locked):
    reason, spoil = SPOILT[what]
    app = request.getfixturevalue("locked_app" if locked else "module_app").unhooked()
    assert reason in refused(app, reader, spoil)


def test_file_on_disk_is_refused(app, reader):
    why = refused(app, reader, as_disk_file)
    assert "not a memfd" in why or "cannot be sealed" in why  # the latter on a tmpfs


def test_huge_pages_of_the_system_are_refused(app, reader):
    assert "hugetlb" in refused(app, reader, as_hugetlb)


def test_sparse_memory_is_not_filled(memory_limit, play, closing):
    """Also by an application that locks all mappings: populating a hole would be charged to it."""
    group = memory_limit(1 << 30)
    app = play(namespace=group)
    app.ring("a")
    app.do("lock")
    listing()
    before = group.usage
    it = closing(wire.Reader(dpdk.RUN_DIR / app.prefix))
    it.fds = [wire.memfd(size, fill=False) for size in it.request(buffer_size=16 * MIB).sizes]
    assert it.pass_memory(it.fds)[0] == wire.ERROR
    assert [os.fstat(fd).st_blocks for fd in it.fds] == [0, 0, 0]
    assert group.usage - before < GROWTH


def test_too_few_descriptors_are_refused(app, reader):
    it = reader(app)
    it.fds = [wire.memfd(size) for size in it.request().sizes]
    kind, body = it.pass_memory(it.fds[:2])
    assert kind == wire.ERROR and b"did not arrive" in body


def test_application_at_its_limit_of_descriptors(app, reader):
    it = reader(app)
    it.fds = [wire.memfd(size) for size in it.request().sizes]
    used = [int(fd) for fd in os.listdir(f"/proc/{app.pid}/fd")]
    limits = resource.prlimit(app.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(app.pid, resource.RLIMIT_NOFILE, (max(used) + 1, limits[1]))
    kind, body = it.pass_memory(it.fds)
    resource.prlimit(app.pid, resource.RLIMIT_NOFILE, limits)
    assert kind == wire.ERROR and b"limit of open files" in body
    until(lambda: app.one("callbacks 0") == 0, 5, "callbacks gone")


def test_memory_cannot_be_taken_away(app, reader, record):
    """Through the descriptors and mappings that a reader keeps from before."""
    it = reader(app)
    it.open()
    for fd, memory in zip(it.fds, it.maps):
        for take in (lambda: os.truncate(fd, 0), lambda: os.truncate(fd, 1 << 30),
                     lambda: memory.madvise(mmap.MADV_REMOVE)):
            with pytest.raises(PermissionError):
                take()
        assert os.lseek(fd, 0, os.SEEK_HOLE) == len(memory)
    app.rx(n=100)


# ---- A reader that keeps writing -------------------------------------------------------------


@pytest.mark.parametrize("tails", [False, True])
def test_overwriting_reader_affects_only_its_capture(app, reader, record, tails):
    good = record(app, "--buffer", "128M")  # room for all: the scribbler takes CPU time from the recorder
    it = reader(app)
    it.open(buffer_size=1 << 16)
    noise = [random.Random(i).randbytes(len(m)) for i, m in enumerate(it.maps)]
    victims = list(zip(it.maps, noise))[:3 if tails else 2]
    done = threading.Event()
    rounds = 0

    def scribble():
        nonlocal rounds
        while not done.is_set():
            for memory, bytes_ in victims:
                memory[:] = bytes_ if rounds % 2 else bytes_[::-1]
            rounds += 1

    thread = threading.Thread(target=scribble)
    thread.start()
    try:
        for i in range(40):
            app.rx(n=500, len=60 + 30 * (i % 40))
            app.tx(n=500, len=60 + 30 * (i % 40))
        until(lambda: rounds > 20, 30, "scribbled")
        app.rx(n=500)
    finally:
        done.set()
        thread.join()
    good.finish()
    assert len(good.file().packets) == 40 * 1000 + 500
    if not tails:
        it.send(wire.message(wire.STOP))
        assert it.receive()[0] == wire.STOPPED
    it.sock.close()
    until(lambda: app.one("callbacks 0") == 0, 5, "callbacks gone")


# ---- Ends at any point -----------------------------------------------------------------------


POINTS = ["observing", "laid out", "memory passed", "opened", "started"]


def reader_up_to(folder, point):
    """Runs a reader that is killed at this point."""
    it = wire.Reader(folder)
    it.send(wire.open_request())
    if point == "observing":
        os.kill(os.getpid(), signal.SIGKILL)
    layout = wire.Layout(it.receive()[1])
    if point == "laid out":
        os.kill(os.getpid(), signal.SIGKILL)
    fds = [wire.memfd(size) for size in layout.sizes]
    wire.socket.send_fds(it.sock, [wire.message(wire.MEMORY)], fds)
    if point == "memory passed":
        os.kill(os.getpid(), signal.SIGKILL)
    it.receive()
    if point == "started":
        it.send(wire.message(wire.START))
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("point", POINTS)
def test_reader_killed_at_any_point(busy, record, point):
    listing()
    before = dpdk.Resources(busy.pid)
    for _ in range(5):
        child = os.fork()
        if child == 0:
            try:
                reader_up_to(dpdk.RUN_DIR / busy.prefix, point)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    until(lambda: busy.one("callbacks 0") == 0, 5, "callbacks gone")
    until(lambda: dpdk.Resources(busy.pid).fds <= before.fds, 5, "descriptors closed")
    until(lambda: dpdk.Resources(busy.pid).maps <= before.maps + 2, 5, "memory unmapped")
    record(busy, "-s", "64", "-c", "1000").done()


@pytest.mark.parametrize("call, number", [
    ("memfd_create", 1), ("memfd_create", 3), ("mbind", 1), ("ftruncate", 2), ("sendmsg", 3),
    ("sendmsg", 4)])
def test_recorder_killed_while_it_makes_the_memory(busy, record, tmp_path, call, number):
    command = ["strace", "-f", "-o", "/dev/null", "-e", f"inject={call}:signal=KILL:when={number}", RINGTAP,
               "record", "-i", f"{busy.prefix}:", "-s", "64", "-c", "1000", "-w", tmp_path / "killed.pcapng"]
    # A recorder calls mbind() for threads that the probe has seen poll. Without a CPU they have not yet.
    until(lambda: run(command).returncode != 0, what="a recorder makes the call")
    until(lambda: busy.one("callbacks 0") == 0, 5, "callbacks gone")
    record(busy, "-s", "64", "-c", "1000").done()


@pytest.mark.parametrize("point", POINTS)
def test_application_killed_at_any_point(play, reader, point):
    app = play()
    app.ring("a")
    it = reader(app)
    it.send(wire.open_request())
    if point != "observing":
        layout = wire.Layout(it.receive()[1])
    if point in ("memory passed", "opened", "started"):
        it.fds = [wire.memfd(size) for size in layout.sizes]
        wire.socket.send_fds(it.sock, [wire.message(wire.MEMORY)], it.fds)
    if point in ("opened", "started"):
        assert it.receive()[0] == wire.OPENED
    if point == "started":
        it.send(wire.message(wire.START))
        assert it.receive()[0] == wire.STARTED
    app.proc.kill()
    while it.receive()[0] is not None:
        pass


def test_application_killed_while_it_is_attached(play, record):
    for _ in range(5):
        app = play()
        app.ring("a")
        recorder = record(app, attach=False)
        until(lambda: (dpdk.RUN_DIR / app.prefix / "ringtap.sock").exists()
              or not recorder.proc.alive(), 10, "recorder has come")
        app.proc.kill()
        assert recorder.proc.wait(30) in (FAILED, 0)


@pytest.mark.smoke
def test_silent_reader_holds_nothing_up(app, reader, record):
    """One that requests a session and never sends the memory."""
    silent = reader(app)
    silent.request()
    recorder = record(app)
    app.rx(n=100)
    recorder.finish()
    assert len(recorder.file().packets) == 100
    silent.sock.close()
    until(lambda: app.one("callbacks 0") == 0, 5, "callbacks gone")


def test_shares_are_on_the_nodes_of_lcores(busy, closing):
    """The layout has the NUMA node of an lcore for each thread that is expected, and none for spare shares."""
    nodes = Path("/sys/devices/system/node").glob("node[0-9]*")
    known = {int(p.name[4:]) for p in nodes} or {-1}

    listing()
    it = closing(wire.Reader(dpdk.RUN_DIR / busy.prefix)).request()
    assert set(it.nodes[it.shares - 2:]) == {-1}
    assert set(it.nodes[:it.shares - 2]) <= known
