# SPDX-License-Identifier: BSD-3-Clause
"""ringtap-fwd: the same roles over DPDK devices and packet sockets, between two hosts."""

import struct
import sys

import pytest
from harness import pcap
from harness.cases import nightly
from harness.proc import check, run

COUNT = 300


@pytest.fixture
def wire(net):
    """Two namespaces and a wire; returns (namespace, interface) of both ends."""
    host, port = net.add_host("192.0.2.1")
    return (net.hub, port), (host, "eth0")


def on(plane, interface):
    """Options and the port's name of a plane on an interface."""
    if plane == "af_packet":
        return ["--vdev", f"net_af_packet0,iface={interface}"], "0"
    return ["--plane", *plane.split()], interface


@pytest.mark.parametrize("plane", ["packet --sleep", nightly("af_packet")])
def test_round_trips_one_at_a_time(fwd, wire, plane):
    (here, near), (there, far) = wire
    args, port = on(plane, far)
    echo = fwd(*args, "--role", f"echo:{port}@1", "--mac-swap", "--latency-sample", 1, namespace=there).running()
    args, port = on(plane, near)
    report = fwd(
        *args,
        "--role",
        f"generate:{port}@0",
        "--rate",
        "max",
        "--rtt",
        "--outstanding",
        1,
        "--timeout",
        "20s",
        "--packets",
        COUNT,
        namespace=here,
    ).done()
    generator = report.role("generate")
    assert report["ended_by"] == "count"
    assert generator["replies"]["unique"] == generator["round_trip"]["packets"] == COUNT
    assert generator["replies"]["lost"] == generator["replies"]["duplicated"] == 0
    assert generator["timeouts"] == 0
    trip = generator["round_trip"]["cycles"]
    assert 0 < trip["min"] <= trip["p50"] <= trip["p90"] <= trip["p99"] <= trip["max"]
    assert trip["min"] <= trip["mean"] <= trip["max"]
    way = echo.stop().role("echo")
    assert way["latency"]["packets"] == way["time_per_packet"]["packets"] == COUNT
    assert way["total"]["rx_packets"] == way["total"]["tx_packets"] == COUNT
    assert 0 < way["overhead_cycles"] <= way["latency"]["cycles"]["min"] <= way["time_per_packet"]["cycles"]["max"]
    # A round trip includes the time in the forwarder.
    assert generator["round_trip"]["ns"]["mean"] > way["latency"]["ns"]["min"]


def test_nothing_is_lost_or_changed_below_the_limit(fwd, wire, tmp_path):
    """UDP of mixed sizes over the wire into a sink; a capture of the kernel shows the same packets."""
    plane = "packet-mmap"
    (here, near), (there, far) = wire
    args, port = on(plane, far)
    sink = fwd(*args, "--role", f"sink:{port}@1", "--packets", 240, namespace=there).running()
    path = tmp_path / "wire.pcap"
    dump = there.start(["tcpdump", "-i", far, "-U", "-w", path, "-c", 240, "udp"])
    dump.expect("listening on")
    args, port = on(plane, near)
    report = fwd(
        *args,
        "--role",
        f"generate:{port}@0",
        "--rate",
        "1k",
        "--packets",
        240,
        "--frame",
        "udp",
        "--sizes",
        "imix",
        namespace=here,
    ).done()
    assert report.total("generate")["tx_packets"] == 240
    dump.wait()
    frames = pcap.frames(path)
    assert [int.from_bytes(f[47:52], "big") for f in frames] == list(range(240))
    assert sorted(len(f) for f in frames) == [60] * 140 + [590] * 80 + [1514] * 20
    got = sink.done().role("sink")
    assert got["sequence"]["unique"] == 240
    assert got["sequence"]["lost"] == got["sequence"]["reordered"] == got["unstamped"] == 0


def by_the_kernel(fwd, wire, path, rate):
    """Errors of the generator's rate and of its TSC rate, by time stamps of the kernel. On a busy
    machine frames are late, never early: compares the earliest ones at the beginning and at the
    end."""
    (here, near), (there, far) = wire
    dump = there.start(["tcpdump", "-i", far, "-U", "-w", path, "-c", rate, "udp"])
    dump.expect("listening on")
    report = fwd(
        "--plane",
        "packet",
        "--role",
        f"generate:{near}@0",
        "--rate",
        rate,
        "--packets",
        rate,
        "--frame",
        "udp",
        namespace=here,
    ).done()
    dump.wait()
    packets = list(read_times(path))
    assert len(packets) == rate
    late = [t - n / rate for n, (t, _tsc) in enumerate(packets)]
    early, tail = min(late[: rate // 5]), min(late[-rate // 5 :])
    shift = [t - tsc / report["tsc_hz"] for t, tsc in packets]
    drift = min(shift[-rate // 5 :]) - min(shift[: rate // 5])
    return abs(tail - early) / 0.8, abs(drift) / 0.8


def read_times(path):
    """(seconds, TSC in the frame) of each packet of a tcpdump file."""
    data = path.read_bytes()
    (first,) = struct.unpack_from("<I", data, 24)
    at = 24
    while at < len(data):
        seconds, micros, length = struct.unpack_from("<III", data, at)
        (tsc,) = struct.unpack_from(">Q", data, at + 16 + 52)
        yield seconds - first + micros / 1e6, tsc
        at += 16 + length


@pytest.mark.nightly
@pytest.mark.alone
def test_rate_by_the_kernels_clock(fwd, wire, tmp_path):
    """Independent of the clock that the generator uses, within 0.2 %."""
    assert max(by_the_kernel(fwd, wire, tmp_path / "rate.pcap", 2000)) < 0.002


def test_too_long_frames_are_errors(fwd, wire):
    """Every other frame is longer than the MTU: it delays nothing, and does not count as sent."""
    (here, near), (there, far) = wire
    for plane, policy in (("packet", "retry"), ("packet-mmap", "drop")):
        sink = fwd("--plane", plane, "--role", f"sink:{far}@1", "--packets", 100, namespace=there).running()
        report = fwd(
            "--plane",
            plane,
            "--role",
            f"generate:{near}@0",
            "--rate",
            "2k",
            "--packets",
            200,
            "--frame",
            "udp",
            "--sizes",
            "60,2000",
            "--tx-full",
            policy,
            namespace=here,
        ).done()
        generator = report.role("generate")
        assert generator["total"]["tx_packets"] == generator["total"]["tx_errors"] == 100
        assert generator["total"]["tx_refused"] == 0
        assert "too long" in generator["tx_error"]
        got = sink.done().role("sink")["sequence"]
        assert (got["received"], got["lost"]) == (100, 99)  # losses behind the last one are unknown


@pytest.mark.nightly
def test_temporarily_full_queue(fwd, wire, tmp_path):
    """The kernel refuses, or stops in the middle of a burst: all packets that count as sent
    arrive. To send the last ones takes longer than a second."""
    (here, near), (there, far) = wire
    here.check(["tc", "qdisc", "add", "dev", near, "root", "tbf", "rate", "1mbit", "burst", "1600", "limit", "3000"])
    for plane in ("packet", "packet-mmap"):
        path = tmp_path / f"{plane}.pcap"
        dump = there.start(["tcpdump", "-i", far, "-U", "-w", path, "-c", COUNT, "udp"])
        dump.expect("listening on")
        report = fwd(
            "--plane",
            plane,
            "--role",
            f"generate:{near}@0",
            "--rate",
            "max",
            "--packets",
            COUNT,
            "--frame",
            "udp",
            "--sizes",
            "590",
            namespace=here,
        ).done()
        assert report.total("generate")["tx_packets"] == COUNT
        assert report.total("generate")["tx_unsent"] == 0
        dump.wait()
        assert [int.from_bytes(f[47:52], "big") for f in pcap.frames(path)] == list(range(COUNT))


@pytest.mark.nightly
def test_forwarding_too_long_frames(fwd, net, closing):
    """From an interface with a large MTU to one with a small one."""
    first, left = net.add_host("192.0.2.1")
    second, right = net.add_host("192.0.2.2")
    for ns, name in ((first, "eth0"), (net.hub, left)):
        ns.check(["ip", "link", "set", name, "mtu", "3000"])
    for plane, policy in (("packet", "drop"), ("packet-mmap", "retry")):
        way = fwd(
            "--plane", plane, "--role", f"oneway:{left},{right}@1", "--tx-full", policy, namespace=net.hub
        ).running()
        last = closing(second.start(["tcpdump", "-i", "eth0", "-c", 101, "udp", "dst", "port", 0x5254]))
        last.expect("listening on")
        fwd(
            "--plane",
            "packet",
            "--role",
            "generate:eth0@0",
            "--rate",
            "2k",
            "--packets",
            201,
            "--frame",
            "udp",
            "--sizes",
            "60,2000",
            namespace=first,
        ).done()
        assert last.wait() == 0
        role = way.stop().role("oneway")
        total = role["total"]
        assert total["tx_errors"] == 100
        assert total["rx_packets"] == total["tx_packets"] + total["tx_errors"]
        assert total["tx_packets"] >= 101  # and packets that the hosts send
        assert "too long" in role["tx_error"]


def test_forwarding_between_interfaces(fwd, net):
    """A host pings another through the forwarder. When an interface is removed it keeps running."""
    plane = "packet-mmap"
    first, left = net.add_host("192.0.2.1")
    _second, right = net.add_host("192.0.2.2")
    way = fwd("--plane", plane, "--role", f"forward:{left},{right}@1", namespace=net.hub).running()
    output = first.check(["ping", "-c", 5, "-i", "0.05", "-w", 20, "-s", 1000, "192.0.2.2"])
    assert "5 received" in output
    check([*net.hub.prefix, "ip", "link", "del", left])
    report = way.stop()
    assert report["ended_by"] == "signal"
    there, back = report["roles"]
    for role in (there, back):
        assert role["total"]["rx_packets"] >= 6  # pings and ARP
        assert role["total"]["tx_dropped"] == 0


def test_packet_plane_uses_one_call_per_packet_and_no_dpdk(fwd, wire, tmp_path):
    """No runtime folder, no huge page, no memory of EAL."""
    if run(["strace", "-V"]).returncode:
        pytest.skip("needs strace")
    (here, near), (there, far) = wire
    sink = fwd(
        "--plane",
        "packet",
        "--role",
        f"sink:{far}@1",
        "--packets",
        COUNT,
        "--burst",
        8,
        json_out=False,
        namespace=there,
        around=("strace", "-f", "-e", "trace=read,recvfrom", "-o", tmp_path / "rx"),
    ).running()
    fwd(
        "--plane",
        "packet",
        "--role",
        f"generate:{near}@0",
        "--rate",
        "1k",
        "--packets",
        COUNT,
        "--burst",
        8,
        json_out=False,
        namespace=here,
        around=("strace", "-f", "-e", "trace=write,sendto", "-o", tmp_path / "tx"),
    ).done()
    text = sink.done()
    assert f"received {COUNT} in" in text and "missed 0" in text
    packet = [line for line in (tmp_path / "rx").read_text().splitlines() if line.endswith(" = 60")]
    assert len(packet) == COUNT
    packet = [line for line in (tmp_path / "tx").read_text().splitlines() if line.endswith(" = 60")]
    assert len(packet) == COUNT
    app = fwd("--plane", "packet", "--role", f"sink:{near}@1", namespace=here).running()
    maps = open(f"/proc/{app.proc.pid}/maps", encoding="ascii").read()
    assert "hugepage" not in maps and "/dev/hugepages" not in maps
    threads = run(["ps", "-L", "-o", "comm=", "-p", app.proc.pid]).stdout.split()
    assert sorted(threads) == ["fwd-1", "ringtap-fwd"]  # none of EAL's
    assert app.stop()["memory"] is None


@pytest.mark.nightly
def test_memif_between_two_processes(fwd, tmp_path):
    """net_memif of DPDK 22.11 unmaps memory that threads poll when the peer ends: the echo stops
    polling before."""
    socket = f"socket-abstract=no,socket={tmp_path}/memif"
    echo = fwd(
        "--vdev",
        f"net_memif0,role=server,{socket}",
        "--role",
        "echo:0@1",
        "--mac-swap",
        "--packets",
        COUNT,
        "--linger",
        "1s",
    ).running()
    report = fwd(
        "--vdev",
        f"net_memif0,role=client,{socket}",
        "--role",
        "generate:0@0",
        "--rate",
        "2k",
        "--packets",
        COUNT,
        "--rtt",
        "--timeout",
        "20s",
    ).done()
    generator = report.role("generate")
    assert generator["replies"]["unique"] == COUNT
    assert generator["replies"]["lost"] == 0
    assert echo.done().total("echo")["tx_packets"] == COUNT


# On a line "answer N", sends the N-th frame of a stream back with exchanged addresses. Prints the
# number of each received frame.
PEER = """
import os, select, socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.bind((sys.argv[1], 0))
s.setsockopt(263, 23, 1)  # SOL_PACKET, PACKET_IGNORE_OUTGOING
frames = {}
print("ready", flush=True)
while True:
    for it in select.select([s, 0], [], [])[0]:
        if it is s:
            f = s.recv(2048)
            if f[42:46] == b"RTfw":
                frames[int.from_bytes(f[47:52], "big")] = f[6:12] + f[:6] + f[12:]
                print("frame", int.from_bytes(f[47:52], "big"), flush=True)
        else:
            for word in os.read(0, 64).split():
                s.send(frames[int(word)])
"""


@pytest.fixture
def peer(wire):
    """A peer that answers on command; and namespace and interface of the generator."""
    (here, near), (there, far) = wire
    it = there.start([sys.executable, "-c", PEER, far])
    it.expect("^ready")
    return it, here, near


@pytest.mark.nightly
def test_packets_in_flight(fwd, peer):
    """A packet that times out is replaced, and its late reply frees no place."""
    it, here, near = peer
    app = fwd(
        "--plane",
        "packet",
        "--role",
        f"generate:{near}@0",
        "--rate",
        "max",
        "--rtt",
        "--outstanding",
        1,
        "--timeout",
        "2s",
        "--packets",
        3,
        namespace=here,
    )
    it.expect("^frame 0$")
    it.expect("^frame 1$")
    it.send("0 1")
    it.expect("^frame 2$")
    it.send("2")
    generator = app.done().role("generate")
    assert generator["timeouts"] == 1
    assert generator["replies"]["unique"] == 3
