#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The source addresses (MAC) that send most to an application, in some seconds, and what its threads do meanwhile.

talkers.py [APP[:PORT] [SECONDS [FILTER]]]
"""

import collections
import sys

import ringtap


def main(source=None, seconds="3", filter=None):
    source = source or ringtap.apps()[0].name
    app = source.split(":")[0]
    talkers = collections.Counter()
    with ringtap.monitor(app, ringtap.POLLS | ringtap.BUSY) as monitor:
        before = monitor.read()
        with ringtap.capture(source, filter, direction="rx", duration=float(seconds)) as capture:
            for packet in capture:
                talkers[packet.data[6:12].hex(":")] += 1
        during = monitor.read().since(before)
    for mac, packets in talkers.most_common(10):
        print(f"{mac}: {packets} packets")
    for thread in during.threads:
        cycles = thread.busy_cycles + thread.idle_cycles
        if cycles:
            print(f"thread {thread.name}: busy {100 * thread.busy_cycles / cycles:.1f} %")


if __name__ == "__main__":
    main(*sys.argv[1:])
