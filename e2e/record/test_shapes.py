# SPDX-License-Identifier: BSD-3-Clause
"""mbufs of all shapes: VLAN tags that the NIC has stripped or will insert, hashes, chains, broken
ones."""
import struct

import pytest

from harness import pcapng
from harness.pcap import frame
from harness.play import Play
from harness.ringtap import packets_of

JUMBO = 9728
RX, TX = pcapng.RX, pcapng.TX


def tagged(data, *tags):
    return data[:12] + b"".join(struct.pack(">HH", *tag) for tag in tags) + data[12:]


@pytest.fixture(scope="module")
def module_app(plugin):
    it = Play(plugin)
    assert it.ring("a", rxq=3, txq=3) == 0
    yield it
    it.close()


@pytest.fixture
def app(module_app):
    return module_app.unhooked()


@pytest.mark.parametrize("direction", ["rx", "tx"])
@pytest.mark.parametrize("length", [60, 1500, JUMBO])
@pytest.mark.smoke
def test_vlan_tag_is_inserted(app, record, direction, length):
    recorder = record(app, "-c", "3")
    app.burst(direction, n=1, len=length, seq=1, vlan=0x6123)
    app.burst(direction, n=1, len=length, seq=2, vlan=0x0005, qinq=0xE0AA)
    app.burst(direction, n=1, len=length, seq=3)
    recorder.done()
    got = recorder.file().packets
    assert got[0].data == tagged(frame(length, 1), (0x8100, 0x6123))
    assert got[1].data == tagged(frame(length, 2), (0x88A8, 0xE0AA), (0x8100, 0x0005))
    assert got[2].data == frame(length, 3)
    assert [p.length for p in got] == [length + 4, length + 8, length]


@pytest.mark.parametrize("snaplen", [1, 11, 12, 13, 14, 16, 19, 20, 21, 64, 100, 104])
def test_snaplen_counts_restored_tags(app, record, snaplen):
    recorder = record(app, "-s", str(snaplen), "-c", "4")
    app.rx(n=1, len=100, seq=1, vlan=7)
    app.rx(n=1, len=100, seq=2, vlan=7, qinq=8)
    app.tx(n=1, len=100, seq=3, vlan=7)
    app.rx(n=1, len=100, seq=4, vlan=7, seg=10)
    recorder.done()
    wire = [tagged(frame(100, 1), (0x8100, 7)), tagged(frame(100, 2), (0x88A8, 8), (0x8100, 7)),
            tagged(frame(100, 3), (0x8100, 7)), tagged(frame(100, 4), (0x8100, 7))]
    got = recorder.file().packets
    assert [p.data for p in got] == [w[:snaplen] for w in wire]
    assert [p.length for p in got] == [len(w) for w in wire]


def test_tag_is_inserted_if_addresses_span_segments(app, record):
    recorder = record(app, "-c", "1")
    app.rx(n=1, len=64, seg=5, vlan=9)
    recorder.done()
    assert recorder.file().packets[0].data == tagged(frame(64), (0x8100, 9))


@pytest.mark.parametrize("segment", [1, 2, 3, 7, 64, 127, 128, 2048])
def test_chains_of_segments(app, record, segment):
    lengths = [n for n in (60, 64, 129, 300, 1514, JUMBO) if n // segment < 400]
    recorder = record(app, "-c", str(2 * len(lengths)))
    for n in lengths:
        app.rx(n=1, len=n, seg=segment, seq=n)
        app.tx(n=1, len=n, seg=segment, seq=n)
    recorder.done()
    file = recorder.file()
    for direction in (RX, TX):
        assert [p.data for p in packets_of(file, direction=direction)] == \
            [frame(n, n) for n in lengths]


def test_packets_longer_than_a_chunk_are_cut(app, record):
    """Chunks of the smallest buffer have 128 KiB; the interface's snaplen says what they hold."""
    length, chunk = 150_000, 128 << 10
    recorder = record(app, "--buffer", "64K", "-c", "2")
    app.rx(n=1, len=length, seg=2000, seq=1)
    app.rx(n=1, seq=2)
    recorder.done()
    file = recorder.file()
    kept = file.interfaces[0].snaplen
    assert chunk - 256 < kept < chunk
    assert [p.data for p in file.packets] == [frame(length, 1)[:kept], frame(64, 2)]
    assert file.packets[0].length == length


def test_short_frames(app, record):
    """Shorter than Ethernet allows, down to one byte."""
    lengths = [1, 2, 3, 4, 11, 12, 13, 14, 59]
    recorder = record(app, "-c", str(len(lengths)))
    for n in lengths:
        app.rx(data=frame(n, n))
    recorder.done()
    assert [p.data for p in recorder.file().packets] == [frame(n, n) for n in lengths]


def test_rss_hash_is_recorded(app, record):
    recorder = record(app, "-c", "3")
    app.rx(n=1, hash=0x01020304)
    app.rx(n=1)
    app.rx(n=1, hash=0xFFFFFFFF, len=3000, seg=1000)
    recorder.done()
    toeplitz = b"\x05"
    assert [p.hash for p in recorder.file().packets] == [
        toeplitz + struct.pack("<I", 0x01020304), None, toeplitz + b"\xff" * 4]


def test_packets_have_queue_and_direction(app, record):
    recorder = record(app, "-c", str(6 * 40))
    for queue in range(3):
        app.rx(0, queue, n=40, seq=100 * queue)
        app.tx(0, queue, n=40, seq=100 * queue)
    recorder.done()
    file = recorder.file()
    for queue in range(3):
        for direction in (RX, TX):
            mine = [p.data for p in packets_of(file, direction=direction) if p.queue == queue]
            assert mine == [frame(64, 100 * queue + i) for i in range(40)]


@pytest.mark.parametrize("option,queue,direction", [
    (("--queue", "1"), {1}, {RX, TX}), (("--direction", "rx"), {0, 1, 2}, {RX}),
    (("--direction", "tx", "--queue", "2"), {2}, {TX})])
def test_one_queue_and_direction(app, record, option, queue, direction):
    recorder = record(app, *option)
    for q in range(3):
        app.rx(0, q, n=5)
        app.tx(0, q, n=5)
    recorder.finish()
    got = recorder.file().packets
    assert {(p.queue, p.direction) for p in got} == {(q, d) for q in queue for d in direction}
    assert len(got) == 5 * len(queue) * len(direction)


@pytest.mark.parametrize("how", ["untrue=1", "cut=1"])
def test_broken_chains_are_counted(app, record, how):
    """pkt_len larger than the segments, nb_segs larger than the chain."""
    recorder = record(app)
    app.do(f"rx 0 0 n=3 len=500 seg=100 {how}")
    app.rx(n=2, seq=9)
    recorder.finish()
    file = recorder.file()
    got = [p.data for p in file.packets]
    assert got[-2:] == [frame(64, 9), frame(64, 10)]
    stats = file.interfaces[0]
    lost = pcapng.stat(stats, 7)
    assert len(got) == pcapng.stat(stats, 8)
    assert len(got) + lost == 5
    assert all(len(p.data) <= p.length for p in file.packets)
    assert app.proc.alive()


@pytest.mark.parametrize("burst", [1, 2, 31, 32, 33, 64, 511])
def test_bursts_of_any_size(app, record, burst):
    recorder = record(app, "-c", "1500")
    app.rx(n=1500, burst=burst)
    recorder.done()
    assert [p.data for p in recorder.file().packets] == [frame(64, i) for i in range(1500)]
