# SPDX-License-Identifier: BSD-3-Clause
"""Expected rows of an archive's decoder, from tshark's fields: dictionaries with the
columns of the schema. tshark names a packet's layers in frame.protocols, and gives each field's values
in the order of the layers: a walk over the layers tells outer and inner headers apart."""

import collections
import ipaddress
import struct
import subprocess

# Every fragment and segment by itself, as the decoder reads them.
SETTINGS = (
    "ip.defragment:FALSE",
    "ipv6.defragment:FALSE",
    "tcp.desegment_tcp_streams:FALSE",
    "udp.try_heuristic_first:FALSE",
    "ip.tso_support:TRUE",
    "gtp.dissect_tpdu_as:TPDU Heuristic",
    "tcp.relative_sequence_numbers:FALSE",
    "tcp.analyze_sequence_numbers:TRUE",
)
PORTS = {"tcp": 6, "udp": 17, "dccp": 33, "sctp": 132, "udplite": 136}
# tshark calls UDP-Lite's fields those of UDP.
PORT_FIELDS = {"tcp": "tcp", "udp": "udp", "dccp": "dccp", "sctp": "sctp", "udplite": "udp"}
EXTENSIONS = ("ipv6.hopopts", "ipv6.routing", "ipv6.dstopts", "ipv6.fraghdr")
EXTENSION_NUMBERS = {0, 43, 44, 60}
FIELDS = [
    "frame.number",
    "frame.time_epoch",
    "frame.len",
    "frame.cap_len",
    "frame.protocols",
    "frame.interface_queue",
    "frame.packet_flags_direction",
    "frame.packet_id",
    "eth.type",
    "vlan.id",
    "vlan.etype",
    "ieee8021ad.id",
    "sll.etype",
    "llc.type",
    "pppoe.code",
    "ip.src",
    "ip.dst",
    "ip.proto",
    "ip.id",
    "ipv6.src",
    "ipv6.dst",
    "ipv6.nxt",
    *(f"{e}.nxt" for e in EXTENSIONS),
    "ipv6.fraghdr.ident",
    "ipv6.fraghdr.offset",
    "tcp.seq_raw",
    "tcp.flags",
    "tcp.len",
    "tcp.ack_raw",
    "tcp.analysis.initial_rtt",
    "tcp.analysis.retransmission",
    "vxlan.vni",
    "vxlan.flags",
    "gre.key",
    "gre.flags.version",
    "gtp.teid",
    "gtp.message",
    "arp.src.proto_ipv4",
    "arp.dst.proto_ipv4",
    "arp.hw.size",
    *(f"{p}.{end}" for p in ("tcp", "udp", "dccp", "sctp") for end in ("srcport", "dstport")),
]
VXLAN = {"4789", "8472"}  # tshark also takes packets from these ports
# tshark shows nothing of a header that is cut off; the decoder shows what was captured of it.
IN_CUT_HEADERS = {"vlan", "src", "dst", "protocol", "ip_id", "src_port", "dst_port", "tcp_seq", "tcp_flags"}
NOT_SHOWN = object()  # tshark has no field for it
TAGS = {0x8100, 0x88A8, 0x9100}
LINK = {"eth", "ethertype", "vlan", "ieee8021ad", "llc", "sll", "raw", "null", "mpls", "pppoes", "ppp"}


def fields(path):
    """The values of each field of each packet, as text."""
    command = [
        "tshark",
        "-n",
        "-r",
        str(path),
        "-T",
        "fields",
        "-E",
        "occurrence=a",
        "-E",
        "aggregator=|",
        "-d",
        "udp.port==8472,vxlan",
    ]
    command += [part for setting in SETTINGS for part in ("-o", setting)]
    command += [part for field in FIELDS for part in ("-e", field)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [
        {field: text.split("|") if text else [] for field, text in zip(FIELDS, line.split("\t"))}
        for line in done.stdout.splitlines()
    ]


def address(text):
    """As in the columns: IPv4 in IPv6."""
    ip = ipaddress.ip_address(text)
    return ip.packed if ip.version == 6 else b"\0" * 10 + b"\xff\xff" + ip.packed


class Layers:
    """The layers of a packet, and the values that their fields have left."""

    def __init__(self, values):
        self.values = {field: collections.deque(found) for field, found in values.items()}
        self.whole = values["frame.len"] == values["frame.cap_len"]
        self.values["udp.dstport.first"] = next(iter(values["udp.dstport"]), None)
        names = values["frame.protocols"][0].split(":") if values["frame.protocols"] else []
        self.names, self.bad_options = collections.deque(names), False

    def take(self, field):
        found = self.values[field]
        return found.popleft() if found else None

    def number(self, field):
        text = self.take(field)
        return None if text is None else int(text, 0)

    def next(self):
        return self.names[0] if self.names else None

    def skip(self, names):
        while self.next() in names:
            yield self.names.popleft()

    def link(self):
        """VLAN and ethertype; leaves the network layer."""
        vlan = ethertype = None
        for name in self.skip(LINK):
            if name == "eth":
                ethertype = self.number("eth.type")
            elif name == "sll":
                ethertype = self.number("sll.etype")
            elif name in ("vlan", "ieee8021ad"):
                vid = self.number(f"{name}.id")
                vlan = vid if vlan is None else vlan
                ethertype = self.number("vlan.etype") if name == "vlan" else NOT_SHOWN
            elif name == "pppoes" and self.take("pppoe.code") != "0x00":
                self.names.clear()  # not data: tshark goes on nevertheless
            elif name == "llc":
                ethertype = self.number("llc.type")
        # Behind tags: not known where the packet is cut off in one. Less than 0x600 is a length.
        if ethertype is not NOT_SHOWN and (ethertype in TAGS or (ethertype or 0) < 0x600):
            ethertype = None
        return vlan, ethertype

    def _extensions(self, out):
        """Extension headers of IPv6: the protocol behind them, None if they are cut off before it."""
        out["protocol"], later = self.number("ipv6.nxt"), False
        for header in self.skip(EXTENSIONS):
            out["protocol"] = self.number(f"{header}.nxt")
            if header == "ipv6.fraghdr":
                out["ip_id"], later = self.number("ipv6.fraghdr.ident"), self.number("ipv6.fraghdr.offset")
        if out["protocol"] in EXTENSION_NUMBERS and not later:
            out["protocol"] = None
        # An option of bad length, in a packet that is whole: tshark ends there. The decoder reads no options.
        if not self.names and not later and self.whole:
            self.bad_options = True

    def ends(self, inner=False):
        """Addresses, protocol and ports of an IP packet, or the addresses of ARP outside of tunnels; None without one."""
        name = self.next()
        if not inner and name in ("arp", "rarp") and self.take("arp.hw.size") == "6":
            ends = {end: self.take(f"arp.{end}.proto_ipv4") for end in ("src", "dst")}
            return {end: text and address(text) for end, text in ends.items()}
        if name not in ("ip", "ipv6"):
            return None
        self.names.popleft()
        src, dst = self.take(f"{name}.src"), self.take(f"{name}.dst")
        if not src or not dst:
            return None
        out = {"src": address(src), "dst": address(dst), "ip_id": None}
        if name == "ip":
            out["protocol"], out["ip_id"] = self.number("ip.proto"), self.number("ip.id")
        else:
            self._extensions(out)
        transport = self.next() if PORTS.get(self.next()) == out["protocol"] else None
        for end in ("src", "dst"):
            field = f"{PORT_FIELDS.get(transport)}.{end}port"
            out[f"{end}_port"] = self.number(field) if transport else None
        return out

    def tunnel(self, protocol):
        """Kind and identifier, and what is left of the layers is its content; (None, None)."""
        name = self.next()
        if name == "gre" and protocol == 47:
            self.names.popleft()
            return ("gre", self.number("gre.key")) if self.take("gre.flags.version") == "0" else (None, None)
        if name != "udp" or len(self.names) < 2:
            return None, None
        self.names.popleft()
        if self.next() == "vxlan" and self.values["udp.dstport.first"] in VXLAN:
            self.names.popleft()
            valid = self.number("vxlan.flags") & 0x0800
            return ("vxlan", self.number("vxlan.vni")) if valid else (None, None)
        if self.next() == "gtp" and self.number("gtp.message") == 255:
            self.names.popleft()
            return "gtpu", self.number("gtp.teid")
        return None, None


def _flags(text):
    return None if text is None else int(text, 0) & 0xFF


def _nanoseconds(text):
    seconds, _, fraction = text.partition(".")
    sign = -1 if text.startswith("-") else 1
    return sign * (abs(int(seconds)) * 10**9 + int(fraction.ljust(9, "0")))


BEHIND_OPTIONS = ("protocol", "src_port", "dst_port", "tcp_seq", "tcp_flags")
DIRECTION = {None: None, 0: None, 1: "rx", 2: "tx"}


def row(values):
    """The columns that tshark shows; not interface: tshark counts them again in each section."""
    layers = Layers(values)
    out = {
        "time_ns": _nanoseconds(layers.take("frame.time_epoch")),
        "length": layers.number("frame.len"),
        "captured": layers.number("frame.cap_len"),
        "queue": layers.number("frame.interface_queue"),
        "packet_id": layers.number("frame.packet_id"),
        "direction": DIRECTION[layers.number("frame.packet_flags_direction")],
    }
    out["vlan"], out["ethertype"] = layers.link()
    outer = layers.ends() or {}
    protocol = outer.get("protocol")
    for column in ("src", "dst", "protocol", "src_port", "dst_port", "ip_id"):
        out[column] = outer.get(column)
    is_tcp = layers.next() == "tcp" and protocol == 6
    out["tcp_seq"] = layers.number("tcp.seq_raw") if is_tcp else None
    out["tcp_flags"] = _flags(layers.take("tcp.flags")) if is_tcp else None
    out["tunnel"], out["tunnel_id"] = layers.tunnel(protocol)
    inner = None
    if out["tunnel"]:
        layers.link()
        inner = layers.ends(inner=True)
    for column in ("src", "dst", "protocol", "src_port", "dst_port"):
        out[f"inner_{column}"] = (inner or {}).get(column)
    if layers.bad_options:
        out.update((column, NOT_SHOWN) for column in BEHIND_OPTIONS)
    return out


def differences(found, path, whole=None):
    """(frame, column, found, expected) of each field that differs from tshark's."""
    expected = [row(values) for values in fields(path)]
    assert len(found) == len(expected)
    out = []
    for i, (got, right) in enumerate(zip(found, expected)):
        if right["packet_id"] is not None:
            right["packet_id"] = struct.unpack("q", struct.pack("Q", right["packet_id"]))[0]
        for column, value in right.items():
            if got[column] == value or value is NOT_SHOWN:
                continue
            if whole and column in IN_CUT_HEADERS and value is None and got[column] == whole[i][column]:
                continue
            if whole and column in ("tunnel", "tunnel_id") and got[column] is None and right["inner_src"] is None:
                continue
            out.append((i + 1, column, got[column], value))
    return out
