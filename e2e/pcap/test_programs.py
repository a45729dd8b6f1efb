# SPDX-License-Identifier: BSD-3-Clause
"""Programs that do more with an interface than libpcap calls, or use libpcap in unusual ways. Each
runs with the system's libpcap on a veth, and under `ringtap run` on a port; the same packets must
give the same output."""

import re
import signal
from pathlib import Path

import pytest
from harness.netns import Namespace
from harness.paths import RINGTAP
from harness.proc import run, until
from harness.ringtap import listing, sessions
from harness.veth import Veth
from scapy.all import ARP, DNS, DNSQR, DNSRR, IP, TCP, UDP, Ether, Raw

A, B = ("02:00:00:00:00:0a", "10.1.0.1"), ("02:00:00:00:00:0b", "10.1.0.2")
TIMES = re.compile(r"(?<![:\w])\d\d:\d\d:\d\d(\.\d+)?(?![:\w])")
ARPALERT = Path("/etc/arpalert/arpalert.conf")


def frames():
    """ARP between A and B, then DNS, HTTP and datagrams from A."""

    def ip(src, dst, **fields):
        return Ether(src=src[0], dst=dst[0]) / IP(src=src[1], dst=dst[1], flags="DF", **fields)

    def tcp(client, flags, seq, ack, data=b"", options=()):
        src, dst, sport, dport = (A, B, 40000, 80) if client else (B, A, 80, 40000)
        return (
            ip(src, dst, id=seq)
            / TCP(sport=sport, dport=dport, flags=flags, seq=seq, ack=ack, window=64240, options=list(options))
            / Raw(data)
        )

    query = DNSQR(qname="www.example.org")
    request = b"GET /index.html HTTP/1.1\r\nHost: www.example.org\r\nUser-Agent: curl/8.0\r\nAccept: */*\r\n\r\n"
    body = b"a page\n" * 100
    page = b"HTTP/1.1 200 OK\r\nServer: test\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    syn = [("MSS", 1460), ("SAckOK", b""), ("Timestamp", (100, 0)), ("NOP", None), ("WScale", 7)]
    c, s = 1001 + len(request), 5001 + len(page)
    packets = [
        Ether(src=A[0], dst="ff:ff:ff:ff:ff:ff") / ARP(op=1, hwsrc=A[0], psrc=A[1], pdst=B[1]),
        Ether(src=B[0], dst=A[0]) / ARP(op=2, hwsrc=B[0], psrc=B[1], hwdst=A[0], pdst=A[1]),
        ip(A, B) / UDP(sport=5354, dport=53) / DNS(id=7, qd=query),
        ip(B, A)
        / UDP(sport=53, dport=5354)
        / DNS(id=7, qr=1, qd=query, an=DNSRR(rrname="www.example.org", rdata=B[1])),
        tcp(True, "S", 1000, 0, options=syn),
        tcp(False, "SA", 5000, 1001, options=syn),
        tcp(True, "A", 1001, 5001),
        tcp(True, "PA", 1001, 5001, request),
        tcp(False, "PA", 5001, c, page),
        tcp(True, "FA", c, s),
        tcp(False, "FA", s, c + 1),
        tcp(True, "A", c + 1, s + 1),
        *(ip(A, B, id=i) / UDP(sport=9000, dport=9001) / Raw(bytes([i]) * 500) for i in range(1, 21)),
    ]
    return [bytes(p).ljust(60, b"\0") for p in packets]


FRAMES = frames()


class OnVeth:
    """With an address, which libpcap programs look up."""

    def __init__(self):
        self.veth = Veth()
        self.space, self.name, self.alias = self.veth.space, self.veth.name, self.veth.name
        self.space.check(["ip", "addr", "add", "10.1.0.99/24", "dev", self.name])

    def start(self, argv, options=(), **kwargs):
        return self.space.start(argv, **kwargs)

    def captures(self):
        """Whether a packet socket has its ring. It is bound before, and loses then what it received until then."""
        return "ring_rx" in self.space.check(["ss", "--packet", "--extended", "--numeric"])

    def send(self, packets):
        self.veth.send("rx", packets)

    def close(self):
        self.veth.close()


class OnPort:
    """Programs run in a network namespace, so that servers among them have free ports."""

    def __init__(self, app):
        self.app, self.space = app, Namespace()
        self.name = f"ringtap:{app.prefix}:0"
        (mine,) = [a for a in listing() if a["name"] == app.prefix]
        self.alias = mine["ports"][0]["alias"]

    def start(self, argv, options=(), **kwargs):
        return self.space.start([RINGTAP, "run", *options, "--", *argv], **kwargs)

    def captures(self):
        return any(s["start"] for s in sessions(self.app))

    def send(self, packets):
        for data in packets:
            self.app.rx(data=data)

    def close(self):
        self.space.close()


@pytest.fixture
def sides(app, closing):
    return closing(OnVeth()), closing(OnPort(app))


@pytest.fixture
def play_to(closing):
    """play_to(side, argv) starts a program on its interface, {} or its alias, {alias}, and sends the packets: when
    it captures and, with ready, has printed that. The system's libpcap drops packets while it sets a filter."""

    def start(side, *argv, options=(), ready=None, **kwargs):
        proc = closing(
            side.start(
                [str(a).replace("{}", side.name).replace("{alias}", side.alias) for a in argv], options, **kwargs
            )
        )
        if ready:
            proc.expect(ready)
        until(lambda: side.captures() or not proc.alive(), what="capture has begun")
        if proc.alive():
            side.send(FRAMES)
        return proc

    return start


def until_printed(side, proc, *patterns):
    """For programs that lose what comes before they have set their filter. That may be the first of the frames
    alone, so all that is to be printed is waited for."""

    def printed():
        side.send(FRAMES)
        return all(re.search(pattern, proc.output) for pattern in patterns) or not proc.alive()

    until(printed, what=patterns)
    proc.stop(signal.SIGINT)
    return proc.output


def plain(text, side):
    """Removes what differs between runs."""
    text = re.sub(
        r"\b\d{4}-\d\d-\d\d|\b\d\d/\w{3}/\d{4}|^\w{3} +\d+ ", "DATE", text.replace("\r", ""), flags=re.MULTILINE
    )
    return TIMES.sub("TIME", text).replace(side.name, "IF").replace(side.alias, "IF")


def test_pcapy(sides, play_to):
    """next() returns None at a timeout; on a veth there is none before a packet."""
    script = """
import pcapy, sys
reader = pcapy.open_live(sys.argv[1], 65536, 1, 1)
reader.setfilter("udp or tcp")
print("filtered", flush=True)
seen = 0
while seen < 30:
    header, data = reader.next()
    print(header and header.getlen(), data.hex(), flush=True)
    seen += header is not None
"""
    out = []
    for side in sides:
        proc = play_to(side, "/usr/bin/python3", "-c", script, "{}", ready="^filtered$")
        assert proc.wait() == 0, proc.output
        out.append(proc.output)
    assert out[0] == out[1]
    assert out[0].split()[2::2] == [f.hex() for f in FRAMES[2:]]


def test_perl(sides, play_to):
    script = """
use Net::Pcap; my ($err, %h, $data); $| = 1;
my $p = Net::Pcap::open_live($ARGV[0], 65535, 1, 1, \\$err) or die $err;
for (my $n = 0; $n < 32; $n++) {
    my $ret = Net::Pcap::next_ex($p, \\%h, \\$data);
    print "$ret $h{len} ", unpack("H*", $data), "\\n";
}
"""
    for side in sides:
        proc = play_to(side, "perl", "-e", script, "{}")
        assert proc.wait() == 0, proc.output
        assert proc.output.splitlines() == [f"1 {len(f)} {f.hex()}" for f in FRAMES]


def test_iftop(sides, play_to):
    """Without an IP address, it distinguishes directions by the hardware address, which it requests
    from the kernel. It checks its timer when a packet arrives."""
    out = []
    for side in sides:
        proc = play_to(side, "iftop", "-t", "-s", "2", "-n", "-N", "-P", "-F", "10.1.0.1/32", "-i", "{alias}")

        def ended():
            side.send(FRAMES)
            return not proc.alive()

        until(ended, what="it has printed")
        assert proc.wait() == 0
        assert "MAC address is" in proc.output and "Error" not in proc.output, proc.output
        out.append({m[0] for m in re.finditer(r"10\.1\.0\.\d:\d+ +[<=]=?[=>]", proc.output)})
    assert out[0] == out[1]
    assert {line.split()[0] for line in out[0]} >= {"10.1.0.1:9000", "10.1.0.2:9001", "10.1.0.1:40000"}


@pytest.mark.nightly
def test_netdiscover(sides, play_to):
    out = []
    for side in sides:
        proc = play_to(side, "netdiscover", "-p", "-P", "-N", "-i", "{alias}")
        text = until_printed(side, proc, *(rf"{host[1]} .*\n" for host in (A, B)))
        out.append({tuple(line.split()[:2]) for line in text.splitlines() if line.strip()})
    assert out[0] == out[1] == {(A[1], A[0]), (B[1], B[0])}


@pytest.mark.nightly
def test_netdiscover_rejects_long_names(sides, play_to):
    proc = play_to(sides[1], "netdiscover", "-p", "-P", "-N", "-i", "{}")
    assert proc.wait() == 1 and "interface name is too long" in proc.output


def flows(path):
    """Packets and bytes by flow from the file of argus, which may have several records of a
    flow."""
    done = run(
        ["ra", "-n", "-u", "-c", ",", "-r", path, "-s", "proto", "saddr", "sport", "daddr", "dport", "pkts", "bytes"]
    )
    out = {}
    for line in done.stdout.splitlines():
        proto, *ends, packets, octets = line.split(",")
        if proto not in ("Proto", "man"):
            before = out.get((proto, *ends), (0, 0))
            out[proto, *ends] = before[0] + int(packets), before[1] + int(octets)
    return out


@pytest.mark.nightly
def test_argus(sides, play_to, tmp_path):
    """It requests the flags of the interface, and does not read if that fails."""
    out = []
    for i, side in enumerate(sides):
        path = tmp_path / str(i)
        proc = play_to(side, "argus", "-F", "/dev/null", "-S", "1", "-i", "{alias}", "-w", path)
        until(
            lambda: sum(packets for packets, _ in flows(path).values()) >= len(FRAMES) or not proc.alive(),
            what="all packets written",
        )
        proc.stop(signal.SIGINT)
        out.append(flows(path))
    assert out[0] == out[1]
    assert sum(octets for _, octets in out[0].values()) == sum(len(f) for f in FRAMES)


@pytest.mark.nightly
def test_arpwatch(sides, play_to, tmp_path):
    """It writes to the packets."""
    out = []
    for i, side in enumerate(sides):
        data = tmp_path / f"{i}.dat"
        data.touch()
        proc = play_to(side, "arpwatch", "-d", "-i", "{}", "-f", data, options=["--copy"])
        proc.expect(r"new station \(10.1.0.2\)")
        proc.expect(r"timestamp: .*\n")
        proc.stop(signal.SIGKILL)
        text = re.sub(r"timestamp: .*", "", plain(proc.output, side))
        out.append(re.sub(r"(new station \S+).*", r"\1", text))
    assert out[0] == out[1]
    assert A[0] in out[0] and B[0] in out[0]


@pytest.mark.nightly
def test_arpalert(sides, play_to, private_dir):
    """It requests the hardware address, to skip its own packets."""
    out = []
    private_dir.chmod(0o777)
    for i, side in enumerate(sides):
        lock, leases, conf = (private_dir / f"{i}.{what}" for what in ("lock", "leases", "conf"))
        conf.write_text(
            ARPALERT.read_text() + f"\nlock file = {lock}\nmaclist leases file = {leases}\nuser = root\nlog level = 6\n"
        )
        proc = play_to(side, "arpalert", "-F", "-f", conf, "-i", "{alias}", tty=True)
        text = until_printed(side, proc, *(rf"ip={host[1]}, type=new.*\n" for host in (A, B)))
        out.append(set(re.findall("mac=([^,]*), ip=([^,]*), type=new", text)))
    assert out[0] == out[1] == {A, B}


def test_tcpflow(sides, play_to, tmp_path):
    out = []
    for i, side in enumerate(sides):
        folder = tmp_path / str(i)
        folder.mkdir()
        proc = play_to(side, "tcpflow", "-i", "{}", "-o", folder)

        def written():  # the padding of the last packet, which comes after both ends have closed, is a third flow
            files = [f for f in folder.glob("0*") if f.stat().st_size]
            return len(files) == 3 and sum(f.stat().st_size for f in files) >= 700

        until(lambda: written() or not proc.alive(), what="both directions are written")
        proc.stop(signal.SIGINT)
        out.append({f.name: f.read_bytes() for f in folder.glob("0*")})
    assert out[0] == out[1]
    assert any(b"a page\n" * 100 in data for data in out[0].values())


@pytest.mark.nightly
def test_p0f(sides, play_to):
    out = []
    for side in sides:
        proc = play_to(side, "p0f", "-i", "{}", ready="Entered main event loop")
        proc.expect(r"http response(?s:.*?)`----")
        proc.stop(signal.SIGINT)
        # It ends without those that it has not read yet, which may be the last three.
        assert re.search("Processed [5-8] packets", proc.output)
        out.append(proc.output[proc.output.index(".-[") : proc.output.rindex("`----")])
    assert out[0] == out[1]
    assert "os       = Linux" in out[0]


@pytest.mark.nightly
def test_darkstat(sides, play_to, private_dir):
    sent, got = (
        sum(Ether(f)[IP].len for f in FRAMES if IP in Ether(f) and Ether(f)[IP].src == host[1]) for host in (A, B)
    )
    fetch = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:6677/hosts/?full=yes').read().decode())"
    out = []
    for side in sides:
        proc = play_to(
            side,
            "darkstat",
            "-i",
            "{}",
            "-l",
            "10.1.0.0/255.255.255.0",
            "--no-daemon",
            "--no-dns",
            "--no-lastseen",
            "-b",
            "127.0.0.1",
            "-p",
            "6677",
            "--chroot",
            private_dir,
            "--user",
            "root",
            "--verbose",
            ready="entering main loop",
        )

        def rows():
            page = side.space.check(["/usr/bin/python3", "-c", fetch])
            found = re.findall(r'href="./([\d.]+)/"' + 2 * r'.*?num">([\d,]+)<', page, re.DOTALL)
            found = {host: (int(into.replace(",", "")), int(out.replace(",", ""))) for host, into, out in found}
            return found if found.get(A[1], (0, 0))[1] >= sent else None

        out.append(until(rows, what="all packets counted"))
        proc.stop(signal.SIGINT)
    assert out[0] == out[1]
    assert out[0][A[1]] == out[0][B[1]][::-1] == (got, sent)


@pytest.mark.nightly
def test_httpry(sides, play_to):
    out = []
    for side in sides:
        proc = play_to(side, "httpry", "-i", "{}", ready="Starting capture", tty=True)
        for _ in range(2):
            proc.expect(r"HTTP/1\.1.*\n")
        proc.stop(signal.SIGINT)
        # On a busy machine it printed one of them twice.
        out.append(list(dict.fromkeys(line for line in plain(proc.output, side).splitlines() if "HTTP/1.1" in line)))
    assert out[0] == out[1]
    assert len(out[0]) == 2
