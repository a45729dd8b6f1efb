# SPDX-License-Identifier: BSD-3-Clause
"""The statistics segment, read by a second implementation of docs/format.md: counters compared with
the operations of applications; monitors that start, end, are killed, and send invalid messages."""

import os
import re
import signal
import struct
import sys
from pathlib import Path

import pytest
from harness import dpdk, wire
from harness import monitor as stats
from harness.paths import E2E, REPO
from harness.proc import Proc, until
from harness.ringtap import sessions


def callbacks_gone(app, port=0):
    until(lambda: app.one(f"callbacks {port}") == 0, what="no callback left")


# ---- Polling ---------------------------------------------------------------------------------


@pytest.mark.smoke
def test_bursts_are_counted_by_size(app, monitor):
    m = monitor(app, stats.ALL)
    app.rx(n=100, burst=32)  # 32, 32, 32, 4
    app.one("idle 0 0 n=17")
    app.rx(n=7, burst=1, len=300)
    app.rx(n=512, burst=512)
    app.one("idle 0 0 n=3")
    app.tx(n=70, burst=64)  # 64, 6
    bursts, block = m.hook(stats.RX)
    assert bursts == {0: 20, 1: 7, 4: 1, 32: 3, 512: 1}
    assert (block.big_polls, block.big_packets) == (0, 0)
    assert block.max_burst == 512
    bursts, _ = m.hook(stats.TX)
    assert bursts == {64: 1, 6: 1}
    (thread,) = m.threads.values()
    assert thread.generation and thread.tid == app.pid
    busy_periods = {n: c for n, c in enumerate(thread.busy_period_packets) if c}
    assert thread.busy_periods == 2
    assert busy_periods == {6: 1, 9: 1}  # 100, 519 packets
    assert not thread.is_busy and thread.since_tsc
    largest = sorted((b.packets for w in thread.window for b in w.burst), reverse=True)
    assert largest[:3] == [519, 100, 0]
    # 12 polls had packets; the gap after the last poll, an empty one, is still open.
    assert sum(thread.gaps_busy) == 12
    assert sum(thread.gaps_idle) == 19


def test_statistics_are_by_thread(play, monitor):
    app = play(lcores="0@0,1@1,2@0,3@1")
    app.ring("a")
    m = monitor(app, stats.POLLS)
    assert app.one("blast 0 0 workers=3 n=50") == 150
    assert sorted(h.thread for h in m.hooks) == sorted(m.threads)
    assert len(m.hooks) == 3
    for hook in m.hooks:
        # Packets that the ring refuses are sent again.
        assert hook.burst[1] >= 50 and sum(hook.burst) == hook.burst[1]
    assert sorted(t.lcore for t in m.threads.values()) == [1, 2, 3]
    until(lambda: all(t.name for t in m.threads.values()), what="names")
    names = {t.tid: t.name.decode() for t in m.threads.values()}
    for tid, name in names.items():
        assert Path(f"/proc/{app.pid}/task/{tid}/comm").read_text().strip() == name


def forwarded(m, direction, port):
    """Burst sizes of testpmd's forwarding thread; its main thread empties the queues before the
    start."""
    slot = next(s for s, t in m.threads.items() if t.lcore == 1)
    (block,) = [h for h in m.hooks if (h.thread, h.port_index, h.direction) == (slot, port, direction)]
    return {n: c for n, c in enumerate(block.burst) if c}, block


def test_statistics_match_testpmd(testpmd, monitor):
    """Its own counters and its histogram of bursts, over the same time."""
    pmd = testpmd("net_ring0", "net_ring1", args=["--burst=13"])
    m = monitor(pmd, stats.ALL)
    pmd.cmd("set record-burst-stats on")
    pmd.start("start tx_first 3")
    until(lambda: sum(sum(h.burst) for h in m.hooks) > 100000, what="traffic")
    text = pmd.cmd("stop")
    for port, rx, tx in re.findall(
        r"statistics for port (\d+).*?RX-packets:\s*(\d+).*?"
        r"TX-packets:\s*(\d+)",
        text,
        re.DOTALL,
    ):
        # Packets that are refused and sent again would count twice; these rings are never full.
        for direction, packets in ((stats.RX, rx), (stats.TX, tx)):
            sizes, _block = forwarded(m, direction, int(port))
            assert sum(n * c for n, c in sizes.items()) == int(packets)
        assert forwarded(m, stats.RX, int(port))[1].max_burst == 13
    reply = re.findall(r"statistics for port (\d+).*?RX-bursts\s*:\s*(\d+)", text, re.DOTALL)
    assert len(reply) == 2, text
    for port, bursts in reply:
        assert sum(forwarded(m, stats.RX, int(port))[0].values()) == int(bursts)
    # The counters of the ports, which the probe copies.
    m.fresh()
    for port in m.ports:
        shown = pmd.stats(port.port_id)
        assert (port.ipackets, port.opackets) == (shown["RX-packets"], shown["TX-packets"])
        assert (port.imissed, port.rx_nombuf) == (shown["RX-missed"], shown["RX-nombuf"])


def test_latency_of_received_and_sent_packets(testpmd, monitor):
    """In the segment, and as DPDK's telemetry has it."""
    pmd = testpmd("net_ring0", "net_ring1")
    m = monitor(pmd, stats.LATENCY | stats.POLLS)
    query(pmd, "/ringtap/latency")
    pmd.start("start tx_first")
    until(lambda: sum(sum(h.burst) for h in m.hooks) > 20000, what="traffic")
    pmd.stop()
    sent = {h.port_index: sum(n * c for n, c in enumerate(h.burst)) for h in m.hooks if h.direction == stats.TX}
    for port, packets in sent.items():
        timed = [p for p in m.pairs if p.tx_index == port and p.rx_index != stats.NO_INDEX]
        rest = [p for p in m.pairs if p.tx_index == port and p.rx_index == stats.NO_INDEX]
        assert [p.rx_index for p in timed] == [1 - port]
        for p in timed:
            assert p.count == sum(p.bucket)
            assert p.min * p.count <= p.sum <= p.max * p.count
            assert p.bucket[stats.bucket_of(p.min)] and p.bucket[stats.bucket_of(p.max)]
        # tx_first sends 32 packets that were not received.
        assert sum(p.unstamped for p in rest) == 32
        assert sum(p.shared for p in rest) == 0
        assert sum(p.count for p in timed) + 32 == packets
    pairs = [p for p in query(pmd, "/ringtap/latency")["pairs"].values() if "packets" in p]
    assert sorted((p["rx_port"], p["tx_port"]) for p in pairs) == [
        ("net_ring0", "net_ring1"),
        ("net_ring1", "net_ring0"),
    ]
    for p in pairs:
        shown = [p[k] for k in ("min_ns", "p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns")]
        assert [v * 1.01 + 1 for v in sorted(shown)] >= shown
        assert 0 < p["min_ns"] <= p["mean_ns"] <= p["max_ns"]
    only = query(pmd, "/ringtap/latency,0")["pairs"].values()
    assert [p["rx_port"] for p in only] == ["net_ring0"]


# ---- Memory ----------------------------------------------------------------------------------


def test_pools_and_addresses(testpmd, monitor):
    """In the segment, and as DPDK's telemetry has them."""
    pmd = testpmd("net_null0", mbufs=5000, args=["--mbcache=100", "--forward-mode=rxonly", "--no-flush-rx"])
    m = monitor(pmd, stats.POOLS)
    (pool,) = [p for p in m.pools if p.name.startswith(b"mb_pool")]
    output = dpdk.telemetry(pmd.prefix, f"/mempool/info,{pool.name.decode()}")["/mempool/info"]
    assert pool.size == output["size"] == 5000
    assert pool.cache_size == output["cache_size"] == 100
    assert pool.object_bytes == output["header_size"] + output["elt_size"] + output["trailer_size"]
    assert pool.available == pool.lowest == 5000  # before forwarding
    assert pool.ops == b"ring_mp_mc"
    assert pool.memory == 1 and pool.page_bytes in (4096, 2 << 20)
    assert pool.span >= pool.size * pool.object_bytes
    # No cost for polling threads: no callback is installed.
    assert m.hooks == []
    sampled = monitor(pmd, stats.ADDRESSES | stats.POOLS)
    pmd.start()
    until(lambda: any(s.done for s in sampled.samplers), what="a sample run")
    run = next(st for s in sampled.samplers if s.done for st in s.run if st.number)
    assert run.count == stats.RUN
    for sample in run.sample[: run.count]:
        assert pool.base <= sample.buf_addr < pool.base + pool.span
        assert (sample.port_index, sample.queue) == (0, 0)
    query(pmd, "/ringtap/addresses")
    (thread,) = until(
        lambda: [t for t in query(pmd, "/ringtap/addresses")["threads"].values() if t["packets"] == stats.RUN],
        what="a sample run",
    )
    pmd.stop()
    # testpmd over net_null uses the same few buffers again and again.
    assert 1 <= thread["pages_1g_per_1000_packets"] <= 2
    assert (
        thread["pages_1g_per_1000_packets"]
        <= thread["pages_2m_per_1000_packets"]
        <= thread["pages_4k_per_1000_packets"]
    )
    assert thread["pages_4k_per_1000_packets"] <= 1000
    assert thread["steps"] == stats.RUN - 1 and 0 <= thread["sequential_steps"] <= thread["steps"]


# ---- Coming and going ------------------------------------------------------------------------


def test_collectors_are_off_without_their_monitors(app, monitor):
    one, other = monitor(app, stats.POOLS), monitor(app, stats.POLLS)
    assert app.one("callbacks 0") == 2
    assert one.header.collectors == stats.POOLS | stats.POLLS
    switched = one.header.switched
    other.switch(stats.POLLS | stats.LATENCY, 5)
    assert one.header.collectors == stats.POOLS | stats.POLLS | stats.LATENCY
    assert one.header.latency_every == 5
    assert one.header.switched != switched
    other.close()
    callbacks_gone(app)
    until(lambda: one.header.collectors == stats.POOLS, what="switched off")
    one.close()


CHILD = """
import sys
from harness.monitor import Monitor, ALL
class App: prefix = sys.argv[1]
m = Monitor(App, ALL)
print("attached", flush=True)
sys.stdin.read()
"""


SEGMENT = "ringtap-statistics"  # its name in /proc/PID/maps


def test_killed_monitors_leave_no_hooks(busy, closing):
    before = None
    for turn in range(3):
        child = closing(Proc([sys.executable, "-c", CHILD, busy.prefix], env={"PYTHONPATH": f"{E2E}:{REPO / 'lab'}"}))
        child.expect("attached")
        assert busy.one("callbacks 0") == 2
        assert SEGMENT in Path(f"/proc/{busy.pid}/maps").read_text()
        os.kill(child.pid, signal.SIGKILL)
        callbacks_gone(busy)
        until(lambda: SEGMENT not in Path(f"/proc/{busy.pid}/maps").read_text(), what="memory given back")
        if turn == 1:  # one-time allocations are done
            before = dpdk.Resources(busy.pid)
        elif turn > 1:
            until(lambda: dpdk.Resources(busy.pid).fds <= before.fds, what="descriptors closed")
            assert dpdk.Resources(busy.pid).rss_kb < before.rss_kb + 4096
    moved = busy.one("count")
    until(lambda: busy.one("count") > moved, what="it goes on")


def test_the_segment_outlives_the_application(app, monitor):
    m = monitor(app, stats.POLLS)
    app.rx(n=5, burst=5)
    app.proc.kill()
    until(lambda: m.wire.receive()[0] is None, what="told")
    assert m.hook(stats.RX)[0] == {5: 1}


def test_ports_are_added_and_removed(play, monitor):
    app = play()
    app.plug("net_null0")
    m = monitor(app, stats.POLLS)
    app.plug("net_null1")
    until(lambda: len(m.ports) == 2, what="second port")
    app.do("poll 1 0 n=64")
    index = [p.port_id for p in m.ports].index(1)
    assert [b.burst[32] for b in m.hooks if b.port_index == index] == [2]
    app.do("unplug net_null1")
    until(lambda: m.ports[index].state == 2, what="gone")
    app.plug("net_null1")
    until(lambda: m.ports[index].state == 1, what="it is back")
    app.do("poll 1 0 n=32")
    assert [b.burst[32] for b in m.hooks if b.port_index == index] == [3]
    assert len(m.ports) == 2
    m.close()
    callbacks_gone(app, 0)
    callbacks_gone(app, 1)


def test_capture_and_monitor_share_the_callback(app, monitor, record):
    m = monitor(app, stats.POLLS | stats.BUSY)
    app.rx(n=10, burst=2)
    recorder = record(app)
    assert app.one("callbacks 0") == 2
    app.rx(n=30, burst=3)
    recorder.finish()
    app.rx(n=8, burst=4)
    assert m.hook(stats.RX)[0] == {2: 5, 3: 10, 4: 2}
    assert len(recorder.file().packets) == 30
    assert sessions(app) == []
    m.close()
    callbacks_gone(app)


# ---- The protocol ----------------------------------------------------------------------------


MESSAGES = {
    "empty": b"",
    "short": struct.pack("<I", 1),
    "long": struct.pack("<III", 1, 1, 0),
    "unknown instrument": struct.pack("<II", 1 << 31, 1),
    "all bits": struct.pack("<II", 0xFFFFFFFF, 0xFFFFFFFF),
}


def refused(app, closing, message, before=(), **how):
    """Refused with a reason; collectors are switched off with the connection."""
    dpdk.telemetry(app.prefix, "/ringtap/attach")
    liar = closing(wire.Reader(dpdk.RUN_DIR / app.prefix, **how))
    for first in before:
        liar.send(first)
        assert liar.receive()[0] == wire.MONITORING
        assert app.one("callbacks 0") == 2
    liar.send(message)
    kind, body = liar.receive()
    assert kind == wire.ERROR and len(body.strip(b"\0")) > 10
    assert liar.receive()[0] is None
    callbacks_gone(app)


def test_malformed_requests(app, monitor, closing):
    good = wire.message(wire.MONITOR, struct.pack("<II", stats.POLLS, 1))
    for body in MESSAGES.values():
        refused(app, closing, wire.message(wire.MONITOR, body))
    refused(app, closing, wire.message(wire.MONITOR, MESSAGES["all bits"]), before=[good])
    refused(app, closing, good, greet=False)
    # A connection is a capture or a monitor.
    m = monitor(app, stats.POLLS)
    m.wire.send(wire.open_request())
    assert m.wire.receive()[0] == wire.ERROR
    reader = closing(wire.Reader(dpdk.RUN_DIR / app.prefix))
    reader.open()
    reader.send(wire.message(wire.MONITOR, struct.pack("<II", stats.POLLS, 1)))
    assert reader.receive()[0] == wire.ERROR
    callbacks_gone(app)


@pytest.mark.smoke
def test_readers_cannot_write_the_segment(app, monitor):
    """Nor truncate it, or punch holes: polling threads write to it."""
    import fcntl
    import mmap

    fd = monitor(app, stats.POLLS).wire.fds[0]
    seals = fcntl.fcntl(fd, fcntl.F_GET_SEALS)
    assert seals & fcntl.F_SEAL_SHRINK and seals & fcntl.F_SEAL_GROW and seals & fcntl.F_SEAL_SEAL
    with pytest.raises(OSError):
        os.pwrite(fd, b"x", 0)
    with pytest.raises((OSError, PermissionError)):
        mmap.mmap(fd, 4096)
    with pytest.raises(OSError):
        os.ftruncate(fd, 0)


# ---- DPDK's own telemetry --------------------------------------------------------------------


def query(app, command):
    return dpdk.telemetry(app.prefix, command)[command.partition(",")[0]]


def test_telemetry_has_the_statistics(app, monitor, closing):
    assert query(app, "/ringtap/polling")["lease_ms"] == 10000
    assert app.one("callbacks 0") == 2
    app.rx(n=100, burst=32)
    app.one("idle 0 0 n=5")
    queues = query(app, "/ringtap/polling,0")["queues"]
    (rx,) = [q for q in queues.values() if q["direction"] == "rx"]
    assert (rx["calls"], rx["empty_calls"], rx["packets"]) == (9, 5, 100)
    assert rx["bursts"] == {"0": 5, "4": 1, "32": 3}
    assert rx["max_burst"] == 32
    query(app, "/ringtap/threads")
    app.one("idle 0 0 n=100")
    (thread,) = query(app, "/ringtap/threads")["threads"].values()
    assert thread["tid"] == app.pid and thread["lcore"] == 0
    assert thread["idle_cycles"] > 0 and thread["busy_cycles"] == 0
    assert thread["busy_percent"] == 0 and thread["longest_polling_gaps_ns"][0] > 0
    pools = query(app, "/ringtap/mempools")["mempools"].values()
    m = monitor(app, stats.POOLS)
    assert {p["name"]: p["size"] for p in pools} == {p.name.decode(): p.size for p in m.pools}
    (port,) = query(app, "/ringtap/ports,0")["ports"].values()
    assert port["name"] == m.ports[0].name.decode()
    assert query(app, "/ringtap/ports,7")["ports"] == {}
    # The script of DPDK, at its prompt.
    tool = closing(Proc(["dpdk-telemetry.py", "-f", app.prefix], tty=True))
    tool.expect("-->")
    tool.send("/ringtap/ports")
    tool.expect('"link_mbps"')
    tool.send("/help,/ringtap/latency")
    tool.expect("from RX to TX")
    tool.send("quit")
    assert tool.wait() == 0


@pytest.mark.slow
@pytest.mark.nightly
def test_lease_of_telemetry(app):
    """Ten seconds."""
    query(app, "/ringtap/polling")
    assert app.one("callbacks 0") == 2
    until(lambda: app.one("callbacks 0") == 0, what="lease over")


def test_telemetry_counts_omitted_entries(play):
    """An answer ends at 16 KiB; each queue that was polled or sent to is an entry."""
    app = play()
    ports = [app.ring(str(i), rxq=16, txq=16) for i in range(5)]
    query(app, "/ringtap/polling")
    for port in ports:
        for queue in range(16):
            app.rx(port, queue, n=1)
            app.tx(port, queue, n=1)
    answer = query(app, "/ringtap/polling")
    assert 80 < len(answer["queues"]) < 160
    assert len(answer["queues"]) + answer["omitted"] == 160
    for port in ports:
        one = query(app, f"/ringtap/polling,{port}")
        assert len(one["queues"]) == 32 and "omitted" not in one
