# SPDX-License-Identifier: BSD-3-Clause
"""Cost for the polling thread of an Open vSwitch between a guest and net_null: untouched, attached to, and recorded, by
turns. It prints cycles of the thread for each packet; nothing else may run."""

import json
import re
import statistics
import time

import pytest
from harness.attach import attach, detach
from harness.guests import Site
from harness.proc import until

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
        self.cycles_per_ns = int(cycles) / (float(share) / 100) / seconds / 1e9

    def ns_a_packet(self):
        """In the next moment."""
        self.ovs.appctl("dpif-netdev/pmd-stats-clear")
        time.sleep(SECONDS)  # what it measures
        text = self.ovs.appctl("dpif-netdev/pmd-stats-show", "-pmd", "1")
        self.batch = float(re.search(r"avg. packets per output batch: ([\d.]+)", text)[1])
        return float(re.search(r"avg processing cycles per packet: ([\d.]+)", text)[1]) / self.cycles_per_ns


def turns(thread, record):
    """{what was done: (ns a packet, packets of a batch) of each round}"""
    found = {"untouched": [], "attached": [], "recorded": []}
    for _ in range(ROUNDS):
        found["untouched"].append((thread.ns_a_packet(), thread.batch))
        attach(thread.ovs.prefix)
        found["attached"].append((thread.ns_a_packet(), thread.batch))
        recorder = record(thread.ovs, "--json", out="/dev/null", ports=["vm0"])
        found["recorded"].append((thread.ns_a_packet(), thread.batch))
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
        ns, batch = (statistics.median(v[k] for v in values) for k in (0, 1))
        print(
            f"{way}, {what}: {ns:.1f} ns, {quartiles[1]:+.1f} ({quartiles[0]:+.1f} to {quartiles[2]:+.1f}), "
            f"{batch:.1f} packets in a batch"
        )
