# SPDX-License-Identifier: BSD-3-Clause
"""Applications with many polling threads, and the memory that a monitor costs an application."""

import os
import re
from pathlib import Path

import pytest
from harness import monitor as stats
from harness import pcapng
from harness.pcapng import check_sums
from harness.proc import until


@pytest.fixture
def crowd(play):
    """crowd(n): rt_play with n non-EAL threads, each polling another queue."""

    def start(threads):
        app = play()
        app.plug("net_null0", "no-rx=1", rxq=threads, txq=threads)
        assert app.one(f"crowd 0 {threads}") == threads
        return app

    return start


def capture(app, record, threads):
    """Each thread sends 50 packets; returns the file and the losses."""
    recorder = record(app, "--buffer", "64K")
    assert app.one("crowd_send 50") == 50 * threads
    recorder.finish()
    file = recorder.file()
    ((seen, captured, lost),) = check_sums(file)
    assert seen == 50 * threads == captured + lost
    return file, lost


def test_a_hundred_threads(crowd, record, monitor):
    """They are captured and monitored."""
    app = crowd(100)
    file, lost = capture(app, record, 100)
    assert lost == 0
    pcapng.assert_in_order(file)
    of_queue = {}
    for packet in file.packets:
        of_queue[packet.queue] = of_queue.get(packet.queue, 0) + 1
    assert of_queue == dict.fromkeys(range(100), 50)
    m = monitor(app, stats.POLLS)
    # A new thread counts from the next tick on; each block belongs to one thread and queue.
    until(lambda: len(m.hooks) == 100, what="all polling threads")
    app.one("crowd_send 1")
    until(lambda: len(m.hooks) == 200, what="all sending threads")
    m.fresh()
    counted, uncounted = sum(sum(h.burst) for h in m.hooks), m.header.no_block_polls
    before = sum(h.burst[1] for h in m.hooks)
    app.one("crowd_send 50")
    assert sum(h.burst[1] for h in m.hooks) == before + 5000
    m.fresh()
    assert m.header.no_block_polls == uncounted and m.header.no_thread_polls == 0
    assert counted > uncounted
    assert len({h.thread for h in m.hooks}) == 100
    assert app.one("crowd_end") == 100


def test_threads_beyond_all_slots_are_accounted(crowd, record):
    app = crowd(300)
    _, lost = capture(app, record, 300)
    assert lost == 44 * 50
    assert app.one("crowd_end") == 300


def resident_kib(pid):
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(re.search(r"^Rss:\s+(\d+) kB", text, re.M)[1])


@pytest.mark.nightly
def test_top_costs_an_application_less_than_a_mebibyte(testpmd, monitor):
    """testpmd calls mlockall(MCL_FUTURE), which populates all ordinary mappings."""
    pmd = testpmd("net_null0", "net_null1", args=["--no-flush-rx"])
    pmd.start()
    until(lambda: pmd.stats(0)["RX-packets"] > 1000, what="traffic")
    before = resident_kib(pmd.pid)
    m = monitor(pmd, stats.POLLS | stats.BYTES | stats.BUSY | stats.GAPS)
    until(lambda: any(h.burst[32] > 1000 for h in m.hooks), what="counted traffic")
    m.fresh()
    segment = os.fstat(m.wire.fds[0]).st_blocks // 2
    assert segment < 512
    assert resident_kib(pmd.pid) - before < 1024
    pmd.stop()
