# SPDX-License-Identifier: BSD-3-Clause
"""seen = captured + filtered + not sampled + lost, for each queue and direction, in all cases."""

import json
import re
import signal

import pytest
from harness import pcapng
from harness.cases import nightly
from harness.documents import only
from harness.pcapng import RECEIVED, check_sums
from harness.proc import check, freeze, until
from harness.ringtap import LOSS, sessions

TINY = ("--buffer", "64K")


def dropped(file, interface):
    return sum(p.dropped for p in file.packets if p.interface == interface)


def summary_of(output):
    return json.loads(output[output.index("{") : output.rindex("}") + 1])


def forward(pmd, packets):
    """Forwards at least this number of packets; returns testpmd's counts by port."""
    pmd.start()
    until(lambda: pmd.stats(0)["RX-packets"] >= packets, what="traffic")
    return pmd.stop()


def test_overload_of_a_tiny_ring(testpmd, record):
    """Maximum rate into 64 KiB: most packets are lost, all are counted, and the counts agree with
    the application's."""
    pmd = testpmd("net_null0", "net_null1", args=["--no-flush-rx"])
    recorder = record(pmd, *TINY, "-s", "64", "--fail-on-loss")
    forwarded = forward(pmd, 250_000)
    recorder.finish(status=LOSS)
    file = recorder.file()
    for i, (seen, captured, lost) in enumerate(check_sums(file)):
        rx, tx, _rx_drop, tx_drop = forwarded[i]
        assert seen == rx + tx + tx_drop
        assert seen == captured + lost
        assert lost > 0
        assert dropped(file, i) <= lost
    pcapng.assert_in_order(file)


@pytest.mark.smoke
def test_dropcounts_add_up_to_the_losses(play, record):
    """The reader is stopped while the ring overflows. Later, one more packet of each kind has the
    count of those lost before it."""
    app = play()
    app.ring("a", rxq=2, txq=2)
    recorder = record(app, *TINY)
    freeze(recorder.proc.pid)
    sent = 0
    for queue in (0, 1):
        for direction in ("rx", "tx"):
            sent += app.burst(direction, 0, queue, n=2000 + queue, len=200)[0]
    size = recorder.out.stat().st_size
    recorder.proc.send_signal(signal.SIGCONT)
    until(lambda: recorder.out.stat().st_size > size, what="the reader to make room")
    for _ in range(10):
        for queue in (0, 1):
            for direction in ("rx", "tx"):
                sent += app.burst(direction, 0, queue, n=1)[0]
    recorder.finish()
    file = recorder.file()
    ((seen, captured, lost),) = check_sums(file)
    assert seen == sent == captured + lost
    assert lost > 4000
    assert dropped(file, 0) == lost
    assert all(p.dropped == 0 or p.options for p in file.packets)


def test_filtered_packets_are_counted(app, record):
    expected = {"ether[17] & 1 == 0": 1000, "less 100": 1000, "ip": 0}
    recorders = {expression: record(app, "-f", expression, "--json") for expression in expected}
    for length in (64, 200):
        app.rx(n=500, len=length)
        app.tx(n=500, len=length)
    for expression, recorder in recorders.items():
        output = recorder.finish()
        assert check_sums(recorder.file()) == [(2000, expected[expression], 0)], expression
        assert summary_of(output)


def samples(file):
    """N and the packets not sampled, of each interface: comments of its block and of its statistics."""

    def number(pattern, options):
        return int(re.search(pattern, "\n".join(text.decode() for text in options[1]), re.M)[1])

    return [
        (
            number(r"^sampling: every=(\d+)$", i.options),
            number(r"^sampling: every=\d+ not_sampled=(\d+)$", i.stats[-1]),
        )
        for i in file.interfaces
    ]


@pytest.mark.parametrize(
    "options", [(), ("--ids",), nightly(("-f", "ether[0] & 1 == 2"))], ids=["skips", "ids", "filtered"]
)
def test_sampled_packets_are_counted(testpmd, record, options):
    """Every packet that testpmd receives and sends is in the file, filtered, lost or not sampled."""
    pmd = testpmd("net_null0", "net_null1", args=["--no-flush-rx"])
    recorder = record(pmd, "--sample", "64", "-s", "64", "--json", *options)
    forwarded = forward(pmd, 1_000_000)
    summary = summary_of(recorder.finish())
    lost = summary["lost_total"]
    assert summary["seen"] == summary["captured"] + summary["filtered"] + summary["not_sampled"] + lost
    chosen = summary["captured"] + summary["filtered"] + lost
    assert abs(chosen - summary["seen"] / 64) < 6 * (summary["seen"] / 64) ** 0.5
    assert (summary["filtered"] > 0) == ("-f" in options)
    file = recorder.file()
    sums = check_sums(file)
    for (seen, _, _), (rx, tx, _, tx_drop) in zip(sums, (forwarded[i] for i in range(len(sums))), strict=True):
        assert seen == rx + tx + tx_drop
    assert sum(seen for seen, _, _ in sums) == summary["seen"]
    assert [n for n, _ in samples(file)] == [64] * len(sums)
    assert sum(n for _, n in samples(file)) == summary["not_sampled"]
    assert check(["capinfos", "-Mc", recorder.out]).split()[-1] == str(summary["captured"])


def test_nothing_is_lost_when_the_application_waits(testpmd, record):
    pmd = testpmd("net_null0", "net_null1", args=["--no-flush-rx"])
    recorder = record(pmd, *TINY, "-s", "64", "--on-full", "wait", "--fail-on-loss")
    forwarded = forward(pmd, 100_000)
    recorder.finish()
    file = recorder.file()
    for i, (seen, captured, lost) in enumerate(check_sums(file)):
        assert lost == 0
        assert captured == seen == sum(forwarded[i][:2])


def test_several_lcores_on_one_tx_queue(play, record):
    """MT_LOCKFREE use: each thread has a ring, and the counts of the queue include all of them."""
    app = play(lcores="(0-3)@(0,1)")
    app.plug("net_null0")
    recorder = record(app, *TINY, "-s", "64")
    assert app.one("blast 0 0 workers=3 n=200000") == 600000
    assert app.one("blast 0 0 workers=3 n=1") == 3
    recorder.finish()
    ((seen, captured, lost),) = check_sums(recorder.file())
    assert seen == 600003 == captured + lost


def test_threads_that_begin_later(play, record):
    """Threads that EAL does not know begin to poll when the recorder has been there for long: it has their first packets."""
    app = play()
    app.plug("net_null0", "no-rx=1", rxq=16, txq=16)
    recorder = record(app, "--buffer", "4M")
    assert app.one("crowd 0 16") == 16
    assert app.one("crowd_send 50") == 800
    recorder.finish()
    file = recorder.file()
    ((seen, captured, lost),) = check_sums(file)
    assert (seen, captured, lost) == (800, 800, 0)
    pcapng.assert_in_order(file)


def test_more_threads_at_once_than_the_buffer_serves(play, record):
    """Packets that are lost when a hundred threads begin at once, with a buffer for eight, are counted."""
    app = play()
    app.plug("net_null0")
    recorder = record(app, "--buffer", "1M")
    assert app.one("threads 0 0 count=100 n=50") == 5000
    output = recorder.finish()
    ((seen, captured, lost),) = check_sums(recorder.file())
    assert seen == 5000 == captured + lost
    assert captured >= 50 and lost > 0
    assert "ring" in output


def test_nic_counters_are_in_the_summary(play, record):
    """net_null generates packets; its counters since the start of the capture are in the
    summary."""
    app = play()
    app.plug("net_null0")
    app.one("poll 0 0 n=1000")
    recorder = record(app, "--json")
    app.one("poll 0 0 n=3200")
    summary = summary_of(recorder.finish())
    assert only(summary)["interfaces"][0]["nic"] == {
        "rx_packets": 3200,
        "tx_packets": 0,
        "missed": 0,
        "rx_errors": 0,
        "no_mbuf": 0,
        "tx_errors": 0,
    }
    iface = recorder.file().interfaces[0]
    assert pcapng.stat(iface, RECEIVED) == 3200
    assert pcapng.stat(iface, 5) == 0  # the NIC dropped nothing


def lost_while_stopped(app, record, packets, *args, whole=None, **kwargs):
    """The report of `record` when the recorder is stopped while N packets come."""
    recorder = record(app, *args, "--json", out="/dev/null", **kwargs)
    if whole:
        until(lambda: sessions(app)[0]["buffer_bytes"] == whole, what="all of the buffer")
    freeze(recorder.proc.pid)
    app.rx(n=packets, len=60)
    recorder.proc.send_signal(signal.SIGCONT)
    recorder.finish()
    summary = summary_of(recorder.proc.output)
    assert summary["seen"] == packets
    return summary["lost_total"], recorder.proc.output


def test_default_buffer_holds_what_comes_in_a_pause(app, record):
    """100 MB; one thread has the memory that others do not need."""
    assert lost_while_stopped(app, record, 900_000, "-s", "60", buffer=None, whole=256 << 20)[0] == 0


def test_size_that_would_have_held_what_was_lost(app, record):
    lost, output = lost_while_stopped(app, record, 100_000, "--buffer", "1M")
    assert 50_000 < lost < 100_000
    assert f"record: {lost:,} packets were lost ({lost / 1000:.1f} %): ring_full {lost:,}; " in output
    advice = re.search(
        r"ring_full [0-9,]+; the recorder paused for up to [\d.]+ m?s"
        r".*; --buffer (\d+M) would have held them",
        output,
    )
    assert advice, output
    assert lost_while_stopped(app, record, 100_000, "--buffer", advice[1])[0] == 0
