# SPDX-License-Identifier: BSD-3-Clause
"""Columns of an archive's Parquet files.

Null: the packet has no such field, or it was not captured, or it is malformed. Unsigned columns are
wider signed ones in Spark, which has no unsigned types. Addresses have 16 bytes, IPv4 as
::ffff:a.b.c.d (RFC 4291, 2.5.5.2), so that one column orders and compares both.
"""

from __future__ import annotations

import pyarrow as pa

ADDRESS = pa.binary(16)
DIRECTION = pa.dictionary(pa.int8(), pa.string())  # "rx", "tx"
TUNNEL = pa.dictionary(pa.int8(), pa.string())  # "vxlan", "gre", "gtpu"


def _fields(pairs: list[tuple]):
    return pa.schema([pa.field(name, kind, nullable=name not in REQUIRED) for name, kind in pairs])


REQUIRED = {"time_ns", "interface", "length", "captured", "file_offset", "first_ns", "last_ns"}

PACKETS = _fields(
    [
        ("time_ns", pa.int64()),  # since the epoch
        ("interface", pa.uint16()),  # index in the part's interfaces
        ("queue", pa.uint16()),
        ("direction", DIRECTION),
        ("length", pa.uint32()),  # on the wire
        ("captured", pa.uint32()),
        ("vlan", pa.uint16()),  # VID of the outermost tag
        ("ethertype", pa.uint16()),  # behind VLAN tags
        ("src", ADDRESS),  # IP addresses; for ARP sender and target
        ("dst", ADDRESS),
        ("protocol", pa.uint8()),  # IP protocol, behind IPv6 extension headers
        ("src_port", pa.uint16()),
        ("dst_port", pa.uint16()),
        ("tcp_flags", pa.uint8()),
        ("tcp_seq", pa.uint32()),  # not with --lean
        ("ip_id", pa.uint32()),  # IPv4, or of IPv6's fragment header; not with --lean
        ("rss_hash", pa.uint32()),
        ("flow_id", pa.int64()),
        ("packet_id", pa.int64()),  # epb_packetid, its 64 bits
        ("digest", pa.uint32()),
        ("tunnel", TUNNEL),
        ("tunnel_id", pa.uint32()),  # VNI, GRE key, TEID
        ("inner_src", ADDRESS),
        ("inner_dst", ADDRESS),
        ("inner_protocol", pa.uint8()),
        ("inner_src_port", pa.uint16()),
        ("inner_dst_port", pa.uint16()),
        ("file_offset", pa.int64()),  # where the packet's block is in the part's uncompressed pcapng
    ]
)

# a is the sender of the flow's first packet in the part, b the other end.
FLOWS = _fields(
    [
        ("flow_id", pa.int64()),
        ("src", ADDRESS),  # a
        ("dst", ADDRESS),  # b
        ("protocol", pa.uint8()),
        ("src_port", pa.uint16()),
        ("dst_port", pa.uint16()),
        ("first_ns", pa.int64()),
        ("last_ns", pa.int64()),
        ("packets_ab", pa.int64()),
        ("packets_ba", pa.int64()),
        ("bytes_ab", pa.int64()),  # lengths on the wire
        ("bytes_ba", pa.int64()),
        ("tcp_flags", pa.uint8()),  # union over all its packets
        ("retransmissions", pa.int64()),  # TCP
        ("rtt_ns", pa.int64()),  # SYN to the ACK of the handshake
        ("latency_p50_ns", pa.int64()),  # RX to TX; needs ids
        ("latency_p99_ns", pa.int64()),
        ("offered", pa.int64()),  # fates; need `record --fates`
        ("not_offered", pa.int64()),
        ("open", pa.int64()),
        ("unknown", pa.int64()),
        ("unseen", pa.int64()),  # part of unknown: perhaps sent on a TX queue that had no hook yet
        ("port_stopped", pa.int64()),  # part of unknown: perhaps not sent because a port was stopped
    ]
)

REASONS = ["unseen", "port_stopped"]  # columns of flows, since format 2
