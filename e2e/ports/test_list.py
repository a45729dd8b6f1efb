# SPDX-License-Identifier: BSD-3-Clause
"""`ringtap list`: applications, ports, sessions; for people and as JSON."""
import os

from harness.paths import BUILD, RINGTAP
from harness.proc import check
from harness.ringtap import listing


def mine(app):
    found = [a for a in listing() if a["name"] == app.prefix]
    assert len(found) == 1
    return found[0]


def test_ports_and_sessions(play, record):
    app = play()
    app.ring("a", rxq=3, txq=2)
    app.plug("net_null7")
    entry = mine(app)
    assert entry["pid"] == app.pid
    ports = {p["name"]: p for p in entry["ports"]}
    assert list(ports) == ["net_ring_a", "net_null7"]
    ring = ports["net_ring_a"]
    assert (ring["driver"], ring["rx_queues"], ring["tx_queues"]) == ("net_ring", 3, 2)
    assert len(ring["mac"].split(":")) == 6
    assert entry["sessions"] == []
    recorder = record(app)
    session, = mine(app)["sessions"]
    assert recorder.proc.pid in session.values()
    recorder.finish()
    assert mine(app)["sessions"] == []


def test_for_people(play):
    app = play()
    app.ring("a")
    said = check([RINGTAP, "list"])
    assert app.prefix in said and "net_ring_a" in said


def test_looking_hooks_nothing(play):
    app = play()
    port = app.ring("a")
    mine(app)
    assert app.one(f"callbacks {port}") == 0


def test_application_without_the_probe_is_named(testpmd):
    pmd = testpmd("net_null0", plugin=None)
    assert pmd.prefix in check([RINGTAP, "list"])


def test_dead_application_is_not_listed(play):
    app = play()
    app.proc.kill()
    assert app.prefix not in check([RINGTAP, "list"])


COMPLETE = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_ringtap
printf '%s\\n' "${COMPREPLY[@]}"
"""


def completed(*words):
    """What bash offers for the last word."""
    script = BUILD / "cli" / "completion" / "ringtap"
    path = f"{RINGTAP.parent}:{os.environ['PATH']}"
    return check(["bash", "-c", COMPLETE, "bash", script, *words], env={"PATH": path}).split()


def test_names_and_completion(app):
    port = f"{app.prefix}:net_ring_a"
    names = check([RINGTAP, "list", "--names"]).split()
    assert app.prefix in names and port in names
    assert completed("ringtap", "record", "-i", app.prefix[:-1]) == [n for n in names if n.startswith(app.prefix[:-1])]
    assert port in completed("ringtap", "record", "-i", "")
    assert app.prefix in completed("ringtap", "top", "") and port not in completed("ringtap", "top", "")
    assert "lo" in completed("ringtap", "host", "l")
    assert "record" in completed("ringtap", "help", "re")
    assert "zstd" in completed("ringtap", "record", "--compress", "")
