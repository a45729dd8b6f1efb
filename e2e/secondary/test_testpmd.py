# SPDX-License-Identifier: BSD-3-Clause
"""Two dpdk-testpmd, a primary and a secondary process, which poll a queue each."""

import json
import os

import pytest
from harness import pcapng
from harness.doctor import FAULT
from harness.pair import PORT, listed, of_process
from harness.paths import RINGTAP
from harness.pcapng import RX, TX
from harness.proc import check, run, until
from harness.ringtap import OK

NOTHING = "greater 20000"  # a filter that no packet passes: what is seen is only counted


@pytest.fixture
def running(pmds):
    for app in pmds:
        app.start()
    yield pmds
    for app in pmds:
        app.stop()


def test_every_command_beside_a_primary(pmds, running):
    primary, secondary = running
    found = listed(secondary)
    assert found["pid"] == secondary.pid and found["primary"] == primary.prefix and not found["error"]
    assert [p["name"] for p in found["ports"]] == [PORT]
    assert listed(primary)["primary"] is None
    both = json.loads(check([RINGTAP, "list", "--json", primary.prefix]))["applications"]
    assert [a["name"] for a in both] == [primary.name, secondary.name]
    names = check([RINGTAP, "list", "--names", primary.prefix]).split()
    assert names == [primary.name, f"{primary.name}:{PORT}", secondary.name, f"{secondary.name}:{PORT}"]
    apps = json.loads(check([RINGTAP, "top", "--once", "--interval", "0.2s", "--json", primary.name]))["applications"]
    assert [a["name"] for a in apps] == [primary.name, secondary.name]
    # A name of the secondary means it alone.
    for name in (f"{secondary.name}:{PORT}", secondary.name, secondary.pid):
        out = check(
            [RINGTAP, "record", "-i", name, "-c", "100", "-s", "64", "--buffer", "16M", "--json", "-w", os.devnull]
        )
        assert [a["name"] for a in json.loads(out)["applications"]] == [secondary.name]
    assert f"ringtap:{secondary.name}:{PORT}" in check([RINGTAP, "run", "tcpdump", "-D"])
    for name in (primary.prefix, secondary.name):
        done = run(
            [
                RINGTAP,
                "run",
                "tcpdump",
                "-i",
                f"ringtap:{name}",
                "-B",
                "16384",
                "-s",
                "64",
                "-nn",
                "-c",
                "200",
                "-w",
                os.devnull,
            ]
        )
        assert done.returncode == 0 and "200 packets captured" in done.stderr, done.stderr
    # Both processes have the port: it is not ambiguous, but that of the primary.
    done = run([RINGTAP, "latency", "--duration", "0.2s", f"{primary.prefix}:{PORT}"])
    assert done.returncode == 0 and f"pid {primary.pid}" in done.stderr, done.stderr
    done = run([RINGTAP, "held", secondary.name])
    assert done.returncode == 1 and "secondary processes have no fates; name the primary" in done.stderr
    done = run([RINGTAP, "memory", "--duration", "0.1s", secondary.name])
    assert done.returncode == 0 and "mempools are shown for its primary" in done.stderr
    done = run([RINGTAP, "doctor", "--duration", "1s", secondary.name])
    assert done.returncode in (OK, FAULT) and "are polled" not in done.stdout, done.stderr


def test_each_packet_of_both_is_accounted_for(pmds, record):
    """Counters of the driver are those of all processes. Under full load nothing is lost without being counted."""
    primary, secondary = pmds
    primary.cmd("clear port stats all")
    recorder = record(primary, "-f", NOTHING, "--json")
    for app in pmds:
        app.start()
    until(lambda: primary.stats(0)["RX-packets"] > 10000, what="traffic")
    for app in reversed(pmds):
        app.stop()
    output = recorder.finish()
    done = json.loads(output[output.index("\n{") + 1 :])
    seen = {
        (tap["direction"], tap["queue"], a["name"]): tap["seen"]
        for a in done["applications"]
        for i in a["interfaces"]
        for tap in i["taps"]
        if tap["seen"]
    }
    of_driver = primary.stats(0)
    for direction in ("rx", "tx"):
        assert {k[1:] for k in seen if k[0] == direction} == {(0, primary.name), (1, secondary.name)}
        assert sum(n for k, n in seen.items() if k[0] == direction) == of_driver[f"{direction.upper()}-packets"]
    recorder = record(pmds[0], "-s", "64", "--buffer", "4M")
    for app in pmds:
        app.start()
    for app in reversed(pmds):
        app.stop()
    recorder.finish()
    assert "Strict time order:   True" in check(["capinfos", "-o", recorder.out])
    shown = check(["tshark", "-r", recorder.out, "-q", "-z", "io,stat,0"])
    assert "Frames" in shown
    file = recorder.file()
    pcapng.check_sums(file)
    for queue, app in enumerate(pmds):
        assert {(p.direction, p.queue) for p in of_process(file, app)} == {(RX, queue), (TX, queue)}
