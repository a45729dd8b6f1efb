# SPDX-License-Identifier: BSD-3-Clause
"""`ringtap explain` on files whose truth is known, packet by packet."""

import collections
import csv
import io
import json
import struct

import pytest
from harness import pcapng
from harness.documents import ns_of, only
from harness.paths import RINGTAP
from harness.proc import run
from harness.ringtap import FAILED, OK, USAGE
from harness.traced import RX, START, TX, Plan, Writer
from harness.view import document_of

TIMEOUT = ("--timeout", "10ms")


def explain(*args, status=OK, **kwargs):
    done = run([RINGTAP, "explain", *args], **kwargs)
    assert done.returncode == status, done.stderr
    return done


def rows(*args, **kwargs):
    return list(csv.DictReader(io.StringIO(explain(*args, "--csv", **kwargs).stdout)))


def numbers(*args, **kwargs):
    return json.loads(explain(*args, "--json", **kwargs).stdout)


@pytest.fixture(scope="module")
def plan():
    return Plan(1)


@pytest.fixture(scope="module")
def traced(plan, tmp_path_factory):
    """A file with all that can happen to packets."""
    return plan.write(Writer()).write(tmp_path_factory.mktemp("explain") / "trace.pcapng")


def text(value):
    return "" if value is None else str(value)


def expected(plan, names=("p0", "p1")):
    """The rows that must come, without their order."""
    out = []
    for r in plan.received:
        row = {
            "id": r.id,
            "rx_frame": r.number,
            "rx_ns": r.ns,
            "rx_port": names[r.port],
            "rx_queue": r.queue,
            "rx_length": len(r.frame),
        }
        if not r.sendings:
            out.append({**row, "fate": plan.fate(r)})
        for copy, s in enumerate(r.sendings):
            out.append(
                {
                    **row,
                    "fate": "sent",
                    "tx_frame": s.number,
                    "tx_ns": s.ns,
                    "tx_port": names[s.port],
                    "tx_queue": s.queue,
                    "tx_length": len(s.frame),
                    "latency_ns": s.ns - r.ns,
                    "copy": copy,
                    "reordered": int(r.reordered and not copy),
                    "changes": " ".join(sorted(s.changes)),
                }
            )
    for id, s in [*((None, s) for s in plan.made), *plan.unknown]:
        out.append(
            {
                "fate": "unknown" if id else "made",
                "id": id,
                "tx_frame": s.number,
                "tx_ns": s.ns,
                "tx_port": names[s.port],
                "tx_queue": s.queue,
                "tx_length": len(s.frame),
            }
        )
    return out


def assert_true(found, plan, **kwargs):
    """Every packet is explained as it was, and nothing else."""
    want = {}
    for row in expected(plan, **kwargs):
        want[row.get("rx_frame"), row.get("tx_frame")] = row
    assert len(found) == len(want)
    for row in found:
        row.pop("flow")
        row["changes"] = " ".join(sorted(row["changes"].split()))
        key = tuple(int(row[k]) if row[k] else None for k in ("rx_frame", "tx_frame"))
        truth = want.pop(key)
        assert row == {k: text(truth.get(k)) for k in row}, key


def test_every_packet_is_explained(traced, plan):
    kinds = collections.Counter(row["fate"] for row in expected(plan))
    assert len(kinds) == 5 and min(kinds.values()) > 1, kinds  # a test below covers let_go
    assert any(r.reordered for r in plan.received) and any(len(r.sendings) > 2 for r in plan.received)
    assert_true(rows(traced, *TIMEOUT), plan)


def test_forms_of_files(traced, plan, tmp_path):
    """From other machines, with time stamps in 2^-30 s and blocks of other programs; compressed; standard input; several files of one
    recording."""
    other = Plan(2, packets=500)
    w = Writer(">")
    for name in ("p0", "p1"):
        w.interface(name, tsresol=128 | 30)
    w.other(0x80000123)
    for i, (holder, (port, frame, direction, queue, id)) in enumerate(other._events()):
        w.packet(port, -(-(holder.ns << 30) // 10**9), frame, direction, queue, id)
        if i % 50 == 0:
            w.other(0x80000000 | i)
    assert_true(rows(w.write(tmp_path / "big.pcapng"), *TIMEOUT), other)
    for tool in ("zstd", "lz4"):
        packed = tmp_path / f"trace.{tool}"
        assert run(["sh", "-c", f"{tool} -q <{traced} >{packed}"]).returncode == 0
        assert_true(rows(packed, *TIMEOUT), plan)
    piped = run(["sh", "-c", f"cat {packed} | {RINGTAP} explain - --csv --timeout 10ms"])
    assert_true(list(csv.DictReader(io.StringIO(piped.stdout))), plan)
    parts = [Writer() for _ in range(3)]
    plan.write(None, parts=parts)
    assert_true(rows(*(w.write(tmp_path / f"{i}.pcapng") for i, w in enumerate(parts)), *TIMEOUT), plan)


def percentile(values, share):
    values = sorted(values)
    return values[max(-(-int(share * 1000) * len(values) // 1000), 1) - 1]


def test_numbers_and_tables(traced, plan):
    """Sums and percentiles; changes, copies and protocols; flows and time: as the plan has them. The text fits a terminal."""
    j = numbers(traced, *TIMEOUT, "--limit", "1000")
    sent = [r for r in plan.received if r.sendings]
    copies = sum(len(r.sendings) - 1 for r in sent)
    fates = collections.Counter(plan.fate(r) for r in plan.received)
    assert j["received"] == len(plan.received) == j["sent"] + j["not_sent"] + j["open"] + j["let_go"]
    assert (j["sent"], j["not_sent"], j["open"], j["let_go"]) == (len(sent), fates["not_sent"], fates["open"], 0)
    assert (j["copies"], j["made"], j["unknown"]) == (copies, len(plan.made), len(plan.unknown))
    assert j["copies_same_queue"] == sum(
        a.port == b.port and a.queue == b.queue for r in sent for a, b in zip(r.sendings, r.sendings[1:])
    )
    assert j["reordered"] == sum(r.reordered for r in plan.received)

    latencies = [r.sendings[0].ns - r.ns for r in sent]
    assert (j["latency"]["min_ns"], j["latency"]["max_ns"]) == (min(latencies), max(latencies))
    assert j["latency"]["mean_ns"] == pytest.approx(sum(latencies) / len(latencies), abs=1)
    for name, share in (("p50_ns", 0.5), ("p90_ns", 0.9), ("p99_ns", 0.99), ("p999_ns", 0.999)):
        assert j["latency"][name] == pytest.approx(percentile(latencies, share), rel=0.01)

    for pair in j["pairs"]:
        there = [
            s.ns - r.ns
            for r in sent
            for s in r.sendings
            if f"p{r.port}" == pair["rx_port"]["name"] and f"p{s.port}" == pair["tx_port"]["name"]
        ]
        assert (pair["latency"]["packets"], pair["latency"]["max_ns"]) == (len(there), max(there))
    assert sum(p["latency"]["packets"] for p in j["queues"]) == len(sent) + copies
    for size in j["sizes"]:
        most = size["bytes_max"] or 1 << 32
        assert size["latency"]["packets"] == sum(size["bytes_min"] <= len(r.frame) <= most for r in sent)

    sendings = [s for r in plan.received for s in r.sendings]
    changes = collections.Counter(c for s in sendings for c in s.changes)
    assert {k: v["packets"] for k, v in j["changes"].items() if v["packets"]} == changes
    assert j["unchanged"] == sum(not s.changes for s in sendings)
    assert all(v["example"] and v["rx_frame"] < v["tx_frame"] for v in j["changes"].values() if v["packets"])
    times = collections.Counter(len(r.sendings) for r in plan.received)
    assert {t["times"]: t["packets"] for t in j["sent_more_than_once"]} == {n: times[n] for n in times if n > 1}
    dropped = [r for r in plan.received if plan.fate(r) == "not_sent"]
    assert sum(u["packets"] for u in j["not_sent_by_protocol"]) == len(dropped)
    arp = [u for u in j["not_sent_by_protocol"] if u["protocol"] == "ARP"]
    truth = [r for r in dropped if r.flow % 6 == 5]  # all of them at port 1
    assert [u["packets"] for u in arp] == [len(truth)] and arp[0]["first_frame"] == truth[0].number

    # ARP requests of a flow have the MAC addresses of that flow.
    assert j["flow_count"] == len({r.flow for r in plan.received})
    by_frame = {min(r.number for r in plan.received if r.flow == n): n for n in {r.flow for r in plan.received}}
    for f in j["flows"]:
        own = [r for r in plan.received if r.flow == by_frame[f["first_frame"]]]
        assert f["received"] == len(own)
        assert f["not_sent"] == sum(plan.fate(r) == "not_sent" for r in own)
        assert f["reordered"] == sum(r.reordered for r in own)
        latencies = [r.sendings[0].ns - r.ns for r in own if r.sendings]
        assert f["max_ns"] == max(latencies) and f["p50_ns"] == pytest.approx(percentile(latencies, 0.5), rel=0.07)
    for name in ("received", "not_sent", "reordered", "copies"):
        assert sum(s[name] for s in j["slices"]) == j[name]
    first = plan.received[0].ns
    for i, s in enumerate(j["slices"]):
        start = ns_of(s["start"])
        assert start == first + i * j["slice_ns"]
        assert s["received"] == sum(start <= r.ns < start + j["slice_ns"] for r in plan.received)

    for by, key in (("packets", "received"), ("not-sent", "not_sent"), ("reordered", "reordered"), ("p99", "p99_ns")):
        values = [f[key] for f in numbers(traced, *TIMEOUT, "--by", by, "--limit", "1000")["flows"]]
        assert values == sorted(values, reverse=True) and len(values) > 5
        assert [f[key] for f in numbers(traced, *TIMEOUT, "--by", by, "--limit", "3")["flows"]] == values[:3]
    out = explain(traced, *TIMEOUT).stdout
    assert max(map(len, out.splitlines())) <= 80
    for part in (
        "not sent",
        "Latency from receiving",
        "Changed on the way",
        "TTL, hop limit",
        "Sent more than once",
        "Sent in another order",
        "Flows with the most",
    ):
        assert part in out


# ---- single cases


def two_ports():
    w = Writer()
    w.interface("p0")
    w.interface("p1")
    return w


FRAME = bytes.fromhex("02000000000102000000000288b5") + bytes(46)


def test_a_section_of_the_other_byte_order_moves_no_packet(tmp_path):
    """Its length is small in the order of the section before, so that it seems to be in memory; reading all of it moves that."""
    w, size = two_ports(), 2 << 20
    for i in range(8):
        w.packet(0, START + i, FRAME, RX, 0, i + 1)
    path = w.write(tmp_path / "orders.pcapng")
    words = struct.pack(">III", 0x0A0D0D0A, size, 0x1A2B3C4D)
    path.write_bytes(path.read_bytes() + words + b"\xff" * (size - 16) + struct.pack(">I", size) + bytes(65536))
    done = run([RINGTAP, "explain", "--csv", path])
    assert done.returncode == FAILED  # no signal; all packets before it are explained
    assert [int(row["id"]) for row in csv.DictReader(io.StringIO(done.stdout))] == list(range(1, 9))


def test_recordings_of_several_captures(tmp_path):
    """Applications with ports of the same names, captures with losses and filters, files in another order than their times."""
    w = Writer()
    for app in ("left", "right"):
        w.interface("p0", app)
        w.interface(f"{app}:p1", app)  # as in a recording of several
    for i in range(4):
        w.packet(i // 2 * 2, START + 10 * i, FRAME, RX, 0, 1 + i)
        w.packet(i // 2 * 2 + 1, START + 10 * i + 1, FRAME, TX, 0, 1 + i)
    path = w.write(tmp_path / "both.pcapng")
    j = numbers(path)
    assert [(a["name"], [(p["index"], p["name"]) for p in a["ports"]]) for a in j["applications"]] == [
        ("left", [(0, "p0"), (1, "p1")]),
        ("right", [(2, "p0"), (3, "p1")]),
    ]
    assert [(p["rx_port"]["index"], p["tx_port"]["index"]) for p in j["pairs"]] == [(0, 1), (2, 3)]
    text = explain(path, "--html", tmp_path / "x.html").stdout
    assert "left:p0 > left:p1" in text and "right:p0 > right:p1" in text
    assert [a["name"] for a in document_of(tmp_path / "x.html")["applications"]] == ["left", "right"]
    rows = list(csv.DictReader(io.StringIO(explain(path, "--csv").stdout)))
    assert {r["rx_port"] for r in rows} == {"left:p0", "right:p0"}

    # What the capture has lost or filtered is named.
    w = Writer()
    w.interface("p0", filter="udp")
    w.packet(0, START, FRAME, RX, 0, 1, dropped=3)
    w.packet(0, START + 5, FRAME, TX, 0, 1)
    w.statistics(0, 2, 12)
    j = numbers(w.write(tmp_path / "lossy.pcapng"))
    assert only(j)["ports"][0]["lost"] == 12
    assert any("lost 12 packets" in note for note in j["notes"]) and any("filter" in note for note in j["notes"])

    # What a later file has sent, and an earlier one, is sent in both.
    paths = []
    for name, begin in (("late", START + 10 * 10**9), ("early", START)):
        w = two_ports()
        for i in range(100):
            w.packet(0, begin + 1000 * i, FRAME, RX, 0, begin + i)
            w.packet(1, begin + 1000 * i + 500, FRAME, TX, 0, begin + i)
        w.packet(0, begin + 3 * 10**9, FRAME, RX, 0, begin + 100)
        paths.append(w.write(tmp_path / f"{name}.pcapng"))
    j = numbers(*paths)
    assert (j["sent"], j["unknown"], j["open"], j["not_sent"]) == (200, 0, 2, 0)

    # A file of one direction says so first.
    w = two_ports()
    w.packet(0, START, FRAME, RX, 0, 1)
    first, *_more = explain(w.write(tmp_path / "received.pcapng")).stdout.splitlines()
    assert first.endswith("1 records, only of received packets")
    assert "received" not in explain(paths[0]).stdout.splitlines()[0]


def test_refusals_and_damage(traced, plan, tmp_path):
    """Wrong command lines are in cli/usage_test.c, other damage is in cli/explain/records_test.c."""
    assert explain(traced, "--timeout", "0s", status=USAGE).stderr.startswith("ringtap: explain: ")
    assert "No such file" in explain(tmp_path / "none.pcapng", status=FAILED).stderr
    assert explain(traced, "--html", tmp_path / "no" / "x.html", status=FAILED).stderr
    w = two_ports()
    w.packet(0, START, FRAME, RX, 0)
    w.packet(1, START + 1, FRAME, TX, 0)
    for data, message in ((w.data, "record with 'ringtap record --ids'"), (two_ports().data, "no packets")):
        path = tmp_path / "plain.pcapng"
        path.write_bytes(data)
        done = explain(path, "--html", tmp_path / "x.html", status=FAILED)
        assert message in done.stderr and not done.stdout and not (tmp_path / "x.html").exists()
    done = run([RINGTAP, "explain", traced, "--html", "/dev/full"])
    assert done.returncode == FAILED and "/dev/full" in done.stderr
    done = run(["sh", "-c", f"{RINGTAP} explain {traced} --csv >/dev/full"])
    assert done.returncode == FAILED and "No space left" in done.stderr
    out = tmp_path / "out.pcapng"
    assert "has no fates" in explain(traced, "--annotate", out, status=FAILED).stderr
    assert not out.exists()
    before = traced.read_bytes()
    for option in ("--annotate", "--html"):
        assert "is the recording itself" in explain(traced, option, traced, status=USAGE).stderr
    assert traced.read_bytes() == before

    # A damaged file is explained up to the damage.
    path, data = tmp_path / "bad.pcapng", traced.read_bytes()
    at = [at for kind, _, at in pcapng.blocks(data) if kind == pcapng.EPB][len(plan.received)]
    path.write_bytes(data[: at + 5])
    done = explain(path, "--csv", *TIMEOUT, status=FAILED)
    assert "ends in the middle" in done.stderr
    found = [r for r in csv.DictReader(io.StringIO(done.stdout)) if r["fate"] == "sent"]
    assert len(found) > len(plan.received) // 3
    assert found == [r for r in rows(traced, *TIMEOUT) if r["fate"] == "sent"][: len(found)]
    assert numbers(path, *TIMEOUT, status=FAILED)["damage"]
    packed = tmp_path / "cut.zst"
    assert run(["zstd", "-q", traced, "-o", packed]).returncode == 0
    packed.write_bytes(packed.read_bytes()[:-1000])
    assert "compressed data" in explain(packed, status=FAILED).stderr


def test_fates(tmp_path):
    w = Writer(">")
    w.interface("p0")
    w.fates(1)
    for id in range(1, 7):
        w.packet(0, START + id, bytes(60 * id), RX, id % 2, id)
    w.packet(0, START + 100, bytes(60), TX, 0, 1)
    w.fates(4, [(0, 7, b'no "route", or acl')])
    w.fates(2, [(2, START + 2000, 0, 0, 1, 7), (3, START + 3000, 0, 1, 2, 1), (4, START + 4000, 0, 0, 3)])
    w.fates(2, [(6, START + 9000, 0, 0, 4), (99, START + 9000, 0, 0, 1)])
    w.fates(3, [(0, 0, 3, 1, 1, 1, 0, 0, 5), (0, 1, 3, 2, 0, 0, 1, 1, 0)])
    path = w.write(tmp_path / "fates.pcapng")
    assert {int(r["id"]): r["reason"] for r in rows(path) if r["reason"]} == {2: 'no "route", or acl'}
    by_id = {int(r["id"]): (r["fate"], r["noticed_ns"]) for r in rows(path)}
    assert by_id == {
        1: ("sent", ""),
        2: ("not_offered", str(START + 2000)),
        3: ("undecided", str(START + 3000)),
        4: ("likely_offered", str(START + 4000)),
        5: ("offered", ""),
        6: ("open", str(START + 9000)),
    }
    fates = numbers(path)["fates"]
    assert {
        k: fates[k]
        for k in (
            "received",
            "offered",
            "not_offered",
            "open",
            "unknown",
            "likely_offered",
            "lost",
            "of_other_packets",
            "complete",
        )
    } == {
        "received": 6,
        "offered": 2,
        "not_offered": 1,
        "open": 1,
        "unknown": 2,
        "likely_offered": 1,
        "lost": 5,
        "of_other_packets": 1,
        "complete": True,
    }
    assert [(q["rx_queue"], q["received"], q["offered"]) for q in fates["queues"]] == [(0, 3, 0), (1, 3, 2)]
    assert fates["noticed"]["max_ns"] == 1998
    out = explain(path).stdout
    assert "What became of received packets" in out and "lost the fates of 5 packets" in out
    page = tmp_path / "page.html"
    explain(path, "--html", page)
    titles = {p["title"] for p in document_of(page)["panels"]}
    assert {"What became of received packets", "Not offered, by size"} <= titles

    # The flows with the most of them come first.
    w = Writer()
    w.interface("p0")
    w.fates(1)
    frames = [
        bytes.fromhex("020000000001020000000002 0800 4500002e00000000401100000a0000")
        + bytes([n])
        + bytes.fromhex("0a00000900350035001a0000")
        + bytes(18)
        for n in (1, 2)
    ]
    for id in range(1, 11):
        w.packet(0, START + id, frames[id % 2], RX, 0, id)
    w.fates(2, [(id, START + 100, 0, 0, 1) for id in (1, 3, 5, 2)])
    w.fates(3)
    path = w.write(tmp_path / "flows.pcapng")
    flows = numbers(path, "--by", "not-offered")["flows"]
    assert [(f["flow"].split(":")[0], f["not_offered"], f["received"]) for f in flows] == [
        ("10.0.0.2", 3, 5),
        ("10.0.0.1", 1, 5),
    ]


def test_annotated_copies(tmp_path):
    """All blocks are as they were, and packets with a fate have a comment."""
    files, order = [], ">"
    for part in range(2):
        w = Writer(order)
        w.interface("p0")
        w.fates(1)
        for id in range(1 + 4 * part, 5 + 4 * part):
            w.packet(0, START + id, bytes(40 + id), RX if id % 4 else 0, 0 if id % 2 else None, id)
        w.other(0x0BAD, b"abcd")
        if part:
            w.fates(4, [(0, 1, b"acl")])
            w.fates(2, [(1, START + 101, 0, 0, 1, 1), (6, START + 106, 0, 0, 4)])
            w.fates(3)
        files.append(w.write(tmp_path / f"{part}.pcapng"))
    out = tmp_path / "out.pcapng"
    explain(*files, "--annotate", out)
    assert out.stat().st_mode & 0o777 == 0o600
    explain(*files, "-g", "--annotate", out)
    assert out.stat().st_mode & 0o777 == 0o640
    want = b"".join(f.read_bytes() for f in files)
    assert len(want) < len(out.read_bytes()) < len(want) + 200
    plain, frames, comments = [], 0, {}
    for kind, body in raw_blocks(out.read_bytes(), order):
        if kind == 6:
            frames += 1
            body, comment = without_comment(body, order)
            if comment:
                comments[frames] = comment
        plain.append((kind, body))
    assert plain == list(raw_blocks(want, order))
    assert comments == {
        1: b"ringtap: not offered; noticed 0.000000100 s after its reception; reason: acl",
        6: b"ringtap: open at the end of the recording",
    }
    # It is explained as the recording itself.
    assert {k: v for k, v in numbers(out).items() if k not in ("files", "time")} == {
        k: v for k, v in numbers(*files).items() if k not in ("files", "time")
    }


def raw_blocks(data, order):
    while data:
        kind, length = struct.unpack_from(order + "II", data)
        assert struct.unpack_from(order + "I", data, length - 4) == (length,)
        yield kind, data[8 : length - 4]
        data = data[length:]


def without_comment(body, order):
    """An Enhanced Packet Block that may have a comment as its first option."""
    at = 20 + (struct.unpack_from(order + "I", body, 12)[0] + 3) // 4 * 4
    code, length = struct.unpack_from(order + "HH", body, at) if at < len(body) else (0, 0)
    if code != 1:
        return body, None
    end = at + 4 + (length + 3) // 4 * 4
    return body[:at] + body[end:], body[at + 4 : at + 4 + length]
