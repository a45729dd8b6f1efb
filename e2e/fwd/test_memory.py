# SPDX-License-Identifier: BSD-3-Clause
"""ringtap-fwd: memory is of the requested kind, and pools return buffers in the requested order."""

import csv
import itertools
import re
import struct
from collections import defaultdict
from pathlib import Path

import pytest
from harness.fwd import refused
from harness.proc import until
from harness.sandbox import HugePages

POOL, STRIDE, HEADROOM = 4095, 2176, 128
HUGE = Path("/sys/kernel/mm/hugepages")


def mappings(pid):
    """[(start, end, {field: kB})] of a process, from /proc."""
    out = []
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        head = re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line)
        field = re.match(r"(\w+):\s+(\d+) kB", line)
        if head:
            out.append((int(head[1], 16), int(head[2], 16), defaultdict(int)))
        elif field:
            out[-1][2][field[1]] = int(field[2])
    return out


def kept(fwd, *args, **kwargs):
    """The memory of the whole pool by /proc while the program runs, and the program's report."""
    app = fwd("--vdev", "net_null0", "--role", "echo:0@1", "--pool-size", POOL, *args, **kwargs)
    app.running()
    maps = mappings(app.proc.pid)
    report = app.stop()
    memory = report["memory"]
    start, end = memory["base"], memory["base"] + memory["bytes"]
    mine = [m for m in maps if m[0] < end and m[1] > start]
    total = defaultdict(int)
    for _start, _end, fields in mine:
        for key, kb in fields.items():
            total[key] += kb
    pages = {fields["KernelPageSize"] for _start, _end, fields in mine}
    return memory, total, pages


def free_pages(kb):
    path = HUGE / f"hugepages-{kb}kB" / "free_hugepages"
    return int(path.read_text()) if path.exists() else 0


@pytest.mark.nightly
def test_ordinary_pages(fwd):
    """With and without huge pages of DPDK's own."""
    if free_pages(2048) < 64:
        pytest.skip("needs 64 free huge pages of 2 MiB")
    for huge_eal, size in ((False, 4), (True, 2048)):
        memory, kernel, pages = kept(fwd, "--pool-memory", "4k", huge=huge_eal)
        assert memory["kind"] == "4k" and memory["page_bytes"] == 4096
        assert pages == {4}
        assert kernel["AnonHugePages"] == 0
        assert kernel["Private_Hugetlb"] == kernel["Shared_Hugetlb"] == 0
        assert kernel["Rss"] * 1024 >= memory["bytes"] >= POOL * STRIDE
        assert memory["smaps"]["rss_kb"] == kernel["Rss"]
        memory, kernel, pages = kept(fwd, huge=huge_eal)
        assert (memory["kind"], memory["page_bytes"]) == ("dpdk", size << 10)
        assert pages == {size}
        assert bool(kernel["Private_Hugetlb"] + kernel["Shared_Hugetlb"]) == huge_eal
    if "[never]" in Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text():
        pytest.skip("transparent huge pages are switched off")
    memory, kernel, _pages = kept(fwd, "--pool-memory", "thp")
    assert kernel["AnonHugePages"] * 1024 >= memory["bytes"] >= POOL * STRIDE
    assert memory["page_bytes"] == 2 << 20
    assert memory["base"] % (2 << 20) == 0
    assert memory["smaps"]["anon_huge_kb"] == kernel["AnonHugePages"]


@pytest.mark.parametrize("size,kb", [("2M", 2048), pytest.param("1G", 1 << 20, marks=pytest.mark.nightly)])
def test_huge_pages_of_the_program(fwd, closing, size, kb):
    closing(HugePages(pages={kb: -(-POOL * STRIDE // (kb << 10))}))
    if free_pages(kb) < -(-POOL * STRIDE // (kb << 10)):
        pytest.skip(f"needs free huge pages of {size}")
    memory, kernel, pages = kept(fwd, "--pool-memory", "huge", "--page-size", size)
    assert pages == {kb}
    held = kernel["Private_Hugetlb"] + kernel["Shared_Hugetlb"]  # kernels count 1 GiB pages in either
    assert held * 1024 >= memory["bytes"] >= POOL * STRIDE
    assert held == memory["smaps"]["hugetlb_kb"]


def physical(pid, address):
    """The physical address of an address of a process: Documentation/admin-guide/mm/pagemap.rst."""
    with open(f"/proc/{pid}/pagemap", "rb") as f:
        f.seek(address // 4096 * 8)
        (entry,) = struct.unpack("<Q", f.read(8))
    assert entry >> 63, "not in memory"
    return (entry & ((1 << 55) - 1)) * 4096 + address % 4096


@pytest.mark.nightly
def test_physical_addresses(fwd, tmp_path):
    """For devices without an IOMMU: addresses are correct, and no buffer crosses a page."""
    for kind in ("4k", "thp"):
        if free_pages(2048) < 64:
            pytest.skip("needs 64 free huge pages of 2 MiB")
        path = tmp_path / f"{kind}.csv"
        app = fwd(
            "--vdev",
            "net_null0",
            "--role",
            "echo:0@1",
            "--pool-memory",
            kind,
            "--pool-size",
            POOL,
            "--samples",
            path,
            "--sample",
            1,
            "--max-samples",
            POOL,
            "--packets",
            100_000,
            "--linger",
            "60s",
            huge=True,
            eal=("--iova-mode=pa",),
        )
        app.running()
        until(lambda: path.exists() and len(path.read_text().splitlines()) == POOL + 1)
        with open(path, encoding="ascii") as f:
            rows = [(int(row["va"]), int(row["iova"])) for row in csv.DictReader(f)]
        page = 4096 if kind == "4k" else 2 << 20
        for va, iova in rows[::50]:
            assert physical(app.proc.pid, va) == iova
        assert all((va - HEADROOM) % page + STRIDE <= page for va, _iova in rows)


def buffers(path, role=0):
    with open(path, encoding="ascii") as f:
        return [int(row["va"]) for row in csv.DictReader(f) if int(row["role"]) == role]


def handed_out(fwd, tmp_path, *args):
    """Numbers of the buffers that net_null allocates, 32 at a time, in order."""
    path = tmp_path / "samples.csv"
    report = fwd(
        "--vdev",
        "net_null0",
        "--role",
        "echo:0@1",
        "--pool-memory",
        "4k",
        "--pool-size",
        POOL,
        "--pool-cache",
        0,
        "--samples",
        path,
        "--sample",
        1,
        "--max-samples",
        3 * POOL,
        "--packets",
        100_000,
        *args,
    ).done()
    out = []
    for va in buffers(path):
        number, rest = divmod(va - report["memory"]["base"], report["memory"]["stride_bytes"])
        assert rest == HEADROOM and 0 <= number < POOL
        out.append(number)
    assert len(out) == 3 * POOL
    assert report.role("echo")["samples_lost"] > 0
    return report, out


def successive(numbers):
    """Share of buffers that directly follow the previous one."""
    return sum((b - a) % POOL == 1 for a, b in itertools.pairwise(numbers)) / len(numbers)


@pytest.mark.nightly
def test_orders(fwd, tmp_path):
    report, order = handed_out(fwd, tmp_path)
    assert report["memory"]["pool_ops"].startswith("ring")
    assert successive(order) > 0.99
    assert set(order) == set(range(POOL))
    report, order = handed_out(fwd, tmp_path, "--pool-order", "stack")
    assert report["memory"]["pool_ops"] == "stack"
    assert len(set(order)) == 32  # the same burst each time
    orders = [handed_out(fwd, tmp_path, "--pool-order", "shuffled", "--seed", seed)[1][:POOL] for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == list(range(POOL))
    assert successive(orders[0]) < 0.01


# One thread: if it loses its CPU, no other one runs on with a full or empty queue.
SCATTER = (
    "--ring",
    "a:65536",
    "--ring",
    "b:1500",
    "--pool-memory",
    "4k",
    "--pool-size",
    POOL,
    "--pool-cache",
    0,
    "--role",
    "generate:a@1",
    "--role",
    "oneway:a,b@1",
    "--role",
    "sink:b@1",
    "--stages",
    "20k:400ms,100k:500ms,0:200ms,20k:400ms",
    "--sink-rate",
    "40k",
    "--sample",
    1,
)


def by_stage(path, base, stride):
    """Buffer numbers of the packets that the forwarder received, by stage."""
    stages = defaultdict(list)
    with open(path, encoding="ascii") as f:
        for row in csv.DictReader(f):
            if row["role"] == "1":
                stages[int(row["stage"])].append((int(row["va"]) - base) // stride)
    return stages


def three_phases(fwd, path, *args):
    """Buffers that the forwarder received below, above and again below the rate of the ring, which needs a thread that has
    its CPU for most of each stage."""
    report = fwd(*SCATTER, *args, "--samples", path).done()
    stages = by_stage(path, report["memory"]["base"], report["memory"]["stride_bytes"])
    way = report.role("oneway")["stages"]
    assert min(len(stages[0]), len(stages[3])) > 4000 and len(stages[1]) > 20000
    assert not way[0]["tx_dropped"] and not way[3]["tx_dropped"]
    return report, stages


@pytest.mark.nightly
@pytest.mark.alone
@pytest.mark.parametrize(
    "policy,order,cured", [("drop", "ring", False), ("retry", "ring", True), ("drop", "stack", True)]
)
def test_drops_scatter_a_pool_for_good(fwd, tmp_path, policy, order, cured):
    """Scattered: successive packets are far apart and use all of the pool. Cured: they are
    adjacent, or use few buffers."""
    report, stages = three_phases(fwd, tmp_path / "samples.csv", "--tx-full", policy, "--pool-order", order)
    before, after = stages[0], stages[3]
    overload = report.role("oneway")["stages"][1]
    assert bool(overload["tx_dropped"]) == (policy == "drop")
    assert bool(overload["tx_retried"]) == (policy == "retry")
    if order == "stack":
        assert len(set(after)) < POOL / 2
        return
    assert successive(before) > 0.99
    if cured:
        assert successive(after) > 0.99
    else:
        assert successive(after) < 0.9  # long time slices leave adjacent buffers
        assert len(set(after)) > POOL * 0.9


TOO_MUCH = [
    (("--pool-memory", "4k", "--pool-size", 1 << 26, "--mbuf-size", 65280), "--pool-size"),
    (("--pool-memory", "thp", "--pool-size", 1 << 26, "--mbuf-size", 65280), "--pool-size"),
    (("--pool-size", 1 << 26, "--mbuf-size", 65280), "--pool-size"),
    (("--samples", "/dev/null", "--max-samples", 1 << 28, *16 * ("--role", "sink:1")), "--max-samples"),
]


@pytest.mark.nightly
def test_refusals(tmp_path):
    """No GPU, a device that shares DPDK's memory, too few huge pages; more than the available memory, which is reported at once,
    before memory is touched."""
    if not Path("/proc/driver/nvidia/version").exists():  # else test_gpu.py uses it
        for kind in ("gpu", "gpu-managed", "gpu-pinned"):
            output = refused("--no-huge", "--vdev", "net_null0", "--role", "echo:0", "--pool-memory", kind)
            assert f"--pool-memory {kind}: no GPU found" in output and "install NVIDIA's driver" in output
    output = refused(
        "--no-huge",
        "--vdev",
        f"net_memif0,zero-copy=yes,role=client,socket={tmp_path}/m,socket-abstract=no",
        "--role",
        "echo:0",
        "--pool-memory",
        "4k",
        "--",
        "--single-file-segments",
    )
    assert "net_memif0" in output and "zero-copy" in output
    output = refused("--vdev", "net_null0", "--role", "echo:0", "--dpdk-memory", "1T")
    assert "huge pages" in output and "--no-huge" in output
    output = refused(
        "--no-huge",
        "--vdev",
        "net_null0",
        "--role",
        "echo:0",
        "--pool-memory",
        "huge",
        "--pool-size",
        1 << 24,
        "--dpdk-memory",
        "6000M",
    )
    assert "--pool-memory huge" in output and "nr_hugepages" in output
    if available_mb() > 100_000:
        pytest.skip("so much memory could be had here")
    for args, advice in TOO_MUCH:
        output = refused(
            "--no-huge", "--vdev", "net_null0", *(args if "--role" in args else ("--role", "echo:0", *args))
        )
        assert "MiB of memory are needed" in output and advice in output


def available_mb():
    info = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return int(info["MemAvailable"].split()[0]) // 1024


def test_memory_is_freed(fwd):
    """Also after SIGKILL: no huge page stays allocated, and the next start succeeds."""
    if free_pages(2048) < 96:
        pytest.skip("needs 96 free huge pages of 2 MiB")
    before = free_pages(2048)
    app = fwd("--vdev", "net_null0", "--role", "echo:0@1", "--pool-memory", "huge", huge=True).running()
    fds = Path(f"/proc/{app.proc.pid}/smaps").read_text()
    held = sum(int(kb) for kb in re.findall(r"Private_Hugetlb: +(\d+) kB", fds))
    assert held >= 8191 * STRIDE // 1024
    app.proc.kill()
    # Other processes may allocate and free pages meanwhile: less than half of these.
    until(lambda: free_pages(2048) > before - held // 2048 // 2, what="its pages being free again")
    again = fwd(
        "--vdev", "net_null0", "--role", "echo:0@1", "--pool-memory", "huge", huge=True, name=app.prefix
    ).running()
    assert again.stop()["ended_by"] == "signal"
    until(lambda: free_pages(2048) > before - held // 2048 // 2, what="its pages being free again")
