# SPDX-License-Identifier: BSD-3-Clause
"""Packets with external buffers: captured if the CPU can read them. Unreadable memory (here
PROT_NONE, in practice of a GPU) is never accessed, and its packets are counted. Its other places and
changes are in probe/capture/readable_test.c."""

import json

import pytest
from harness import pcap, pcapng
from harness.cases import nightly
from harness.documents import only
from harness.pcap import frame
from harness.ringtap import LOSS

LENGTH = 300
FILTERS = ((), ("-f", "ether proto 0x88b5"))


@pytest.fixture
def app(app):
    for kind in ("malloc", "pinned"):
        app.rx(n=1, external=kind)  # maps the memory before a recording begins
    return app


def counts_of(text):
    (counts,) = only(json.loads(text[text.index("{") : text.rindex("}") + 1]))["interfaces"]
    assert counts["seen"] == counts["captured"] + counts["filtered"] + counts["lost_total"]
    assert counts["lost_total"] == counts["lost"]["unreadable"]
    return counts


def finish(recorder, status=0):
    return counts_of(recorder.finish(status=status))


def test_readable_packets_are_captured(app, record):
    """In the heap and in pinned buffers of a pool, with and without the flag of external buffers."""
    recorders = [record(app, "--json", *how) for how in FILTERS]
    sent = []
    for kind in ("malloc", "pinned"):
        for noflag in (0, 1):
            for direction in ("rx", "tx"):
                app.burst(direction, n=200, len=LENGTH, seq=len(sent), external=kind, noflag=noflag)
                sent += [frame(LENGTH, seq) for seq in range(len(sent), len(sent) + 200)]
    for recorder in recorders:
        counts = finish(recorder)
        assert counts["captured"] == len(sent) and counts["lost_total"] == 0
        assert [p.data for p in recorder.file().packets] == sent


def test_unreadable_packets_are_counted(app, record):
    """In the summary, as drop counts of the next packets, and by their reason; also by recorders that wait."""
    recorders = [record(app, "--json", "--fail-on-loss", *how) for how in FILTERS]
    others = [record(app), record(app, "--on-full", "wait")]
    for kind in ("none", "pinned-none"):
        for noflag in (0, 1):
            for n, direction in enumerate(("rx", "tx")):
                shape = dict(external=kind, len=LENGTH, noflag=noflag)
                app.burst(direction, n=100, **shape)
                app.burst(direction, n=50, vlan=7, **shape)
                app.burst(direction, n=1, len=LENGTH, seq=n)
    for recorder in recorders:
        counts = finish(recorder, LOSS)
        assert counts["captured"] == 8 and counts["lost"]["unreadable"] == 1200
        file = recorder.file()
        assert [p.data for p in file.packets] == [frame(LENGTH, n) for n in range(2)] * 4
        assert [p.dropped for p in file.packets] == [150] * 8
        assert pcapng.stat(file.interfaces[0], 7) == 1200
    for recorder in others:
        text = recorder.finish()
        assert "lost, unreadable: 1,200\n" in text
        assert "unreadable 1,200; their data is in memory that the CPU cannot read" in text
        assert len(recorder.file().packets) == 8


@pytest.mark.smoke
def test_header_split(app, record):
    """Headers in mbufs, payload in external memory: headers can be captured."""
    shape = dict(external="none", len=LENGTH, seg=60)
    whole = record(app, "--json")
    heads = record(app, "--json", "-s", "60", "-f", "ether proto 0x88b5")
    app.rx(n=100, **shape)
    app.tx(n=100, **shape)
    assert finish(whole)["lost"]["unreadable"] == 200
    assert finish(heads)["captured"] == 200
    assert {(p.data, p.length) for p in heads.file().packets} == {(frame(LENGTH, n)[:60], LENGTH) for n in range(100)}


@pytest.mark.parametrize("pool,how", [("anon", ("--timestamp", "nic", "-f", "icmp")), nightly("xbuf", ())])
def test_pools_of_stock_testpmd(testpmd, record, tmp_path, pool, how):
    """xbuf is a pool with pinned external buffers; net_pcap has its own time stamps."""
    frames = [frame(LENGTH, n)[:12] + b"\x08\x00\x45" + bytes(8) + b"\x01" + bytes(LENGTH - 24) for n in range(500)]
    file = pcap.write(tmp_path / "in.pcap", frames)
    pmd = testpmd(f"net_pcap0,rx_pcap={file},tx_pcap={tmp_path}/out.pcap", args=("--no-flush-rx", f"--mp-alloc={pool}"))
    recorder = record(pmd, "--json", "-c", "1000", *how)
    pmd.start()
    counts = counts_of(recorder.done())
    pmd.stop()
    assert counts["captured"] == 1000 and counts["lost_total"] == 0
    assert sorted(p.data for p in recorder.file().packets) == sorted(2 * frames)


def test_memory_is_mapped_later(app, record):
    """Detected soon; packets until then count as unreadable."""
    recorder = record(app, "--json", "-c", "10")
    while recorder.proc.alive():
        app.rx(n=1, external="late", len=LENGTH, seq=77)
    counts = counts_of(recorder.done())
    assert counts["captured"] >= 10 and counts["lost_total"] > 0
    assert {p.data for p in recorder.file().packets} == {frame(LENGTH, 77)}
