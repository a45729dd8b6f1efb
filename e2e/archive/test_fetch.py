# SPDX-License-Identifier: BSD-3-Clause
"""`fetch` finds by the index the packets that tcpdump finds in the files, byte for byte."""

import collections
import itertools
import json
import os
import shutil
import struct
import subprocess
from types import SimpleNamespace

import pytest
from harness import archived, corpus, pcap, pcapng

BEGIN = 1_767_225_600 - 30  # half a minute before a full hour, and a year
STEP_NS = 7_001_013
SNAPLEN = 96  # the third recorder's
ETHERNET, RAW, SLL = 1, 101, 113
# Every condition that the index has a column for, and many that it has not.
EXPRESSIONS = [
    "ip",
    "ip6",
    "arp",
    "tcp",
    "icmp6",
    "sctp",
    "not ip",
    "not (ip or ip6)",
    "not tcp",
    "ip proto 89",
    "port 53",
    "tcp port 179",
    "dst port 5353",
    "portrange 1-1023",
    "udp dst portrange 3000-4000",
    "tcp and host 10.0.0.1",
    "host 10.0.0.1",
    "not host 10.0.0.1",
    "host 10.0.0.1 and not port 22",
    "src net 10.0.0.0/8",
    "src net 10.0.0.0/8 and tcp dst port 443",
    "dst net 192.168.0.0/16",
    "ip6 host fe80::1",
    "src host fe80::1 and udp",
    "net 2001:db8::/35",
    "ether host 01:80:c2:00:00:00",
    "less 64",
    "len > 100 and len <= 200",
    "ip[6:2] & 0x1fff != 0",
    "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0",
    "tcp[tcpflags] & tcp-ack = 0",
    "tcp[tcpflags] = tcp-ack",
    "ip[4:2] < 1000",
    "ip[12:4] > 0xc0000000",
    "vlan",
    "vlan 5 and tcp",
    "not vlan",
    "vlan and vlan",
    "vlan and vlan and host 10.0.0.1",
    "ip or (vlan and ip)",
    "mpls and ip",
    "pppoes and ip host 10.0.0.1",
    "ip[ip[8] & 0x1f] < 0x20",
    "ether[len - 1] = 0",
    "1 = 0",
    " or ".join(f"(net {10 + 7 * i}.0.0.0/8 and port {(53, 80, 443, 179, 1000 + i)[i % 5]})" for i in range(30)),
    " and ".join(f"not (net {10 + i}.0.0.0/8 and port {(53, 80, 443, 179, 67)[i % 5]})" for i in range(30)),
]

Recording = collections.namedtuple("Recording", "name path linktype packets")


def write(path, linktype, packets):
    """A classic pcap with times in ns of (ns, data, length)."""
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, linktype))
        for ns, data, length in packets:
            f.write(struct.pack("<IIII", *divmod(ns, 10**9), len(data), length) + data)
    return path


def with_tag(data, tci, tpid=0x8100):
    return data[:12] + struct.pack(">HH", tpid, tci) + data[12:]


def recording(folder, name, linktype, frames, snaplen=262144):
    begin = BEGIN * 10**9 + len(name)  # recorders take turns
    packets = [(begin + i * STEP_NS, data[:snaplen], len(data)) for i, data in enumerate(frames)]
    return Recording(name, write(folder / f"{name}.pcap", linktype, packets), linktype, packets)


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    """Recordings of Ethernet, cut and whole, with more tags than usual; and their IP packets with other link layers."""
    folder = tmp_path_factory.mktemp("recordings")
    frames = [frame for path in corpus.make(folder) for frame in pcap.frames(path)][::8]
    some = [frame for frame in frames[::11] if len(frame) >= 14]
    frames += [with_tag(frame, 5 + i % 3) for i, frame in enumerate(some)]
    frames += [with_tag(with_tag(frame, 5), 7, 0x88A8) for frame in some[::3]]
    ip = [frame for frame in frames[::2] if frame[12:14] in (b"\x08\x00", b"\x86\xdd")]
    cooked = bytes.fromhex("0000000100060200000000010000")
    # Without malformed headers of IP, filters on addresses read less.
    sound = [frame for kind in ("arp", "bridging", "tcp", "udp", "vlan", "fragments") for frame in corpus.frames(kind)]
    return [
        recording(folder, "whole", ETHERNET, frames),
        recording(folder, "cut", ETHERNET, frames[::2], SNAPLEN),
        recording(folder, "sound", ETHERNET, sound),
        recording(folder, "raw", RAW, [frame[14:] for frame in ip]),
        recording(folder, "cooked", SLL, [cooked + frame[12:] for frame in frames[::3] if len(frame) >= 14]),
    ]


@pytest.fixture(scope="module")
def archive(recordings, tmp_path_factory):
    archive = tmp_path_factory.mktemp("archive") / "a[r]chive"
    ingest = ["ingest", "-q", "-A", archive, "--recorder"]
    statuses, errors = archived.many([*ingest, r.name, r.path] for r in recordings)
    assert not any(statuses), errors
    found = {
        meta.parts[-4]: json.loads(meta.read_text())["packets"]["flowless"]
        for meta in archive.glob("*/*/*/*.meta.json")
    }
    assert found["recorder=sound"] == 0 < found["recorder=whole"]
    return archive


def fetched(path):
    """(ns, data, length) by recorder; the file is in the order of time."""
    file = pcapng.read(path)
    assert all(a.ns <= b.ns for a, b in itertools.pairwise(file.packets))
    out = collections.defaultdict(list)
    for packet in file.packets:
        interface = file.interfaces[packet.interface]
        out[interface.name.partition(":")[0], interface.linktype].append((packet.ns, packet.data, packet.length))
    return out


def tcpdump(recording_, expression, folder):
    """Packets that tcpdump selects from the file. None: it refuses the filter for this link type."""
    path = folder / "tcpdump.pcap"
    done = subprocess.run(
        ["tcpdump", "-n", "--time-stamp-precision=nano", "-r", recording_.path, "-w", path, expression],
        capture_output=True,
        text=True,
        check=False,
    )
    if "rejects all packets" in done.stderr:
        return []
    return pcap.read(path) if done.returncode == 0 else None


def test_the_packets_that_tcpdump_selects(archive, recordings, tmp_path):
    statuses, errors = archived.many(
        ["fetch", "-q", "-A", archive, e, "--tags", "as-is", "-w", tmp_path / f"{i}.pcapng"]
        for i, e in enumerate(EXPRESSIONS)
    )
    assert not any(statuses), errors
    selective = 0
    for i, expression in enumerate(EXPRESSIONS):
        found = fetched(tmp_path / f"{i}.pcapng")
        for recording_ in recordings:
            expected = tcpdump(recording_, expression, tmp_path) or []
            key = recording_.name, recording_.linktype
            assert sorted(found.pop(key, [])) == sorted(expected), f"{expression}: {key}"
            selective += 0 < len(expected) < len(recording_.packets)
        assert not found
    assert selective > 2 * len(EXPRESSIONS)


def bare(data):
    """A frame of Ethernet without up to two tags in front."""
    for _ in range(2):
        data = data[:12] + data[16:] if data[12:14] in (b"\x81\x00", b"\x88\xa8", b"\x91\x00") else data
    return data


def test_tags_do_not_matter(archive, recordings, tmp_path):
    """The default finds what tcpdump finds in the frames without their tags."""
    sound = next(r for r in recordings if r.name == "sound")
    source = SimpleNamespace(path=pcap.write(tmp_path / "bare.pcap", [bare(p[1]) for p in sound.packets]))
    for number, expression in enumerate(["tcp", "not udp", "arp or ip6", "port 53", "vlan and ip"]):
        found = expect(archive, tmp_path / f"{number}.pcapng", 0, expression, "--recorder", "sound")[0]
        got = [packet[1] for packet in found["sound", ETHERNET]]
        if "vlan" in expression:
            selected = [p[1] for p in tcpdump(sound, expression, tmp_path)]
        else:
            selected = [p[1] for p in tcpdump(source, expression, tmp_path)]
            got = [bare(data) for data in got]
        assert sorted(got) == sorted(selected), expression
    assert any(bare(p[1]) != p[1] and bare(p[1])[12:14] == b"\x08\x00" for p in sound.packets)


def expect(archive, path, status=0, *words):
    done = archived.run("fetch", "-A", archive, "-w", path, *words, status=status)
    return fetched(path), done.stderr


def test_window_recorder_and_where(archive, recordings, tmp_path):
    whole = recordings[0]
    middle = whole.packets[len(whole.packets) // 2][0]
    found, errors = expect(
        archive, tmp_path / "a.pcapng", 0, "--recorder", "whole", "--to", f"@{middle // 10**9}.{middle % 10**9:09d}"
    )
    assert found == {("whole", ETHERNET): [packet for packet in whole.packets if packet[0] < middle]}
    assert errors.startswith(f"{len(whole.packets) // 2} packets of 1 recorders")
    found, _ = expect(
        archive, tmp_path / "b.pcapng", 0, "less 64", "--where", "protocol = 17 OR src = ip('10.0.0.1') -- and more"
    )
    expected = [p for p in whole.packets if p[2] <= 64 and (p[1][12:14], p[1][23:24]) == (b"\x08\x00", b"\x11")]
    assert set(expected) <= set(found["whole", ETHERNET]) and all(
        p[2] <= 64 for packets in found.values() for p in packets
    )
    done = archived.run("fetch", "-A", archive, "--where", "SELEKT", "-w", tmp_path / "none.pcapng", status=1)
    assert done.stderr.startswith("ringtap: archive: Binder Error: ") and not (tmp_path / "none.pcapng").exists()
    found, _ = expect(archive, tmp_path / "c.pcapng", 0, "--packets", "5")
    assert sum(map(len, found.values())) == 5


def test_a_filter_is_no_sql(archive, tmp_path):
    for expression in ("tcp') OR true --", "host 10.0.0.1; DROP TABLE packets", "1) OR (1"):
        done = archived.run("fetch", "-A", archive, expression, "-w", tmp_path / "x.pcapng", status=2)
        assert (
            done.stderr.startswith(f"ringtap: archive: the filter '{expression}' does not compile: ")
            and done.stderr.count("\n") == 1
        )


def test_foreign_readers_of_a_pipe(archive, recordings, tmp_path):
    """The link layer is Ethernet, as tcpdump reads no file of several."""
    words = [
        archived.python(),
        "-m",
        "ringtap_archive.main",
        "fetch",
        "-q",
        "--tags",
        "as-is",
        "-A",
        archive,
        "-w",
        "-",
        "--recorder",
        "whole",
        "--recorder",
        "cut",
        "tcp or arp",
    ]
    data = subprocess.run(words, env=archived.environment(), check=True, capture_output=True).stdout
    count = sum(len(tcpdump(r, "tcp or arp", tmp_path)) for r in recordings[:2])
    out = subprocess.run(["tcpdump", "-n", "-r", "-"], input=data, check=True, capture_output=True).stdout
    assert out.count(b"\n") >= count
    out = (
        subprocess.run(
            [
                "tshark",
                "-n",
                "-r",
                "-",
                "-T",
                "fields",
                "-e",
                "frame.interface_name",
                "-e",
                "frame.interface_description",
            ],
            input=data,
            check=True,
            capture_output=True,
        )
        .stdout.decode()
        .splitlines()
    )
    assert collections.Counter(out) == collections.Counter(
        {f"{r.name}:interface 0\trecorder {r.name}": len(tcpdump(r, "tcp or arp", tmp_path)) for r in recordings[:2]}
    )
    (tmp_path / "piped.pcapng").write_bytes(data)
    out = subprocess.run(
        ["capinfos", "-T", "-M", "-c", "-o", tmp_path / "piped.pcapng"], check=True, capture_output=True, text=True
    ).stdout
    assert out.splitlines()[1].split("\t")[1:] == [str(count), "True"]


def block(kind, body, order="<"):
    length = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + length + body + length


def option(code, value, order="<"):
    return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)


def odd_file(order):
    """Simple, obsolete and enhanced packet blocks, in either byte order, with comments; an interface with times in
    milliseconds and an offset, and one that comes late."""

    def pack(text, *values):
        return struct.pack(order + text, *values)

    data = bytes(range(60))
    name = [
        option(2, b"zero", order),
        option(9, b"\3", order),
        option(14, pack("q", BEGIN), order),
        option(1, b"slow", order),
        option(8, pack("Q", 10**9), order),
    ]
    flags = option(2, pack("I", 2), order) + option(1, b"a comment", order) + option(6, pack("I", 7), order) + bytes(4)
    section = block(
        0x0A0D0D0A, pack("IHHq", 0x1A2B3C4D, 1, 0, -1) + option(1, b"of a section", order) + bytes(4), order
    )
    return (
        section
        + block(1, pack("HHI", 1, 0, 0) + b"".join(name) + bytes(4), order)
        + block(6, pack("IIIII", 0, 0, 1500, 60, 1000) + data + flags, order)
        + block(1, pack("HHI", 1, 0, 0) + option(2, b"one", order) + option(9, b"\x09", order) + bytes(4), order)
        + block(2, pack("HHIIII", 1, 3, *divmod((BEGIN + 2) * 10**9, 1 << 32), 60, 60) + data, order)
        + block(3, pack("I", 60) + data, order)
    )


@pytest.mark.parametrize("order", ["<", ">"], ids=["little", "big"])
def test_interfaces_comments_and_other_blocks_are_kept(order, tmp_path):
    (tmp_path / "odd.pcapng").write_bytes(odd_file(order))
    archived.many(
        [
            [
                "ingest",
                "-q",
                "-A",
                tmp_path / "archive",
                "--recorder",
                "host",
                tmp_path / "odd.pcapng",
                "--no-compress",
            ],
            ["fetch", "-q", "-A", tmp_path / "archive", "-w", tmp_path / "out.pcapng"],
        ]
    )
    file = pcapng.read(tmp_path / "out.pcapng")
    assert len(file.packets) == 3 and all(packet.data == bytes(range(60)) for packet in file.packets)
    (slow,) = [packet for packet in file.packets if packet.length == 1000]
    assert (slow.ns, slow.direction, slow.queue, slow.options[1]) == (
        BEGIN * 10**9 + 1_500_000_000,
        2,
        7,
        [b"a comment"],
    )
    zero = file.interfaces[slow.interface].options
    assert (zero[2], zero[3], zero[1], int.from_bytes(zero[8][0], "little")) == (
        [b"host:zero"],
        [b"recorder host"],
        [b"of a section", b"slow"],
        10**9,
    )
    (old,) = [packet for packet in file.packets if packet.dropped]
    assert (old.ns, old.dropped, file.interfaces[old.interface].name) == ((BEGIN + 2) * 10**9, 3, "host:one")


@pytest.fixture(scope="module")
def framed(tmp_path_factory):
    """An archive of some frames, and the number of packets of a rare flow."""
    folder = tmp_path_factory.mktemp("framed")
    frames = [bytes(12) + b"\x88\xb5" + bytes([i % 251]) * 1400 + struct.pack(">I", i) for i in range(4000)]
    rare = corpus.frames("udp")[0]
    frames[2000:2000] = [rare] * 10
    made = recording(folder, "r", ETHERNET, frames)
    archived.run("ingest", "-q", "-A", folder / "archive", "--recorder", "r", made.path)
    return folder / "archive", made


def test_only_the_frames_that_have_them_are_read(framed, tmp_path):
    archive, made = framed
    found, errors = expect(archive, tmp_path / "a.pcapng", 0, "udp")
    assert (
        len(found["r", ETHERNET]) == 10 and errors == "10 packets of 1 recorders; 2 frames read\n"
    )  # and the first, for its interface
    found, errors = expect(archive, tmp_path / "b.pcapng")
    assert found["r", ETHERNET] == made.packets and int(errors.split()[5]) > 4


def test_a_damaged_frame_is_one_line(framed, tmp_path):
    archive, made = framed
    shutil.copytree(archive, tmp_path / "archive")
    (path,) = (tmp_path / "archive").glob("*/*/*/*.pcapng.zst")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    found, errors = expect(tmp_path / "archive", tmp_path / "a.pcapng", 1)
    line, count = errors.splitlines()
    assert line.startswith(f"ringtap: archive: fetch: {path}: frame ") and line.endswith(" packets missing")
    missing = int(line.split()[-3])
    assert (
        0 < missing < 1500
        and len(found["r", ETHERNET]) == len(made.packets) - missing
        and count.startswith(str(len(made.packets) - missing))
    )
    assert set(found["r", ETHERNET]) <= set(made.packets)


def test_a_damaged_index_is_one_line(archive, recordings, tmp_path):
    shutil.copytree(archive, tmp_path / "archive")
    for view, words in (("packets", ["less 200"]), ("flows", ["host 10.0.0.1"])):
        path = next((tmp_path / "archive").glob(f"recorder=cut/*/*/*.{view}.parquet"))
        data = bytearray(path.read_bytes())
        data[4 : len(data) // 2] = bytes(len(data) // 2 - 4)
        path.write_bytes(data)
        found, errors = expect(tmp_path / "archive", tmp_path / "a.pcapng", 1, *words, "--tags", "as-is")
        assert (
            errors.startswith(f"ringtap: archive: fetch: {path.relative_to(tmp_path / 'archive').parent}")
            and errors.count("\n") == 2
        )
        assert sorted(found["whole", ETHERNET]) == sorted(tcpdump(recordings[0], words[0], tmp_path))


WIRESHARK = """#!/bin/sh
echo "$@" > "$OUT/arguments"
exec tshark -r - -w "$OUT/captured.pcapng"
"""


def test_wireshark(archive, tmp_path):
    """Wireshark gets the packets on its standard input as they come."""
    program = tmp_path / "wireshark"
    program.write_text(WIRESHARK)
    program.chmod(0o755)
    environment = dict(archived.environment(), PATH=f"{tmp_path}:{os.environ['PATH']}", OUT=str(tmp_path))
    words = ["fetch", "-A", archive, "tcp", "--recorder", "sound"]
    done = subprocess.run(
        [archived.python(), "-m", "ringtap_archive.main", *map(str, words), "--wireshark"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert (tmp_path / "arguments").read_text() == "-k -i -\n"
    archived.run(*words, "-w", tmp_path / "file.pcapng")
    found = fetched(tmp_path / "captured.pcapng")
    assert found == fetched(tmp_path / "file.pcapng") and found["sound", ETHERNET]
    assert f"{len(found['sound', ETHERNET])} packets of 1 recorders" in done.stderr
    program.unlink()
    environment["PATH"] = str(tmp_path)
    done = subprocess.run(
        [archived.python(), "-m", "ringtap_archive.main", *map(str, words), "--wireshark"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1 and done.stderr.startswith("ringtap: archive: cannot start wireshark: ")


def test_no_room_for_the_file(archive, tmp_path):
    """The last bytes do not fit: the write takes some of them, and the exit status is not 0."""
    whole, cut = tmp_path / "whole.pcapng", tmp_path / "cut.pcapng"
    archived.run("fetch", "-A", archive, "--recorder", "sound", "-w", whole)
    limit = whole.stat().st_size - 100
    done = subprocess.run(
        [
            "prlimit",
            f"--fsize={limit}",
            archived.python(),
            "-m",
            "ringtap_archive.main",
            "fetch",
            "-A",
            archive,
            "--recorder",
            "sound",
            "-w",
            cut,
        ],
        env=archived.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "ringtap: archive: fetch: File too large\n"), done.stderr


def test_errors_are_one_line(archive, tmp_path):
    hosts = " or ".join(f"host 10.{n // 250}.{n % 250}.1" for n in range(200))
    archived.run("fetch", "-A", archive, hosts, "-w", tmp_path / "hosts.pcapng")
    archived.run("fetch", "-A", archive, "--from", "@1764000000000", "-w", tmp_path / "late.pcapng")
    done = archived.run("fetch", "-A", archive, "-w", tmp_path, status=1)
    assert done.stderr == f"ringtap: archive: cannot write '{tmp_path}': Is a directory\n"
    done = archived.run("fetch", "-A", tmp_path / ("n" * 300), "-w", tmp_path / "a.pcapng", status=1)
    assert done.stderr.count("\n") == 1 and "File name too long" in done.stderr


def test_a_file_without_a_packet_is_one(archive, tmp_path):
    archived.run("fetch", "-A", archive, "host 203.0.113.99 and tcp port 1", "-w", tmp_path / "none.pcapng")
    for command in (["tcpdump", "-nr"], ["tshark", "-r"]):
        assert subprocess.run([*command, tmp_path / "none.pcapng"], check=True, capture_output=True).stdout == b""


def test_arp_of_a_host_is_found_by_the_index(tmp_path):
    """One of four frames with ARP has the host's address."""

    def arp(sender, target):
        return (
            bytes([2] * 12)
            + bytes.fromhex("080600010800060400010200000000")
            + b"\x01"
            + bytes([10, 0, 0, sender])
            + bytes(6)
            + bytes([10, 0, 0, target])
        )

    packets = [
        (BEGIN * 10**9 + n, arp(1 if n == 10 else 3, 1 if n == 20 else 2) + bytes(1400), 1442) for n in range(3000)
    ]
    write(tmp_path / "a.pcap", ETHERNET, packets)
    archived.run("ingest", "-A", tmp_path / "archive", "--recorder", "a", tmp_path / "a.pcap")
    found, text = expect(tmp_path / "archive", tmp_path / "out.pcapng", 0, "host 10.0.0.1")
    assert list(found.values()) == [[packets[10], packets[20]]] and text.endswith("; 1 frames read\n")
    found, text = expect(
        tmp_path / "archive", tmp_path / "out.pcapng", 0, "arp src net 10.0.0.0/30 and not host 10.0.0.3"
    )
    assert list(found.values()) == [[packets[10]]] and text.endswith("; 1 frames read\n")
