# SPDX-License-Identifier: BSD-3-Clause
"""The headers that --cut keeps are those that tshark finds, in packets of the corpus."""

import xml.etree.ElementTree as ElementTree

import pytest
from harness import pcap
from harness.pcapng import check_sums
from harness.proc import check, until
from harness.ringtap import packets_of

pytestmark = [pytest.mark.nightly, pytest.mark.tools]

IP = {"ip", "ipv6"}
BELOW = {"geninfo", "frame", "eth", "vlan", "ieee8021ad", "mpls"} | IP
LENGTHS = {"udp": 8, "udplite": 8, "sctp": 12, "icmp": 8, "icmpv6": 8}  # TCP has others
WHOLE = ("-o", "ip.defragment:FALSE", "-o", "ipv6.defragment:FALSE")


def headers_of(layers):
    """The end of the first transport header; None: there is none that is known, directly behind IP."""
    seen = set()
    for layer in layers:
        name = layer.get("name")
        if name in IP and IP & seen:
            return None  # a tunnel
        seen.add(name)
        if name == "tcp":
            # A frame may end within the header.
            length = layer.find("./field[@name='tcp.hdr_len']")
            return length is not None and int(layer.get("pos")) + int(length.get("show"))
        if name in LENGTHS:
            return int(layer.get("pos")) + LENGTHS[name]
        if name not in BELOW:
            return None
    return None


def dissect(source):
    """The headers_of() each frame of a file."""
    text = check(["tshark", "-r", source, "-T", "pdml", *WHOLE])
    return [headers_of(packet.iter("proto")) for packet in ElementTree.fromstring(text).iter("packet")]


@pytest.fixture(scope="module")
def source(corpus_files, tmp_path_factory):
    frames = [f for path in corpus_files for f in pcap.frames(path) if 14 <= len(f) <= 9000]
    return pcap.write(tmp_path_factory.mktemp("cut") / "some.pcap", frames[:: max(len(frames) // 4000, 1)])


def test_headers_as_tshark_finds_them(testpmd, record, source):
    pmd = testpmd(
        f"net_pcap0,rx_pcap={source},tx_pcap=/dev/null",
        "net_null1",
        args=["--no-flush-rx", "--forward-mode=rxonly"],
    )
    options = {"headers": 0, "l4+24": 24}
    recorders = {
        cut: record(pmd, "--on-full", "wait", "--buffer", "1M", "--cut", cut, ports=["net_pcap0"]) for cut in options
    }
    frames = pcap.frames(source)
    pmd.start()
    until(lambda: pmd.stats(0)["RX-packets"] >= len(frames), what="all frames played")
    pmd.stop()
    headers = dissect(source)
    assert sum(bool(n) for n in headers) > 1000  # 1,957 of the corpus, which has mostly other protocols
    for cut, beyond in options.items():
        recorders[cut].finish()
        file = recorders[cut].file()
        check_sums(file)
        packets = packets_of(file, "net_pcap0")
        assert len(packets) == len(frames)
        for number, (packet, frame, end) in enumerate(zip(packets, frames, headers, strict=True), 1):
            assert frame.startswith(packet.data), number
            if end:
                assert len(packet.data) == min(end + beyond, len(frame)), f"{cut}: frame {number} of {source}"
        assert f"cut: {cut}".encode() in file.section[1]
