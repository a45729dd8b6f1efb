# SPDX-License-Identifier: BSD-3-Clause
"""top, doctor, export and trace of one port of an application: APP:PORT."""

import json
import shutil

import pytest
from harness.documents import only
from harness.known import Known
from harness.paths import RINGTAP
from harness.proc import check, run, together, until
from harness.prometheus import Exporter
from harness.ringtap import FAILED


@pytest.fixture
def known(plugin, closing):
    return closing(Known(plugin))


def test_rows_of_one_port(known):
    words = [f"{known.prefix}:net_ring_a", f"{known.prefix}:0", ":net_ring_a"]
    for text in together(lambda word: check([RINGTAP, "top", "--once", "--json", "--interval", "200ms", word]), words):
        top = only(json.loads(text))
        assert [port["name"] for port in top["ports"]] == ["net_ring_a"]
        assert {queue["port"]["name"] for queue in top["queues"]} <= {"net_ring_a"}
        assert top["pools"]
    doctor = [RINGTAP, "doctor", "--duration", "1s", "--no-packets", "--json"]
    for done in together(lambda word: run([*doctor, word]), words):
        assert done.returncode in (0, 4) and only(json.loads(done.stdout))["name"] == known.prefix


def test_series_of_one_port(known, closing):
    exporter = closing(Exporter(args=[f"{known.prefix}:net_ring_a"]))
    until(lambda: any('port="net_ring_a"' in name for name in exporter.series()), what="series of the port")
    series = exporter.series()
    assert not any('port="net_ring_b"' in name for name in series)
    assert any("pool=" in name for name in series)


def test_port_that_is_not_there(known):
    commands = ["top --once", "doctor --duration 1s", *["trace burst --duration 1s"] * bool(shutil.which("bpftrace"))]
    for done in together(lambda command: run([RINGTAP, *command.split(), f"{known.prefix}:net_ring_c"]), commands):
        assert done.returncode == FAILED, done
        assert f"application '{known.prefix}' has no port 'net_ring_c'; did you mean 'net_ring_" in done.stderr
