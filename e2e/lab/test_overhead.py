# SPDX-License-Identifier: BSD-3-Clause
"""The experiments overhead and pdump in short runs: their values are consistent, and nothing is
left behind."""
import json
import signal
import struct
import subprocess

import pytest

from harness import lab, pcapng, report
from harness.paths import BUILD
from harness.proc import Proc, check, until
from harness.tracers import bpftrace_missing, lttng_missing
from ringtap_lab.report import overhead_view, pdump_view
from ringtap_lab.run import attached, overhead_ways
from ringtap_lab.tools import scope

# Fewer processes, and nothing measured again because other workers disturbed it.
SHORTLY = ("-c", "import sys; from ringtap_lab.run import cli; from ringtap_lab.run.experiments import overhead; "
           "overhead.LIVES, overhead.TRIES = 2, 1; sys.exit(cli.main())")
WRITE_MODES = BUILD / "bench" / "write_modes"
STOCK = ("dumpcap-none-on", "pdump-on")
TRACED = ("usdt-on", "trace-burst-on", "lttng-on", "rte_trace-on")
CAPTURED = ("record-on", "record-none-on", *STOCK)
pytestmark = pytest.mark.skipif(not WRITE_MODES.exists(), reason=f"{WRITE_MODES} is not built")


def measured(folder, name, cells):
    """{cell: values of its only run}, and the page, checked against them."""
    done = lab.run(name, "--quick", "--repetitions", 1, "--only", ",".join(cells), "-o", folder, "--nice", -5,
                   "--overhead-seconds", 0.2, program=SHORTLY)
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
    return measured(tmp_path_factory.mktemp("pdump"), "pdump", (
        "untouched-64", "dumpcap-64", "packet-64", "batch-64", "paced-touch"))


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


def test_line_rate():
    assert pdump_view.line_pps(64) == pytest.approx(2 * 14_880_952, rel=1e-6)
    assert pdump_view.line_pps(512) == pytest.approx(2 * 2_349_624, rel=1e-6)


@pytest.mark.parametrize("mode", ["packet", "buffer", "touch"])
def test_ways_of_writing(app, closing, tmp_path, mode):
    """They write received packets, readable by other tools, and no sent ones."""
    path = tmp_path / "out.pcapng"
    p = closing(Proc([WRITE_MODES, mode, app.prefix, path]))
    p.expect("ready")
    sizes = [60, 61, 1514]
    for size in sizes:
        app.rx(n=1000, len=size)
    app.tx(n=500)
    p.send_signal(signal.SIGINT)
    assert p.wait(30) == 0
    text = json.loads(p.output.splitlines()[-1])
    assert text["seen"] == text["captured"] == text["packets"] == 3000 and text["lost"] == text["filtered"] == 0
    if mode == "touch":
        assert not path.exists() and text["writes"] == 0 and text["touched"] > 0
        return
    packets = pcapng.read(path).packets
    assert [len(x.data) for x in packets] == [size for size in sizes for _ in range(1000)]
    head = 2  # blocks before the packets
    assert text["writes"] == head + (3000 if mode == "packet" else -(-text["bytes"] // (1 << 20)))
    assert attached.packets_in(path.read_bytes()) == 3000
    assert "3000" in check(["capinfos", "-c", "-M", path])


@pytest.mark.parametrize("args, complaint", [
    ([], "usage: write_modes packet|buffer|touch APP FILE"), (["nonsense", "a", "b"], "usage: "),
    (["packet", "nobody", "/dev/null"], "no application 'nobody'"),
    (["buffer", "nobody", "/nowhere/file"], "/nowhere/file: No such file")])
def test_write_modes_reports_errors(args, complaint):
    done = subprocess.run([WRITE_MODES, *args], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1 and len(lab.messages(done)) == 1 and complaint in done.stderr


def test_a_full_disk_is_reported(app, closing):
    p = closing(Proc([WRITE_MODES, "packet", app.prefix, "/dev/full"]))
    assert p.wait(30) == 1
    assert "writing: No space left on device" in p.output


def test_packets_in_a_file():
    block = struct.pack("<II", 6, 12) + bytes(4)
    other = struct.pack("<II", 1, 16) + bytes(8)
    assert attached.packets_in(other + 3 * block + other) == 3
    with pytest.raises(RuntimeError):
        attached.packets_in(struct.pack("<II", 6, 0))


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


@pytest.mark.parametrize("name, cell, program", [
    ("overhead", "usdt-on", "bpftrace"), ("overhead", "lttng-on", "lttng-consumerd"),
    ("pdump", "touch-64", "write_modes")])
def test_interrupt_leaves_nothing(name, cell, program, tmp_path, closing):
    reason = {"bpftrace": bpftrace_missing, "lttng-consumerd": lttng_missing}.get(program, lambda: None)()
    if reason:
        pytest.skip(reason)
    # Long enough to be interrupted while the tool runs.
    p = closing(lab.start(name, "--quick", "--only", cell, f"--{name}-seconds", "1", "-o",
                          str(tmp_path / "out")))
    until(lambda: any(program in text for text in commands_of(p.pid)), 120, program)
    p.send_signal(signal.SIGINT)
    assert p.wait(60) == 130
    assert lab.remains(p.pid) == []
    assert "interrupted" in p.output and "Traceback" not in p.output


def test_remains_of_a_killed_run_are_removed(tmp_path, closing):
    p = closing(lab.start("overhead", "--quick", "--only", "record-on", "--overhead-seconds", "1",
                          "-o", str(tmp_path / "out")))
    until(lambda: any("record" in text for text in commands_of(p.pid)), 120, "ringtap record")
    p.child.kill()
    p.child.wait()
    scope.remove(lambda name: name.startswith(f"{scope.KIND}-{p.pid}-"))
    assert lab.remains(p.pid) == []


@pytest.mark.parametrize("name", ["overhead", "pdump"])
@pytest.mark.parametrize("args, complaint", [
    (["--build", "/nowhere"], "neither in /nowhere/"), (["--cpus", "0"], "needs 2 CPUs")])
def test_missing_parts_are_reported_in_one_line(name, args, complaint, tmp_path):
    done = lab.run(name, *args, "-o", tmp_path / "out", PATH="/usr/bin:/bin:/usr/sbin:/sbin")
    assert done.returncode == 2, done.stderr
    assert len(lab.messages(done)) == 1 and complaint in lab.messages(done)[0], done.stderr


def test_missing_tool(tmp_path):
    """The cell is unavailable; the message names the package to install."""
    empty = tmp_path / "empty"
    empty.touch()
    hide = f"mount --bind {empty} /usr/bin/dpdk-dumpcap && chmod 0 {empty}"
    done = lab.run("overhead", "--quick", "--only", "dumpcap-none", "-o", tmp_path / "out",
                   wrap=["unshare", "-m", "sh", "-c", f'{hide} && exec "$@"', "sh"])
    assert done.returncode == 0, done.stderr
    cells = {c["cell"]: c for c in json.loads((tmp_path / "out" / "overhead.json").read_text())["cells"]}
    assert "dpdk-dumpcap is not installed: apt install dpdk-dev" in cells["dumpcap-none-on"]["unavailable"]


def test_every_row_is_measured():
    keys = {way.key for way in overhead_ways.WAYS}
    rows = overhead_view.ROWS
    assert {key for r in rows for key in (r.off, r.on) if key} == keys
    assert len(keys) == len(overhead_ways.WAYS)
