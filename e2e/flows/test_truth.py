# SPDX-License-Identifier: BSD-3-Clause
"""ringtap flows against a recording of the same packets, and under packets that fill its table."""

import json
import re
import signal
from pathlib import Path

import pytest
from flows.test_flows import flows, run_all, udp, with_packets  # noqa: F401
from harness import pcap
from harness.paths import RINGTAP
from harness.proc import check, until
from harness.ringtap import Recorder


@pytest.mark.nightly
def test_latencies_are_those_of_explain(with_packets, flows, closing, tmp_path):  # noqa: F811
    """Within the resolution: four buckets an octave."""
    pmd, _file, count = with_packets([udp(i % 10) for i in range(5000)])
    it = flows(pmd, "--sample", "1", "--ids")
    recorder = closing(Recorder(["-i", pmd.prefix, "--ids"], tmp_path / "x.pcapng"))
    recorder.attached()
    run_all(pmd, count)
    recorder.finish()
    live = {f["name"]: f for f in it.json(signal.SIGINT)["flows"]}
    words = [RINGTAP, "explain", "--json", "--by", "packets", "--limit", "20", tmp_path / "x.pcapng"]
    recorded = {f["flow"]: f for f in json.loads(check(words))["flows"]}
    assert len(live) == 10 and live.keys() == recorded.keys()
    for name, f in live.items():
        truth = recorded[name]
        assert (f["counted"], f["forwarded"]) == (truth["received"], truth["sent"])
        assert f["latency"]["max_ns"] == truth["max_ns"]
        for quantile in ("p50_ns", "p99_ns"):
            assert f["latency"][quantile]["value"] == pytest.approx(truth[quantile], rel=0.19), (name, quantile)


@pytest.mark.nightly
def test_random_flows_at_full_rate(testpmd, flows, tmp_path):  # noqa: F811
    """More flows than the table has room for, each packet of another one: its size is bounded, all packets are
    accounted for, and the application goes on."""
    most = 4096
    file = pcap.write(tmp_path / "in.pcap", [udp(i) for i in range(100_000)])
    args = ("--no-flush-rx",)
    pmd = testpmd(
        f"net_pcap0,rx_pcap={file},infinite_rx=1", "net_null0,no-rx=1", mbufs=120_000, memory_mb=512, args=args
    )
    pmd.start()
    it = flows(pmd, "--sample", "1", "--max-flows", str(most), "--ids")
    before = pmd.stats(0)["RX-packets"]
    until(lambda: pmd.stats(0)["RX-packets"] > before + 10_000_000, what="packets while it counts")
    memory = int(re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{it.proc.pid}/status").read_text())[1])
    report = it.json(signal.SIGINT)
    counts = report["counts"]
    assert counts["seen"] == counts["captured"] + counts["lost"] > 0
    assert report["evicted"] > 10 * most and report["entries"] is None
    assert report["evicted_packets_most"] > 0 and len(report["flows"]) <= 1000
    assert memory < 600_000  # its buffer of 256 MiB, and a table of a few
    after = pmd.stats(0)["RX-packets"]
    until(lambda: pmd.stats(0)["RX-packets"] > after + 1_000_000, what="packets after it")
