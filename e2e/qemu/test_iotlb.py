# SPDX-License-Identifier: BSD-3-Clause
"""The IOTLB that `ringtap memory` models, against the trace that QEMU writes of its own: one line for each access of
the card, with its address, and whether the translation was cached.

QEMU caches 1024 translations and drops all of them when it needs room for another one: its trace has a reset for
1024 updates (vtd_iotlb_reset). The model of 1024 entries replaces the one least recently used. Both miss always if the
pool is used in turn and has more pages, and never if it has fewer, but for what QEMU has dropped with all others."""

import csv
import itertools
import json
import re
import threading
from collections import defaultdict

import pytest
from harness.cards import chosen, model, qemu, udp
from harness.machine import Machine
from harness.paths import BUILD, RINGTAP

ENTRIES = "1024"
PACKETS = 20000
HEADROOM, VIRTIO_HEADER = 128, 12  # virtio's card writes its header in front of the packet
SMALL, LARGE = 0, 1  # pages of 4 KiB and 2 MiB in ringtap's output
EVENT = re.compile(r"vtd_iotlb_page_(hit|update) .* iova (0x[0-9a-f]+) ")

# Without a cache of the lcore, a pool gives out its buffers in turn; with it, those that came back last. Objects of
# 4 KiB pages do not cross pages: one of 2.4 KiB is alone in its page, three of 1.3 KiB share one.
ORDERS = {
    "in turn, a page each": (["--no-huge", "-m", "96"], ["--mbcache=0"], SMALL, 1),
    "in turn, three in a page": (["--no-huge", "-m", "96"], ["--mbcache=0", "--mbuf-size=1152"], SMALL, 1 / 3),
    "the newest, a page each": (["--no-huge", "-m", "96"], ["--mbcache=250"], SMALL, 0),
    "in turn, huge pages": (["-m", "96"], ["--mbcache=0"], LARGE, 0),
}


def pytest_generate_tests(metafunc):
    metafunc.parametrize("card", chosen(), indirect=True, scope="module")


@pytest.fixture(scope="module")
def card(request):
    machine = Machine(
        [model(request.param)],
        qemu=qemu(request.param),
        trace=["vtd_iotlb_page_hit", "vtd_iotlb_page_update", "vtd_iotlb_reset"],
    )
    machine.ask("bind", address=machine.address(0))
    yield machine
    machine.close()


def arrives(machine, pmd):
    """Whether one of 2,000 frames is received, by testpmd's own statistics."""
    sent = received = 0
    while sent < 2000 and not received:
        for _ in range(20):
            machine.wires[0].send(udp(0))
        sent += 20
        received = int(re.search(r"RX-packets:\s*(\d+)", pmd.say("show port stats 0"))[1])
    return received > 0


def receive(machine, name, eal, args):
    """Runs testpmd, and ringtap memory while packets come; returns its output and sample runs of IOVAs, or the reason why
    no packet comes into buffers of this size."""
    pmd = machine.start(
        name,
        [
            "dpdk-testpmd",
            "-l",
            "0,1",
            *eal,
            "--file-prefix",
            name,
            "-d",
            BUILD / "probe" / "libringtap-probe.so",
            "-a",
            machine.address(0),
            "--",
            "-i",
            "--no-mlockall",
            "--forward-mode=rxonly",
            "--total-num-mbufs=8192",
            *args,
        ],
    )
    pmd.expect(r"^testpmd> ")
    if "object size is too small" in pmd.output:
        machine.ask("write", name=name, text="quit\n")
        pmd.wait()
        return "the driver takes no buffers of this size"
    for line in ("set promisc all on", "start"):
        pmd.say(line)
    if not arrives(machine, pmd):
        machine.ask("write", name=name, text="quit\n")
        pmd.wait()
        return "no packet is received into buffers of this size"
    memory = machine.start(
        f"{name}-memory",
        [RINGTAP, "memory", name, "--packets", PACKETS, "--json", "--samples", f"/run/ringtap-guest/{name}.csv"],
    )
    ended = []
    waits = threading.Thread(target=lambda: ended.append(memory.wait()))
    waits.start()
    frame = udp(0)
    while waits.is_alive():
        machine.wires[0].send(frame)
    assert ended == [0], memory.output
    machine.ask("write", name=name, text="quit\n")
    assert pmd.wait() == 0, pmd.output[-3000:]
    with open(machine.work / f"{name}.csv", encoding="ascii") as file:
        runs = [
            [int(r["iova"], 0) for r in rows] for _, rows in itertools.groupby(csv.DictReader(file), lambda r: r["run"])
        ]
    return json.loads(memory.output[memory.output.index("\n{") :]), runs


def written(machine, begin, buffers):
    """(buffer, missed, dropped) of each packet that the card has written since that offset of the trace, in order.
    dropped: missed for the first time since QEMU has dropped all translations, and used before that."""
    places = {b + HEADROOM: b for b in buffers} | {b + HEADROOM - VIRTIO_HEADER: b for b in buffers}
    if machine.models[0].startswith("virtio"):
        places = {a: b for a, b in places.items() if (a - b) == HEADROOM - VIRTIO_HEADER}
    out, resets, used = [], 0, {}
    with open(machine.trace, encoding="ascii") as file:
        file.seek(begin)
        for line in file:
            resets += "vtd_iotlb_reset" in line
            event = EVENT.search(line)
            buffer = event and places.get(int(event[2], 16))
            if buffer:
                missed = event[1] == "update"
                out.append((buffer, missed, missed and used.get(buffer, resets) < resets))
                used[buffer] = resets
    return out


def find(runs, packets):
    """Where the sample runs stand in what the card wrote. A pool that is used in turn repeats itself: the first place
    after the run before."""
    at = defaultdict(list)
    for i, (buffer, _missed, _dropped) in enumerate(packets):
        at[buffer].append(i)
    found, begin = [], 0
    for run in runs:
        place = next((i for i in at[run[0]] if i >= begin and [p[0] for p in packets[i : i + len(run)]] == run), None)
        assert place is not None, f"the card did not write these {len(run)} buffers in this order"
        begin = place + len(run)
        found.append((place, begin))
    return found


def test_iotlb(card, record_property):
    seen = []
    for number, (order, (eal, args, pages, rate)) in enumerate(ORDERS.items()):
        begin = card.trace.stat().st_size
        received = receive(card, f"iotlb{number}", eal, args)
        if isinstance(received, str):
            seen.append(f"{order}: {received}")
            continue
        output, runs = received
        packets = written(card, begin, {b for run in runs for b in run})
        places = find(runs, packets)
        # The model drops none of a pool that fits.
        sampled = [
            missed and (rate > 0 or not dropped) for begin, end in places for _, missed, dropped in packets[begin:end]
        ]
        assert len(sampled) >= PACKETS
        iotlb = output["all"]["modelled_iotlb"][pages]
        assert iotlb["known"][ENTRIES] > PACKETS // 4
        modelled = iotlb["misses"][ENTRIES] / iotlb["known"][ENTRIES]
        traced = sum(sampled) / len(sampled)
        # Some pages are used for the first time.
        assert modelled == pytest.approx(rate, abs=0.02), f"{order}: modelled {modelled:.4f}"
        assert traced == pytest.approx(modelled, abs=0.01), f"{order}: modelled {modelled:.4f}, traced {traced:.4f}"
        seen.append(f"{order}: {100 * modelled:.0f}, {100 * traced:.0f}")
    assert len(seen) >= len(ORDERS) - 1
    record_property("seen", "misses of 100 packets, modelled and traced: " + "; ".join(seen))
