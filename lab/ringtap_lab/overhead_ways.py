# SPDX-License-Identifier: BSD-3-Clause
"""The instruments of the experiment overhead: what application each needs, and how it is switched on."""
import os
from dataclasses import dataclass

from . import attached
from .testpmd import Source

SIZE = 64
# Both look at the same bytes. net_null's packets hold zeros: the one passes all, the other none.
PASS_ALL, PASS_NONE = "not udp port 53", "udp port 53"


@dataclass(frozen=True)
class Way:
    """application(lab): arguments of TestPmd. measure(lab, app, window_s): values, of which "pps" is the
    application's rate. seconds: what it takes beyond measuring rates. steady: it never hurts the
    application."""

    key: str
    application: object
    measure: object
    seconds: float = 0.5
    steady: bool = True


def stock(lab, *options):
    source = Source("net_null", SIZE)
    source.app += options
    return source, None


def with_probe(lab):
    return Source("net_null", SIZE), lab.plugin()


def idle(lab, app, window_s):
    return {"pps": app.rate_of_own_time(window_s)}


def watched(tool):
    """While a tool looks that hands out no packets."""
    def measure(lab, app, window_s):
        with tool(lab, app) as t:
            pps = app.rate_of_own_time(window_s)
            t.finish()
        return {"pps": pps}
    return measure


def captured(tool):
    """While a tool captures. Its counts are of all the time that it was attached, which is longer; what
    part of the packets it captured is the same."""
    def measure(lab, app, window_s):
        with tool(lab, app) as t:
            pps = app.rate_of_own_time(window_s)
            counts = t.counts()
        wanted = counts.captured + counts.lost
        return {"pps": pps, "seen": counts.seen, "captured": counts.captured, "filtered": counts.filtered,
                "lost": counts.lost, "captured_pps": pps * counts.captured / max(counts.seen, 1),
                "loss": counts.lost / wanted if wanted else 0.0}
    return measure


def afterwards(tool):
    """When a tool has been attached, and has gone: off is what its application is afterwards."""
    def measure(lab, app, window_s):
        with tool(lab, app) as t:
            t.counts()
        return idle(lab, app, window_s)
    return measure


def traced(tool):
    """With the hooks in and nobody tracing, then while a tool traces bursts."""
    def measure(lab, app, window_s):
        with attached.Top(lab, app, "polls") as hooks:
            hooks_pps = app.rate_of_own_time(window_s)
            with tool(lab, app) as t:
                pps = app.rate_of_own_time(window_s)
                events, packets, lost = t.events()
            hooks.finish()
        if not events:
            raise RuntimeError("nothing was traced")
        per_event = packets / events
        return {"pps": pps, "hooks_pps": hooks_pps, "events": events, "lost_events": lost, "per_event": per_event,
                "event_ns": (1e9 / pps - 1e9 / hooks_pps) * per_event}
    return measure


def record(expression=""):
    return captured(lambda lab, app: attached.Record(lab, app, expression))


def dumpcap(expression=""):
    return captured(lambda lab, app: attached.Dumpcap(lab, app, expression))


class DumpcapOfNothing(attached.Dumpcap):
    """Writes a file, to see that there is nothing in it: of its filter's packets it tells only the sum."""

    def __init__(self, lab, app):
        self.path = os.path.join(lab.folder(), lab.unique("capture"))
        super().__init__(lab, app, PASS_NONE, self.path)

    def counts(self):
        try:
            counts = super().counts(passes=False)
            with open(self.path, "rb") as f:
                packets = attached.packets_in(f.read())
        finally:
            if os.path.exists(self.path):
                os.unlink(self.path)
        if packets:
            raise RuntimeError(f"dpdk-dumpcap wrote {packets} packets that its filter should not pass")
        return counts


WAYS = [
    Way("same", stock, idle),
    Way("probe-off", with_probe, idle),
    Way("record-on", with_probe, record()),
    Way("record-all-on", with_probe, record(PASS_ALL)),
    Way("record-none-on", with_probe, record(PASS_NONE)),
    Way("dumpcap-off", stock, afterwards(attached.Dumpcap), 2, False),
    Way("dumpcap-on", stock, dumpcap(), 1, False),
    Way("dumpcap-all-on", stock, dumpcap(PASS_ALL), 1, False),
    Way("dumpcap-none-on", stock, captured(DumpcapOfNothing), 1, False),
    Way("pdump-off", stock, afterwards(attached.Pdump), 2, False),
    Way("pdump-on", stock, captured(attached.Pdump), 1, False),
    Way("top-on", with_probe, watched(attached.Top)),
    Way("polls-on", with_probe, watched(lambda lab, app: attached.Top(lab, app, "polls"))),
    Way("latency-on", with_probe, watched(attached.Latency)),
    Way("usdt-on", with_probe, traced(attached.Bpftrace), 4),
    Way("latencystats-on", lambda lab: stock(lab, "--latencystats=1"), idle),
]
