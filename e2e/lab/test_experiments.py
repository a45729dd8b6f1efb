# SPDX-License-Identifier: BSD-3-Clause
"""The experiments of ringtap-lab in short runs; their report in a browser."""

import glob
import json
import os
import shutil
import signal
import sys

import pytest
from harness import lab, report
from harness.proc import check, until
from ringtap_lab.report import memory_view
from ringtap_lab.run.experiments.memory import POOL

FWD = lab.BUILD / "fwd" / "ringtap-fwd"
pytestmark = [pytest.mark.nightly, pytest.mark.skipif(not FWD.exists(), reason=f"{FWD} is not built")]


DOCUMENTS = "".join(p.read_text() for p in (lab.REPO / "docs").glob("*.md"))


def read(folder, name):
    """(cells by name, all data)"""
    data = json.loads((folder / f"{name}.json").read_text())
    return {c["cell"]: c for c in data["cells"]}, data


def mean(cells, cell, metric):
    return cells[cell]["statistics"][metric]["mean"]


@pytest.fixture(scope="module")
def latency(tmp_path_factory):
    folder = tmp_path_factory.mktemp("latency")
    done = lab.run("latency", "--quick", "--repetitions", 1, "--latency-packets", 2000, "-w", folder, "--nice", -5)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    folder = tmp_path_factory.mktemp("memory")
    done = lab.run(
        "memory",
        "--quick",
        "--repetitions",
        1,
        "-o",
        folder,
        "--nice",
        -5,
        "--only",
        "4k-drop,4k-retry,4k-stack,huge-drop,gpu-drop,cost-4k",
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
def test_latency(latency):
    cells, data = read(latency, "latency")
    planes = ("packet", "mmap", "af_packet", "af_xdp", "memif")
    assert set(cells) == {f"{t}-{p}" for t in ("within", "roundtrip") for p in planes} | {"within-ring"}
    assert data["settings"] == {"quick": True, "latency_packets": 2000}
    for key, cell in cells.items():
        assert [r["repetition"] for r in cell["runs"]] == [0], key
        for run in cell["runs"]:
            v = run["values"]
            sent = 20 if key == "roundtrip-mmap" else 2000
            assert sent * 0.99 <= v["packets"] <= sent and v["packets"] + v["lost"] >= sent, (key, v)
            assert 0 < v["cycles_p50"] <= v["cycles_p99"] * 1.004 <= v["cycles_max"] * 1.01, (key, v)
            assert v["cycles_mean"] <= v["cycles_max"], (key, v)
            assert v["projected_pps"] == pytest.approx(1e9 / v["ns_p50"]), (key, v)
            assert v["projected_mean_pps"] == pytest.approx(1e9 / v["ns_mean"]), (key, v)
            assert v["projected_gbps"] == pytest.approx(v["projected_pps"] * 84 * 8 / 1e9), (key, v)
            hz = v["cycles_mean"] / v["ns_mean"]
            assert hz == pytest.approx(v["cycles_max"] / v["ns_max"], rel=0.001), (key, v)
        program = [c for c in cell["commands"] if "ringtap-fwd" in c]
        assert program and all("--json" in c for c in program), cell["commands"]
    # One packet at a time cannot be batched; a window of several can.
    assert mean(cells, "roundtrip-memif", "per_burst") < 1.5
    # A round trip includes the forwarding, also on the fastest plane.
    assert mean(cells, "roundtrip-memif", "cycles_p50") > mean(cells, "within-ring", "cycles_p50")


@pytest.mark.slow
def test_memory(memory):
    cells, data = read(memory, "memory")
    p = data["prepared"]
    assert p["wire_pps"] == pytest.approx(0.1 * min(p["limit_4k_pps"], p["limit_dpdk_pps"]))
    assert p["below_pps"] < p["wire_pps"] < p["above_pps"]
    drop, retry = (cells[k]["runs"][0]["values"] for k in ("4k-drop", "4k-retry"))
    assert drop["dropped_2"] > 0
    assert [retry[f"dropped_{n}"] for n in (1, 2, 3)] == [0, 0, 0] and retry["refused_2"] > 0
    # Nothing sorts the pool again; without drops it stays in order.
    assert drop["out_of_order_2"] > 0.2 and drop["out_of_order_3"] > 0.2
    assert max(retry[f"out_of_order_{n}"] for n in (1, 2, 3)) < 0.05
    assert drop["pages_own_3"] > 1.1 * retry["pages_own_3"]
    assert drop["misses_64_3"] > memory_view.MORE * retry["misses_64_3"]
    for v in (drop, retry):
        for n in (1, 2, 3):
            assert v[f"nonzero_bursts_{n}"] <= v[f"bursts_{n}"]
            assert v[f"passed_{n}"] > 0 and v[f"per_nonzero_burst_{n}"] >= max(v[f"per_burst_{n}"], 1)
    stack, huge = (cells[k]["runs"][0]["values"] for k in ("4k-stack", "huge-drop"))
    assert stack["dropped_2"] > 0 and huge["dropped_2"] > 0
    assert max(stack["buffers_1"], stack["buffers_3"]) < memory_view.FEW * POOL <= huge["buffers_3"]
    assert max(stack["misses_64_1"], stack["misses_64_3"]) < memory_view.FEW_MISSES < drop["misses_64_1"] / 9
    assert huge["out_of_order_3"] > memory_view.SCATTERED
    assert max(huge[f"misses_64_{n}"] for n in (1, 2, 3)) < memory_view.CURED
    assert [v["as_stated"] for v in (drop, retry, stack, huge)] == [1, 1, 1, 1]
    # The verdicts are distinct.
    found = {"drop": drop, "retry": retry, "stack": stack}
    assert [(p, q) for p in found for q in found if memory_view.as_stated("4k", p, found[q], POOL)] == [
        (p, p) for p in found
    ]
    assert not memory_view.as_stated("huge", "drop", drop, POOL)
    assert "no GPU" in (cells["gpu-drop"]["unavailable"] or "") or cells["gpu-drop"]["runs"]
    phases = cells["4k-drop"]["runs"][0]["data"]["phases"]
    assert set(phases) == {"1", "2", "3"} and len(phases["3"]["offsets_kib"]) > 1000
    for order in ("ring", "shuffled"):
        assert mean(cells, f"cost-4k-{order}", "pps") > 0


@pytest.mark.parametrize("name", ["latency", "memory"])
def test_report(name, request):
    folder = request.getfixturevalue(name)
    page = report.Page((folder / "report.html").read_text())
    report.check(page, report.load(folder), DOCUMENTS)
    assert page.tags.count("svg") >= 2
    # Published values are next to each table and plot.
    for block in page.root.classed("block") + page.root.tagged("figure"):
        assert block.classed("published"), block.text()[:80]


@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("name", ["latency", "memory"])
def test_in_a_browser(browser, name, width, request, tmp_path):
    folder = request.getfixturevalue(name)
    path = folder / "report.html"
    browser.open(path, width)
    assert report.check_drawn(browser, path, width) >= 2
    browser.screenshot(tmp_path / "shot.png")
    assert (tmp_path / "shot.png").stat().st_size > 20000


def test_page_is_printed(browser, latency, tmp_path):
    if not shutil.which("pdftotext"):
        pytest.skip("pdftotext is not installed (poppler-utils)")
    browser.open(latency / "report.html", 1000)
    browser.pdf(tmp_path / "report.pdf")
    text = " ".join(check(["pdftotext", tmp_path / "report.pdf", "-"]).split())
    assert "published" in text and "echo:eth0@" in text  # commands are expanded


@pytest.mark.parametrize("name", ["latency", "memory"])
def test_interrupt_leaves_nothing(name, tmp_path, closing):
    p = closing(lab.start(name, "--quick", "-w", tmp_path / "out"))
    p.expect(r"^\[1/")
    until(lambda: [x for x in lab.remains(p.pid) if x.startswith("process")], what="a forwarder")
    p.send_signal(signal.SIGINT)
    assert p.wait() == 130
    assert lab.remains(p.pid) == []
    assert "interrupted" in p.output and "Traceback" not in p.output
    assert (tmp_path / "out" / f"{name}.jsonl").exists()


# Makes socket() of an address family fail by a seccomp filter, as in a kernel built without it.
NO_SOCKET = """
import ctypes, os, platform, struct, sys
number = {"x86_64": 41, "aarch64": 198}[platform.machine()]
load = lambda offset: struct.pack("HBBI", 0x20, 0, 0, offset)
unless = lambda value, skip: struct.pack("HBBI", 0x15, 0, skip, value)
answer = lambda value: struct.pack("HBBI", 0x06, 0, 0, value)
code = (load(0) + unless(number, 3) + load(16) + unless(int(sys.argv[1]), 1)
        + answer(0x00050000 | 97) + answer(0x7fff0000))  # EAFNOSUPPORT
rules = ctypes.create_string_buffer(code)
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(rules)))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
    sys.exit(f"prctl: error {ctypes.get_errno()}")
os.execvp(sys.argv[2], sys.argv[2:])
"""


@pytest.mark.skipif(os.uname().machine not in ("x86_64", "aarch64"), reason="a system call's number")
@pytest.mark.parametrize(
    "family, name, planes", [(44, "AF_XDP", {"af_xdp"}), (17, "AF_PACKET", {"packet", "mmap", "af_packet"})]
)
def test_kernel_without_a_plane(family, name, planes, tmp_path):
    """Cells that need it are reported as unavailable, with the reason; all others are measured."""
    done = lab.run(
        "latency",
        "--quick",
        "--repetitions",
        1,
        "--latency-packets",
        200,
        "-o",
        tmp_path / "out",
        "--only",
        "within-*",
        wrap=[sys.executable, "-c", NO_SOCKET, family],
    )
    assert done.returncode == 0, done.stderr
    cells, _ = read(tmp_path / "out", "latency")
    assert {c for c, v in cells.items() if v["unavailable"]} == {f"within-{p}" for p in planes}
    for cell in cells.values():
        assert cell["runs"] or f"the kernel has no {name} sockets: " in cell["unavailable"]


def test_dpdk_without_a_driver(tmp_path):
    drivers = sorted(glob.glob("/usr/lib/*/dpdk/pmds-*"))
    if not drivers:
        pytest.skip("DPDK's drivers are not where Debian has them")
    (tmp_path / "drivers").mkdir()
    hide = (
        f"cp -a {drivers[-1]}/. {tmp_path}/drivers && rm {tmp_path}/drivers/*memif* "
        f"{tmp_path}/drivers/*af_xdp* && mount --bind {tmp_path}/drivers {drivers[-1]}"
    )
    done = lab.run(
        "latency",
        "--quick",
        "--repetitions",
        1,
        "--latency-packets",
        200,
        "-o",
        tmp_path / "out",
        "--only",
        "*memif,within-af_xdp,within-ring",
        wrap=["unshare", "-m", "sh", "-c", f'{hide} && exec "$@"', "sh"],
    )
    assert done.returncode == 0, done.stderr
    cells, _ = read(tmp_path / "out", "latency")
    assert cells.pop("within-ring")["runs"]
    assert set(cells) == {"within-memif", "roundtrip-memif", "within-af_xdp"}
    for cell in cells.values():
        assert "failed to parse device" in cell["unavailable"]
