# SPDX-License-Identifier: BSD-3-Clause
"""A recorder that writes incident after incident under traffic: `make soak`. RINGTAP_SOAK_SECONDS: how long,
RINGTAP_SOAK_INCIDENTS: how many meanwhile, RINGTAP_SOAK_RATE: frames a second. A frame is four packets of the
recorder: sent and received twice."""

import json
import os
import time
from pathlib import Path

import pytest
from harness import flight, pcapng
from harness.documents import only
from harness.flight import Flight
from harness.paths import RINGTAP
from harness.proc import check, until

SECONDS = float(os.environ.get("RINGTAP_SOAK_SECONDS", 8))
COUNT = int(os.environ.get("RINGTAP_SOAK_INCIDENTS", 10))
RATE = os.environ.get("RINGTAP_SOAK_RATE", "5k")
WINDOW_S = 0.11
# Some four incidents: a record has 112 bytes.
DISK = max(2 << 20, int(4 * 4 * 112 * WINDOW_S * float(RATE.replace("k", "e3").replace("M", "e6"))))
WARM = 3  # incidents after which nothing may grow
# The recorder keeps the statistics of the last two minutes: only then its memory stays as it is.
WARM_S = 150 if SECONDS > 300 else 0
GROWTH_KB = 1024 if WARM_S else 4096

pytestmark = [pytest.mark.slow, pytest.mark.nightly]


def use(pid):
    """Descriptors, threads, mappings, and memory of its own in KiB: not that of the buffer, which is shared."""
    proc = Path(f"/proc/{pid}")
    status = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines())
    return {
        "fds": len(list((proc / "fd").iterdir())),
        "threads": int(status["Threads"]),
        "maps": len((proc / "maps").read_text().splitlines()),
        "anon_kb": int(status["RssAnon"].split()[0]),
    }


def on_disk(folder):
    """Incidents that are complete, and bytes of all files."""
    done = [p for p in sorted(folder.iterdir()) if (p / flight.INCIDENT).exists()]
    return done, sum(f.stat().st_size for f in folder.glob("*/*"))


def state(app):
    (found,) = only(json.loads(check([RINGTAP, "flight", "top", "--once", app.prefix, "--json"])))["recorders"]
    return found


def finished(app):
    """Incidents that the recorder is done with."""
    now = state(app)
    return sum(c["incidents"] for c in now["conditions"]) if not now["writing"] else 0


def test_incident_after_incident(fwd, closing, tmp_path):
    app = fwd(
        "--ring",
        "a:65536",
        "--ring",
        "b:65536",
        "--pool-size",
        "140000",
        "--mbuf-size",
        "256",
        "--role",
        "generate:a@0",
        "--role",
        "oneway:a,b@1",
        "--role",
        "sink:b@0",
        "--frame",
        "udp",
        "--rate",
        RATE,
    ).running()
    folder = tmp_path / "incidents"
    kept = closing(
        Flight(
            app, folder, "--buffer", "64M", "--before", "100ms", "--after", "10ms", "--on", "exit", "--max-disk", DISK
        )
    )
    pid, first, names, began = kept.proc.pid, None, [], time.monotonic()
    for n in range(1, COUNT + 1):
        until(lambda: time.monotonic() - began >= n * SECONDS / COUNT, SECONDS + 60, "its turn")
        flight.command("trigger", folder)
        until(lambda: finished(app) >= n, what=f"incident {n}")
        done, size = on_disk(folder)
        # --max-disk also ends an incident; the other files of the newest come on top.
        assert size <= DISK + (2 << 20), size
        assert done and done[-1].name not in names
        names.append(done[-1].name)
        # The oldest go first.
        assert [p.name for p in done] == names[-len(done) :]
        if not first and n >= WARM and time.monotonic() - began >= WARM_S:
            first = use(pid)
    last, now = use(pid), state(app)
    assert now["failed"] == 0, now
    assert len(done) < COUNT and (n < 10 or len(done) < n)
    for what in ("fds", "threads", "maps"):
        assert last[what] <= first[what] + (4 if what == "maps" else 0), (first, last)
    assert last["anon_kb"] <= first["anon_kb"] + GROWTH_KB, (first, last)
    print(
        f"{COUNT} incidents in {time.monotonic() - began:.0f} s: {first}, {last} at the end; "
        f"{len(done)} incidents of {size} bytes left"
    )
    assert now["lost"] == 0, now  # last: others may have had the CPUs
    newest = flight.Incident(done[-1])
    assert len(newest.file.packets) == newest["packets"] > 0 and newest["missing_ns"] == 0
    pcapng.assert_in_order(newest.file)
    kept.finish()
    report = app.stop()
    assert report.role("sink")["sequence"]["lost"] == report.total("oneway")["tx_dropped"]
