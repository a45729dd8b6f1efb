# SPDX-License-Identifier: BSD-3-Clause
"""Many attaches, and many that are killed, under traffic: `make soak`. RINGTAP_SOAK: how many."""

import os
import random
import time

import pytest
from harness.attach import attach, killed_at, mapped
from harness.fwd import Fwd
from harness.paths import BUILD, RINGTAP
from harness.proc import check, run

COUNT = int(os.environ.get("RINGTAP_SOAK", 3))
BARE = BUILD / "e2e" / "fwd_bare"
TRAFFIC_S = 2.5
CHAIN = (
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
)

pytestmark = pytest.mark.slow


@pytest.fixture
def progress(capsys):
    """Shows how many of COUNT are done, a hundred times at most."""
    begin, shown = time.monotonic(), 0

    def show(done):
        nonlocal shown
        if done * 100 // COUNT > shown:
            shown = done * 100 // COUNT
            with capsys.disabled():
                print(f"\n{done} of {COUNT} in {time.monotonic() - begin:.0f} s", end="", flush=True)

    return show


@pytest.fixture
def traffic(closing):
    """A forwarder without the probe, with numbered packets from its generator to its sink."""
    if not BARE.exists():
        pytest.skip("built without ringtap-fwd")

    def start(seconds):
        return closing(Fwd([*CHAIN, "--stages", f"100k:{seconds}s"], program=BARE).running())

    return start


def unhurt(app):
    """The attach was under traffic, and every packet arrived once and in order."""
    assert app.proc.alive()
    report = app.done()
    sink, way = report.role("sink"), report.total("oneway")
    assert way["rx_packets"] == report.total("generate")["tx_packets"] > 0
    assert sink["total"]["rx_packets"] == way["tx_packets"] == sink["sequence"]["unique"]
    assert sink["sequence"]["reordered"] == sink["sequence"]["duplicated"] == 0
    assert sink["sequence"]["lost"] == way["tx_dropped"]
    app.close()


def counted_attach(app, log):
    """Attaches; returns the number of its calls of ptrace()."""
    check(["strace", "-fqqq", "-o", log, "-e", "trace=ptrace", RINGTAP, "attach", str(app.proc.pid)])
    return len(log.read_text().splitlines())


def test_attaches_under_traffic(traffic, progress):
    for done in range(COUNT):
        app = traffic(1.5)
        attach(app.proc.pid)
        unhurt(app)
        progress(done + 1)


def test_killed_attaches_under_traffic(traffic, progress, tmp_path):
    """Only kills before the probe is mapped count: then, or after half of its traffic, a fresh process is next."""
    rng, kills, calls = random.Random(), 0, None
    while kills < COUNT:
        app = traffic(TRAFFIC_S)
        half = time.monotonic() + TRAFFIC_S / 2
        while calls and kills < COUNT and time.monotonic() < half and not mapped(app.proc, "libringtap-probe.so"):
            run([*killed_at(rng.randint(1, calls)), RINGTAP, "attach", str(app.proc.pid)])
            assert app.proc.alive()
            kills += 1
        if calls:
            attach(app.proc.pid)
        else:
            calls = counted_attach(app, tmp_path / "calls")
        unhurt(app)
        progress(kills)
