# SPDX-License-Identifier: BSD-3-Clause
"""One experiment with real programs, and the program that writes packets in other ways than `ringtap record`."""

import json
import signal
import subprocess

import pytest
from harness import lab, pcapng, report
from harness.paths import BUILD
from harness.proc import Proc, check
from ringtap_lab.run import attached

WRITE_MODES = BUILD / "bench" / "write_modes"
pytestmark = pytest.mark.skipif(not WRITE_MODES.exists(), reason=f"{WRITE_MODES} is not built")


def test_one_cell_is_measured(tmp_path):
    """Two forwarders of shared memory, their report, and the page of it."""
    done = lab.run(
        "latency",
        "--quick",
        "--repetitions",
        1,
        "--latency-packets",
        500,
        "--only",
        "roundtrip-memif,within-ring",
        "-w",
        tmp_path / "out",
    )
    assert done.returncode == 0, done.stderr
    cells = {c["cell"]: c for c in json.loads((tmp_path / "out" / "latency.json").read_text())["cells"]}
    for name in ("roundtrip-memif", "within-ring"):
        values = cells[name]["runs"][0]["values"]
        assert 495 <= values["packets"] <= 500 and 0 < values["cycles_p50"] <= values["cycles_max"] * 1.01, values
    report.check(
        report.Page((tmp_path / "out" / "report.html").read_text()),
        report.load(tmp_path / "out"),
        "".join(p.read_text() for p in (lab.REPO / "docs").glob("*.md")),
    )


@pytest.mark.nightly
def test_ways_of_writing(app, closing, tmp_path):
    """They write received packets, readable by other tools, and no sent ones."""
    sizes = [60, 61, 1514]
    for mode in ("packet", "buffer", "touch"):
        path = tmp_path / f"{mode}.pcapng"
        p = closing(Proc([WRITE_MODES, mode, app.prefix, path]))
        p.expect("ready")
        for size in sizes:
            app.rx(n=1000, len=size)
        app.tx(n=500)
        p.send_signal(signal.SIGINT)
        assert p.wait() == 0
        text = json.loads(p.output.splitlines()[-1])
        assert text["seen"] == text["captured"] == text["packets"] == 3000 and text["lost"] == text["filtered"] == 0, (
            mode
        )
        if mode == "touch":
            assert not path.exists() and text["writes"] == 0 and text["touched"] > 0
            continue
        packets = pcapng.read(path).packets
        assert [len(x.data) for x in packets] == [size for size in sizes for _ in range(1000)], mode
        head = 2  # blocks before the packets
        assert text["writes"] == head + (3000 if mode == "packet" else -(-text["bytes"] // (1 << 20))), mode
        assert attached.packets_in(path.read_bytes()) == 3000
        assert "3000" in check(["capinfos", "-c", "-M", path])


@pytest.mark.nightly
def test_write_modes_reports_errors(app, closing):
    for args, complaint in (
        ([], "usage: write_modes packet|buffer|touch APP FILE"),
        (["nonsense", "a", "b"], "usage: "),
        (["packet", "nobody", "/dev/null"], "no application 'nobody'"),
        (["buffer", "nobody", "/nowhere/file"], "/nowhere/file: No such file"),
    ):
        done = subprocess.run([WRITE_MODES, *args], capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 1 and len(lab.messages(done)) == 1 and complaint in done.stderr, args
    p = closing(Proc([WRITE_MODES, "packet", app.prefix, "/dev/full"]))
    assert p.wait() == 1
    assert "writing: No space left on device" in p.output
