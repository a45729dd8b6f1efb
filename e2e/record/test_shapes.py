# SPDX-License-Identifier: BSD-3-Clause
"""mbufs of all shapes: VLAN tags that the NIC has stripped or will insert, hashes, chains, broken ones. One recorder each;
probe/burst/epb_test.c and epb_random_test.c have all lengths, cuts and places of tags."""

import struct

import pytest
from harness import pcapng
from harness.pcap import frame
from harness.ringtap import packets_of

JUMBO = 9728
RX, TX = pcapng.RX, pcapng.TX


def tagged(data, *tags):
    return data[:12] + b"".join(struct.pack(">HH", *tag) for tag in tags) + data[12:]


@pytest.mark.smoke
def test_shapes(app, record):
    """Whole packets, and cut at the end of a tag and after it, by recorders at the same time."""
    recorders = {snaplen: record(app, "-s", str(snaplen)) for snaplen in (0, 12, 16, 19, 104)}
    wire = []

    def both(data, **shape):
        """The same packet received and sent; data: what must be recorded."""
        app.rx(n=1, **shape)
        app.tx(n=1, **shape)
        wire.extend([data, data])

    for length in (60, 1500, JUMBO):
        both(tagged(frame(length, 1), (0x8100, 0x6123)), len=length, seq=1, vlan=0x6123)
        both(tagged(frame(length, 2), (0x88A8, 0xE0AA), (0x8100, 0x0005)), len=length, seq=2, vlan=0x0005, qinq=0xE0AA)
        both(frame(length, 3), len=length, seq=3)
    for segment in (5, 10, 127):  # addresses span segments
        both(tagged(frame(100, 4), (0x8100, 7)), len=100, seq=4, vlan=7, seg=segment)
    for segment in (1, 2, 7, 64, 128, 2048):
        for length in (n for n in (60, 64, 129, 300, 1514, JUMBO) if n // segment < 400):
            both(frame(length, length), len=length, seq=length, seg=segment)
    for length in (1, 2, 3, 4, 11, 12, 13, 14, 59):  # shorter than Ethernet allows
        app.rx(data=frame(length, length))
        wire.append(frame(length, length))
    for snaplen, recorder in recorders.items():
        recorder.finish()
        got = recorder.file().packets
        assert [p.data for p in got] == [w[: snaplen or None] for w in wire], snaplen
        assert [p.length for p in got] == [len(w) for w in wire], snaplen


def test_bursts_queues_and_hashes(play, record):
    app = play()
    app.ring("a", rxq=3, txq=3)
    every = record(app)
    chosen = {
        option: record(app, *option)
        for option in (("--queue", "1"), ("--direction", "rx"), ("--direction", "tx", "--queue", "2"))
    }
    app.rx(n=1, hash=0x01020304)
    app.rx(n=1, hash=0xFFFFFFFF, len=3000, seg=1000)
    for queue in range(3):
        for burst in (1, 31, 32, 33, 511):
            app.rx(0, queue, n=1500, burst=burst)
            app.tx(0, queue, n=100, burst=burst)
    every.finish()
    file = every.file()
    toeplitz = b"\x05"
    assert [p.hash for p in file.packets[:3]] == [
        toeplitz + struct.pack("<I", 0x01020304),
        toeplitz + b"\xff" * 4,
        None,
    ]
    for queue in range(3):
        for direction, n in ((RX, 1500), (TX, 100)):
            mine = [p.data for p in packets_of(file, direction=direction) if p.queue == queue]
            assert mine[-5 * n :] == [frame(64, i) for i in range(n)] * 5
            assert len(mine) == 5 * n + (2 if (queue, direction) == (0, RX) else 0)
    for option, queues, directions in (
        (("--queue", "1"), {1}, {RX, TX}),
        (("--direction", "rx"), {0, 1, 2}, {RX}),
        (("--direction", "tx", "--queue", "2"), {2}, {TX}),
    ):
        chosen[option].finish()
        got = chosen[option].file().packets
        assert {(p.queue, p.direction) for p in got} == {(q, d) for q in queues for d in directions}
        assert len(got) == len([p for p in file.packets if p.queue in queues and p.direction in directions])


def test_long_and_broken_chains(app, record):
    """Packets longer than a chunk are cut: those of the smallest buffer have 128 KiB, and the interface's snaplen says what they
    hold. Packets whose pkt_len or nb_segs is larger than the chain are counted as lost, or are shorter."""
    length, chunk = 150_000, 128 << 10
    small = record(app, "--buffer", "64K", "-c", "2")
    app.rx(n=1, len=length, seg=2000, seq=1)
    app.rx(n=1, seq=2)
    small.done()
    file = small.file()
    kept = file.interfaces[0].snaplen
    assert chunk - 256 < kept < chunk
    assert [p.data for p in file.packets] == [frame(length, 1)[:kept], frame(64, 2)]
    assert file.packets[0].length == length

    recorder = record(app)
    for how in ("untrue=1", "cut=1"):
        app.do(f"rx 0 0 n=3 len=500 seg=100 {how}")
    app.rx(n=2, seq=9)
    recorder.finish()
    file = recorder.file()
    got = [p.data for p in file.packets]
    assert got[-2:] == [frame(64, 9), frame(64, 10)]
    stats = file.interfaces[0]
    lost = pcapng.stat(stats, 7)
    assert len(got) == pcapng.stat(stats, 8)
    assert len(got) + lost == 8
    assert all(len(p.data) <= p.length for p in file.packets)
    assert app.proc.alive()
