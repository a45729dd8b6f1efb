# SPDX-License-Identifier: BSD-3-Clause
"""Several consumers of one port at the same time, of all kinds, some stopped or killed: the others
lose nothing, the application continues, and all counts agree."""

import json
import os
import re
import signal
import struct

import pytest
from harness import pcap, pcapng, wireshark
from harness.documents import only
from harness.paths import BUILD, RINGTAP
from harness.play import pace
from harness.proc import Proc, freeze, until
from harness.ringtap import sessions

LENGTHS = (64, 200, 400)
ROUND = 3000  # packets of a length and direction
RING = "32M"  # holds all played packets, so that no running reader loses any
STEP = 200_000  # packets that an application at the maximum rate has certainly received
RECEIVED, ACCEPTED, LOST, DELIVERED = 4, 6, 7, 8  # options of an ISB


def play_rounds(app, first, rounds):
    """All lengths in both directions, with sequence numbers; returns (direction, frame) of all."""
    played = []
    for i in range(first, first + rounds):
        for length in LENGTHS:
            for direction in ("rx", "tx"):
                assert app.burst(direction, n=ROUND, len=length, seq=i * ROUND)[0] == ROUND
                played += [pcap.frame(length, i * ROUND + k) for k in range(ROUND)]
    return played


def armed(app, count):
    until(lambda: len([s for s in sessions(app) if s["start"]]) == count, what=f"{count} sessions")


def counts(file):
    (iface,) = file.interfaces
    return [pcapng.stat(iface, code) for code in (RECEIVED, ACCEPTED, LOST, DELIVERED)]


class Tcpdump:
    """tcpdump with the libpcap replacement."""

    def __init__(self, app, out, *args):
        self.out = out
        self.proc = Proc(
            [
                RINGTAP,
                "run",
                "--",
                "tcpdump",
                "-U",
                "-i",
                f"ringtap:{app.prefix}:net_ring_a",
                "-B",
                "32768",
                "-w",
                out,
                *args,
            ]
        )
        self.proc.expect("listening on")

    def finish(self, packets):
        """The frames of its file, when it has this number, and its output."""
        until(lambda: len(self.frames()) >= packets, what="tcpdump has them all")
        assert self.proc.stop(signal.SIGINT) == 0
        numbers = {
            what: int(n)
            for n, what in re.findall(
                r"(\d+) packets? (captured|received by filter|dropped by kernel)", self.proc.output
            )
        }
        return self.frames(), numbers

    def frames(self):
        try:
            return pcap.frames(self.out)
        except (AssertionError, KeyError, OSError, struct.error):
            return []  # the file is being written

    def close(self):
        self.proc.close()


class Tshark:
    """tshark with the extcap program."""

    def __init__(self, app, out, expression, snaplen):
        name = wireshark.interface(app, "net_ring_a")
        self.out = out
        self.proc = wireshark.Tshark(
            [
                *wireshark.preference(name, "snapshot-length", snaplen),
                *wireshark.preference(name, "buffer", RING),
                "-i",
                name,
                "-f",
                expression,
                "-w",
                out,
            ]
        )

    def finish(self, packets):
        until(
            lambda: self.out.exists() and len(pcapng.read(self.out, False).packets) >= packets,
            what="tshark has them all",
        )
        self.proc.send_signal(signal.SIGINT)
        assert self.proc.wait() == 0
        return pcapng.read(self.out), self.proc.output

    def close(self):
        self.proc.close()


@pytest.mark.skipif(wireshark.missing() is not None, reason=str(wireshark.missing()))
def test_five_consumers_one_stopped_one_killed(app, record, closing, tmp_path):
    short = record(app, "-f", "less 100", "-s", "60", "--buffer", RING, "--json")
    middle = closing(Tcpdump(app, tmp_path / "tcpdump.pcap", "-s", "96", "len = 200"))
    long = closing(Tshark(app, tmp_path / "tshark.pcapng", "greater 300", 80))
    stopped = record(app, "--buffer", "64K")
    killed = record(app, "--buffer", RING)
    armed(app, 5)
    played = play_rounds(app, 0, 1)
    freeze(stopped.proc.pid)
    played += play_rounds(app, 1, 1)
    killed.proc.kill()
    armed(app, 4)
    played += play_rounds(app, 2, 1)

    wanted = [f[:60] for f in played if len(f) == 64]
    short.finish()
    file = short.file()
    assert [p.data for p in file.packets] == wanted
    assert counts(file) == [len(played), len(wanted), 0, len(wanted)]
    pcapng.assert_in_order(file)

    frames, output = middle.finish(len(wanted))
    assert frames == [f[:96] for f in played if len(f) == 200]
    assert output == {"captured": len(wanted), "received by filter": len(wanted), "dropped by kernel": 0}

    file, output = long.finish(len(wanted))
    assert [p.data for p in file.packets] == [f[:80] for f in played if len(f) == 400]
    assert "lost" not in output

    stopped.proc.send_signal(signal.SIGCONT)
    stopped.finish()
    seen, accepted, lost, delivered = counts(stopped.file())
    assert seen == accepted == len(played) == lost + delivered
    assert lost > ROUND and delivered == len(stopped.file().packets)
    until(lambda: sessions(app) == [], what="all sessions ended")
    assert app.one("callbacks 0") == 0


def tcpdump(app, closing):
    """A libpcap program, executed by `ringtap run`."""
    proc = closing(
        Proc(
            [
                RINGTAP,
                "run",
                "--",
                "tcpdump",
                "-U",
                "-i",
                f"ringtap:{app.prefix}:net_null0",
                "-s",
                "64",
                "-B",
                "4096",
                "-w",
                "/dev/null",
            ]
        )
    )
    proc.expect("listening on")
    return proc


def extcap(app, closing, tmp_path):
    """The extcap program alone; its pipe has no reader after it is full."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    proc = closing(
        Proc(
            [
                wireshark.EXTCAP,
                "--capture",
                "--extcap-interface",
                wireshark.interface(app, "net_null0"),
                "--fifo",
                fifo,
                "--buffer",
                "4M",
            ]
        )
    )
    closing(open(fifo, "rb", buffering=0))
    return proc


def count(app, port, closing):
    counter = closing(
        Proc([RINGTAP, "run", "--", BUILD / "bench" / "pcap_count", f"ringtap:{app.prefix}:{port}", "600"])
    )
    counter.expect("^ready")
    return counter


def counted(counter):
    counter.send_signal(signal.SIGINT)
    assert counter.wait() == 0
    return json.loads(counter.output[counter.output.index("{") :])


def test_count_of_a_libpcap_program(app, closing):
    counter = count(app, "net_ring_a", closing)
    played = play_rounds(app, 0, 1)
    result = counted(counter)
    assert (result["received"], result["dropped"]) == (len(played), 0)
    assert result["packets"] <= len(played)  # it may be interrupted before it has read all packets


def test_five_consumers_at_full_rate(busy, record, closing, tmp_path):
    """More than any reader can read: the application continues, and all counts are correct."""
    expressions = ["", "less 100", "ether[0] & 1 = 0"]
    recorders = [record(busy, "-f", f, "-s", "64", "--buffer", "4M", "--json", out="/dev/null") for f in expressions]
    counter = count(busy, "net_null0", closing)
    killed = record(busy, "--buffer", "1M", out="/dev/null")
    unfriendly = [tcpdump(busy, closing), extcap(busy, closing, tmp_path)]
    armed(busy, 7)
    before = pace(busy)
    stopped = [recorders[0].proc, *unfriendly]
    for proc in stopped:
        freeze(proc.pid)
    # Most of their cost is copying packets, which ends when the rings are full.
    assert pace(busy) > before / 2
    killed.proc.kill()
    for proc in unfriendly:
        proc.kill()
    armed(busy, 4)
    assert pace(busy) > before / 2
    result = counted(counter)
    # Unread packets fit into the ring. Packets before "ready" are read, too.
    received = result["received"] + result["received_before"]
    unread = received - result["packets"] - result["dropped"] - result["dropped_before"]
    assert result["packets"] > 0 and 0 <= unread < 2_000_000, result
    recorders[0].proc.send_signal(signal.SIGCONT)
    for recorder in recorders:
        output = recorder.finish()
        summary = json.loads(output[output.index("{\n") : output.rindex("}") + 1])
        total = only(summary)["interfaces"][0]
        assert total["seen"] == total["captured"] + total["filtered"] + sum(total["lost"].values())
        # The two directions start and end at different times, so they may differ.
        assert all(tap["seen"] for tap in total["taps"])
        assert total["seen"] > 2 * STEP
    until(lambda: sessions(busy) == [], what="all sessions ended")
    assert pace(busy) > before / 2
