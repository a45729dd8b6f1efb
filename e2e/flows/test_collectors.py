# SPDX-License-Identifier: BSD-3-Clause
"""Flows and packets that ringtap flows sends to collectors, read by nfcapd, sfcapd and tshark."""

import json
import signal
import socket
import subprocess
import threading

import pytest
from harness import pcap
from harness.known import Measuring
from harness.paths import RINGTAP
from harness.proc import Proc, check, together, until
from scapy.all import IP, TCP, UDP, Dot1Q, Ether, ICMPv6EchoRequest, IPv6, Raw

COUNT = 20_000
SO_RCVBUFFORCE = 33


def frames():
    """Flows of TCP, UDP and ICMPv6 with tags and padding, and ARP's own EtherType."""
    head = Ether(src="02:00:00:00:00:02", dst="02:00:00:00:00:01")
    kinds = [
        head / IP(src="10.0.0.1", dst="192.0.2.1", tos=184) / TCP(sport=1024, dport=443, flags="S") / Raw(b"x" * 3),
        head / IP(src="10.0.0.2", dst="192.0.2.1") / UDP(sport=4242, dport=53) / Raw(b"x" * 700),
        head / Dot1Q(vlan=42) / IP(src="10.0.0.3", dst="192.0.2.1") / UDP(sport=4243, dport=53) / Raw(b"x" * 100),
        head / IPv6(src="2001:db8::1", dst="2001:db8::2") / UDP(sport=99, dport=53) / Raw(b"x" * 200),
        head / IPv6(src="2001:db8::1", dst="2001:db8::2") / ICMPv6EchoRequest() / Raw(b"x" * 30),
    ]
    made = [bytes(kind).ljust(60, b"\0") for kind in kinds]
    made += [
        bytes(head / IP(src=f"10.1.{n >> 8}.{n & 255}", dst="192.0.2.9") / UDP(sport=n, dport=n)) for n in range(300)
    ]
    return [made[i % (1 + i % len(made))].ljust(60, b"\0") for i in range(COUNT)]


@pytest.fixture
def file(tmp_path):
    """The frames."""
    return pcap.write(tmp_path / "in.pcap", frames())


@pytest.fixture
def report_of(file, testpmd, closing):
    """report_of(option, ...): the document of `ringtap flows`, while a testpmd receives all frames."""

    def run(*options):
        pmd = testpmd(f"net_pcap0,rx_pcap={file},tx_pcap=/dev/null", "net_null0,no-rx=1", args=("--no-flush-rx",))
        it = closing(Measuring("flows", pmd, "--once", "--duration", "1h", "--json", "--limit", "1000", *options))
        pmd.start()
        until(lambda: pmd.stats(0)["RX-packets"] == COUNT, what="everything is received")
        pmd.stop()
        return it.json(signal.SIGINT)

    return run


def receive_queue(port):
    """Bytes that wait in the sockets of a UDP port; None: there are none."""
    table = [line.split() for line in open("/proc/net/udp", encoding="ascii").readlines()[1:]]
    queues = [int(row[4].split(":")[1], 16) for row in table if int(row[1].split(":")[1], 16) == port]
    return sum(queues) if queues else None


def free_port(kind=socket.SOCK_DGRAM):
    with socket.socket(socket.AF_INET, kind) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Collector:
    """nfcapd or sfcapd, which writes what it has received to a folder."""

    def __init__(self, program, folder):
        folder.mkdir()
        self.folder, self.port = folder, free_port()
        self.proc = Proc([program, "-b", "127.0.0.1", "-p", self.port, "-w", folder, "-t", "3600"])
        until(lambda: receive_queue(self.port) is not None, what=f"{program} listens")

    def flows(self):
        """The records, after everything that was sent has been read."""
        until(lambda: receive_queue(self.port) == 0, what="the collector has read everything")
        self.proc.send_signal(signal.SIGTERM)
        self.proc.wait()
        return json.loads(check(["nfdump", "-R", self.folder, "-o", "json"]))

    def close(self):
        self.proc.close()


@pytest.fixture
def collector(closing, tmp_path):
    return lambda program: closing(Collector(program, tmp_path / program))


def by_flow(records):
    """{(addresses, protocol, ports): [packets, bytes]} of nfdump's records."""
    out = {}
    for r in records:
        ip = 4 if "src4_addr" in r else 6
        key = r[f"src{ip}_addr"], r[f"dst{ip}_addr"], r["proto"], r.get("src_port", 0), r.get("dst_port", 0)
        sums = out.setdefault(key, [0, 0])
        sums[0] += r["in_packets"]
        sums[1] += r["in_bytes"]
    return out


def by_tshark(file):
    """The same of packets, bytes of IP as their headers have them."""
    names = "ip.src ip.dst ip.proto ip.len ipv6.src ipv6.dst ipv6.nxt ipv6.plen udp.srcport udp.dstport tcp.srcport tcp.dstport"
    lines = check(["tshark", "-r", file, "-T", "fields", *(x for n in names.split() for x in ("-e", n))])
    out = {}
    for line in lines.splitlines():
        src, dst, proto, length, src6, dst6, next6, length6, *ports = (line + "\t" * 12).split("\t")
        a, b = (int(udp or tcp or 0) for udp, tcp in ((ports[0], ports[2]), (ports[1], ports[3])))
        sums = out.setdefault((src or src6, dst or dst6, int(proto or next6), a, b), [0, 0])
        sums[0] += 1
        sums[1] += int(length or 0) or int(length6) + 40
    return out


def without_icmp_type(flows):
    """Collectors put the type of ICMP where a port would be."""
    return {
        (src, dst, proto, 0, 0) if proto == 58 else (src, dst, proto, a, b): n
        for (src, dst, proto, a, b), n in flows.items()
    }


@pytest.mark.smoke
def test_ipfix_in_nfcapd_is_what_tshark_counts(file, report_of, collector):
    """Packet by packet and byte by byte, over a flow table and two timeouts."""
    nfcapd = collector("nfcapd")
    report = report_of("--sample", "1", "--ipfix", f"127.0.0.1:{nfcapd.port}", "--idle-timeout", "1s")
    records = nfcapd.flows()
    assert without_icmp_type(by_flow(records)) == without_icmp_type(by_tshark(file))
    assert report["counts"]["lost"] == 0
    (export,) = report["exports"]
    assert export["records"] == len(records) and export["messages_not_sent"] == 0
    syn = [r for r in records if r["proto"] == 6]
    assert {r["tcp_flags"] for r in syn} == {"......S."} and {r["src_tos"] for r in syn} == {184}
    assert {r.get("src_vlan", r.get("vlan_src", 0)) for r in records if r.get("src_port") == 4243} == {42}


def test_ipfix_of_a_sample_is_scaled_by_the_collector(report_of, collector):
    nfcapd = collector("nfcapd")
    report = report_of("--sample", "4", "--ipfix", f"127.0.0.1:{nfcapd.port}")
    records = nfcapd.flows()
    packets = sum(n for n, _bytes in by_flow(records).values())
    assert packets == 4 * report["counts"]["captured"]


# ---- messages as they are


class Socket:
    """Takes messages of UDP, or of one connection of TCP at a time."""

    def __init__(self, kind):
        self.kind = kind
        self.socket = socket.socket(socket.AF_INET, kind)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.messages = []
        if kind == socket.SOCK_STREAM:
            self.socket.listen()
        else:
            self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 24)
        self.thread = threading.Thread(target=self._take, daemon=True)
        self.thread.start()

    def _take(self):
        if self.kind == socket.SOCK_STREAM:
            peer, _address = self.socket.accept()
            with peer, peer.makefile("rb") as stream:
                while head := stream.read(4):
                    self.messages.append(head + stream.read(int.from_bytes(head[2:], "big") - 4))
            return
        while data := self.socket.recv(65536):
            self.messages.append(data)

    def end(self):
        """All messages."""
        if self.kind == socket.SOCK_DGRAM:  # datagrams on this host arrive in order
            with socket.socket(socket.AF_INET, self.kind) as s:
                s.sendto(b"", ("127.0.0.1", self.port))
        self.thread.join()
        return self.messages

    def close(self):
        self.socket.close()


@pytest.fixture
def listener(closing):
    return lambda kind=socket.SOCK_DGRAM: closing(Socket(kind))


def dissect(messages, file, port, *fields):
    """Rows of fields, as tshark reads these messages in datagrams to the port."""
    head = Ether(src="02:00:00:00:00:02", dst="02:00:00:00:00:01") / IP(src="127.0.0.1", dst="127.0.0.1")
    pcap.write(file, [bytes(head / UDP(sport=4000, dport=port) / Raw(m)) for m in messages])
    out = check(["tshark", "-r", file, "-T", "fields", *(x for f in fields for x in ("-e", f))])
    return [line.split("\t") for line in out.splitlines()]


def test_ipfix_over_tcp(report_of, listener, tmp_path):
    tcp = listener(socket.SOCK_STREAM)
    report_of("--sample", "1", "--ipfix", f"tcp:127.0.0.1:{tcp.port}")
    messages = tcp.end()
    rows = dissect(messages, tmp_path / "x.pcap", 4739, "cflow.packets", "_ws.malformed")
    assert sum(int(n) for row in rows for n in row[0].split(",") if n) == COUNT
    assert not any(row[1] for row in rows)
    sequence = 0
    for m in messages:
        assert int.from_bytes(m[8:12], "big") == sequence
        sequence += records_of(m)
    names = dissect(messages, tmp_path / "x.pcap", 4739, "cflow.if_name")
    assert "net_pcap0" in ",".join(row[0] for row in names)


def test_a_full_table_reports_what_it_forgets(report_of, listener, tmp_path):
    tcp = listener(socket.SOCK_STREAM)
    report = report_of("--sample", "1", "--max-flows", "200", "--ipfix", f"tcp:127.0.0.1:{tcp.port}")
    assert report["evicted"] > 100
    rows = dissect(tcp.end(), tmp_path / "x.pcap", 4739, "cflow.packets")
    assert sum(int(n) for row in rows for n in row[0].split(",") if n) == COUNT


def records_of(message):
    """Data records of a message of fixed lengths; one of an interface has its name's length."""
    lengths = {256: 4 + 4 + 15 + 44, 257: 16 + 16 + 15 + 44, 258: 14 + 44, 259: 11, 260: 8}
    count, at = 0, 16
    while at < len(message):
        number, length = (int.from_bytes(message[at + i : at + i + 2], "big") for i in (0, 2))
        end, place = at + length, at + 4
        while number >= 256 and place < end:
            place += lengths[number] if number in lengths else 5 + message[place + 4]
            count += 1
        at = end
    return count


def test_sflow_has_headers_counters_and_rates(report_of, listener, tmp_path):
    udp = listener()
    report = report_of("--sample", "1", "--sflow", f"127.0.0.1:{udp.port}")
    fields = (
        "sflow_245.header.frame_length",
        "sflow_245.sequence_number",
        "sflow_245.ifinpkt",
        "sflow_245.ifinoct",
        "_ws.malformed",
    )
    messages = udp.end()
    rows = dissect(messages, tmp_path / "x.pcap", 6343, *fields)
    assert not any(row[4] for row in rows)
    lengths = [int(n) for row in rows for n in row[0].split(",") if n]
    assert len(lengths) > 500 and set(lengths) <= {len(f) + 4 for f in frames()}
    # Each packet counts for as many as its rate says.
    rates = [rate for m in messages for rate in rates_of(m)]
    assert len(rates) == len(lengths)
    assert abs(sum(rates) - COUNT) < 5 * (sum(r * r for r in rates) ** 0.5)
    assert [int(row[1]) for row in rows] == list(range(1, len(rows) + 1))
    counters = [
        (packets, octets) for row in rows for packets, octets in zip(*(c.split(",") for c in row[2:4]), strict=True)
    ]
    assert (str(COUNT), str(sum(map(len, frames())))) in counters
    (export,) = report["exports"]
    assert export["records"] == len(lengths) and export["messages"] == len(rows) and export["messages_not_sent"] == 0


def rates_of(message):
    """Sampling rates of the packets in a datagram of an agent with an IPv4 address, with a place in its pool."""
    words = [int.from_bytes(message[i : i + 4], "big") for i in range(0, len(message), 4)]
    at, rates = 7, []
    for _sample in range(words[6]):
        kind, length = words[at : at + 2]
        if kind == 1:
            rates.append(words[at + 4])
            assert words[at + 3] == 1 and words[at + 5] <= COUNT and words[at + 7 : at + 9] == [1, 0]
        at += 2 + length // 4
    assert at == len(words)
    return rates


def test_sflow_in_sfcapd(file, report_of, collector):
    sfcapd = collector("sfcapd")
    report = report_of("--sample", "1", "--sflow", f"127.0.0.1:{sfcapd.port}")
    records = sfcapd.flows()
    (export,) = report["exports"]
    assert export["records"] == len(records) > 500
    assert by_flow(records).keys() <= by_tshark(file).keys()


# ---- collectors that are not there


def fails(status, *words):
    """The only line that ringtap prints."""
    done = subprocess.run([RINGTAP, *words], capture_output=True, text=True, check=False)
    assert done.returncode == status and not done.stdout
    (line,) = done.stderr.splitlines()
    return line


def test_bad_addresses():
    bad = [("--sflow", "host:port"), ("--sflow", "127.0.0.1:0"), ("--sflow", "[::1"), ("--ipfix", "tcp:")]
    for line in together(lambda words: fails(2, "flows", *words, "x"), bad):
        assert "it is not an address" in line


def test_a_collector_that_does_not_listen(report_of):
    """UDP: counted, and the table goes on. TCP: refused at the start."""
    report = report_of("--sample", "1", "--ipfix", f"127.0.0.1:{free_port()}")
    (export,) = report["exports"]
    assert export["messages_not_sent"] > 0 and report["counts"]["captured"] == COUNT
    assert "cannot connect" in fails(1, "flows", "--ipfix", f"tcp:127.0.0.1:{free_port(socket.SOCK_STREAM)}", "x")


def test_a_name_that_is_not_known_yet():
    """Not a wrong command line: systemd starts a service again."""
    assert "cannot resolve 'no-such-host.invalid'" in fails(1, "flows", "--ipfix", "no-such-host.invalid", "x")
