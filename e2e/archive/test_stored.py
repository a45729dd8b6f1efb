# SPDX-License-Identifier: BSD-3-Clause
"""This version reads the recordings and archives that earlier ones wrote, which are in stored/."""

import ipaddress
import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from harness import archiving
from harness.paths import RINGTAP
from harness.proc import check

STORED = Path(__file__).parent / "stored"
VERSIONS = sorted(path.name for path in STORED.iterdir() if path.is_dir())


@pytest.fixture(params=VERSIONS)
def stored(request):
    folder = STORED / request.param
    return folder, json.loads((folder / "expected.json").read_text())


def flow_name(flow):
    address = ipaddress.ip_address(flow["src"])
    ends = [flow["protocol"], address.ipv4_mapped or address, flow["src_port"]]
    return " ".join(str(end) for end in (ends if flow["protocol"] == 17 else ends[:2]))


def by_name(flows):
    keys = ("packets_ab", "packets_ba", "offered", "not_offered")
    return {flow_name(flow): [flow[key] for key in keys] for flow in flows}


def test_a_stored_recording(stored, tmp_path):
    folder, expected = stored
    file = folder / "recording.pcapng.zst"
    report = json.loads(check([RINGTAP, "explain", "--json", file]))
    (app,) = report["applications"]
    assert not report["damage"] and report["records"] == expected["packets"]
    assert [report["received"], report["sent"]] == [expected["received"], expected["sent"]]
    assert sum(port["lost"] for port in app["ports"]) == expected["lost"]
    assert [report["fates"][key] for key in ("offered", "not_offered")] == [
        expected["offered"],
        expected["not_offered"],
    ]
    assert archiving.packets_in(archiving.by_zstd(file)) == expected["packets"]
    assert archiving.call("ingest", "-A", tmp_path / "a", "--recorder", "a", file) == 0
    (part,) = archiving.parts(tmp_path / "a")
    assert by_name(pq.read_table(part.flows).to_pylist()) == expected["flows"]


def test_a_stored_archive(stored, tmp_path, capfd):
    folder, expected = stored
    archive = shutil.copytree(folder / "archive", tmp_path / "archive")
    assert archiving.call("verify", "-A", archive) == 0
    archiving.assert_whole(archive, folder / "recording.pcapng.zst")
    archiving.assert_clean(archive)
    (part,) = archiving.parts(archive)
    assert archiving.packets_in(archiving.content(part)) == expected["packets"]
    assert by_name(pq.read_table(part.flows).to_pylist()) == expected["flows"]
    capfd.readouterr()
    sql = "SELECT count(*) AS packets, count(DISTINCT packet_id) AS ids FROM packets"
    assert archiving.call("query", "-A", archive, "--csv", sql) == 0
    assert capfd.readouterr().out == f"packets,ids\n{expected['packets']},{expected['received']}\n"
