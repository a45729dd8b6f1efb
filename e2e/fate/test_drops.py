# SPDX-License-Identifier: BSD-3-Clause
"""ringtap drops with unmodified programs: what they drop is shown, exactly and with an example."""

import json
import os
import signal
import struct

import pytest
from harness import pcap, tmux
from harness.documents import only
from harness.known import Measuring
from harness.paths import RINGTAP
from harness.proc import check, freeze, until
from harness.tmux import Terminal

PACKETS = 600  # packets of each port
OFFERED, INFERRED, DROPPED = "offered", "inferred", "not_offered"
# Modes that reset the flags of mbufs lose the mark of a packet: that it was sent is likely.
FORWARDING = {
    "io": OFFERED,
    "noisy": OFFERED,
    "mac": INFERRED,
    "macswap": INFERRED,
    "5tswap": INFERRED,
    "csum": INFERRED,
    "rxonly": DROPPED,
    "shared_rxq": DROPPED,
}


def udp(number, to="198.18.0.1", length=100):
    """A frame from port 1024 of 192.0.2.1."""
    data = struct.pack(">HHHH", 1024, 4000 + number % 4, length - 34, 0) + bytes(length - 42)
    ip = struct.pack(
        ">BBHHHBBH4s4s",
        0x45,
        0,
        length - 14,
        number,
        0,
        64,
        17,
        0,
        bytes([192, 0, 2, 1]),
        bytes(map(int, to.split("."))),
    )
    total = sum(struct.unpack(">10H", ip))
    total = (total & 0xFFFF) + (total >> 16)
    ip = ip[:10] + struct.pack(">H", 0xFFFF - (total & 0xFFFF) - (total >> 16)) + ip[12:]
    return bytes.fromhex("020000000001020000000002") + b"\x08\x00" + ip + data


def arp():
    return bytes.fromhex(
        "ffffffffffff02000000000208060001080006040001020000000002c0000201000000000000c0000202"
    ) + bytes(18)


@pytest.fixture
def drops(closing):
    """drops(app, option, ...) runs until it gets a signal, and prints one document then."""
    return lambda app, *args: closing(
        Measuring("drops", app, "--once", "--duration", "1h", "--json", "--buffer", "16M", *args)
    )


@pytest.fixture
def with_packets(testpmd, tmp_path):
    """A testpmd with two ports, each of which receives PACKETS after its start: one in four is ARP."""

    def start(mode):
        file = pcap.write(tmp_path / "in.pcap", [udp(i) if i % 4 else arp() for i in range(PACKETS)])
        app = testpmd(
            *(f"net_pcap{i},rx_pcap={file},tx_pcap={tmp_path}/out{i}.pcap" for i in (0, 1)),
            args=("--no-flush-rx", "--rxq-share"),
        )
        assert f"Set {mode} packet forwarding mode" in app.cmd(f"set fwd {mode}")
        return app

    return start


def run_all(app):
    """Until everything has been received."""
    app.start()
    until(lambda: sum(app.stats(port)["RX-packets"] for port in (0, 1)) == 2 * PACKETS, what="everything is received")
    app.stop()


def assert_sums(report):
    """Every received packet is exactly one of four."""
    for what in [report, *report["queues"]]:
        assert what["received"] == what["offered"] + what["not_offered"] + what["open"] + what["unknown"], report
    assert report["received"] == sum(q["received"] for q in report["queues"])


def test_modes_of_testpmd(with_packets, drops):
    """Ports that start again receive the same packets again."""
    app = with_packets("io")
    for mode, kind in FORWARDING.items():
        app.cmd("port stop all")
        assert f"Set {mode} packet forwarding mode" in app.cmd(f"set fwd {mode}")
        app.cmd("port start all")
        app.cmd("clear port stats all")
        it = drops(app)
        run_all(app)
        report = it.json(signal.SIGINT)
        assert_sums(report)
        assert report["received"] == 2 * PACKETS, mode
        assert report["open"] == 0, mode
        assert report["offered"] == (2 * PACKETS if kind == OFFERED else 0), mode
        assert report["unknown"] == (2 * PACKETS if kind == INFERRED else 0), mode
        assert report["not_offered"] == (2 * PACKETS if kind == DROPPED else 0), mode
        assert report["not_offered_packets"]["packets"] == report["not_offered"] and report["lost"] == 0, mode
        assert not report["copies_not_seen"]
        # Both count from the same moment, to the end.
        assert sum(p["offered"] for p in report["ports"]) == (0 if kind == DROPPED else 2 * PACKETS), mode


def fields(path, *names):
    text = check(["tshark", "-r", path, "-T", "fields", *(x for name in names for x in ("-e", name))])
    return [line.split("\t") for line in text.splitlines()]


def assert_examples(packets):
    kinds = {p["protocol"]: p for p in packets["protocols"]}
    assert {k: p["packets"] for k, p in kinds.items()} == {"IPv4 UDP": 2 * 450, "ARP": 2 * 150}
    example = kinds["ARP"]["example"]
    assert example["packet"] == "192.0.2.1 > 192.0.2.2 ARP, 60 bytes"
    assert example["port"]["name"] in ("net_pcap0", "net_pcap1") and example["queue"] == 0
    assert 0 < example["age_ns"] < 60e9
    flows = {f["flow"]: f["packets"] for f in packets["flows"]}
    assert flows["192.0.2.1:1024 > 198.18.0.1:4001 UDP"] == 300
    assert [s["packets"] for s in packets["sizes"]][:2] == [300, 900]


def test_examples_and_file_of_all_of_some_and_of_a_port(with_packets, drops, tmp_path):
    """By protocol and flow; the file has exactly the packets."""
    path, arps = tmp_path / "dropped.pcapng", tmp_path / "arp.pcapng"
    app = with_packets("rxonly")
    it = drops(app, "-w", path, "-s", "64")
    some = drops(app, "-f", "arp", "-w", arps)
    of_port = drops(type("App", (), {"prefix": f"{app.prefix}:1"}))
    before = float(check(["date", "+%s.%N"]))
    run_all(app)
    after = float(check(["date", "+%s.%N"]))
    report = it.json(signal.SIGINT)
    assert_examples(report["not_offered_packets"])
    rows = fields(path, "frame.time_epoch", "frame.len", "frame.cap_len", "frame.interface_name", "frame.comment")
    assert len(rows) == 2 * PACKETS == report["not_offered"]
    for time, length, kept, name, comment in rows:
        assert before <= float(time) <= after and length in ("60", "100")
        assert int(kept) == min(64, int(length)) and name in ("net_pcap0", "net_pcap1")
        assert comment.startswith("not offered to any port; ") and " after its reception" in comment
    assert "1200" in check(["capinfos", "-M", "-c", path])
    report, one = some.json(signal.SIGINT), of_port.json(signal.SIGINT)
    assert report["not_offered"] == 1200 and report["not_offered_packets"]["packets"] == 300
    assert len(fields(arps, "arp.opcode")) == 300
    assert one["received"] == one["not_offered"] == one["not_offered_packets"]["packets"] == PACKETS
    assert {q["port"]["name"] for q in one["queues"]} == {"net_pcap1"}


def test_packets_without_end(testpmd, drops, closing):
    """Generated ones are not received. Received ones come back, as their mbufs do: hooks notice, with a line each interval.
    A full buffer loses examples, which are counted, and totals stay exact."""
    app = testpmd("net_null0", "net_null1", args=("--no-flush-rx",))
    app.cmd("set fwd txonly")
    it = drops(app)
    app.start()
    until(lambda: app.stats(1)["TX-packets"] > 20000, what="packets are sent")
    app.stop()
    report = it.json(signal.SIGINT)
    assert_sums(report)
    assert report["received"] == 0 and report["not_offered_packets"]["packets"] == 0
    ports = {p["name"]: p for p in report["ports"]}
    assert ports["net_null1"]["offered"] > 20000 and ports["net_null1"]["refused"] == 0

    app.cmd("set fwd rxonly")
    it = closing(Measuring("drops", app, "--json", "--interval", "0.2s", "--buffer", "16M"))
    app.start()

    def shown_so_far():
        return only(json.loads(it.proc.expect(r"^\{.*\}$").group()))["not_offered"]

    until(lambda: shown_so_far() > 8192, what="more than there are mbufs")
    lines = [json.loads(line) for line in it.finish(signal.SIGINT).splitlines() if line.startswith("{")]
    two = closing(Measuring("drops", app, "--json", "--interval", "0.2s", "--updates", "2", "--buffer", "16M")).finish()
    app.stop()
    assert sum(line.startswith("{") for line in two.splitlines()) == 3
    assert len(lines) >= 2 and lines[-1]["final"] and not lines[0]["final"]
    lines = [only(line) for line in lines]
    for line in lines:
        assert_sums(line)
    last = lines[-1]
    shown = last["not_offered_packets"]
    assert last["not_offered"] > 8192 and shown["protocols"][0]["example"]["packet"]
    assert shown["packets"] + last["lost"] == last["not_offered"]

    it = closing(Measuring("drops", app, "--once", "--duration", "1h", "--json", "--buffer", "1M"))
    freeze(it.proc.pid)
    app.start()
    before = app.stats(0)["RX-packets"]
    until(lambda: app.stats(0)["RX-packets"] > before + 200000, what="more than the buffer holds")
    app.stop()
    it.proc.send_signal(signal.SIGCONT)
    report = it.json(signal.SIGINT)
    assert_sums(report)
    assert report["lost"] > 0 and report["open"] == 0
    assert report["not_offered_packets"]["packets"] + report["lost"] == report["not_offered"] == report["received"]


def test_on_a_terminal(with_packets, closing):
    reason = tmux.missing()
    if reason:
        pytest.skip(reason)
    app = with_packets("rxonly")
    # The window stays for what is printed at the end.
    command = f"{RINGTAP} drops --interval 0.2s --buffer 16M {app.prefix}; echo ended $?; cat"
    window = closing(Terminal(["sh", "-c", command], 80, 40, {"LC_ALL": "C.UTF-8"}))
    window.shows("q quit")
    run_all(app)
    screen = window.shows("1,200 not offered")
    assert all(len(line) <= 80 for line in screen) and len(screen) <= 40
    window.keys("Down", "Space")
    window.shows("PAUSED")
    window.keys("q")
    screen = window.shows("ended 0")
    assert any("IPv4 UDP" in line for line in screen) and not any("q quit" in line for line in screen)


@pytest.mark.smoke
def test_application_is_killed(with_packets, drops, tmp_path):
    """Nobody can say any more what is free: packets that it had are open."""
    path = tmp_path / "dropped.pcapng"
    app = with_packets("io")
    it = drops(app, "-w", path)
    run_all(app)
    os.kill(app.pid, signal.SIGKILL)
    output = it.finish()
    report = only(json.loads(output[output.index("{") :]))
    assert "has ended" in output and report["ended"]
    assert_sums(report)
    assert report["received"] == report["offered"] == 2 * PACKETS
    assert check(["capinfos", "-M", "-c", path])


def test_packets_of_a_bonding_port_count_once(testpmd, closing):
    """Their mbufs pass two receiving functions, of a member and of the bond; then the application sends all."""
    app = testpmd(
        "net_null0", "net_null1", "net_bonding0,mode=0,slave=net_null0,slave=net_null1", args=["--no-flush-rx"]
    )
    it = closing(Measuring("drops", app, "--once", "--duration", "1h", "--json", "--buffer", "16M"))
    app.start()
    until(lambda: app.stats(2)["RX-packets"] > 10000, what="packets of the bond")
    app.stop()
    report = it.json(signal.SIGINT)
    assert_sums(report)
    assert report["not_offered"] == report["open"] == 0
    assert report["offered"] == report["received"] > 10000
    assert report["upper_port"]["name"] == "net_bonding0"


def test_starts_stops_and_new_ports_under_load_show_no_drops(testpmd, drops):
    """testpmd offers all that it receives, also what is on its way when the command begins and ends. What it sends on ports
    that are new to the session is unknown at most, for a few ticks."""
    app = testpmd("net_null0", "net_null1", args=("--no-flush-rx",))
    app.start()
    for _ in range(5):
        report = only(
            json.loads(
                check([RINGTAP, "drops", "--once", "--interval", "0.1s", "--json", "--buffer", "16M", app.prefix])
            )
        )
        assert_sums(report)
        assert report["received"] > 0
        assert report["not_offered"] == 0, report["not_offered_packets"]
        assert report["unknown"] == 0
    it = drops(app)
    app.stop()
    for i in (2, 3):
        assert f"Port {i} is attached" in app.cmd(f"port attach net_null{i}")
        app.cmd(f"port start {i}")
    app.start()
    until(lambda: app.stats(3)["RX-packets"] > 100_000, what="packets of the new ports")
    app.stop()
    report = it.json(signal.SIGINT)
    assert_sums(report)
    assert report["received"] > 200_000 and report["not_offered"] == 0, report
    assert report["unknown"] == report["unseen"]
