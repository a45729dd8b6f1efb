# SPDX-License-Identifier: BSD-3-Clause
"""Packet ids: records of one packet have the same, others another or none."""

import shutil
import signal
import struct

import pytest
from harness import fwd as fwd_module
from harness import pcap
from harness.cases import nightly
from harness.paths import BUILD
from harness.pcapng import RX, TX
from harness.proc import check, run, until
from harness.ringtap import packets_of

PACKETS = 60_000  # packets of each of two threads
IP_ID = slice(18, 20)  # bytes of a frame


@pytest.mark.parametrize("option,infer", [("--ids", 0), ("--infer-ids", 1)])
def test_ids_of_all_that_applications_do(play, record, tmp_path, option, infer):
    """rt_deeds writes down what it does with each packet, and check_ids compares."""
    app = play(program="rt_deeds")
    recorder = record(app, option, "-s", "64", "--on-full", "wait")
    app.do(f"run {PACKETS} seed=7 infer={infer} log={tmp_path}/log")
    recorder.finish()
    done = check([BUILD / "e2e" / "check_ids", recorder.out, 2 * PACKETS, f"{tmp_path}/log0", f"{tmp_path}/log1"])
    received, sent = map(int, done.split())
    assert received == 2 * PACKETS
    assert sent > PACKETS


@pytest.mark.nightly
def test_ids_of_packets_that_pass_through_another_process(deeds_and_visitor, record, tmp_path):
    """A secondary process frees half of what it gets by a ring, and passes the others back."""
    app = deeds_and_visitor()
    recorder = record(app, "--ids", "-s", "64", "--on-full", "wait")
    app.do(f"run {PACKETS // 4} seed=8 leave=1 log={tmp_path}/log")
    recorder.finish()
    done = check([BUILD / "e2e" / "check_ids", recorder.out, PACKETS // 2, f"{tmp_path}/log0", f"{tmp_path}/log1"])
    assert int(done.split()[0]) == PACKETS // 2


def test_check_ids_finds_differences(play, record, tmp_path):
    """Without inferring, packets whose flags were reset have no ids."""
    app = play(program="rt_deeds")
    recorder = record(app, "--ids", "-s", "64", "--on-full", "wait")
    app.do(f"run 1000 seed=7 infer=1 log={tmp_path}/log")
    recorder.finish()
    done = run([BUILD / "e2e" / "check_ids", recorder.out, "2000", f"{tmp_path}/log0", f"{tmp_path}/log1"])
    assert done.returncode == 1
    assert "not the id of its reception" in done.stderr and "deed 11" in done.stderr  # RESET


def number(packet):
    """The sequence number of ringtap-fwd's generator."""
    return int.from_bytes(packet.data[fwd_module.STAMP + 5 : fwd_module.STAMP + 10], "big")


@pytest.mark.smoke
def test_ids_of_ringtap_fwd(fwd, record):
    """Ports on rings: made by the generator, received, forwarded, and received again."""
    app = fwd(
        "--ring",
        "a",
        "--ring",
        "b",
        "--role",
        "generate:a@0",
        "--role",
        "oneway:a,b@1",
        "--role",
        "sink:b@0",
        "--rate",
        "20k",
        "--duration",
        "60s",
    ).running()
    recorder = record(app, "--ids", "-c", "20000")
    recorder.done()
    app.stop()
    file = recorder.file()
    names = {i.name: k for k, i in enumerate(file.interfaces)}
    by = {
        (port, direction): {
            number(p): p.id
            for p in file.packets
            if p.interface == names[f"net_ring_{port}"] and p.direction == direction
        }
        for port in "ab"
        for direction in (RX, TX)
    }
    assert set(by["a", TX].values()) == {None}
    received = by["a", RX]
    assert len(set(received.values())) == len(received) > 100 and None not in received.values()
    forwarded = {n: i for n, i in by["b", TX].items() if n in received}
    assert len(forwarded) > 100
    assert forwarded == {n: received[n] for n in forwarded}
    assert not set(by["b", RX].values()) & set(received.values())


@pytest.fixture
def echo(testpmd, tmp_path):
    """A testpmd in a forwarding mode, with two ports that receive echo requests 0 to 599 each."""

    def start(mode):
        file = pcap.write(tmp_path / "in.pcap", map(request, range(600)))
        app = testpmd(
            *(f"net_pcap{i},rx_pcap={file},tx_pcap={tmp_path}/out{i}.pcap" for i in (0, 1)), args=("--no-flush-rx",)
        )
        app.cmd(f"set fwd {mode}")
        return app

    return start


def checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def request(n):
    icmp = struct.pack(">BBHHH", 8, 0, 0, 77, n) + bytes(56)
    icmp = icmp[:2] + struct.pack(">H", checksum(icmp)) + icmp[4:]
    ip = struct.pack(
        ">BBHHHBBH4s4s", 0x45, 0, 20 + len(icmp), n, 0, 64, 1, 0, bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])
    )
    ip = ip[:10] + struct.pack(">H", checksum(ip)) + ip[12:]
    return bytes.fromhex("020000000002020000000001") + b"\x08\x00" + ip + icmp


# Whether the flag of the id gets through.
MODES = {"icmpecho": True, "mac": False}


@pytest.mark.parametrize("mode,option", [("icmpecho", "--ids"), nightly("mac", "--ids"), nightly("mac", "--infer-ids")])
def test_ids_in_forwarding_modes_of_testpmd(echo, record, mode, option):
    app = echo(mode)
    recorder = record(app, option, "-c", "2400")
    app.start()
    recorder.done()
    app.stop()
    file = recorder.file()
    got = {n: p.id for n, p in numbered(file, RX)}
    assert len(set(got.values())) == 1200 and None not in got.values()
    sent = dict(numbered(file, TX))
    assert len(sent) == 1200
    certain = option == "--infer-ids" or MODES[mode]
    back = mode == "icmpecho"  # on the port that received; others send on the other one
    assert {k: p.id for k, p in sent.items()} == {
        (port, n): got[port if back else 1 - port, n] if certain else None for port, n in sent
    }


def numbered(file, direction):
    """((port, number), packet) of each packet."""
    return [((p.interface, int.from_bytes(p.data[IP_ID], "big")), p) for p in packets_of(file, direction=direction)]


def test_generated_packets_have_no_ids(testpmd, record):
    """In raw mbufs, which were those of received packets."""
    app = testpmd("net_null0", "net_null1", args=("--no-flush-rx",))
    app.cmd("set fwd rxonly")
    recorder = record(app, "--ids", "-s", "16", "--direction", "rx")
    app.start()
    until(lambda: app.stats(0)["RX-packets"] > 20000, what="packets are received")
    app.stop()
    recorder.finish()
    app.cmd("set fwd flowgen")
    recorder = record(app, "--ids", "-s", "16", "-c", "20000")
    app.start()
    recorder.done()
    app.stop()
    sent = packets_of(recorder.file(), direction=TX)
    assert len(sent) > 100
    assert {p.id for p in sent} == {None}


def test_ids_of_two_applications_differ(play, record):
    apps = [play(), play()]
    for app in apps:
        app.ring("a")
    recorder = record(apps[0], "-i", f"{apps[1].prefix}:", "--ids", "-c", "20")
    for app in apps:
        app.rx(n=10)
    recorder.done()
    ids = [p.id for p in recorder.file().packets]
    assert len(set(ids)) == 20 and None not in ids
    assert {i >> 60 for i in ids} == {0, 1}


def test_tshark_shows_and_filters_ids(app, record):
    """Records without the option have none."""
    recorder, without = record(app, "--ids", "-c", "3"), record(app, "-c", "3")
    app.rx(n=3, hash=7)
    recorder.done()
    without.done()
    assert {p.id for p in without.file().packets} == {None}
    ids = [p.id for p in recorder.file().packets]
    assert None not in ids
    if not shutil.which("tshark"):
        pytest.skip("tshark is not installed")
    fields = check(["tshark", "-r", recorder.out, "-T", "fields", "-e", "frame.packet_id"])
    assert [int(line, 0) for line in fields.split()] == ids
    found = check(
        ["tshark", "-r", recorder.out, "-Y", f"frame.packet_id == {ids[1]}", "-T", "fields", "-e", "frame.number"]
    )
    assert found.split() == ["2"]


def test_ids_end_with_the_recording(app, record):
    """A killed recorder leaves nothing behind: hooks are removed, ids go on."""
    recorder = record(app, "--ids")
    app.rx(n=5)
    recorder.proc.send_signal(signal.SIGKILL)
    recorder.proc.wait()
    app.unhooked()
    recorder = record(app, "--ids", "-c", "5")
    app.rx(n=5)
    recorder.done()
    assert [p.id & 0xFFFFFFFF for p in recorder.file().packets] == [6, 7, 8, 9, 10]
