# SPDX-License-Identifier: BSD-3-Clause
"""`ringtap bug-report` of a real application: it is complete, and names neither the network nor the host."""

import json
import os
import platform
import re
import socket

from harness.paths import RINGTAP
from harness.proc import check
from harness.ringtap import listing


def test_a_report_of_a_forwarder(testpmd, tmp_path):
    pmd = testpmd("net_ring0", "net_ring1")
    pmd.start()
    (app,) = (a for a in listing() if a["name"] == pmd.prefix)
    path = tmp_path / "report.txt"
    document = json.loads(check([RINGTAP, "bug-report", "--json", "--duration", "1s", pmd.prefix]))
    assert not check([RINGTAP, "bug-report", "--duration", "1s", "-w", path, pmd.prefix])
    (found,) = document["applications"]
    assert found["pid"] == pmd.pid and found["dpdk"] == app["dpdk"] and found["probe"].startswith(document["ringtap"])
    assert [p["driver"] for p in found["ports"]] == ["net_ring", "net_ring"]
    assert found["verdicts"] and not document["problems"]
    assert document["system"]["kernel"] == platform.release()
    assert document["system"]["cpus"] == os.cpu_count()
    assert any(re.search(r"for DPDK's ABI \d\d", line) for line in document["versions"])
    text = path.read_text(encoding="utf-8")
    version = check([RINGTAP, "--version"]).splitlines()[0]  # with the commit
    assert document["versions"][0] == version and version in text
    assert f"dpdk: {app['dpdk']}\n" in text
    secrets = [pmd.prefix, socket.gethostname(), *(p[key] for p in app["ports"] for key in ("name", "device", "mac"))]
    for secret in secrets:
        assert not re.search(rf"\b{re.escape(secret)}\b", text + json.dumps(document)), secret
