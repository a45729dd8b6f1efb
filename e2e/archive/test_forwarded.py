# SPDX-License-Identifier: BSD-3-Clause
"""The rows of a recording of ringtap-fwd have tshark's fields, and fetch returns its packets."""

import pyarrow.parquet as pq
from harness import dissected, pcapng
from harness.archiving import assert_whole, call, parts

PACKETS = 10000


def test_recording_of_the_forwarder(fwd, record, tmp_path):
    """The recording has the packets of the generator, of a forwarder in another thread, and of the sink."""
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
        "--frame",
        "udp",
        "--sizes",
        "imix",
        "--rate",
        "20k",
        "--duration",
        "60s",
    ).running()
    recorder = record(app, "--ids", "-c", str(PACKETS))
    recorder.done()
    app.stop()
    archive, file = tmp_path / "archive", recorder.file()
    assert call("ingest", "-q", "-A", archive, "--recorder", "host", recorder.out) == 0
    assert_whole(archive, recorder.out)
    found = parts(archive)  # two, where an hour ended meanwhile
    rows = [row for part in found for row in pq.read_table(part.packets).sort_by("file_offset").to_pylist()]
    assert len(rows) == PACKETS and not dissected.differences(rows, recorder.out)
    assert {row["direction"] for row in rows} == {"rx", "tx"} and {row["protocol"] for row in rows} == {17}
    assert [(row["queue"], row["packet_id"] is None) for row in rows] == [(p.queue, p.id is None) for p in file.packets]
    flows = [row for part in found for row in pq.read_table(part.flows).to_pylist()]
    assert sum(row["packets_ab"] + row["packets_ba"] for row in flows) == PACKETS
    assert all(row["latency_p50_ns"] and row["latency_p50_ns"] <= row["latency_p99_ns"] for row in flows)
    assert {i["app"] for part in found for i in part.meta["interfaces"]} == {app.prefix}
    assert call("fetch", "-q", "-A", archive, "udp", "-w", tmp_path / "all.pcapng") == 0
    got = pcapng.read(tmp_path / "all.pcapng")

    def key(p, interfaces):
        return p.ns, p.direction, p.data, p.length, p.options, interfaces[p.interface].name.rpartition(":")[2]

    def ordered(file):
        return sorted((key(p, file.interfaces) for p in file.packets), key=lambda k: (k[0], k[1], k[5], k[2]))

    assert ordered(got) == ordered(file)
