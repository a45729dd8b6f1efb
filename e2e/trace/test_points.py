# SPDX-License-Identifier: BSD-3-Clause
"""Events of the probe, counted by third-party tracers, compared with statistics and the operations
of applications."""

import platform
import re
import shutil
import signal
from pathlib import Path

import pytest
from harness import monitor as stats
from harness.fwd import FWD
from harness.paths import PROBE_OBJECT as PROBE
from harness.paths import probe_object
from harness.pcapng import stat
from harness.proc import check, freeze
from harness.ringtap import LOSS, sessions
from harness.tracers import EVENTS, Bpftrace, bpftrace_missing, usdt_sites

TINY = ("--buffer", "64K")
RING_FULL, NO_RING = 0, 1
LOST = 7  # option of an ISB


@pytest.fixture(scope="module")
def with_usdt():
    if not usdt_sites(PROBE):
        pytest.skip("built without sys/sdt.h")


@pytest.fixture
def x86(with_usdt):
    if platform.machine() != "x86_64":
        pytest.skip("reads instructions of x86-64")


@pytest.fixture
def listen(plugin, closing, with_usdt):
    reason = bpftrace_missing()
    if reason:
        pytest.skip(reason)
    return lambda app, *events, **kwargs: closing(Bpftrace(app, probe_object(plugin), events, **kwargs))


def of(counts, event):
    """{arguments: calls} of one event."""
    return {key[1:]: calls for key, calls in counts.items() if key[0] == event}


# ---- The compiled code -----------------------------------------------------------------------


def instructions(path, start, stop):
    text = check(
        ["objdump", "-d", "--no-show-raw-insn", f"--start-address={start:#x}", f"--stop-address={stop:#x}", path]
    )
    return re.findall(r"^ +[0-9a-f]+:\t(.*?)\s*$", text, re.MULTILINE)


def no_work_before_the_nop(function, event):
    """The first instructions of hooks: no load, computation or call for the events, and only the
    branch between a burst and an empty poll."""
    symbols = check(["nm", PROBE])
    found = re.search(rf"^(\w+) . {function}$", symbols, re.MULTILINE)
    if not found:
        pytest.skip("the probe is stripped")
    site = next(s for s in usdt_sites(PROBE) if s.event == event)
    before = instructions(PROBE, int(found.group(1), 16), site.at)
    assert len(before) < 12, before
    branches = [i for i in before if re.match(r"(j\w+|call|cmp|test)\b", i)]
    names = [i.split()[0] for i in branches]
    assert names in ([["test", "jne"], ["test", "je"]] if event == "empty_poll" else [[]])
    for line in before:
        if line not in branches:
            assert re.fullmatch(r"(mov\w*|push|xor|endbr64)\s*(%\w+,?){0,2}", line), before


@pytest.mark.smoke
def test_sites_are_nops(x86):
    """Arguments are registers, constants or memory."""
    for path in (PROBE, FWD):
        # That of include/ringtap/reason.h is the application's: test_reasons.py of e2e/fate.
        sites = [s for s in usdt_sites(path) if s.event != "reason"]
        assert {s.event for s in sites} == set(EVENTS)
        for site in sites:
            assert instructions(path, site.at, site.at + 1) == ["nop"], site.event
            assert len(site.arguments) == len(EVENTS[site.event])
            for argument in site.arguments:
                assert re.fullmatch(r"[248]@(%[a-z0-9]+|\$\d+|-?\d*\(%[a-z0-9]+\))", argument)
            assert bool(site.semaphore) == (site.event == "latency")
    for event in ("rx_burst", "empty_poll", "tx_burst"):
        assert [s.event for s in usdt_sites(PROBE)].count(event) == 1
    no_work_before_the_nop("rt_hook_rx", "empty_poll")
    no_work_before_the_nop("rt_hook_tx", "tx_burst")


# ---- bpftrace --------------------------------------------------------------------------------


def test_bursts(app, monitor, listen):
    """On the fast path of the hooks and on the slow one; without hooks there are none."""
    b = listen(app, "rx_burst", "empty_poll", "tx_burst")
    app.rx(n=100)
    app.tx(n=100)
    for collectors in (stats.POLLS, stats.ALL):
        m = monitor(app, collectors)
        app.rx(n=100, burst=32)  # 32, 32, 32, 4
        app.one("idle 0 0 n=17")
        app.rx(n=512, burst=512)
        app.tx(n=70, burst=64)  # 64, 6
        if collectors == stats.POLLS:
            m.close()
            app.unhooked()
    counts = b.counts()
    assert of(counts, "rx_burst") == {(0, 0, 32, 32): 6, (0, 0, 4, 4): 2, (0, 0, 512, 512): 2}
    assert of(counts, "empty_poll") == {(0, 0, 32): 34}
    assert of(counts, "tx_burst") == {(0, 0, 64, 64): 2, (0, 0, 6, 6): 2}
    sizes, _ = m.hook(stats.RX)
    assert sizes == {0: 17, 32: 3, 4: 1, 512: 1}


def test_threads_without_a_slot_are_traced(play, record, listen, monitor):
    """Losses of their recordings have a reason."""
    app = play()
    app.plug("net_null0")
    m = monitor(app, stats.POLLS)
    b = listen(app, "tx_burst")
    assert app.one("threads 0 0 count=300 n=50") == 15000
    assert of(b.counts(), "tx_burst") == {(0, 0, 1, 1): 15000}
    m.fresh()
    assert m.header.no_thread_polls > 0
    counted = sum(sum(h.burst) for h in m.hooks)
    assert counted + m.header.no_thread_polls + m.header.no_block_polls == 15000
    m.close()
    b = listen(app, "drop")
    recorder = record(app, "--buffer", "1M")
    # More threads than there are slots; of the others, some find no free chunk.
    assert app.one("threads 0 0 count=300 n=50") == 15000
    recorder.finish()
    drops = of(b.counts(), "drop")
    lost = sum(stat(i, LOST) for i in recorder.file().interfaces)
    assert lost and sum(n * calls for (_, _, n, _), calls in drops.items()) == lost
    reasons = {(port, queue, reason) for port, queue, _, reason in drops}
    assert (0, 0, NO_RING) in reasons and reasons <= {(0, 0, NO_RING), (0, 0, RING_FULL)}


def test_sessions_and_their_losses(app, record, listen):
    b = listen(app, "session_open", "session_close", "ring_full", "drop")
    recorder = record(app, *TINY, "--fail-on-loss")
    (session,) = sessions(app)
    freeze(recorder.proc.pid)
    sent = app.rx(n=20000, len=200)[0] + app.tx(n=20000, len=200)[0]
    recorder.proc.send_signal(signal.SIGCONT)
    recorder.finish(status=LOSS)
    counts = b.counts()
    who = (session["id"], recorder.proc.pid)
    assert of(counts, "session_open") == of(counts, "session_close") == {who: 1}
    lost = sum(stat(i, LOST) for i in recorder.file().interfaces)
    assert 0 < lost < sent
    full = of(counts, "ring_full")
    assert sum(n * calls for (_, _, _, n), calls in full.items()) == lost
    assert {key[:3] for key in full} == {(session["id"], 0, 0)}
    drops = of(counts, "drop")
    assert sum(n * calls for (_, _, n, _), calls in drops.items()) == lost
    assert {key[3] for key in drops} == {RING_FULL}


# ---- ringtap-fwd -----------------------------------------------------------------------------

TX_FULL, TX_UNSENT = 32, 34
# The port of the forwarder accepts a fifth.
OVERLOAD = (
    "--ring",
    "a:256",
    "--ring",
    "b:64",
    "--role",
    "generate:a@0",
    "--role",
    "oneway:a,b@1",
    "--role",
    "sink:b@0",
    "--stages",
    "1k:2500ms,50k:400ms",
    "--sink-rate",
    "10k",
)


def total(events, name):
    """Sum of the last argument, or of the named one, by port."""
    out = {}
    for (port, *rest), calls in events.items():
        out[port] = out.get(port, 0) + rest[name] * calls
    return out


@pytest.mark.parametrize("policy", ["retry:3"])
def test_events_of_roles(fwd, closing, monitor, listen, private_dir, policy):
    """No event is duplicated while the hooks of its probe are installed. A private copy, which no
    other process has."""
    own = Path(shutil.copy(FWD, private_dir))
    b = closing(Bpftrace(None, own, ["rx_burst", "tx_burst", "tx_refused", "drop"]))
    app = fwd(*OVERLOAD, "--tx-full", policy, program=own).running()
    monitor(app, stats.POLLS)
    assert app.proc.alive()
    report = app.done()
    counts = b.counts()
    sent, way, sink = report.total("generate"), report.total("oneway"), report.total("sink")
    rx, tx = of(counts, "rx_burst"), of(counts, "tx_burst")
    assert total(rx, 2) == {0: way["rx_packets"], 1: sink["rx_packets"]}
    assert total(rx, 2) != total(rx, 1)  # less than requested
    assert sum(n for (port, *_), n in rx.items() if port == 0) == way["rx_busy_calls"]
    assert total(tx, 2) == {0: sent["tx_packets"], 1: way["tx_packets"]}
    offered = total(tx, 1)
    refused = total(of(counts, "tx_refused"), 1)
    assert refused == {port: offered[port] - total(tx, 2)[port] for port in refused}
    assert refused[1] > 0
    drops = of(counts, "drop")
    dropped = {r: sum(n * c for (_, _, n, reason), c in drops.items() if reason == r) for r in (TX_FULL, TX_UNSENT)}
    assert dropped == {TX_FULL: way["tx_dropped"], TX_UNSENT: way["tx_unsent"]}
