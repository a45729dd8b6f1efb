# SPDX-License-Identifier: BSD-3-Clause
"""`ringtap trace` with bpftrace: reports match the operations, and nothing is left behind. Command lines that it refuses are
tested in cli/usage_test.c, what it makes of output in cli/trace/trace_test.c."""

import json
import os
import shutil
import signal
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
from harness import monitor as stats
from harness.cases import nightly
from harness.documents import only
from harness.known import Known
from harness.monitor import Monitor
from harness.paths import BUILD, RINGTAP, probe_object
from harness.paths import PROBE_OBJECT as PROBE
from harness.pcapng import stat
from harness.proc import Proc, check, freeze, of_tasks, run, until
from harness.ringtap import FAILED, LOSS, USAGE
from harness.tracers import EVENTS, bpftrace_missing, usdt_sites
from harness.tracing import NOP, Tracing, bytes_at_sites, nothing_left, semaphores, tracing

SLACK = 100  # ticks: the CPU may read its counter out of order
LOST = 7  # option of an ISB


@pytest.fixture(scope="module")
def bpftrace():
    reason = bpftrace_missing()
    if not reason and not usdt_sites(PROBE):
        reason = "built without sys/sdt.h"
    if reason:
        pytest.skip(reason)


@pytest.fixture
def trace(bpftrace, closing, tmp_path):
    """trace(app, what, option...) starts `ringtap trace`."""
    return lambda app, *args, **kwargs: closing(Tracing(app, tmp_path, *args, **kwargs))


def queue(doc, direction, port=0):
    found = [q for q in doc["queues"] if (q["port"]["index"], q["direction"]) == (port, direction)]
    assert len(found) == 1, doc["queues"]
    return found[0]


def sizes(row):
    return {int(size): calls for size, calls in row["bursts"].items()}


# ---- list ------------------------------------------------------------------------------------


def events_of(output, file):
    return {e["name"] for e in output["events"] if e["file"] == str(file)}


@pytest.mark.smoke
def test_list(app, plugin):
    output = only(json.loads(check([RINGTAP, "trace", "list", "--json", app.prefix])))
    assert output["name"] == app.prefix and output["pid"] == app.pid
    assert events_of(output, probe_object(plugin)) == {s.event for s in usdt_sites(PROBE)}
    for event in output["events"]:
        assert tuple(a["name"] for a in event["arguments"]) == EVENTS[event["name"]]
        assert all(a["type"] in ("uint16", "uint32", "uint64") for a in event["arguments"])
    assert output["tools"]["bpftrace"] == bool(shutil.which("bpftrace"))
    assert output["tools"]["rte_trace"] and not output["tools"]["lttng_provider_loaded"]
    assert app.one("callbacks 0") == 0
    text = check([RINGTAP, "trace", "list", app.prefix])
    assert str(probe_object(plugin)) in text and "rx_burst" in text and "arg3=nb_rx" in text


# ---- the canned programs ---------------------------------------------------------------------


@pytest.mark.smoke
def test_bursts_match_the_traffic(app, trace, closing):
    """Beside a monitor, whose hooks stay; as JSON and as text."""
    closing(Monitor(app, stats.POLLS))
    it = trace(app, "burst", "--empty", "--json", "--duration", "1h")
    people = trace(app, "burst", "--duration", "1h")
    app.rx(n=100, burst=32)  # 32, 32, 32, 4
    app.one("idle 0 0 n=17")
    app.rx(n=512, burst=512)
    app.tx(n=70, burst=64)  # 64, 6
    doc = it.json()
    rx, tx = queue(doc, "rx"), queue(doc, "tx")
    assert (doc["ended_by"], doc["pid"]) == ("signal", app.pid)
    assert sizes(rx) == {32: 3, 4: 1, 512: 1} and rx["empty_calls"] == 17
    assert (rx["calls"], rx["packets"], rx["calls_beyond_histogram"]) == (5, 612, 0)
    assert sizes(tx) == {64: 1, 6: 1} and tx["packets"] == 70
    assert rx["port"]["name"] == tx["port"]["name"] == "net_ring_a"
    text = people.finish()
    assert "net_ring_a queue 0 rx: 5 bursts, 612 packets, 122.4 packets a burst" in text
    assert app.one("callbacks 0") == 2


def test_probe_that_is_linked_in(play, trace):
    app = play(linkin=True)
    app.ring("a")
    output = only(json.loads(check([RINGTAP, "trace", "list", "--json", app.prefix])))
    assert events_of(output, PROBE) == {s.event for s in usdt_sites(PROBE)}
    it = trace(app, "burst", "--json", "--duration", "0.3s")
    doc = it.json(None)
    assert doc["ended_by"] == "duration" and doc["duration_ns"] >= 0.3e9 and doc["queues"] == []
    it = trace(app, "burst", "--json", "--duration", "1h")
    app.rx(n=100, burst=32)
    assert sizes(queue(it.json(), "rx")) == {32: 3, 4: 1}


def test_bursts_of_testpmd_are_those_of_top(testpmd, trace):
    pmd = testpmd("net_ring0", "net_null1", args=["--burst=13"])
    it = trace(pmd, "burst", "--empty", "--json", "--duration", "1h")
    top = Proc([RINGTAP, "top", "--json", "--interval", "0.2s", pmd.prefix])
    try:
        top.expect(r"^\{")
        pmd.start("start tx_first 3")
        until(lambda: pmd.stats(0)["RX-packets"] > 20000, what="traffic")
        pmd.stop()
        for _ in range(3):  # two complete intervals
            top.expect(r"^\{.*$")
        doc = it.json()
        top.send_signal(signal.SIGINT)
        assert top.wait() == 0
        lines = [json.loads(line) for line in top.output.splitlines()]
    finally:
        top.close()
    reply = {"rx": Counter(), "tx": Counter()}
    for line in lines:
        for app in line["applications"]:
            for q in app.get("queues", ()):
                if q["port"]["name"] == "net_ring0":
                    reply[q["direction"]].update({int(n): c for n, c in q["bursts"].items()})
    rx, tx = queue(doc, "rx"), queue(doc, "tx")
    assert {0: rx["empty_calls"], **sizes(rx)} == {0: 0, **reply["rx"]}
    assert sizes(tx) == reply["tx"] and sum(sizes(rx).values()) > 1000


def test_latency(plugin, closing, trace, tmp_path):
    known = closing(Known(plugin))
    it = trace(known, "latency", "--json", "--duration", "1h")
    stays = known.send([5000, 20000, 100000], rounds=50, log=tmp_path / "log")
    doc = it.json()
    (row,) = doc["queues"]
    assert (row["port"]["name"], row["queue"], row["packets"]) == ("net_ring_b", 0, len(stays))
    low, high = ([s[i] for s in stays] for i in (0, 1))
    assert sum(low) / len(low) - SLACK <= row["cycles"]["mean"] <= sum(high) / len(high) + SLACK
    assert max(low) - SLACK <= row["cycles"]["max"] <= max(high) + SLACK
    assert row["max_ns"] == pytest.approx(row["cycles"]["max"] * 1e9 / doc["tsc_hz"], abs=1)
    for which in ("burst_mean_cycles", "burst_longest_cycles"):
        assert sum(n for _, _, n in row[which]) == 150
        at_least = sum(n for start, _, n in row[which] if start >= 65536)
        assert at_least >= 50  # those of 100,000 and further ones that the system delayed


def test_losses_of_a_recording(app, record, trace):
    it = trace(app, "drops", "--json", "--duration", "1h")
    recorder = record(app, "--buffer", "64K", "--fail-on-loss")
    freeze(recorder.proc.pid)
    app.rx(n=20000, len=200)
    recorder.proc.send_signal(signal.SIGCONT)
    recorder.finish(status=LOSS)
    lost = sum(stat(i, LOST) for i in recorder.file().interfaces)
    doc = it.json()
    (row,) = doc["drops"]
    assert lost > 0 and row["packets"] == lost
    assert (row["port"]["name"], row["queue"], row["why"]) == ("net_ring_a", 0, "ring_full")
    assert row["thread"]["tid"] == app.pid  # the main thread sends and receives
    assert sum(r["packets"] for r in doc["ring_full"]) == lost
    assert not doc["refused"]


@pytest.fixture(scope="module")
def first_pids(bpftrace):
    if os.stat("/proc/self/ns/pid").st_ino != 0xEFFFFFFC:  # PROC_PID_INIT_INO
        pytest.skip("the kernel's numbers of threads are others in this PID namespace")


@pytest.mark.usefixtures("first_pids")
def test_tasks_that_took_the_cpu(testpmd, trace, hog):
    """In gaps between polls, and whenever the thread did not have the CPU."""
    pmd = testpmd("net_ring0")
    pmd.start()
    gaps, off_cpu = (trace(pmd, "gaps", "--json", "--duration", "1h", *more) for more in ([], ["--off-cpu"]))
    hog(1).kill()
    for it, key in ((gaps, "long"), (off_cpu, "taken")):
        (thread,) = it.json()["threads"]
        takers = thread[key]
        (hogged,) = [t for t in takers if t["by"] == "rt-hog"]
        assert hogged["count"] >= 1 and hogged["max_ns"] <= hogged["total_ns"]
        assert hogged["total_ns"] > 20e6
        if key == "taken":
            assert thread["times"] == sum(t["count"] for t in takers)
        else:
            assert hogged["off_cpu_ns"] <= hogged["total_ns"]
            assert thread["gaps"] > sum(t["count"] for t in takers)
            assert thread["max_ns"] == max(t["max_ns"] for t in takers)
        name = Path(f"/proc/{pmd.pid}/task/{thread['thread']['tid']}/comm").read_text().strip()
        assert thread["thread"]["name"] == name


@pytest.mark.nightly
@pytest.mark.usefixtures("first_pids")
def test_tasks_that_took_the_cpu_of_a_thread_that_migrated(testpmd, trace, hog):
    """The task on the first CPU still runs when the thread continues on another CPU."""
    pmd = testpmd("net_ring0")
    pmd.start()
    traces = [
        (trace(pmd, "gaps", "--json", "--duration", "1h", *more), key)
        for more, key in (([], "long"), (["--off-cpu"], "taken"))
    ]
    (tid,) = [task for task, name in of_tasks(pmd.pid, "comm").items() if "worker" in name]
    hogs = hog(1)
    # The gap counts for the task that took the CPU first. On a busy machine that is the hog if the thread ran until then.
    check(["renice", "-n", "-20", "-p", tid])
    for _ in range(4):
        check(["chrt", "-f", "-p", "1", hogs.pid])  # real-time throttling stops it after 0.95 s
        had = hogs.ticks()  # on a busy machine it has run for long until chrt has started
        until(lambda: hogs.ticks() >= had + 15, what="the hog had the CPU")
        check(["taskset", "-p", "-c", "0", tid])
        until(
            lambda: Path(f"/proc/{pmd.pid}/task/{tid}/stat").read_text().rpartition(") ")[2].split()[36] == "0",
            what="it is on the other CPU",
        )
        check(["chrt", "-o", "-p", "0", hogs.pid])
        check(["taskset", "-p", "-c", "1", tid])
    docs = [(it.json(), key) for it, key in traces]
    hogs.kill()
    for doc, key in docs:
        (thread,) = [t for t in doc["threads"] if str(t["thread"]["tid"]) == tid]
        (taker,) = [t for t in thread[key] if t["by"] == "rt-hog"]
        assert taker["max_ns"] > 100e6 and taker["pid"] == hogs.pid


@pytest.mark.nightly
@pytest.mark.usefixtures("first_pids")
def test_programs_of_one_name_are_two_rows(testpmd, trace, hog):
    """One of them has ended when the rows are made. Each row of the table has the pid. Control characters in names do not
    reach the terminal."""
    pmd = testpmd("net_ring0")
    pmd.start()
    args = ["gaps", "--duration", "1h", "--off-cpu"]
    it, people = trace(pmd, *args, "--json"), trace(pmd, *args)
    name = "rt-\033[31m\u00f6"
    hogs = [hog(1, name=name), hog(1, name=name)]
    hogs[0].kill()
    # One of the two may have had the CPU for the longest time each time that the thread did not run.
    had = hogs[1].ticks()
    until(lambda: hogs[1].ticks() >= had + 20, what="the second had 0.2 s without the first")
    (thread,) = it.json()["threads"]
    pids = {h.pid for h in hogs}
    rows = [t for t in thread["taken"] if t["by"] == name]
    assert len(rows) == 2 and {t["pid"] for t in rows} == {t["tid"] for t in rows} == pids
    text = people.finish()
    assert {int(line.split()[1]) for line in text.splitlines() if "rt-?[31m" in line} == pids
    assert max(map(len, text.splitlines())) <= 80
    assert not [c for c in text + people.proc.output if ord(c) < 32 and c != "\n"]


@pytest.mark.usefixtures("first_pids")
def test_a_known_gap(app, trace):
    it = trace(app, "gaps", "--json", "--long", "20ms", "--duration", "1h")
    first = app.rx(n=1)[2]
    freeze(app.proc.pid)
    until(lambda: "State:\tT" in Path(f"/proc/{app.pid}/status").read_text(), what="it stands")
    check([sys.executable, "-c", "import time; time.sleep(0.05)"])
    app.proc.send_signal(signal.SIGCONT)
    second = app.rx(n=1)[1]
    doc = it.json()
    (thread,) = doc["threads"]
    assert doc["long_ns"] == 20_000_000
    # The gap is between two polls, within the times that the application reports.
    long = max(thread["long"], key=lambda t: t["max_ns"])  # under load there are others
    assert thread["thread"]["tid"] == app.pid and long["max_ns"] >= 50e6 and long["off_cpu_ns"] >= 50e6
    assert (long["by"], long["pid"], long["tid"]) == ("(stopped or asleep)", None, None)
    assert second - first <= thread["max_ns"] + 1e6


@pytest.mark.nightly
@pytest.mark.usefixtures("first_pids")
def test_in_other_mount_and_pid_namespaces(testpmd, plugin, private_dir, trace, hog):
    """The file of the probe exists only in the mount namespace of the application, whose process id
    there is 1."""
    inner = private_dir / "inner"
    inner.mkdir()
    space = SimpleNamespace(
        prefix=[
            "unshare",
            "-m",
            "-p",
            "--fork",
            "--kill-child",
            "--mount-proc",
            "sh",
            "-c",
            f'mount -t tmpfs -o mode=755 none {inner} && '
            f'cp -r {plugin} {probe_object(plugin).parent} {inner} && exec "$@"',
            "sh",
        ]
    )
    pmd = testpmd("net_ring0", plugin=inner / plugin.name, namespace=space)
    assert not list(inner.iterdir())
    output = only(json.loads(check([RINGTAP, "trace", "list", "--json", pmd.prefix])))
    assert "rx_burst" in events_of(output, probe_object(inner / plugin.name))
    assert Path(f"/proc/{output['pid']}/comm").read_text() == "dpdk-testpmd\n"
    it = trace(pmd, "burst", "--json", "--duration", "1h")
    off_cpu = trace(pmd, "gaps", "--off-cpu", "--json", "--duration", "1h")
    pmd.start("start tx_first")
    hog(1).kill()
    threads = off_cpu.json()["threads"]  # the main thread has emptied the queues before
    assert all(Path(f"/proc/{output['pid']}/task/{t['thread']['tid']}").exists() for t in threads)
    assert [t for t in threads if "rt-hog" in [taker["by"] for taker in t["taken"]]]
    received = pmd.stop()[0][0]
    assert queue(it.json(), "rx")["packets"] == received > 1000
    # bpftrace reports thread ids of another namespace.
    for option in ([], ["--off-cpu"]):
        done = run(["nsenter", "-m", "-p", "-t", str(output["pid"]), RINGTAP, "trace", "gaps", *option, pmd.prefix])
        assert done.returncode == FAILED and "outside of containers" in done.stderr
        assert len(done.stderr.splitlines()) == 1 and not done.stdout


# ---- the files, by hand ----------------------------------------------------------------------


def by_hand(app, closing, file, args):
    args = [str(app.pid) if a == "PID" else a for a in args]
    it = closing(
        Proc(
            [
                "unshare",
                "-m",
                "sh",
                "-c",
                "test -d /sys/kernel/tracing/events || mount -t tracefs none /sys/kernel/tracing; exec \"$@\"",
                "sh",
                "bpftrace",
                "-p",
                app.pid,
                BUILD / "cli" / "trace" / "scripts" / f"{file}.bt",
                *args,
            ],
            env={"__BPFTRACE_NOTIFY_PROBES_ATTACHED": "1"},
        )
    )
    it.expect("PROBES_ATTACHED")
    if file == "burst":
        app.rx(n=96, burst=32)

    def ended():  # it ignores a signal while it is busy
        it.send_signal(signal.SIGTERM)
        return it.ends_within(0.2)

    until(ended, what="its end")
    assert it.wait() == 0, it.output
    assert file != "burst" or "[32, 33)               3 |" in it.output


def test_programs_by_hand(app, bpftrace, closing):
    """As their comments say; where tracefs is not mounted, it is for them only."""
    closing(Monitor(app, stats.POLLS | stats.LATENCY))
    for file, args in (
        ("burst", []),
        ("polls", []),
        ("latency", []),
        ("drops", []),
        ("gaps", ["50"]),
        ("offcpu", ["PID"]),
    ):
        by_hand(app, closing, file, args)


# ---- one's own program -----------------------------------------------------------------------


def own(app, program, *args, **kwargs):
    return tracing("-e", program, app.prefix, *args, **kwargs)


@pytest.mark.nightly
def test_own_program(app, plugin, trace, closing):
    """Its output is printed at once, also on a terminal that stops programs in the background. Its time begins after bpftrace has attached; the message of bpftrace is not printed."""
    probe = probe_object(plugin)
    sites = usdt_sites(probe)
    it = trace(
        app,
        "--duration",
        "1s",
        "-e",
        'interval:ms:10 { @n = count(); } ringtap:rx_burst { printf("%d of %d\\n", arg3, arg2); }',
    )
    assert set(bytes_at_sites(app, probe, sites=sites)) != {NOP}
    app.rx(n=7, burst=32)
    assert "7 of 7" in until(lambda: "of" in (t := it._out.read_text()) and t, what="the burst")
    assert int(it.finish(None).split("@n: ")[1].split()[0]) >= 1
    assert "NOTIFY" not in it.proc.output
    app.unhooked()
    done = own(app, 'ringtap:session_open { @ = count(); } BEGIN { printf("hello\\n"); exit(); }')
    assert done.returncode == 0 and "hello" in done.stdout, done.stderr
    app.unhooked()
    for program, says in (
        ("ringtap:rx_burst { @ = cou", "syntax error"),
        ("ringtap:no_such_event { @ = count(); }", "No probes to attach"),
    ):
        done = own(app, program)
        assert done.returncode == FAILED
        assert says in done.stderr + done.stdout and "ended with status" in done.stderr
    it = closing(
        Proc(
            [
                "setsid",
                "-w",
                "-c",
                "sh",
                "-c",
                'stty tostop; exec "$@"',
                "sh",
                RINGTAP,
                "trace",
                "--duration",
                "0.2s",
                "-e",
                'BEGIN { printf("hello\\n"); } interval:ms:10 { @n = count(); }',
                app.prefix,
            ],
            tty=True,
        )
    )
    assert it.wait() == 0, it.output
    assert "hello" in it.output and "@n: " in it.output and "killed" not in it.output


# ---- ends ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "what,number",
    [
        (("burst", "--empty"), signal.SIGINT),
        nightly(("latency",), signal.SIGKILL),
        nightly(("-e", "ringtap:rx_burst { @ = count(); }"), signal.SIGTERM),
    ],
    ids=["burst", "latency", "own"],
)
def test_nothing_is_left_behind(app, plugin, trace, what, number):
    it = trace(app, *what, *(["--duration", "1h"] if what[0] != "-e" else []))
    assert app.one("callbacks 0") >= 2
    assert semaphores(app, probe_object(plugin)) == {int(what[0] == "latency")}
    assert set(bytes_at_sites(app, probe_object(plugin))) != {NOP}
    children = it.children()
    assert [name for _, name in children] == ["bpftrace"]
    it.finish(number, status=-9 if number == signal.SIGKILL else 0)
    nothing_left(app, probe_object(plugin), children)


def bpftrace_is_killed(app, plugin, trace, *what):
    it = trace(app, *what)
    ((pid, name),) = until(it.children)
    until(lambda: Path(f"/proc/{pid}/comm").read_text() == "bpftrace\n", what="it is bpftrace")
    os.kill(pid, signal.SIGKILL)
    it.finish(None, status=FAILED)
    assert "killed by signal 9" in it.proc.output
    nothing_left(app, probe_object(plugin), [(pid, name)])


def ended_during_the_start(app, plugin, closing, number):
    it = closing(Proc([RINGTAP, "trace", "burst", app.prefix]))
    children = Path(f"/proc/{it.pid}/task/{it.pid}/children")
    started = until(lambda: children.read_text().split(), what="bpftrace")
    it.send_signal(number)
    assert it.wait() == (-9 if number == signal.SIGKILL else FAILED)
    assert number == signal.SIGKILL or "interrupted before bpftrace had attached" in it.output
    nothing_left(app, probe_object(plugin), [(pid, "bpftrace") for pid in started])


def test_early_ends(app, plugin, trace, closing):
    """The end of bpftrace, of the command during its start, of the application."""
    bpftrace_is_killed(app, plugin, trace, "burst", "--duration", "1h")
    bpftrace_is_killed(app, plugin, trace, "-e", "BEGIN {}")
    for number in (signal.SIGINT, signal.SIGKILL):
        ended_during_the_start(app, plugin, closing, number)
    it = trace(app, "burst", "--json", "--duration", "1h")
    app.rx(n=100, burst=32)
    app.proc.kill()
    doc = it.json(None)
    assert doc["ended_by"] == "application" and f"{app.prefix} ended" in it.proc.output
    assert sizes(queue(doc, "rx")) == {32: 3, 4: 1}


# ---- mistakes --------------------------------------------------------------------------------


def refused(says, *args, **kwargs):
    done = tracing(*args, **kwargs)
    assert done.returncode == FAILED and says in done.stderr, done.stderr
    assert len(done.stderr.splitlines()) == 1 and not done.stdout


def test_refusals(play, testpmd, bpftrace, tmp_path):
    """The example in the message is a valid command line. Missing tools are named."""
    apps = [play(), play()]
    for what, line in ((["list"], "list"), (["-e", "BEGIN {}"], "-e PROGRAM")):
        done = tracing(*what)
        assert done.returncode == FAILED and "-i" not in done.stderr.replace("-it", "")
        (named,) = [a for a in apps if f"name one, as in 'ringtap trace {line} {a.prefix}'" in done.stderr]
        done = tracing(*what, f"{named.prefix}:no-such-port")
        assert done.returncode == USAGE and "its events are those of all ports" in done.stderr
        if what == ["list"]:
            assert tracing(*what, named.prefix).returncode == 0
    empty = tmp_path / "empty"
    empty.mkdir()
    name = apps[0].prefix
    for args, package in (
        (["burst"], "bpftrace"),
        (["-e", "BEGIN {}"], "bpftrace"),
        (["lttng", "-w", "x"], "lttng-tools"),
    ):
        refused(f"apt install {package}", *args, name, env={"PATH": str(empty)}, cwd=empty)
    assert not list(empty.iterdir())
    refused("root", "burst", name, user=65534, group=65534, extra_groups=[])
    pmd = testpmd("net_null0", plugin=None)
    for what in ("burst", "list"):
        refused("no application is called", what, "no-such-application")
        refused("probe", what, pmd.prefix)
