# SPDX-License-Identifier: BSD-3-Clause
"""ringtap memory with mempools of known kinds and buffers in known orders."""

import csv
import itertools
import json
import os
import re
import signal
from collections import OrderedDict

import pytest
from harness.documents import only
from harness.dpdk import HugePages
from harness.known import Known, Measuring
from harness.paths import REPO, RINGTAP
from harness.proc import check, run, until
from harness.view import View, document_of

SHIFTS = (12, 21, 30)
ENTRIES = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
NO_IOVA = (0, 2**64 - 1)


@pytest.fixture
def known(plugin, closing):
    return closing(Known(plugin))


@pytest.fixture
def memory(closing):
    def start(app, *args, **kwargs):
        return closing(Measuring("memory", app, *args, **kwargs))

    return start


def pools(output):
    return {p["name"]: p for p in output["pools"]}


def read_samples(path):
    """Sample runs of (address, IOVA), of one queue."""
    with open(path) as f:
        rows = list(csv.DictReader(f))
    return [
        [(int(r["address"], 0), int(r["iova"], 0)) for r in group]
        for _, group in itertools.groupby(rows, lambda r: r["run"])
    ]


# ---- what ringtap computes, once more, and as simply as can be


def lru(pages, entries):
    """(accesses known to hit or miss, misses among them)"""
    cache, known, misses, early_hits = OrderedDict(), 0, 0, 0
    for page in pages:
        hit, full = page in cache, len(cache) == entries
        known += full
        misses += full and not hit
        early_hits += hit and not full
        if hit:
            cache.move_to_end(page)
        else:
            if full:
                cache.popitem(last=False)
            cache[page] = None
    return (known, misses) if len(cache) == entries else (early_hits, 0)


def assert_pattern(pattern, runs, stride):
    device = [[a if i in NO_IOVA else i for a, i in s] for s in runs]
    assert pattern["packets"] == sum(map(len, runs))
    steps = [b[0] - a[0] for s in runs for a, b in itertools.pairwise(s)]
    assert pattern["steps"] == len(steps)
    assert pattern["sequential_steps"] == sum(stride <= abs(d) < 2 * stride for d in steps)
    assert pattern["same_address_steps"] == steps.count(0)
    logs = [abs(d).bit_length() - 1 for d in steps if d]
    assert pattern["distance_log2"] == {str(b): logs.count(b) for b in sorted(set(logs))}
    for of, model, shift in zip(pattern["pages_per_1000_packets"], pattern["modelled_iotlb"], SHIFTS):
        pages = [[a >> shift for a in s] for s in device]
        windows = [len(set(s[i : i + 1000])) for s in pages for i in range(0, len(s) - 999, 1000)]
        assert of["page_bytes"] == model["page_bytes"] == 1 << shift
        assert of["distinct"] == pytest.approx(sum(windows) / len(windows))
        assert model["accesses"] == pattern["packets"]
        for n in ENTRIES:
            counts = [lru(s, n) for s in pages]
            assert model["known"][str(n)] == sum(k for k, _ in counts), (shift, n)
            assert model["misses"][str(n)] == sum(m for _, m in counts), (shift, n)


def assert_order(known, memory, tmp_path, how, stride, sequential):
    size = known.one(f"pool {how} n=5000")
    order = known.circle(how, tmp_path / "order", how, stride)
    output = memory(known, "--packets", "20000", "--json", "--samples", tmp_path / "csv").json()
    assert known.clocks()  # the application still answers
    runs = read_samples(tmp_path / "csv")
    place = {address: i for i, address in enumerate(order)}
    assert len(place) == len(order) == 5000
    for s in runs:
        # A sample run has consecutive packets, in the order of reception, without gaps.
        assert [place[a] for a in s] == [(place[s[0]] + k) % 5000 for k in range(len(s))]
    (pattern,) = output["patterns"]
    assert (pattern["port"]["name"], pattern["queue"], pattern["pool"]) == ("net_ring_a", 0, how)
    assert pattern["packets"] >= 20000
    assert_pattern(pattern, runs, size)
    share = pattern["sequential_steps"] / pattern["steps"]
    assert share >= 0.999 if sequential == 1 else share < sequential
    return pattern


def test_buffers_in_known_orders(known, memory, tmp_path):
    pattern = assert_order(known, memory, tmp_path, "in_order", 1, 1.0)
    # 5000 buffers on almost as many pages: more than a cache of 4096 entries holds.
    small = pattern["modelled_iotlb"][0]
    assert small["misses"]["2048"] >= 0.99 * small["known"]["2048"] > 0
    assert_order(known, memory, tmp_path, "shuffled", 1, 0.01)
    assert_order(known, memory, tmp_path, "strided", 7, 0.01)


@pytest.mark.smoke
def test_one_port_in_a_table_and_as_comma_separated_values(known, memory, tmp_path):
    known.one("pool known n=3000")
    known.circle("known", tmp_path / "order", "in_order", port=1)
    other = memory(known, "--duration", "0.3s", "--json", ports=["net_ring_a"]).json()
    assert other["patterns"] == [] and "known" in pools(other)
    this = memory(known, "--packets", "3000", "--json", ports=["1"]).json()
    assert [p["port"]["name"] for p in this["patterns"]] == ["net_ring_b"]
    output = memory(known, "--distances").finish()  # 32,768 packets, or 10 seconds
    assert re.search(r"^known +3,000 +3,000 +0 ring_mp_mc +4 KiB .*\n    ordinary pages$", output, re.MULTILINE)
    row = re.search(r"^net_ring_b +0 known +([\d,]+) .* 100\.0 %", output, re.MULTILINE)
    assert int(row.group(1).replace(",", "")) >= 32768
    assert re.search(r"^entries +16 +32 .* 4096$", output, re.MULTILINE)
    assert len(re.findall(r"^(?:4 KiB|2 MiB|1 GiB) +[\d.]+ ", output, re.MULTILINE)) == 3
    assert "Steps from one buffer to the next" in output
    shares = [float(x) for x in re.findall(r"bytes +([\d.]+) %$", output, re.MULTILINE)]
    assert sum(shares) == pytest.approx(100, abs=0.1)
    measured = tmp_path / "measured"
    measured.write_text(json.dumps({"applications": [memory(known, "--packets", "2000", "--json").json()]}))
    (program,) = re.findall(r"jq -r[ \\\n]+'([^']+@csv)'", (REPO / "cli" / "memory" / "memory.txt").read_text())
    (row,) = csv.reader(check(["jq", "-r", program, measured]).splitlines())
    assert row[:3] == ["net_ring_b", "0", "known"]
    assert int(row[5]) >= 0.99 * int(row[4]) > 0


def test_pools_without_traffic_and_output_that_cannot_be_written(known, memory, tmp_path):
    done = run([RINGTAP, "memory", known.prefix, "--duration", "0.1s"])
    assert done.returncode == 0 and "there are no samples" in done.stdout
    done = run([RINGTAP, "memory", known.prefix, "--samples", "/nonexistent/x"])
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done.stderr
    full = [tmp_path / name for name in ("x.html", "x.csv")]
    for link, option in zip(full, ("--html", "--samples")):
        link.symlink_to("/dev/full")
        done = run([RINGTAP, "memory", known.prefix, "-q", "--duration", "0.1s", option, link])
        assert done.returncode == 1 and "No space left" in done.stderr, done.stderr
        assert len(done.stderr.splitlines()) == 1
    plain = known.one("pool plain_one n=3000 take=700")
    stack = known.one("pool stack_one n=1000 cache=64 take=10 room=4096 ops=stack")
    it = memory(known, "--duration", "0.2s", "--json").json()
    p = pools(it)["plain_one"]
    assert (p["size"], p["in_use"], p["available"], p["min_available"]) == (3000, 700, 2300, 2300)
    assert (p["cache_size"], p["in_caches"], p["caches"]) == (0, 0, {})
    assert (p["ops"], p["object_bytes"], p["buffer_bytes"]) == ("ring_mp_mc", plain, 2176)
    p = pools(it)["stack_one"]
    assert (p["size"], p["in_use"], p["cache_size"]) == (1000, 10, 64)
    assert (p["ops"], p["object_bytes"], p["buffer_bytes"]) == ("stack", stack, 4096)
    # The allocation has filled the cache of its lcore.
    assert list(p["caches"]) == ["0"] and p["in_caches"] == p["caches"]["0"] > 0
    assert p["span_bytes"] >= 1000 * stack and p["chunks"] >= 1
    assert not any(p["removed"] for p in it["pools"])


KINDS = {
    "native": ("ordinary pages", 4096, False),
    "huge": ("huge pages", None, False),
    "anon": ("external", 4096, False),
    "xmem": ("external", 4096, False),
    "xmemhuge": ("external", None, False),
    "xbuf": ("pinned external", 4096, True),
}


def test_kinds_of_memory(testpmd, tmp_path):
    """All that testpmd supports, and a pool that is a stack."""
    for kind, (memory_kind, page, pinned) in KINDS.items():
        huge = HugePages(tmp_path) if kind == "huge" else None
        if page is None and HugePages.free_mb() < 128:
            continue
        app = testpmd(
            "net_null0",
            lcores="0@0,127@1",
            memory_mb=64 if huge else 256,
            mbufs=3000,
            huge=huge,
            args=() if huge else [f"--mp-alloc={kind}"],
            eal=["--mbuf-pool-ops-name", "stack"] if kind == "native" else (),
        )
        app.start()
        done = run([RINGTAP, "memory", app.prefix, "--packets", "4000", "--json"])
        assert done.returncode == 0, done.stderr
        output = only(json.loads(done.stdout))
        (pool,) = output["pools"]
        assert (pool["kind"], pool["pinned_external"]) == (memory_kind, pinned), kind
        assert pool["page_bytes"] == (page or 2 << 20), kind
        assert pool["size"] == 3000 and pool["in_use"] < 3000, kind
        assert (pool["ops"] == "stack") == (kind == "native"), kind
        assert [p["pool"] for p in output["patterns"]] == [pool["name"]], kind
        assert output["patterns"][0]["packets"] >= 4000, kind
        assert app.quit() == 0


def test_page(known, memory, tmp_path, browser):
    """Each sample is a point at its address; of very many, one of some."""
    known.one("pool known n=4000")
    known.circle("known", tmp_path / "order", "shuffled")
    few, many, samples = tmp_path / "few.html", tmp_path / "many.html", tmp_path / "samples.csv"
    runs = [
        memory(known, "--packets", "4000", "--html", few, "--samples", samples),
        memory(known, "--packets", "172000", "--html", many),
    ]
    for it in runs:
        it.finish()
    (panel,) = document_of(few)["panels"]
    (series,) = panel["series"]
    addresses = [int(row["address"], 0) for row in csv.DictReader(samples.read_text().splitlines())]
    base = int(panel["title"].rpartition(" ")[2], 16)
    assert series["y"] == [a - base for a in addresses]
    assert series["x"] == sorted(series["x"]) and series["x"][-1] <= panel["end"]
    (panel,) = document_of(many)["panels"]
    assert 50_000 < len(panel["series"][0]["x"]) <= 100_000
    for path in few, many:
        View(browser, path).check()


def test_ctrl_c_and_killed_application(known, memory, tmp_path):
    known.one("pool known n=1000")
    early = memory(known, "--duration", "1h", "--json")
    late = memory(known, "--duration", "1h", "--json")
    known.circle("known", tmp_path / "order", "in_order")
    known.one("tsc")
    assert pools(early.json(signal.SIGINT))["known"]["size"] == 1000
    known.proc.kill()
    said = late.finish()
    assert f"{known.prefix} has ended" in said
    done = only(json.loads(said[said.index("{") :]))
    assert done["ended"] and all(p["removed"] for p in done["pools"])


# ---- Intel PCM. There are no such counters here: this is about reading what it prints, in the form
# its source (build_csv() in pcm-iio.cpp), not about the values being right.

PCM = r"""#!/bin/sh
trap 'exit 0' TERM
echo "Socket,Name,Part,IB write,IOTLB Lookup,IOTLB Miss"
echo "Socket0,IIO Stack 1,Part0,10,0,0"
echo "Socket0,IIO Stack 1,Total,0,2000,30"
echo "Socket0,IIO Stack 2,Total,0,1000,12"
echo $$ >"$0.pid"
while :; do sleep 0.05; done
"""


def test_hardware_counters(known, closing, tmp_path):
    tool, pid = tmp_path / "pcm-iio", tmp_path / "pcm-iio.pid"

    def begin(script, *args):
        pid.unlink(missing_ok=True)
        tool.write_text(script)
        tool.chmod(0o755)
        it = closing(Measuring("memory", known, "--duration", "1h", *args, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}))
        until(lambda: pid.exists() and pid.read_text().strip(), what="pcm-iio runs")
        return it

    done = run([RINGTAP, "memory", known.prefix, "--duration", "0.1s"], env={"PATH": "/usr/bin:/bin"})
    assert "pcm-iio is not installed" in done.stdout
    said = begin(PCM, "--json").json(signal.SIGINT)["hardware_iotlb"]
    assert said == {"error": None, "misses": 42, "lookups": 3000}
    assert "42 misses in 3,000 lookups (1.400 in 100)" in begin(PCM).finish(signal.SIGINT)
    output = begin(PCM.replace("Lookup", "Hit"), "--json").json(signal.SIGINT)["hardware_iotlb"]
    assert output["lookups"] == 3042
    broken = '#!/bin/sh\necho $$ >"$0.pid"\nexit 1\n'
    assert "has none on this machine" in begin(broken).finish(signal.SIGINT)
    # It ends with a killed run.
    begin(PCM).proc.kill()
    until(lambda: not os.path.exists(f"/proc/{pid.read_text().strip()}"), what="pcm-iio has ended")
