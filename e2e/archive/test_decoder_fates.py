# SPDX-License-Identifier: BSD-3-Clause
"""Fates and latencies of flows: those of `ringtap explain`, also in the next file and behind the hour."""

import hashlib
import json
import random
import subprocess

import pytest
from harness import archiving, pcapng, traced
from harness.paths import REPO, RINGTAP
from scapy.all import (
    IP,
    UDP,
    Ether,
    Raw,
)

pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("ringtap_archive", reason=f"not in this environment: {REPO / 'archive'}")
from ringtap_archive import decoder, engine, layout, schema  # noqa: E402

START = 1_700_000_000 * 10**9 // (3600 * 10**9) * 3600 * 10**9
K0, K1, MASK = 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, (1 << 64) - 1
ETHER = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
FIN, SYN, RST, ACK = 1, 2, 4, 16


def of_fates(path, chance, ended, applications=2):
    """Applications with the same ids that offer, copy, encapsulate, free and keep what they receive."""
    w = traced.Writer()
    for number in range(applications):
        w.interface(f"port {number}", f"app{number}")
    w.fates(1)
    now = START
    for id in range(1, 400):
        for app in range(applications):
            flow = chance.randrange(8)
            packet = IP(src=f"10.0.0.{flow}", dst="10.1.0.1") / UDP(sport=1000 + flow, dport=53)
            w.packet(app, now, bytes(ETHER / packet), traced.RX, 0, id)
            fate = chance.choice([0, 0, 0, pcapng.NOT_OFFERED, pcapng.UNKNOWN, pcapng.INFERRED, pcapng.OPEN])
            sent, first = chance.random() < 0.6, chance.random() < 0.5
            # 3: of a later version. Other fates have no reason, whatever the byte is.
            entry = (id, now + 900, app, 0, fate, chance.randrange(4))
            if fate and first:
                w.fates(2, [entry])
            for copy in range(sent * chance.randint(1, 2)):
                label = Ether(src=ETHER.src, dst=ETHER.dst, type=0x1234) / Raw(bytes(50))
                w.packet(
                    app, now + 100 * (1 + flow) + copy, bytes(chance.choice([ETHER / packet, label])), traced.TX, 0, id
                )
            if fate and not first:
                w.fates(2, [entry, entry])
            now += 2000
    if ended:
        w.fates(3, [(0, 0, 399, 0, 0, 0, 0, 0, 0)])
    return w.write(path)


@pytest.mark.parametrize("ended", [True, False])
def test_fates_and_latencies_are_those_of_explain(tmp_path, ended):
    """A copy that was sent does not make its original offered, and packets that cannot be decoded count as sent."""
    path = of_fates(tmp_path / "fates.pcapng", random.Random(5), ended)
    told = json.loads(
        subprocess.run([RINGTAP, "explain", "--json", path], check=True, capture_output=True, text=True).stdout
    )
    _, flows = archiving.decode(path)
    total = {key: sum(flow[key] for flow in flows) for key in (*FATES, *schema.REASONS)}
    assert total == {key: told["fates"][key] for key in total}
    assert sum(total[key] for key in FATES) == told["fates"]["received"] == 798
    assert min(total[key] for key in FATES) > 50 and min(total[key] for key in schema.REASONS) > 10
    assert total["unseen"] + total["port_stopped"] < total["unknown"]
    # One application: flows of explain are those of a port.
    path = of_fates(tmp_path / "one.pcapng", random.Random(6), ended, 1)
    told = json.loads(
        subprocess.run([RINGTAP, "explain", "--json", path], check=True, capture_output=True, text=True).stdout
    )
    _, flows = archiving.decode(path)
    middle = {flow["src_port"]: flow["latency_p50_ns"] for flow in flows}
    theirs = {int(flow["flow"].split(" > ")[0].split(":")[1]): flow["p50_ns"] for flow in told["flows"]}
    assert len(middle) == 8 and middle == pytest.approx(theirs, rel=0.07)


def split_fates(tmp_path, chance, start, begun=1, last=4):
    """Files of ten seconds each, of one recording that keeps packets for up to nine: their fates are in the same file
    or in the next one."""
    events = []
    for id in range(1, 400):
        flow, now = chance.randrange(8), start + chance.randrange(10_000_000_000 * last - 9_500_000_000)
        packet = bytes(ETHER / IP(src=f"10.0.0.{flow}", dst="10.1.0.1") / UDP(sport=1000 + flow, dport=53))
        events.append((now, lambda w, ns, data=packet, id=id: w.packet(0, ns, data, traced.RX, 0, id)))
        fate = chance.choice([0, 0, pcapng.NOT_OFFERED, pcapng.UNKNOWN, pcapng.OPEN])
        if fate == 0 or chance.random() < 0.3:
            at = now + chance.randrange(1000, 9_000_000_000)
            events.append((at, lambda w, ns, data=packet, id=id: w.packet(0, ns, data, traced.TX, 0, id)))
        if fate:
            at = now + chance.randrange(9_000_000_000)
            events.append((at, lambda w, ns, id=id, fate=fate: w.fates(2, [(id, ns, 0, 0, fate)])))
    paths = []
    for number in range(last):
        w = traced.Writer()
        w.interface("port 0")
        w.fates(1, ns=start + begun)
        for ns, event in sorted(events, key=lambda e: e[0]):
            if (ns - start) // 10_000_000_000 == number:
                event(w, ns)
        if number == last - 1:
            w.fates(3, [(0, 0, 399, 0, 0, 0, 0, 0, 0)])
        paths.append(w.write(tmp_path / f"{begun}-{number}.pcapng"))
    return paths


FATES = ("offered", "not_offered", "open", "unknown")


def fates_of(archive):
    flows = [
        flow for part in archiving.parts(archive) for flow in pq.read_table(part.flows, partitioning=None).to_pylist()
    ]
    return {key: sum(flow[key] or 0 for flow in flows) for key in FATES}


def explained(*paths, keys=FATES):
    done = subprocess.run(
        [RINGTAP, "explain", "--json", "--timeout", "60s", *paths], check=True, capture_output=True, text=True
    )
    fates = json.loads(done.stdout)["fates"]
    return {key: fates[key] for key in keys}


def ingested(archive, *paths):
    assert archiving.call("ingest", "-q", "-A", archive, "--recorder", "a", *paths) == 0
    return fates_of(archive)


def test_fates_in_the_next_file_and_behind_the_hour(tmp_path):
    """All files together have the fates that explain finds; verify accepts fates that one file alone lacks."""
    paths = split_fates(tmp_path, random.Random(8), START + 3585 * 10**9)
    assert ingested(tmp_path / "all", *paths) == explained(*paths)
    assert len(archiving.parts(tmp_path / "all")) == 5
    assert archiving.call("verify", "-A", tmp_path / "all") == 0
    # Alone, each file has fewer: the test would not notice if all of them were in the same file.
    alone = tmp_path / "alone"
    assert [ingested(alone, path) for path in paths][-1]["open"] > explained(*paths)["open"] + 20


def test_fates_of_another_recording_are_not_taken(tmp_path):
    """The next file may belong to another recording with the same ids, and fates count for a minute only."""
    first, other = (split_fates(tmp_path, random.Random(8), START, begun)[:2] for begun in (1, 2))
    alone = ingested(tmp_path / "alone", first[0])
    with decoder.open(first[0]) as d:
        part = next(d.parts())
        assert (
            not part.look_ahead(other[1]) and not part.look_ahead(tmp_path) and not part.look_ahead(tmp_path / "none")
        )
        assert {key: sum(flow[key] for flow in part.flows().to_pylist()) for key in FATES} == alone
    with decoder.open(first[0]) as d:
        part = next(d.parts())
        assert part.look_ahead(first[1])
        assert sum(flow["open"] for flow in part.flows().to_pylist()) < alone["open"]
    late = traced.Writer()
    late.interface("port 0")
    late.fates(1, ns=START + 1)
    late.packet(0, START + 71 * 10**9, bytes(60), traced.RX, 0, 1000)
    late.fates(3, [(0, 0, 399, 0, 0, 0, 0, 0, 0)])
    assert ingested(tmp_path / "late", first[0], late.write(tmp_path / "late.pcapng")) == alone


def as_format(part, number):
    """Makes the tables of earlier versions: packets in the order of the file, in format 1 flows without reasons."""
    pq.write_table(pq.read_table(part.packets, partitioning=None).sort_by("file_offset"), part.packets)
    if number == 1:
        pq.write_table(pq.read_table(part.flows, partitioning=None).drop(schema.REASONS), part.flows)
    part.meta["format"] = number
    for name, path in (("packets", part.packets), ("flows", part.flows)):
        part.meta[name].update(bytes=path.stat().st_size, sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    part.meta_path.write_text(json.dumps(part.meta))


def test_archives_of_earlier_formats_stay_readable(tmp_path, capsys):
    """Parts of all formats are in one archive; reasons of format 1 are null until the part is made again."""
    archive, old, new, middle = (
        tmp_path / "archive",
        *(of_fates(tmp_path / f"{n}.pcapng", random.Random(n), True) for n in (1, 2, 3)),
    )
    for path in (old, new, middle):
        assert archiving.call("ingest", "-q", "-A", archive, "--recorder", path.stem, path) == 0
    fetched = [tmp_path / f"{name}.pcapng" for name in ("sorted", "unsorted")]
    assert archiving.call("fetch", "-q", "-A", archive, "-w", fetched[0]) == 0
    for recorder, number in (("1", 1), ("3", 2)):
        as_format(archiving.parts(archive, recorders=[recorder])[0], number)
    assert archiving.call("fetch", "-q", "-A", archive, "-w", fetched[1]) == 0
    assert fetched[0].read_bytes() == fetched[1].read_bytes()
    with engine.open(archive) as reader:
        names = reader.sql("SELECT * FROM flows").columns
        found = reader.sql(
            "SELECT recorder, CAST(sum(unknown) AS BIGINT), CAST(sum(unseen) AS BIGINT), "
            "CAST(sum(port_stopped) AS BIGINT) FROM flows GROUP BY 1 ORDER BY 1"
        ).all()
    expected = explained(new, keys=("unknown", *schema.REASONS))
    assert names[: len(schema.FLOWS.names)] == schema.FLOWS.names
    assert found[:2] == [("1", explained(old)["unknown"], None, None), ("2", *expected.values())]
    assert archiving.call("verify", "-A", archive) == 0
    part = archiving.parts(archive, recorders=["1"])[0]
    part.flows.write_bytes(b"damaged")
    assert archiving.call("verify", "-A", archive, "--repair") == 0 and archiving.call("verify", "-A", archive) == 0
    assert archiving.parts(archive, recorders=["1"])[0].meta["format"] == layout.FORMAT == 3
    # A later format than this one.
    part = archiving.parts(archive)[0]
    part.meta["format"] = 4
    part.meta_path.write_text(json.dumps(part.meta))
    capsys.readouterr()
    assert archiving.call("query", "-A", archive, "SELECT * FROM flows") == 1
    assert "format 4, of another version of ringtap; this one reads 1 to 3" in capsys.readouterr().err
