# SPDX-License-Identifier: BSD-3-Clause
"""Packets with external buffers: captured if the CPU can read them. Unreadable memory (here
PROT_NONE, in practice of a GPU) is never accessed, and its packets are counted."""
import json

import pytest

from harness import pcap, pcapng
from harness.pcap import frame
from harness.ringtap import LOSS

LENGTH = 300
FILTERS = ((), ("-f", "ether proto 0x88b5"))


@pytest.fixture
def app(module_app):
    for kind in ("malloc", "pinned"):
        module_app.rx(n=1, external=kind)  # maps the memory before a recording begins
    return module_app.unhooked()


def counts_of(text):
    counts, = json.loads(text[text.index("{"):text.rindex("}") + 1])["interfaces"]
    assert counts["seen"] == counts["captured"] + counts["filtered"] + counts["lost_total"]
    assert counts["lost_total"] == counts["lost"]["unreadable"]
    return counts


def finish(recorder, status=0):
    return counts_of(recorder.finish(status=status))


@pytest.mark.parametrize("how", FILTERS, ids=["all", "filtered"])
@pytest.mark.parametrize("kind", ["malloc", "pinned"])
@pytest.mark.parametrize("flagged", [True, False])
def test_readable_packets_are_captured(app, record, kind, how, flagged):
    recorder = record(app, "--json", *how)
    for n, direction in enumerate(("rx", "tx")):
        app.burst(direction, n=200, len=LENGTH, seq=1000 * n, external=kind, noflag=int(not flagged))
    counts = finish(recorder)
    assert counts["captured"] == 400 and counts["lost_total"] == 0
    assert [p.data for p in recorder.file().packets] == [
        frame(LENGTH, seq) for first in (0, 1000) for seq in range(first, first + 200)]


@pytest.mark.parametrize("how", FILTERS, ids=["all", "filtered"])
@pytest.mark.parametrize("kind", ["none", "pinned-none"])
@pytest.mark.parametrize("flagged", [True, False])
def test_unreadable_packets_are_counted(app, record, kind, how, flagged):
    recorder = record(app, "--json", "--fail-on-loss", *how)
    for n, direction in enumerate(("rx", "tx")):
        shape = dict(external=kind, len=LENGTH, noflag=int(not flagged))
        app.burst(direction, n=100, **shape)
        app.burst(direction, n=50, vlan=7, **shape)
        app.burst(direction, n=1, len=LENGTH, seq=n)
    counts = finish(recorder, LOSS)
    assert counts["captured"] == 2 and counts["lost"]["unreadable"] == 300
    file = recorder.file()
    assert [p.data for p in file.packets] == [frame(LENGTH, n) for n in range(2)]
    assert [p.dropped for p in file.packets] == [150, 150]
    assert pcapng.stat(file.interfaces[0], 7) == 300


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
    assert {(p.data, p.length) for p in heads.file().packets} \
        == {(frame(LENGTH, n)[:60], LENGTH) for n in range(100)}


def test_recorders_that_wait(app, record):
    recorder = record(app, "--json", "--on-full", "wait")
    app.rx(n=100, external="none")
    app.rx(n=100, external="malloc")
    counts = finish(recorder)
    assert counts["captured"] == 100 and counts["lost"]["unreadable"] == 100


@pytest.mark.parametrize("pool", ["anon", "xbuf"])
@pytest.mark.parametrize("how", [("--timestamp", "nic"), ("--timestamp", "nic", "-f", "icmp"), ()])
def test_pools_of_stock_testpmd(testpmd, record, tmp_path, pool, how):
    """xbuf is a pool with pinned external buffers; net_pcap has its own time stamps."""
    frames = [frame(LENGTH, n)[:12] + b"\x08\x00\x45" + bytes(8) + b"\x01" + bytes(LENGTH - 24)
              for n in range(500)]
    file = pcap.write(tmp_path / "in.pcap", frames)
    pmd = testpmd(f"net_pcap0,rx_pcap={file},tx_pcap={tmp_path}/out.pcap",
                  args=("--no-flush-rx", f"--mp-alloc={pool}"))
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


def test_report_names_unreadable_packets(app, record):
    recorder = record(app)
    app.rx(n=100, external="none")
    text = recorder.finish()
    assert "lost, unreadable: 100\n" in text
    assert "unreadable 100; their data is in memory that the CPU cannot read" in text
