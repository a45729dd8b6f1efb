# SPDX-License-Identifier: BSD-3-Clause
"""`make bench`: ringtap-fwd against testpmd's io forwarding, between two ports, both ways."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import forwarder
from .testpmd import IoForwarding, Source, TestPmd

if TYPE_CHECKING:
    from typing import Any

SIZE = 64
BURST = 32  # that testpmd's --tx-first sends to each port
WINDOW_S = 1
SECONDS = 2  # ringtap-fwd's run: two lines of statistics
TURNS = 2
TESTPMD, PLAIN, STATS = "testpmd io", "ringtap-fwd", "ringtap-fwd --interval 1s"
SOURCES = ["net_null", "net_ring"]


def _source(name: str):
    return IoForwarding(2, SIZE) if name == "net_null" else Source(name, SIZE)


def _testpmd(bench: Any, name: str):
    app = TestPmd(_source(name), bench.o.cpus, bench.o.huge)
    try:
        return app.rate_of_own_time(WINDOW_S)
    finally:
        app.stop()


def _ours(bench: Any, name: str, more: list[str]):
    """Packets per second that the polling thread has run."""
    source = _source(name)
    options = [*source.eal, *([] if bench.o.huge else ["--no-huge"])]
    end = forwarder.End([], options, ",".join(source.ports), bench.o.cpus[0])
    first = ["--tx-first", str(BURST)] if name == "net_ring" else []
    report = forwarder.run(bench.lab, end, "forward", [*first, "--duration", f"{SECONDS}s", *more])
    packets = sum(role["total"]["rx_packets"] for role in report.data["roles"])
    return packets / sum(t["cpu_s"] for t in report.data["threads"])


def _turn(bench: Any, name: str, backwards: Any):
    ways = {
        TESTPMD: lambda: _testpmd(bench, name),
        PLAIN: lambda: _ours(bench, name, []),
        STATS: lambda: _ours(bench, name, ["--interval", "1s"]),
    }
    rates = {}
    for label in list(ways)[:: -1 if backwards else 1]:
        rates[label] = ways[label]()
        bench.store.add(rates[label], "forwarded", name, SIZE, label)
        print(f"{label} over {name}: {rates[label] / 1e6:.1f} Mpps", flush=True)
    for label, beside in ((PLAIN, TESTPMD), (STATS, TESTPMD), (STATS, PLAIN)):
        bench.store.add(rates[label] / rates[beside], "forwarded_share", name, SIZE, label, beside)


def measure(bench: Any, repetition: int) -> None:
    for turn in range(1 if bench.o.quick else TURNS):
        for name in SOURCES:
            bench.try_to(f"forwarders over {name}", lambda: _turn(bench, name, (repetition + turn) % 2 == 1))
