# SPDX-License-Identifier: BSD-3-Clause
"""Flows and packets that ringtap flows sends, as goflow2 decodes them: version 1.3.7 is the last that Go 1.18 builds."""

import json
import shutil
import signal

import pytest
from flows.test_collectors import by_tshark, file, free_port, receive_queue, report_of  # noqa: F401
from harness.proc import Proc, until

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not shutil.which("goflow2"), reason="goflow2 is in no package of Debian: put it into PATH"),
]


@pytest.mark.parametrize("protocol", ["sflow", "ipfix"])
def test_goflow2_decodes(file, report_of, closing, tmp_path, protocol):  # noqa: F811
    port, out = free_port(), tmp_path / "out.json"
    scheme = "sflow" if protocol == "sflow" else "netflow"
    words = ["-listen", f"{scheme}://127.0.0.1:{port}", "-metrics.addr", f"127.0.0.1:{free_port()}"]
    it = closing(Proc(["goflow2", *words, "-transport.file", out]))
    until(lambda: receive_queue(port) is not None, what="goflow2 listens")
    report = report_of("--sample", "1", f"--{protocol}", f"127.0.0.1:{port}")
    until(lambda: receive_queue(port) == 0, what="the collector has read everything")
    it.send_signal(signal.SIGTERM)
    it.wait()
    records = [json.loads(line) for line in out.read_text().splitlines()]
    assert report["exports"][0]["records"] == len(records) > 0
    assert {r["SamplingRate"] for r in records} == {1} or protocol == "sflow"
    sums = {}
    for r in records:
        ports = (0, 0) if r["Proto"] == 58 else (r["SrcPort"], r["DstPort"])
        flow = sums.setdefault((r["SrcAddr"], r["DstAddr"], r["Proto"], *ports), [0, 0])
        flow[0] += r["Packets"]
        flow[1] += r["Bytes"]
    if protocol == "ipfix":
        assert sums == by_tshark(file)
    else:
        assert sums.keys() <= by_tshark(file).keys()
