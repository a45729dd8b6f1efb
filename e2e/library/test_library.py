# SPDX-License-Identifier: BSD-3-Clause
"""Programs built against the installed library read a live application: C, C++ and Python."""

import json
import re
import shutil

import pytest
from harness import pcap, pcapng
from harness.paths import REPO
from harness.proc import Proc, check, run, until
from harness.ringtap import sessions

PYTHON = "/usr/bin/python3"
LONG_S = "8"  # duration of a capture: on a busy machine it takes seconds to begin


@pytest.fixture(scope="module")
def env(installation):
    """Environment variables for the installation."""
    folder = next(installation.rglob("pkgconfig"))
    found = {"PKG_CONFIG_PATH": str(folder), "LD_LIBRARY_PATH": str(folder.parent)}
    for module in installation.rglob("ringtap/_ringtap*.so"):
        found["PYTHONPATH"] = str(module.parent.parent)
    return found


@pytest.fixture(scope="module")
def built(env, tmp_path_factory):
    """Builds an example; returns the command that runs it."""
    folder = tmp_path_factory.mktemp("examples")

    def build(name):
        source = REPO / "examples" / name
        if source.suffix == ".py":
            return [*python(env), source]
        compiler, *flags = {".c": ["gcc"], ".cc": ["g++", "-std=c++17"]}[source.suffix]
        if not shutil.which(compiler):
            pytest.skip(f"{compiler} is not installed")
        config = check(["pkg-config", "--cflags", "--libs", "libringtap", "libpcap"], env=env).split()
        check([compiler, "-Wall", "-Wextra", "-Werror", *flags, source, "-o", folder / source.stem, *config])
        return [folder / source.stem]

    return build


def python(env):
    if "PYTHONPATH" not in env:
        pytest.skip("the Python module is not built: it needs python3-cffi and python3-dev")
    return [PYTHON]


def finish(program):
    status = program.wait()
    text = program.output
    assert status == 0, text
    return text


def test_examples_of_captures(play, built, env, closing, tmp_path):
    """In C, C++ and Python, at the same time; one of them writes a file that foreign readers can read, also with a port that appears
    while it is written."""
    app, out = play(), tmp_path / "out.pcapng"
    app.ring("a")
    commands = {
        "count": [*built("count.c"), LONG_S, app.prefix],
        "lengths": [*built("lengths.cc"), LONG_S, app.prefix],
        "talkers": [*built("talkers.py"), f"{app.prefix}:0", LONG_S, "len = 100"],
        "save": [*built("save.c"), out, LONG_S, app.prefix],
    }
    programs = {name: closing(Proc(command, env=env)) for name, command in commands.items()}
    until(lambda: len([s for s in sessions(app) if s["start"]]) == len(programs))
    app.rx(n=12, len=100)
    app.tx(n=7, len=200, seq=100)
    app.ring("b")
    until(lambda: app.one("callbacks 1") == 2, what="the new port is captured")
    until(lambda: [s["taps"] for s in sessions(app)].count(4) == 3, what="by all that capture all ports")
    app.rx(1, n=5, len=60)
    texts = {name: finish(program) for name, program in programs.items()}
    for name, expected in (
        ("count", f"19 packets, {12 * 100 + 7 * 200} bytes, 0 broadcasts"),
        ("count", "5 packets, 300 bytes, 0 broadcasts"),
        ("count", "24 packets seen, 24 captured, 0 lost, 24 delivered"),
        ("lengths", "RX 100 bytes: 12 packets"),
        ("lengths", "TX 200 bytes: 7 packets"),
        ("talkers", f"{pcap.frame(100)[6:12].hex(':')}: 12 packets"),
    ):
        assert expected in texts[name], texts[name]
    file = pcapng.read(out)
    assert [i.name for i in file.interfaces] == ["net_ring_a", "net_ring_b"]
    assert [len([p for p in file.packets if p.interface == i]) for i in (0, 1)] == [19, 5]
    assert file.section[4] == [b"save"] and file.section[1] == [b"an example"]
    assert [pcapng.stat(i, 4) for i in file.interfaces] == [19, 5]
    for reader in (["capinfos", out], ["tshark", "-r", out]):
        done = run(reader)
        assert done.returncode == 0 and "cut short" not in done.stdout + done.stderr, done.stderr
    assert len(done.stdout.splitlines()) == 24


def test_a_capture_by_name_and_filter(play, built, closing, env):
    """By the application's name or process id, with a port or without; what cannot be opened is named."""
    app = play()
    app.ring("a")
    hello = built("hello.c")
    programs = [
        closing(Proc([*hello, source, "ether proto 0x88b5 and len = 100", "12"], env=env))
        for source in (app.prefix, f"{app.prefix}:0", f"{app.pid}:net_ring_a")
    ]
    until(lambda: len([s for s in sessions(app) if s["start"]]) == len(programs))
    app.tx(n=7, len=200)
    app.rx(n=8, len=100)
    app.rx(n=4, len=96, vlan=7)  # 100 bytes with the tag, and a packet of this EtherType all the same
    for program in programs:
        lines = finish(program).splitlines()
        assert len(lines) == 12 and all(line.endswith(" received, queue 0, 100 bytes") for line in lines)
    for source, filter, message in (
        ("nothing", "", "no DPDK application with the probe is called 'nothing'"),
        (app.prefix, "udp port", "filter: can't parse filter expression"),
        (f"{app.prefix}:7", "", "7"),
    ):
        done = run([*hello, source, filter], env=env)
        assert done.returncode == 1 and message in done.stderr, done.stderr


def test_example_of_statistics(busy, built, env, closing):
    text = finish(closing(Proc([*built("stats.c"), busy.prefix], env=env)))
    assert "busy 100.0 %" in text or "busy 9" in text
    assert "RX queue 0: " in text and "32.0 per burst" in text


def exported():
    return re.findall(r"^\t(ringtap_\w+);", (REPO / "reader" / "libringtap.map").read_text(), re.M)


def inline(how):
    text = "".join((REPO / "include/ringtap" / name).read_text() for name in ("reader.h", "fates.h", "monitor.h"))
    return re.findall(rf"^{how} .*?(ringtap_\w+)\(", text, re.M)


def test_every_function_has_a_manual_page_and_every_accessor_a_symbol(installation):
    accessors = inline("RINGTAP_INLINE")
    assert len(accessors) > 10 and set(accessors) <= set(exported())
    folder = next(installation.rglob("man3"))
    pages = {}  # several functions are on one page
    for name in exported() + inline("static inline"):
        text = (folder / f"{name}.3").read_text()
        link = re.fullmatch(r"\.so (man3/\w+\.3)\n", text)
        pages.setdefault(folder.parent / link[1] if link else folder / f"{name}.3", []).append(name)
    assert len(pages) < len(exported()) / 4
    for page, names in pages.items():
        shown = run(["man", "--warnings", "-l", page])
        assert not shown.stderr, (page, shown.stderr)
        printed = re.sub(r".\x08", "", shown.stdout)
        assert [name for name in names if f"{name}(" not in printed] == [], page


FOREIGN = """
import ctypes, sys
lib = ctypes.CDLL("libringtap.so.0")
for name in ("list_port", "list_session", "apps_dir", "apps_name"):
    getattr(lib, "ringtap_" + name).restype = ctypes.c_char_p  # ports begin with their name
pointer = ctypes.c_void_p
conn, apps, found = pointer(), pointer(), pointer()
lib.ringtap_apps_find(ctypes.byref(apps))
folders = {lib.ringtap_apps_name(apps, i): lib.ringtap_apps_dir(apps, i) for i in range(lib.ringtap_apps_count(apps))}
assert lib.ringtap_conn_open(ctypes.byref(conn), folders[sys.argv[1].encode()], None, None, 0) == 0
assert lib.ringtap_conn_list(conn, ctypes.byref(found)) == 0
count = ctypes.cast(found, ctypes.POINTER(ctypes.c_size_t))[0]
print([lib.ringtap_list_port(found, ctypes.c_size_t(i)).decode() for i in range(count)])
"""


def test_accessors_without_a_compiler(play, env):
    app = play()
    app.ring("a")
    app.ring("b")
    done = run([PYTHON, "-c", FOREIGN, app.prefix], env=env)
    assert done.returncode == 0 and done.stdout == "['net_ring_a', 'net_ring_b']\n", (done.stdout, done.stderr)


PACKETS = """
import json, sys
import ringtap
app, filter = sys.argv[1:]
with ringtap.capture(app + ":0", filter or None, ids=True) as capture:
    print("attached", flush=True)
    kept, out = [], []
    for p in capture:
        kept.append(p.data)
        out.append({"data": p.data.hex(), "length": p.length, "port": p.port, "app": p.app, "queue": p.queue,
                    "direction": p.direction, "ns": p.time_ns, "drops": p.dropcount, "id": p.id})
        if len(out) == %d:
            capture.stop()
    stats = capture.stats()
# The rings are mapped as long as a view lives.
total = sum(len(bytes(view)) for view in kept)
print(json.dumps({"packets": out, "stats": stats, "total": total}))
"""


def test_packets_in_python(app, env, closing):
    """All, and those that pass a filter, at the same time."""
    programs = [
        closing(Proc([*python(env), "-c", PACKETS % count, app.prefix, filter], env=env))
        for filter, count in (("", 19), ("greater 150", 7))
    ]
    for program in programs:
        program.expect("^attached$")
    app.rx(n=12, len=100)
    app.tx(n=7, len=200, seq=100)
    got, filtered = (json.loads(finish(program).splitlines()[-1]) for program in programs)
    assert [p["data"] for p in got["packets"]] == [pcap.frame(100, i).hex() for i in range(12)] + [
        pcap.frame(200, 100 + i).hex() for i in range(7)
    ]
    assert {(p["app"], p["port"], p["queue"], p["direction"], p["length"], p["drops"]) for p in got["packets"]} == {
        (app.prefix, "net_ring_a", 0, "rx", 100, 0),
        (app.prefix, "net_ring_a", 0, "tx", 200, 0),
    }
    ids = [p["id"] for p in got["packets"]]
    assert all(ids[:12]) and len(set(ids[:12])) == 12
    assert ids[12:] == [None] * 7  # made by the application
    times = [p["ns"] for p in got["packets"]]
    assert times == sorted(times) and times[0] > 1_600_000_000 * 10**9
    assert got["stats"]["seen"] == got["stats"]["captured"] == got["stats"]["delivered"] == 19
    assert got["total"] == 12 * 100 + 7 * 200
    assert [p["length"] for p in filtered["packets"]] == [200] * 7
    assert filtered["stats"]["filtered"] == 12


STATISTICS = """
import sys
import ringtap
with ringtap.monitor(sys.argv[1], ringtap.POLLS | ringtap.BYTES) as m:
    before = m.read()
    print("attached", flush=True)
    sys.stdin.readline()
    after = m.read()
    first, again = after.since(before), after.since(before)
    assert first.interval_ns == again.interval_ns > 0 and after.interval_ns == 0
    for q in again.queues:
        print(q.port.name, q.queue, q.direction, q.packets, q.bytes, q.burst[12], q.thread.name)
"""


def test_statistics_in_python(app, env, closing):
    app.rx(n=3, len=60)  # before the monitor: not counted
    program = closing(Proc([*python(env), "-c", STATISTICS, app.prefix], env=env))
    program.expect("^attached$")
    app.rx(n=12, len=100)
    program.send("go")
    assert "net_ring_a 0 rx 12 1200 1 " in finish(program)
