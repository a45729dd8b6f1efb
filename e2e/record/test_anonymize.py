# SPDX-License-Identifier: BSD-3-Clause
"""Anonymous recordings of the corpus, compared with the recording itself: by tshark, and by CryptoPAn as its authors
describe it, written again here."""

import ipaddress
import itertools

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from harness import pcap, pcapng
from harness.paths import RINGTAP
from harness.proc import check, until
from harness.ringtap import packets_of

KEY = bytes(range(100, 132))
ADDRESSES = {
    "ip": ("ip.src", "ip.dst", "arp.src.proto_ipv4", "arp.dst.proto_ipv4"),
    "ipv6": ("ipv6.src", "ipv6.dst", "icmpv6.mld.multicast_address"),
    "mac": ("eth.dst", "eth.src", "arp.src.hw_mac", "arp.dst.hw_mac"),
}
STATUS = [f"{p}.checksum.status" for p in ("ip", "tcp", "udp", "sctp", "dccp", "icmp", "icmpv6", "igmp", "gre")]
PORTS = ("tcp.srcport", "tcp.dstport", "udp.srcport", "udp.dstport", "sctp.srcport", "sctp.dstport")
FIELDS = [*itertools.chain(*ADDRESSES.values()), *STATUS, *PORTS, "frame.protocols", "tcp.payload", "udp.payload"]
TUNNELS = {"vxlan", "geneve", "gtp"}
BAD = "0"
# Fragments by themselves, and all checksums.
SETTINGS = (
    "ip.defragment:FALSE",
    "ipv6.defragment:FALSE",
    "tcp.desegment_tcp_streams:FALSE",
    "ip.check_checksum:TRUE",
    "tcp.check_checksum:TRUE",
    "udp.check_checksum:TRUE",
    "sctp.checksum:CRC32c",
)


def dissect(path):
    """For each frame, the values of each field."""
    command = ["tshark", "-n", "-r", path, "-T", "fields", "-E", "occurrence=a", "-E", "aggregator=,"]
    for setting in SETTINGS:
        command += ["-o", setting]
    for name in FIELDS:
        command += ["-e", name]
    rows = (line.split("\t") for line in check(command).splitlines())
    return [{n: v.split(",") if v else [] for n, v in zip(FIELDS, row, strict=True)} for row in rows]


# ---- CryptoPAn ----

SPECIAL = {  # prefixes, and how many bits of their addresses stay
    4: {
        "0.0.0.0/32": 32,
        "127.0.0.0/8": 32,
        "169.254.0.0/16": 16,
        "224.0.0.0/3": 3,
        "224.0.0.0/24": 32,
        "255.255.255.255/32": 32,
    },
    6: {
        "::/127": 128,
        "fe80::/64": 64,
        "ff02::/16": 16,
        "ff02::/111": 128,
        "ff02::1:ff00:0/104": 104,
    },
}


def in_common(a, b, bits):
    return bits - (a ^ b).bit_length()


def kept(address):
    """The first bits that stay: up to the first that differs from each special prefix."""
    bits, value = address.max_prefixlen, int(address)
    if address.version == 6 and value >> 120 == 0xFF:
        value = value & ~(0xFF << 112) | 2 << 112  # any scope
    most = 0
    for prefix, stay in SPECIAL[address.version].items():
        net = ipaddress.ip_network(prefix)
        same = min(in_common(value, int(net.network_address), bits), net.prefixlen)
        most = max(most, stay if same == net.prefixlen else same + 1)
    return most


class CryptoPan:
    def __init__(self, key):
        self.aes = Cipher(algorithms.AES(key[:16]), modes.ECB()).encryptor()
        self.pad = int.from_bytes(self.aes.update(key[16:]), "big")

    def __call__(self, text):
        address = ipaddress.ip_address(text)
        bits, flips = address.max_prefixlen, 0
        value = int(address) << 128 - bits
        for i in range(kept(address), bits):
            mask = (1 << 128) - (1 << 128 - i)
            block = value & mask | self.pad & ~mask
            flips |= (self.aes.update(block.to_bytes(16, "big"))[0] >> 7) << 127 - i
        return str(type(address)((value ^ flips) >> 128 - bits))


PUBLISHED = ("1522178d33a4cf80130a5b1649907d10d8988f837979652762574c2d2a842202", "128.11.68.132", "135.242.180.132")


# ---- comparing ----


NOTHING = {"0.0.0.0", "::", "00:00:00:00:00:00"}


def check_addresses(before, after):
    """Each address is the pseudonym that CryptoPAn gives; a MAC address always has the same. Returns {address: pseudonym}
    by kind."""
    pan, found, zeros, count = CryptoPan(KEY), {kind: {} for kind in ADDRESSES}, 0, 0
    for number, (a, b) in enumerate(zip(before, after, strict=True), 1):
        for kind, names in ADDRESSES.items():
            for name in names:
                # tshark finds more in payload, and in tunnels that are not read.
                for old, new in zip(a[name], b[name]):
                    count += 1
                    zeros += new in NOTHING and old not in NOTHING
                    if new not in NOTHING:
                        assert found[kind].setdefault(old, new) == new, f"frame {number}: {old}"
    # Headers with impossible lengths, which tshark reads all the same.
    assert zeros < count / 100
    for old, new in [*found["ip"].items(), *found["ipv6"].items()]:
        assert new == pan(old), f"{old} is {new}"
    return found


def check_prefixes(pairs):
    made = [(int(ipaddress.ip_address(a)), int(ipaddress.ip_address(b))) for a, b in pairs.items()]
    bits = ipaddress.ip_address(next(iter(pairs))).max_prefixlen
    for (a, x), (b, y) in itertools.combinations(made, 2):
        assert in_common(a, b, bits) == in_common(x, y, bits)


def check_macs(pairs):
    assert len(set(pairs.values())) == len(pairs)
    for old, new in pairs.items():
        assert (int(old[:2], 16) ^ int(new[:2], 16)) & 3 == 0, f"{old} is {new}"


def check_checksums(before, after):
    for number, (a, b) in enumerate(zip(before, after, strict=True), 1):
        for name in STATUS:
            for old, new in zip(a[name], b[name]):
                assert (old == BAD) == (new == BAD), f"frame {number}: {name} was {old} and is {new}"


def octets(kind, text):
    return bytes.fromhex(text.replace(":", "")) if kind == "mac" else ipaddress.ip_address(text).packed


def payloads(row):
    names = set(row["frame.protocols"][0].split(":"))
    return row["tcp.payload"] + ([] if TUNNELS & names else row["udp.payload"])


def windows(data, size=8, step=4):
    """Those that do not repeat a few values, as other fields do."""
    all_of_it = (data[i : i + size] for i in range(0, len(data) - size + 1, step))
    return [w for w in all_of_it if len(set(w)) > 4]


def check_leaks(rows, found, frames, packets):
    """Neither an address nor a part of payload is in the bytes of its packet; the long ones in none. Addresses of zeros may
    stand in zeros."""
    everything = b"\0".join(p.data for p in packets)
    for kind in ("ipv6", "mac"):
        for old, new in found[kind].items():
            searched = octets(kind, old)
            assert old == new or len(set(searched)) < 4 or searched not in everything, old
    for number, (row, frame, packet) in enumerate(zip(rows, frames, packets, strict=True), 1):
        for old in {a for name in ADDRESSES["ip"] for a in row[name]}:
            searched = octets("ip", old)
            if found["ip"].get(old) != old and len(set(searched)) > 2:
                assert searched not in packet.data, f"frame {number}: {old}"
        for payload in map(bytes.fromhex, payloads(row)):
            # A packet of another one may have headers like those around it.
            headers = frame[: frame.find(payload)]
            for window in windows(payload):
                assert window not in packet.data or window in headers, f"frame {number}: {window.hex()}"


def flow(row):
    return tuple(tuple(row[name][:1]) for name in ("ip.src", "ip.dst", "ipv6.src", "ipv6.dst", *PORTS))


def check_flows(before, after):
    """Each flow is one, but for those of headers with impossible lengths."""
    pairs = [(flow(a), flow(b)) for a, b in zip(before, after, strict=True)]
    whole = [(a, b) for a, b in pairs if all(len(x) == len(y) for x, y in zip(a, b)) and ("0.0.0.0",) not in b]
    assert len(whole) > 0.97 * len(pairs)
    assert len(set(whole)) == len({a for a, b in whole}) == len({b for a, b in whole}) > 300


def strings(data):
    """Texts of at least ten letters."""
    return {t for t in bytes(b if 97 <= b <= 122 else 32 for b in data).split() if len(t) >= 10}


@pytest.fixture(scope="module")
def source(corpus_files, tmp_path_factory):
    frames = [f for path in corpus_files for f in pcap.frames(path) if 14 <= len(f) <= 9000]
    return pcap.write(tmp_path_factory.mktemp("anonymize") / "some.pcap", frames[:: max(len(frames) // 2000, 1)])


def write_pcap(path, packets):
    """As pcap, since tshark is to read the same bytes whatever the options of the packets are."""
    return pcap.write(path, [p.data for p in packets])


def test_recorded_and_copied(testpmd, record, source, tmp_path):
    assert CryptoPan(bytes.fromhex(PUBLISHED[0]))(PUBLISHED[1]) == PUBLISHED[2]
    key = tmp_path / "key"
    key.write_text(KEY.hex())
    key.chmod(0o600)
    pmd = testpmd(
        f"net_pcap0,rx_pcap={source},tx_pcap=/dev/null", "net_null1", args=["--no-flush-rx", "--forward-mode=rxonly"]
    )
    how = ("--on-full", "wait", "--buffer", "1M")
    plain = record(pmd, *how, ports=["net_pcap0"])
    recorders = {
        payload: record(pmd, *how, "--anonymize", "--key", key, "--payload", payload, ports=["net_pcap0"])
        for payload in ("cut", "zero")
    }
    frames = pcap.frames(source)
    pmd.start()
    until(lambda: pmd.stats(0)["RX-packets"] >= len(frames), what="all frames played")
    pmd.stop()
    plain.finish()
    original = plain.file()
    rows = dissect(write_pcap(tmp_path / "plain.pcap", packets_of(original, "net_pcap0")))
    for payload, recorder in recorders.items():
        recorder.finish()
        file = recorder.file()
        pcapng.check_sums(file)
        packets = packets_of(file, "interface0")
        assert [len(f) for f in frames] == [p.length for p in packets]
        copy = tmp_path / f"{payload}.pcapng"
        check([RINGTAP, "anonymize", plain.out, "-w", copy, "--key", key, "--payload", payload])
        copied = packets_of(pcapng.read(copy), "interface0")
        assert [p.data for p in packets] == [p.data for p in copied]
        assert [(p.ns, p.direction, p.queue) for p in copied] == [
            (p.ns, p.direction, p.queue) for p in packets_of(original, "net_pcap0")
        ]
        assert {p.direction for p in packets} == {pcapng.RX}
        for name in (recorder.out, copy):
            assert not strings(name.read_bytes()) & strings(plain.out.read_bytes())
        if payload == "cut":
            assert sum(len(p.data) for p in packets) < sum(p.length for p in packets) / 2
            continue
        assert [len(p.data) for p in packets] == [len(f) for f in frames]
        after = dissect(write_pcap(tmp_path / "after.pcap", packets))
        found = check_addresses(rows, after)
        assert len(found["ip"]) > 100 and len(found["ipv6"]) > 50 and len(found["mac"]) > 100
        check_prefixes(found["ip"])
        check_prefixes(found["ipv6"])
        check_macs(found["mac"])
        check_checksums(rows, after)
        check_leaks(rows, found, frames, packets)
        check_flows(rows, after)
