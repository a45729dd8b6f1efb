# SPDX-License-Identifier: BSD-3-Clause
"""The Python module: when sessions end, use from several threads, differences of snapshots, wrong arguments."""

import re
import signal

import pytest
from harness.cases import nightly
from harness.proc import Proc, run, until
from harness.ringtap import sessions

PYTHON = "/usr/bin/python3"
START = "def start_capture():\n    return ringtap.capture(APP, buffer_size=1 << 24)\n"  # populated in milliseconds


@pytest.fixture
def program(app, python_env, closing):
    """Starts Python code with APP, the application's name, and go(), which waits for the test."""

    def start(code):
        head = (
            "import os, signal, sys, threading, time\nimport ringtap\nAPP = sys.argv[1]\n"
            "def go(what):\n    print(what, flush=True)\n    sys.stdin.readline()\n"
        )
        return closing(Proc([PYTHON, "-u", "-c", head + START + code, app.prefix], env=python_env))

    return start


def finish(program):
    status = program.wait()
    assert status == 0, program.output
    return program.output


def armed(app, program):
    def is_armed():
        assert program.child.poll() is None, program.output
        return any(s["start"] for s in sessions(app))

    until(is_armed)


def ends_capture(app, program, pattern):
    """When this output appears, the application has no hook, although the program still runs."""
    armed(app, program)
    app.rx(n=12, len=100)
    program.expect(pattern)
    app.unhooked()
    assert program.child.poll() is None


def test_close_ends_the_session_while_a_view_lives(app, program):
    """The whole of it: applications have nothing left."""
    it = program("with start_capture() as capture:\n    p = next(capture)\ngo('closed')\nprint(p.data[:6].hex())")
    ends_capture(app, it, "^closed$")
    assert sessions(app) == []
    app.rx(n=5, len=60)  # not captured
    it.send("go")
    assert re.search(r"^[0-9a-f]{12}$", finish(it), re.M)


def test_the_last_reference_ends_the_session(app, program):
    it = program("import gc\ngc.disable()\nfor p in start_capture():\n    break\ngo('left')\nprint(len(p.data))")
    ends_capture(app, it, "^left$")
    it.send("go")
    assert finish(it).endswith("100\n")


FORK = """
capture = start_capture()
packet = next(capture)
packet = None
read, write = os.pipe()
if os.fork():
    sys.stdin.readline()
    os._exit(0)
os.close(write)
for use in (lambda: next(capture), capture.stats, capture.stop, lambda: capture.interfaces):
    try:
        use()
        print("usable")
    except ValueError as e:
        print(e)
capture.close()
print("forked", flush=True)
os.read(read, 1)  # until the parent has ended
go("orphan")
"""


def test_child_process_cannot_use_or_keep_the_session(app, program):
    it = program(FORK)
    armed(app, it)
    app.rx(n=12, len=100)
    it.expect("^forked$")
    assert it.output.count("the capture belongs to the parent process") == 4 and "usable" not in it.output
    assert app.one("callbacks 0") > 0, "close() of the child ends no session"
    it.send("go")
    it.expect("^orphan$")
    app.unhooked()
    it.send("go")
    assert "orphan" in finish(it)


ORPHAN = """
%s
read, write = os.pipe()
if os.fork():
    signal.pause()
os.close(write)
print("child", flush=True)
os.read(read, 1)  # until the parent has ended
go("orphan")
%s
"""


def orphaned(app, program, before, after):
    """The program's child, after its parent was killed."""
    it = program(ORPHAN % (before, after))
    it.expect("^ready$")
    app.rx(n=12, len=100)
    it.expect("^child$")
    it.send_signal(signal.SIGKILL)
    it.expect("^orphan$")
    return it


VIEW = "capture = start_capture()\nprint('ready', flush=True)\nview = next(capture).data"


@pytest.mark.parametrize(
    "before,after",
    [
        (VIEW, "print(len(bytes(view)), 'bytes', flush=True)"),
        # The session has ended when the child is made, and the view keeps its rings.
        nightly(VIEW + "\ncapture.close()", "print(len(bytes(view)), 'bytes', flush=True)"),
    ],
    ids=["open", "closed"],
)
def test_a_child_with_a_view_does_not_keep_the_session(app, program, before, after):
    it = orphaned(app, program, before, after)
    until(lambda: sessions(app) == [], what="no session is left")
    app.unhooked()
    it.send("go")
    it.expect("^100 bytes$")


@pytest.mark.nightly
def test_a_child_does_not_keep_a_monitor(app, program):
    it = orphaned(
        app,
        program,
        "m = ringtap.monitor(APP)\nprint('ready', flush=True)",
        "try:\n    m.read()\nexcept ValueError as e:\n    print(e, flush=True)",
    )
    app.unhooked()
    it.send("go")
    it.expect("^the monitor belongs to the parent process$")


def test_stop_from_another_thread(app, program):
    it = program("""
capture = start_capture()
def other():
    for i in range(50):
        seen = capture.stats()["seen"]
    capture.stop()
threading.Thread(target=other).start()
print(sum(1 for p in capture), "packets", flush=True)
capture.close()
""")
    assert "0 packets" in finish(it)


THREADS = """
capture = start_capture()
kept, errors, ready = [], [], threading.Event()
def use(function):
    try:
        while True:
            function()
            ready.set()
    except (ValueError, StopIteration):
        pass
    except BaseException as e:
        errors.append(repr(e))
def read():
    kept.append(next(capture).data)
    del kept[:-100]
threads = [threading.Thread(target=use, args=(f,)) for f in
           (read, capture.stats, lambda: capture.interfaces, capture.stats, lambda: (capture.stats(), capture.interfaces))]
for t in threads:
    t.start()
while len(kept) < 100:
    assert ready.wait(60)
capture.close()
for t in threads:
    t.join(30)
    assert not t.is_alive()
print(errors, sum(len(bytes(v)) for v in kept) > 0)
"""


def test_threads_share_a_capture_and_close_it(busy, python_env):
    code = "import sys, threading\nimport ringtap\nAPP = sys.argv[1]\n" + START + THREADS
    done = run([PYTHON, "-c", code, busy.prefix], env=python_env)
    assert done.returncode == 0 and done.stdout == "[] True\n", (done.returncode, done.stdout, done.stderr)


SINCE = """
from ringtap import _monitor
from ringtap._ringtap import ffi, lib
def raw(m):
    out = ffi.new("struct ringtap_snapshot **")
    assert lib.ringtap_monitor_read(m._mon, out) == 0
    return ffi.gc(out[0], lib.ringtap_snapshot_free)
def plain(x):
    if isinstance(x, (list, tuple)):
        return [plain(e) for e in x]
    if isinstance(x, _monitor._Quantile):
        return x(.5)
    return {k: plain(v) for k, v in vars(x).items()} if hasattr(x, "__dict__") else x
with ringtap.monitor(APP, 127) as m:
    go("attached")
    early = raw(m)
    go("again")
    late = raw(m)
    early.no_pair_packets, late.no_pair_packets = 5, 12
    early.no_block_polls, late.no_block_polls = 7, 3
    early.no_thread_polls, late.no_thread_polls = 1, 1
    python = ringtap.Snapshot(late).since(ringtap.Snapshot(early))
    lib.ringtap_snapshot_since(late, early)
    c = ringtap.Snapshot(late)
    for name in vars(c):
        assert plain(getattr(c, name)) == plain(getattr(python, name)), name
    print(python.no_pair_packets, sum(q.packets for q in python.queues))
    lib.ringtap_snapshot_thread(late, 0).lcore = lib.RINGTAP_NO_INDEX
    assert ringtap.Snapshot(late).threads[0].lcore is None
"""


def test_differences_are_those_of_the_c_library(app, program):
    it = program(SINCE)
    it.expect("^attached$")
    app.rx(n=3, len=60)
    app.tx(n=3, len=60)
    it.send("go")
    it.expect("^again$")
    app.rx(n=12, len=100)
    app.tx(n=7, len=100)
    it.send("go")
    assert re.search(r"^7 19$", finish(it), re.M), it.output


def test_the_last_snapshot_of_an_application(app, program):
    it = program("""
with ringtap.monitor(APP) as m:
    go("attached")
    while not (s := m.read()).ended:
        pass
    print(sum(q.packets for q in s.queues), "packets")
    try:
        m.read()
    except ringtap.Error as e:
        print(e.strerror)
""")
    it.expect("^attached$")
    app.rx(n=12, len=100)
    app.quit()
    it.send("go")
    assert finish(it).endswith("12 packets\nthe application has ended\n")


REFUSED = [
    ("ringtap.capture([])", "the list is empty"),
    ("ringtap.capture(APP, queue=-1)", "queue is a number"),
    ("ringtap.capture(APP, queue=65536)", "queue is a number"),
    ("ringtap.capture(APP, queue='0')", "queue is a number"),
    ("ringtap.capture(APP, timeout=-1)", "timeout is a number of seconds"),
    ("ringtap.monitor(APP, timeout=-1)", "timeout is a number of seconds"),
    ("ringtap.monitor(APP + ':0')", "without a port"),
    ("ringtap.capture('nobody')", "no application for 'nobody'"),
    ("ringtap.capture(APP + ':nowhere')", "nowhere"),
    ("ringtap.capture(APP, 'not a filter')", "filter 'not a filter': "),
    ("ringtap.monitor(APP, 1 << 30)", "no such collector"),
]


def test_errors(app, program):
    """Wrong arguments are a ValueError, and what the library refuses an Error with its number and sentence."""
    it = program(
        "assert APP in [a.name for a in ringtap.apps()]\n"
        + "".join(
            f"try:\n    {code}\nexcept ValueError as e:\n    print('value', e)\n"
            "except ringtap.Error as e:\n    assert e.errno > 0\n    print('error', e.strerror)\n"
            for code, _ in REFUSED
        )
    )
    lines = finish(it).splitlines()
    assert len(lines) == len(REFUSED)
    for i, (code, message) in enumerate(REFUSED):
        assert message in lines[i] and lines[i].startswith("value" if i < 7 else "error"), (code, lines[i])
