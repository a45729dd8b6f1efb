# SPDX-License-Identifier: BSD-3-Clause
"""The drivers of real network cards, as QEMU models these, behind an emulated IOMMU. The test is the other end of
both wires, and reads what ringtap recorded in the guest."""

import json
import re
import signal
import struct
import subprocess

import pytest
from harness import pcapng
from harness.cards import CARDS, PEER, chosen, model, qemu, udp
from harness.machine import FRAME_S, Machine, mac
from harness.paths import BUILD, RINGTAP
from harness.pcapng import RX, TX
from harness.proc import until, within
from harness.ringtap import frames_of, packets_of
from scapy.all import IP, TCP, UDP, Dot1Q, Ether, IPv6, Raw

FULL = 1514
TCP_HEADER = 20


def pytest_generate_tests(metafunc):
    if "card" in metafunc.fixturenames:
        metafunc.parametrize("card", chosen(), indirect=True, scope="module")


class Guest:
    """Two cards of a kind, both of testpmd."""

    def __init__(self, card):
        self.card = card
        self.machine = Machine([model(card)] * 2, qemu=qemu(card))
        self.wires = self.machine.wires
        self.addresses = [self.machine.address(i) for i in range(2)]
        for address in self.addresses:
            self.machine.ask("bind", address=address)
        self.pmd = self.recorder = None
        self.count = 0

    def start(self, *args, name="app", eal=()):
        """testpmd with these arguments, forwarding between both cards."""
        self.stop()
        self.count += 1
        self.name = f"{name}{self.count}"
        self.pmd = self.machine.start(
            self.name,
            [
                "dpdk-testpmd",
                "-l",
                "0,1",
                "-m",
                "256",
                "--file-prefix",
                self.name,
                "-d",
                BUILD / "probe" / "libringtap-probe.so",
                *[x for a in self.addresses for x in ("-a", a)],
                *eal,
                "--",
                "-i",
                "--no-mlockall",
                "--total-num-mbufs=8192",
                *args,
            ],
        )
        self.pmd.expect(r"^testpmd> ")
        return self.pmd

    def stop(self):
        if self.pmd:
            self.machine.ask("write", name=self.pmd.name, text="quit\n")
            assert self.pmd.wait() == 0, self.pmd.output[-3000:]
        self.pmd = None

    def record(self, *args):
        """Starts a recording of the application."""
        self.recorded = self.machine.work / f"{self.name}-{len(list(self.machine.work.iterdir()))}.pcapng"
        self.recorder = self.machine.start(
            f"{self.recorded.stem}",
            [
                RINGTAP,
                "record",
                "-i",
                self.name,
                "--buffer",
                "16M",
                "-w",
                f"/run/ringtap-guest/{self.recorded.name}",
                *args,
            ],
        )
        self.recorder.expect(r"^Capturing on")

    def recording(self):
        """Ends it, and returns the file after tshark has read it, too."""
        self.recorder.signal(signal.SIGINT)
        assert self.recorder.wait() == 0, self.recorder.output
        file = pcapng.read(self.recorded)
        lines = subprocess.run(
            ["tshark", "-r", self.recorded, "-T", "fields", "-e", "frame.len"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()
        assert [int(n) for n in lines] == [p.length for p in file.packets]
        return file

    def statistics(self, port):
        """The port's object of `ringtap top`."""
        done = self.machine.run(RINGTAP, "top", "--once", "--json", "--interval", "0.1s", self.name)
        app = json.loads(done["out"])["applications"][0]
        return next(p for p in app["ports"] if p["name"] == self.addresses[port])

    def export(self):
        """Starts `ringtap export` for counters. Its port is its own: that of a test that failed still runs."""
        self.listens = f"127.0.0.1:{9700 + self.count}"
        program = self.machine.start(f"export{self.count}", [RINGTAP, "export", "--listen", self.listens, self.name])
        program.expect(r"http://\S+")
        return program

    def counter(self, port, name):
        """A counter of the driver, as `ringtap export` has it."""
        text = self.machine.run(
            "python3",
            "-c",
            f"import urllib.request; print(urllib.request.urlopen('http://{self.listens}/metrics').read().decode())",
        )["out"]
        label = f'port="{self.addresses[port]}"'
        lines = [line for line in text.splitlines() if line.startswith(f"ringtap_port_{name}{{") and label in line]
        assert len(lines) == 1, text
        return int(float(lines[0].split()[-1]))

    def pass_through(self, frames, count=None):
        """Sends frames into wire 0; returns those of wire 1."""
        for frame in frames:
            self.wires[0].send(bytes(frame))
        got = []
        for _ in range(len(frames) if count is None else count):
            got.append(self.wires[1].receive(FRAME_S))
            assert got[-1] is not None, (
                f"{len(got) - 1} of {len(frames)} frames came through\n{self.pmd.output[-2000:]}"
            )
        return got

    def quiet(self):
        """Nothing more comes."""
        return self.wires[1].receive(0.5) is None

    def close(self):
        self.machine.close()


@pytest.fixture(scope="module")
def card(request):
    guest = Guest(request.param)
    yield guest
    guest.close()


def within_or_none(seconds, condition):
    try:
        return within(seconds, condition)
    except AssertionError:
        return None


def test_list(card, record_property):
    card.start()
    found = json.loads(card.machine.run(RINGTAP, "list", "--json")["out"])["applications"][0]
    drivers = {p["name"]: p["driver"] for p in found["ports"]}
    assert drivers == dict.fromkeys(card.addresses, CARDS[card.card])
    record_property("seen", ", ".join(sorted(set(drivers.values()))))


def test_record(card, record_property):
    """The recording equals the frames on the wires, byte for byte: of all sizes, received and sent."""
    card.start()
    card.pmd.say("set promisc all on")
    card.pmd.say("start")
    sent = [udp(i, length) for i, length in enumerate([60, 61, 64, 128, 700, 1513, FULL] * 20)]
    card.record()
    came = card.pass_through(sent)
    file = card.recording()
    assert frames_of(file, card.addresses[0], RX) == sent == came == frames_of(file, card.addresses[1], TX)
    pcapng.assert_in_order(file)
    record_property("seen", f"{len(sent)} received and {len(came)} sent")


def toeplitz(key, data):
    value = 0
    window = int.from_bytes(key[:4], "big")
    bits = int.from_bytes(key, "big")
    total = len(key) * 8
    for i in range(len(data) * 8):
        if data[i // 8] >> (7 - i % 8) & 1:
            value ^= window
        if 32 + i < total:
            window = (window << 1 | bits >> (total - 33 - i) & 1) & 0xFFFFFFFF
    return value


def test_rss_hash(card, record_property):
    card.start()
    if re.search(r"Max possible RX queues: 1\s", card.pmd.say("show port info 0")):
        pytest.skip("the model has one RX queue (show port info)")
    card.start("--rxq=2", "--txq=2", "--rss-ip")
    info = card.pmd.say("show port info 0")
    if ("RSS offload flow types" not in info and "Supported RSS" not in info) or "No RSS" in info:
        pytest.skip("the driver has no RSS (show port info)")
    key = re.search(r"RSS key:\s*([0-9A-Fa-f]+)", card.pmd.say("show port 0 rss-hash key"))
    card.pmd.say("set promisc all on")
    card.pmd.say("start")
    card.record()
    sent = [udp(i) for i in range(64)]
    card.pass_through(sent)
    got = packets_of(card.recording(), card.addresses[0], RX)
    assert sorted(p.data for p in got) == sorted(sent)
    hashes = {p.data: p.options.get(3) for p in got}
    if not any(hashes.values()):
        pytest.skip(f"the card gave no hash; queues {sorted({p.queue for p in got})} were used")
    assert key, card.pmd.output[-2000:]
    for data, values in hashes.items():
        assert values[0][0] == 5  # Toeplitz
        want = toeplitz(bytes.fromhex(key.group(1)), data[26:34])
        assert struct.unpack("<I", values[0][1:5])[0] == want
    queues = sorted({p.queue for p in got})
    record_property("seen", f"{len(hashes)} hashes, queues {', '.join(map(str, queues))}")


def test_stripped_vlan(card, record_property):
    """The card takes the tag off; the recording has it."""
    card.start()
    card.pmd.say("set promisc all on")
    said = card.pmd.say("vlan set strip on 0")
    card.pmd.say("start")
    card.record()
    sent = [
        bytes(
            Ether(dst=mac(0), src=PEER)
            / Dot1Q(vlan=100 + i, prio=i % 8)
            / IP(src="10.0.0.1", dst="10.0.0.2")
            / UDP()
            / Raw(bytes(100))
        )
        for i in range(20)
    ]
    came = card.pass_through(sent)
    got = frames_of(card.recording(), card.addresses[0], RX)
    assert got == sent
    if came == sent:
        pytest.skip(f"the card left the tags on: {' '.join(said.split())[:80]}")
    assert came == [f[:12] + f[16:] for f in sent]  # testpmd sends what it has, without the tag
    record_property("seen", f"{len(sent)} tags put back")


def offered(card, capability):
    """Whether the driver offers to do that for packets that are sent."""
    return re.search(rf"\b{capability}\b", card.pmd.say("show port 0 tx_offload capabilities"))


REFUSED = r"Preparing packet burst to transmit failed: (.*?)\s*$"


def segment_or_refusal(card, since):
    """The first frame that comes out of wire 1, or what testpmd reports: one of both is None."""

    def found():
        frame = card.wires[1].receive(0.1)
        report = re.search(REFUSED, card.pmd.output[since:], re.MULTILINE)
        return (frame, None) if frame else report and (None, report.group(1))

    return until(found, FRAME_S, what="a segment, or a report of testpmd")


def fragments(frames, packet, head):
    """Whether the frames are the packet cut behind its IP header (head bytes): only the first has its TCP header. Older
    versions of QEMU's code for all models that have TSO cut so; newer ones make segments of TCP."""
    pieces = b"".join(f[head:] for f in frames)
    return len(pieces) == len(packet) - head and pieces[TCP_HEADER:] == packet[head + TCP_HEADER :]


def test_tso(card, record_property):
    """The recording has the packet as it was offered, the wire what the card has cut it into. testpmd sets
    RTE_MBUF_F_TX_IP_CKSUM with TSO of IPv4, as <rte_mbuf_core.h> has it; vmxnet3's driver in DPDK 22.11 refuses this
    flag in rte_eth_tx_prepare(). Then IPv6 is tested, which has no checksum."""
    card.start()
    if not offered(card, "TCP_TSO"):
        pytest.skip("the driver offers no TCP_TSO (show port tx_offload capabilities)")
    for line in (
        "port stop all",
        "csum set ip hw 1",
        "csum set tcp hw 1",
        "tso set 500 1",
        "port start all",
        "set fwd csum",
        "set promisc all on",
        "start",
    ):
        card.pmd.say(line)
    card.record()
    data = bytes(i & 255 for i in range(1400))
    said = len(card.pmd.output)

    def packets(version):
        heads = [
            IPv6(src="fd00::1", dst="fd00::2", fl=i) if version == 6 else IP(src="10.0.0.1", dst="10.0.0.2", id=i)
            for i in range(10)
        ]
        return [bytes(Ether(dst=mac(0), src=PEER) / ip / TCP(seq=1000, flags="A") / Raw(data)) for ip in heads]

    sent = packets(4)
    card.wires[0].send(sent[0])
    first, refused = segment_or_refusal(card, said)
    if refused:
        sent, said = packets(6), len(card.pmd.output)
        card.wires[0].send(sent[0])
        first, again = segment_or_refusal(card, said)
        if again:
            pytest.skip(f"the driver refuses the packets: {refused} (IPv4), {again} (IPv6)")
    head = len(sent[0]) - len(data)
    came = [first, *card.pass_through(sent[1:], 3 * len(sent) - 1)]
    file = card.recording()
    offered_frames = frames_of(file, card.addresses[1], TX)
    assert [len(f) for f in offered_frames] == [len(f) for f in sent]
    assert [f[head:] for f in offered_frames] == [data] * len(sent)
    if fragments(came[:3], sent[0], head - TCP_HEADER):
        pytest.skip(
            "the model makes IP fragments, the second has no TCP header: "
            f"{', '.join(str(len(f)) for f in came[:3])} bytes of {len(sent[0])}"
        )
    for i in range(0, len(came), 3):
        parts = [Ether(f) for f in came[i : i + 3]]
        assert b"".join(bytes(p[TCP].payload) for p in parts) == data
        assert [p[TCP].seq for p in parts] == [1000, 1500, 2000]
    record_property(
        "seen",
        f"{len(sent)} packets, {len(came)} segments"
        + (f", of IPv6; of IPv4 the driver refuses them ({refused})" if refused else ""),
    )


def test_mbuf_fast_free(card, record_property):
    card.start()
    if not offered(card, "MBUF_FAST_FREE"):
        pytest.skip("the driver offers no MBUF_FAST_FREE (show port tx_offload capabilities)")
    for line in (
        "port stop all",
        "port config 1 tx_offload mbuf_fast_free on",
        "port start all",
        "set promisc all on",
        "start",
    ):
        card.pmd.say(line)
    card.record("--ids")
    sent = [udp(i) for i in range(600)]  # more than there are descriptors
    came = [f for part in range(0, len(sent), 50) for f in card.pass_through(sent[part : part + 50])]
    file = card.recording()
    assert frames_of(file, card.addresses[1], TX) == came == sent
    record_property("seen", f"{len(sent)} sent")


def test_link_goes_down_and_comes_up(card, record_property):
    card.start("--no-lsc-interrupt")  # else the driver says what it knew at the last interrupt
    card.pmd.say("set promisc all on")
    card.pmd.say("start")
    card.record()
    first, second = [udp(i) for i in range(10)], [udp(i) for i in range(10, 20)]
    card.pass_through(first)
    assert card.statistics(0)["link_up"] is True

    def status():
        return re.search(rf"{card.addresses[0]}.*?\b(up|down)\b", card.pmd.say("show port summary 0")).group(1)

    card.machine.order("set_link", name="card0", up=False)
    seen = within_or_none(10, lambda: status() == "down")
    if seen:
        until(lambda: card.statistics(0)["link_up"] is False, 60, what="link_up false of ringtap top")
    card.machine.order("set_link", name="card0", up=True)
    until(lambda: status() == "up" and card.statistics(0)["link_up"] is True, 60, what="link_up true")
    card.pass_through(second)
    file = card.recording()
    assert frames_of(file, card.addresses[0], RX) == first + second == frames_of(file, card.addresses[1], TX)
    if not seen:
        pytest.skip("the driver does not see it (show port summary); packets of before and after are recorded")
    record_property("seen", "link_up false, then true; packets of before and after")


def test_missed_packets(card, record_property):
    """A port that no thread polls: the card counts what it has no descriptor for."""
    card.start()
    card.pmd.say("set promisc all on")
    export = card.export()
    assert card.counter(0, "missed_packets_total") == 0
    taken = next((i for i in range(1500) if not card.wires[0].send(udp(i), 2)), 1500)
    said = card.pmd.say("show port stats 0")
    missed = int(re.search(r"RX-missed:\s*(\d+)", said).group(1))
    until(
        lambda: card.counter(0, "missed_packets_total") == missed,
        30,
        what=f"{missed} missed packets of ringtap export",
    )
    export.signal(signal.SIGINT)
    assert export.wait() == 0, export.output
    if not missed:
        pytest.skip(
            f"the model counts none (show port stats): frames wait outside of it; of 1500, {taken} could be sent"
        )
    record_property("seen", f"{missed} of {taken}")


def test_unplugged(card, record_property):
    """The card goes away while it is recorded: the application and the recording of the other port go on."""
    if card.card == "e1000":
        pytest.skip("a PCI card of the root bus, which cannot be unplugged")
    card.start("--hot-plug", "--forward-mode=rxonly")
    card.pmd.say("set promisc all on")
    card.pmd.say("start")
    export = card.export()
    card.record()
    before = [udp(i) for i in range(5)]
    for frame in before:
        card.wires[0].send(frame)
    until(lambda: card.counter(0, "rx_packets_total") >= 5, 60, what="packets")
    card.machine.order("device_del", id="card1")
    card.pmd.expect(r"(?i)remov|closed|detach")
    for frame in before:
        card.wires[0].send(frame)
    until(lambda: card.counter(0, "rx_packets_total") >= 10, 60, what="packets after it")
    file = card.recording()
    export.signal(signal.SIGINT)
    assert export.wait() == 0, export.output
    assert frames_of(file, card.addresses[0], RX) == before * 2
    found = json.loads(card.machine.run(RINGTAP, "list", "--json")["out"])["applications"][0]
    assert [p["name"] for p in found["ports"]] == [card.addresses[0]]
    record_property("seen", "the other port's recording goes on; the list has one port less")
