# SPDX-License-Identifier: BSD-3-Clause
"""The tools of the experiment overhead: which application each needs, and how it is switched on."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..tools.errors import Trouble, Unavailable
from . import attached
from .lttng import PROVIDER, Session
from .testpmd import MAIN_LCORE, Source

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .lab import Lab

SIZE = 64
BURST = 32  # testpmd's own
WINDOWS = 4
# Both read the same bytes. net_null's packets hold zeros: the first passes all, the second none.
PASS_ALL, PASS_NONE = "not udp port 53", "udp port 53"


@dataclass(frozen=True)
class Subject:
    """An application with a tool. daemon: an lttng.Daemon that it reaches, if one is needed."""

    lab: object
    app: object
    window_s: float  # how long a rate is measured
    daemon: object = None

    def rate(self) -> Any:
        """Rate of the whole window: captures come in waves."""
        return self.app.rate_of_own_time(self.window_s)

    def fastest(self) -> Any:
        """Rate of the fastest part of the window: other programs can only slow an application down."""
        return max(self.app.rate_of_own_time(self.window_s / WINDOWS) for _ in range(WINDOWS))


@dataclass(frozen=True)
class Way:
    """application(lab): source and plugin of a TestPmd. measure(subject): values, of which "pps" is the application's rate.
    seconds: what it takes beyond measuring rates. steady: it never hurts the application. lttng: it needs a session daemon. even:
    its rate does not come in waves, so that the fastest parts of all windows are compared. lives: it cannot be switched while
    the application runs."""

    key: str
    application: object
    measure: object
    seconds: float = 0.5
    steady: bool = True
    lttng: bool = False
    even: bool = True
    lives: bool = False


def stock(lab: Lab, *options) -> tuple:
    source = Source("net_null", SIZE)
    source.app += options
    return source, None


def with_probe(lab: Lab, *eal) -> tuple:
    source = Source("net_null", SIZE)
    source.eal += eal
    return source, lab.plugin()


def with_provider(lab: Lab) -> tuple:
    try:
        return with_probe(lab, "-d", lab.built(os.path.join("probe", PROVIDER)))
    except Trouble as e:
        raise Unavailable("ringtap was built without LTTng: apt install liblttng-ust-dev, and build it again") from e


def idle(subject: Any) -> dict:
    return {"pps": subject.fastest()}


def watched(tool: type, *args) -> Callable:
    """While a tool is attached that hands out no packets."""

    def measure(subject: Any):
        with tool(subject.lab, subject.app, *args) as t:
            pps = subject.fastest()
            t.finish()
        return {"pps": pps}

    return measure


def captured(tool: type, *args) -> Callable:
    """While a tool captures. Its counts are of all the time that it was attached, which is longer; the captured part of the packets
    is the same."""

    def measure(subject: Any):
        with tool(subject.lab, subject.app, *args) as t:
            pps = subject.rate()
            counts = t.counts()
        wanted = counts.captured + counts.lost
        return {
            "pps": pps,
            "seen": counts.seen,
            "captured": counts.captured,
            "filtered": counts.filtered,
            "lost": counts.lost,
            "captured_pps": pps * counts.captured / max(counts.seen, 1),
            "loss": counts.lost / wanted if wanted else 0.0,
        }

    return measure


def afterwards(tool: type) -> Callable:
    """After a tool has been attached and has ended: that is what "off" means for it."""

    def measure(subject: Any):
        with tool(subject.lab, subject.app) as t:
            t.counts()
        return idle(subject)

    return measure


def traced(tracing: type | Callable) -> Callable:
    """With the hooks in and no tracing, then while bursts are traced. tracing(subject): a context with events(), which ends it:
    (events, packets in them, events that were lost)."""

    def measure(subject: Any):
        with attached.Top(subject.lab, subject.app, "polls") as hooks:
            hooks_pps = subject.fastest()
            with tracing(subject) as t:
                pps = subject.fastest()
                events, packets, lost = t.events()
            hooks.finish()
        if not events:
            raise RuntimeError("nothing was traced")
        per_event = packets / events
        return {
            "pps": pps,
            "hooks_pps": hooks_pps,
            "events": events,
            "lost_events": lost,
            "per_event": per_event,
            "event_ns": (1e9 / pps - 1e9 / hooks_pps) * per_event,
        }

    return measure


class DpdkTracing:
    """DPDK's own tracing, of our events. It keeps the last of them in memory; nothing is saved. It ends with the application."""

    def __init__(self, subject: Any):
        self.app = subject.app

    def _state(self, parameter: Any):
        answer = self.app.telemetry.ask(f"/ringtap/trace{parameter}")
        if answer["status"] != 0:
            raise RuntimeError(f"/ringtap/trace{parameter}: {answer.get('error')}")
        return [answer[kind]["rx_burst"] for kind in ("emitted", "lost", "lost_earlier")]

    def __enter__(self) -> Any:
        self.before = self._state("")
        self._state(",on")
        return self

    def events(self) -> tuple:
        """Lost are those that later ones have overwritten."""
        events, lost, earlier = (after - before for after, before in zip(self._state(",off"), self.before))
        return events, events * BURST, lost - earlier

    def __exit__(self, *_) -> None:
        pass


class DumpcapOfNothing(attached.Dumpcap):
    """Writes a file, to check that it holds no packets: dpdk-dumpcap counts those that its filter drops and passes together."""

    def __init__(self, lab: Lab, app: Any):
        self.path = os.path.join(lab.folder(), lab.unique("capture"))
        super().__init__(lab, app, PASS_NONE, self.path)

    def counts(self) -> Any:
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


def capturing(key: str, application: Callable, tool: type, *args) -> Way:
    """dpdk-dumpcap and dpdk-pdump, which need no probe, end some applications when they detach."""
    return Way(key, application, captured(tool, *args), 1.0, steady=application is with_probe, even=False)


WAYS = [
    Way("same", stock, idle, lives=True),
    Way("probe-off", with_probe, idle, lives=True),
    capturing("record-on", with_probe, attached.Record),
    capturing("record-all-on", with_probe, attached.Record, PASS_ALL),
    capturing("record-none-on", with_probe, attached.Record, PASS_NONE),
    Way("dumpcap-off", stock, afterwards(attached.Dumpcap), 2, steady=False, lives=True),
    capturing("dumpcap-on", stock, attached.Dumpcap),
    capturing("dumpcap-all-on", stock, attached.Dumpcap, PASS_ALL),
    capturing("dumpcap-none-on", stock, DumpcapOfNothing),
    Way("pdump-off", stock, afterwards(attached.Pdump), 2, steady=False, lives=True),
    capturing("pdump-on", stock, attached.Pdump),
    Way("lttng-off", with_provider, idle, 1, lttng=True, lives=True),
    Way("lttng-on", with_provider, traced(lambda s: Session(s.lab, s.daemon, s.app, BURST)), 4, lttng=True),
    Way("usdt-on", with_probe, traced(lambda s: attached.Bpftrace(s.lab, s.app)), 4),
    Way("trace-burst-on", with_probe, traced(lambda s: attached.TraceBurst(s.lab, s.app)), 4),
    Way("rte_trace-on", with_probe, traced(DpdkTracing), 2),
    Way("polls-on", with_probe, watched(attached.Top, "polls")),
    Way("top-on", with_probe, watched(attached.Top)),
    Way("latency-on", with_probe, watched(attached.Latency)),
    Way("latencystats-on", lambda lab: stock(lab, f"--latencystats={MAIN_LCORE}"), idle, lives=True),
]
