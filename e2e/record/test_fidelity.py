# SPDX-License-Identifier: BSD-3-Clause
"""Packets through unmodified testpmd are in the file, byte for byte, in order, without loss."""

import pytest
from harness import corpus, pcap, pcapng
from harness.proc import check
from harness.ringtap import frames_of

JUMBO = 9728
KEEP_ALL = ("--on-full", "wait")


def vdev(i, path):
    return f"net_pcap{i},rx_pcap={path},tx_pcap=/dev/null"


def play_files(testpmd, record, paths, *options, **kwargs):
    """Plays each file into a port, whose neighbour sends it; returns the recorded file."""
    frames = [pcap.frames(p) for p in paths]
    pmd = testpmd(*(vdev(i, p) for i, p in enumerate(paths)), args=["--no-flush-rx"], **kwargs)
    total = 2 * sum(len(f) for f in frames)
    recorder = record(pmd, *KEEP_ALL, "-c", total, *options)
    pmd.start()
    recorder.done()
    pmd.stop()
    return recorder, frames


def assert_same(got, expected, what):
    assert len(got) == len(expected), f"{what}: {len(got)} packets of {len(expected)}"
    for i, (g, e) in enumerate(zip(got, expected)):
        assert g == e, f"{what}: packet {i}: {g.hex()} is not {e.hex()}"


def pairs(items):
    """Neighbours of testpmd: 0 and 1, 2 and 3, …"""
    return [i ^ 1 for i in range(len(items))]


@pytest.mark.parametrize("packets", ["all", *corpus.LEFT_OUT])
def test_every_frame_of_the_corpus(testpmd, record, corpus_files, tmp_path, packets):
    """Eight ports, each with an eighth of the files."""
    paths = [
        pcap.write(tmp_path / f"{i}.pcap", [f for path in corpus_files[i::8] for f in pcap.frames(path)])
        for i in range(8)
    ]
    recorder, frames = play_files(testpmd, record, paths)
    file = recorder.file()
    for i, neighbour in enumerate(pairs(paths)):
        assert_same(frames_of(file, f"net_pcap{i}", pcapng.RX), frames[i], f"{i} in")
        assert_same(frames_of(file, f"net_pcap{neighbour}", pcapng.TX), frames[i], f"{i} out")
    pcapng.assert_in_order(file)


@pytest.fixture(scope="module")
def all_sizes(tmp_path_factory):
    path = tmp_path_factory.mktemp("sizes") / "all.pcap"
    return pcap.write(path, [pcap.frame(n, n) for n in range(60, JUMBO + 1)])


def test_every_size_from_60_to_jumbo(testpmd, record, all_sizes, tmp_path):
    """Frames larger than an mbuf's 2,048 bytes are chains of segments."""
    other = pcap.write(tmp_path / "one.pcap", [pcap.frame(60)])
    recorder, frames = play_files(testpmd, record, [all_sizes, other])
    file = recorder.file()
    assert_same(frames_of(file, "net_pcap0", pcapng.RX), frames[0], "in")
    assert_same(frames_of(file, "net_pcap1", pcapng.TX), frames[0], "out")
    assert all(p.length == len(p.data) for p in file.packets)


def test_snaplen_cuts_exactly(testpmd, record, tmp_path):
    """Recorders at the same time; probe/burst/epb_test.c has all lengths."""
    snaplens = (1, 64, 2049, JUMBO - 1)
    sizes = sorted({60, 61, 64, 65, 1514, 2047, 2048, 2049, 2050, 4096, 4097, 9000, JUMBO - 1, JUMBO})
    frames = [pcap.frame(n, n) for n in sizes]
    paths = [pcap.write(tmp_path / f"{i}.pcap", frames) for i in (0, 1)]
    pmd = testpmd(*(vdev(i, p) for i, p in enumerate(paths)), args=["--no-flush-rx"])
    recorders = {n: record(pmd, *KEEP_ALL, "-c", 4 * len(sizes), "-s", str(n)) for n in snaplens}
    pmd.start()
    for snaplen, recorder in recorders.items():
        recorder.done()
        file = recorder.file()
        assert {i.snaplen for i in file.interfaces} == {snaplen}
        for name, direction in (("net_pcap0", pcapng.RX), ("net_pcap1", pcapng.TX)):
            assert_same(frames_of(file, name, direction), [f[:snaplen] for f in frames], f"{name} {snaplen}")
        assert sorted(p.length for p in file.packets) == sorted(4 * sizes)
    pmd.stop()


def test_other_readers_agree(testpmd, record, corpus_files, tmp_path):
    """capinfos, tshark, tcpdump and editcap read the file without errors, with the same packets."""
    source = [f for f in corpus_files if f.stem in ("arp", "tcp")]  # one line each in tcpdump
    recorder, frames = play_files(testpmd, record, source)
    out, total = recorder.out, 2 * sum(len(f) for f in frames)
    assert f"Number of packets:   {total}" in check(["capinfos", "-M", out])
    numbers = check(["tshark", "-r", out, "-T", "fields", "-e", "frame.number"]).split()
    assert len(numbers) == total
    lines = check(["tcpdump", "-r", out, "-nn", "-q", "-t"]).splitlines()
    assert len([line for line in lines if not line.startswith(("\t", " "))]) == total
    check(["editcap", "-F", "nsecpcap", out, tmp_path / "again.pcap"])
    again = pcap.read(tmp_path / "again.pcap")
    mine = recorder.file().packets
    assert [(ns, data) for ns, data, _ in again] == [(p.ns, p.data) for p in mine]


@pytest.mark.smoke
def test_tshark_reads_direction_queue_and_interface(testpmd, record, tmp_path):
    path = pcap.write(tmp_path / "in.pcap", [pcap.frame(100, i) for i in range(10)])
    recorder, _ = play_files(testpmd, record, [path, path])
    rows = check(
        [
            "tshark",
            "-r",
            recorder.out,
            "-T",
            "fields",
            "-e",
            "frame.interface_name",
            "-e",
            "frame.packet_flags_direction",
            "-e",
            "frame.interface_queue",
        ]
    ).splitlines()
    seen = {tuple(row.split("\t")) for row in rows}
    assert seen == {(f"net_pcap{i}", direction, "0") for i in (0, 1) for direction in ("0x00000001", "0x00000002")}
