# SPDX-License-Identifier: BSD-3-Clause
"""Cost for the polling thread of an Open vSwitch between a guest and net_null: untouched, attached to, and recorded, by
turns. It prints nanoseconds of the thread for each packet, as the switch counts them, and how many of them the thread
waited for its CPU: the switch takes these for its own. Nothing else may run."""

import json
import re
import statistics
import time
from pathlib import Path

import pytest
from harness.attach import attach, detach
from harness.guests import Site
from harness.proc import of_tasks, until

ROUNDS = 9
SECONDS = 0.5
# By which device packets come or go. One that receives, too, would have its packets refused by the guest.
WAYS = {
    "from the guest": ("txonly", "net_null0,no-rx=1", ("vm0", "null")),
    "to the guest": ("rxonly", "net_null0", ("null", "vm0")),
}

pytestmark = [pytest.mark.nightly, pytest.mark.alone]


class Thread:
    """The only polling thread of a switch."""

    def __init__(self, ovs):
        self.ovs = ovs
        text = ovs.appctl("dpif-netdev/pmd-perf-show")
        seconds = float(re.search(r"Measurement duration: ([\d.]+)", text)[1])
        cycles, share = re.search(r"Used TSC cycles: +(\d+) +\( *([\d.]+) %", text).groups()
        tasks = Path(f"/proc/{ovs.pid}/task").iterdir()
        (self.task,) = [t for t in tasks if (t / "comm").read_text().startswith("pmd-")]
        self.cycles_per_ns = int(cycles) / (float(share) / 100) / seconds / 1e9

    def _waited(self):
        """Nanoseconds that it could have run, and another thread had its CPU."""
        return int((self.task / "schedstat").read_text().split()[1])

    def ns_a_packet(self):
        """In the next moment."""
        before = self._waited()
        self.ovs.appctl("dpif-netdev/pmd-stats-clear")
        time.sleep(SECONDS)  # what it measures
        text = self.ovs.appctl("dpif-netdev/pmd-stats-show", "-pmd", "1")
        self.waited = (self._waited() - before) / int(re.search(r"packets received: (\d+)", text)[1])
        self.batch = float(re.search(r"avg. packets per output batch: ([\d.]+)", text)[1])
        return float(re.search(r"avg processing cycles per packet: ([\d.]+)", text)[1]) / self.cycles_per_ns


def turns(thread, record):
    """{what was done: (ns a packet, packets of a batch, ns waited a packet) of each round}"""
    found = {"untouched": [], "attached": [], "recorded": []}
    for _ in range(ROUNDS):
        found["untouched"].append((thread.ns_a_packet(), thread.batch, thread.waited))
        attach(thread.ovs.prefix)
        # It follows ports, whose calls it diverts, for 2 s after a command.
        until(lambda: "ringtap-ctl\n" not in of_tasks(thread.ovs.pid, "comm").values(), what="the probe rests")
        found["attached"].append((thread.ns_a_packet(), thread.batch, thread.waited))
        recorder = record(thread.ovs, "--json", out="/dev/null", ports=["vm0"])
        found["recorded"].append((thread.ns_a_packet(), thread.batch, thread.waited))
        text = recorder.finish()
        assert json.loads(text[text.index("\n{") :])["captured"] > 0
        detach(thread.ovs.prefix)
    return found


@pytest.mark.parametrize("way", WAYS)
def test_cost(ovs, net, closing, record, way):
    mode, device, path = WAYS[way]
    site = Site(ovs, net, closing, {"attached": True}, {"start": False}, guests=("vm0",))
    site.ovs.add_vdev("null", device)
    site.ovs.pass_on(*path)
    guest = site.guests["vm0"]
    guest.cmd(f"set fwd {mode}")
    guest.start()
    until(lambda: site.ovs.statistic("vm0", "rx pkts" if mode == "txonly" else "tx pkts") > 0, what="packets pass")
    found = turns(Thread(site.ovs), record)
    for what, values in found.items():
        more = [b[0] - a[0] for a, b in zip(found["untouched"], values)]
        quartiles = statistics.quantiles(more, n=4)
        ns, batch, waited = (statistics.median(v[k] for v in values) for k in (0, 1, 2))
        print(
            f"{way}, {what}: {ns:.1f} ns, {quartiles[1]:+.1f} ({quartiles[0]:+.1f} to {quartiles[2]:+.1f}), "
            f"{batch:.1f} packets in a batch, {waited:.1f} ns waited for the CPU"
        )
