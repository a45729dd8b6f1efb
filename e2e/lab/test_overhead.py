# SPDX-License-Identifier: BSD-3-Clause
"""The experiments overhead and pdump in short runs: their values are consistent, and nothing is
left behind. What they compute is tested in lab/tests/test_costs.py."""

import json
import signal

import pytest
from harness import lab, report
from harness.paths import BUILD
from harness.proc import until
from harness.tracers import bpftrace_missing, lttng_missing
from ringtap_lab.report import pdump_view

# Fewer processes, and nothing measured again because other workers disturbed it.
SHORTLY = (
    "-c",
    "import sys; from ringtap_lab.run import cli; from ringtap_lab.run.experiments import overhead; "
    "overhead.LIVES, overhead.TRIES = 2, 1; sys.exit(cli.main())",
)
WRITE_MODES = BUILD / "bench" / "write_modes"
STOCK = ("dumpcap-none-on", "pdump-on")
TRACED = ("usdt-on", "trace-burst-on", "lttng-on", "rte_trace-on")
CAPTURED = ("record-on", "record-none-on", *STOCK)
pytestmark = [pytest.mark.nightly, pytest.mark.skipif(not WRITE_MODES.exists(), reason=f"{WRITE_MODES} is not built")]


def measured(folder, name, cells):
    """{cell: values of its only run}, and the page, checked against them."""
    done = lab.run(
        name,
        "--quick",
        "--repetitions",
        1,
        "--only",
        ",".join(cells),
        "-w",
        folder,
        "--nice",
        -5,
        "--overhead-duration",
        "200ms",
        program=SHORTLY,
    )
    assert done.returncode == 0, done.stderr
    found = {c["cell"]: c for c in json.loads((folder / f"{name}.json").read_text())["cells"]}
    assert set(found) == set(cells)
    report.check(report.Page((folder / "report.html").read_text()), report.load(folder), "")
    return {key: c["runs"][0]["values"] for key, c in found.items() if not c["unavailable"]}


@pytest.fixture(scope="module")
def overhead(tmp_path_factory):
    return measured(tmp_path_factory.mktemp("overhead"), "overhead", ("probe-off", *CAPTURED, *TRACED))


@pytest.fixture(scope="module")
def pdump(tmp_path_factory):
    return measured(
        tmp_path_factory.mktemp("pdump"),
        "pdump",
        ("untouched-64", "dumpcap-64", "packet-64", "batch-64", "paced-touch"),
    )


@pytest.mark.slow
def test_overhead(overhead):
    for key, v in overhead.items():
        assert v["change"] == pytest.approx(v["pps"] / v["untouched_pps"] - 1), key
        assert v["added_ns"] == pytest.approx(1e9 / v["pps"] - 1e9 / v["untouched_pps"]), key
    for key in CAPTURED:
        v = overhead[key]
        assert v["seen"] == v["captured"] + v["filtered"] + v["lost"] > 1000, key
        assert v["captured_pps"] <= v["pps"] * (1 + 1e-9)  # rounded
        assert v["loss"] == pytest.approx(v["lost"] / max(v["captured"] + v["lost"], 1)), key
        # Packets are copied and queued, or filtered: the cost is visible on any machine, but for that of ringtap's filter.
        assert key == "record-none-on" or v["change"] < -0.1, key
    assert overhead["record-none-on"]["change"] > overhead["dumpcap-none-on"]["change"]
    for key in ("record-none-on", "dumpcap-none-on"):
        assert overhead[key]["captured"] == 0 < overhead[key]["filtered"], key
    assert overhead["record-on"]["captured"] > 0 == overhead["record-on"]["filtered"]
    assert overhead["pdump-on"]["captured"] > 0


@pytest.mark.parametrize("cell", TRACED)
def test_each_burst_has_an_event(overhead, cell):
    if cell not in overhead:
        pytest.skip("not available here")
    v = overhead[cell]
    assert v["events"] > 1000 and v["lost_events"] <= v["events"]
    assert v["per_event"] == 32
    assert v["lost_events"] or cell != "rte_trace-on"  # its buffer is small, and wraps around
    assert v["pps"] < v["hooks_pps"] or cell == "rte_trace-on"  # whose cost is below the noise
    assert v["event_ns"] == pytest.approx((1e9 / v["pps"] - 1e9 / v["hooks_pps"]) * 32)
    assert v["hooks_change"] == pytest.approx(v["hooks_pps"] / v["untouched_pps"] - 1)


@pytest.mark.slow
def test_pdump(pdump):
    for key, v in pdump.items():
        size = int(key.partition("-")[2]) if key.partition("-")[2].isdigit() else pdump_view.SMALLEST
        for what in ("forwarded", "captured"):
            if f"{what}_pps" in v:
                assert v[f"{what}_bps"] == pytest.approx(v[f"{what}_pps"] * (size + 20) * 8), key
                assert v[f"{what}_line"] == pytest.approx(v[f"{what}_pps"] / pdump_view.line_pps(size)), key
        if key.startswith("untouched"):
            continue
        assert v["seen"] == v["captured"] + v["lost"] > 1000, key
        assert v["captured"] > 0 and v["loss"] == pytest.approx(v["lost"] / v["seen"]), key
        directions = 2 if key.startswith("dumpcap") else 1
        assert v["captured_pps"] == pytest.approx(directions * v["forwarded_pps"] * (1 - v["loss"])), key
    assert 0 < pdump["paced-touch"]["forwarded_line"] < 1.05  # a busy machine may be too slow


def commands_of(pid):
    """Command lines of the child processes of a run."""
    found = [x.split()[1] for x in lab.remains(pid) if x.startswith("process")]
    texts = []
    for number in found:
        try:
            with open(f"/proc/{number}/cmdline", encoding="utf-8", errors="replace") as f:
                texts.append(f.read())
        except OSError:
            pass
    return texts


@pytest.mark.parametrize(
    "name, cell, program",
    [
        ("overhead", "usdt-on", "bpftrace"),
        ("overhead", "lttng-on", "lttng-consumerd"),
        ("pdump", "touch-64", "write_modes"),
    ],
)
def test_interrupt_leaves_nothing(name, cell, program, tmp_path, closing):
    reason = {"bpftrace": bpftrace_missing, "lttng-consumerd": lttng_missing}.get(program, lambda: None)()
    if reason:
        pytest.skip(reason)
    # Long enough to be interrupted while the tool runs.
    p = closing(lab.start(name, "--quick", "--only", cell, f"--{name}-duration", "1s", "-w", str(tmp_path / "out")))
    until(lambda: any(program in text for text in commands_of(p.pid)), what=program)
    p.send_signal(signal.SIGINT)
    assert p.wait() == 130
    assert lab.remains(p.pid) == []
    assert "interrupted" in p.output and "Traceback" not in p.output
