# SPDX-License-Identifier: BSD-3-Clause
"""The units of `ringtap attach`, `ringtap flight` and `ringtap export`, run by systemd with all that they forbid."""

import json

import pytest
from harness import service, systemd
from harness.flight import INCIDENT
from harness.proc import run, until
from harness.systemd import Systemd
from harness.testpmd import Testpmd

NAME = "my-app"
UNIT = f"ringtap-flight@{NAME}"
OPTIONS = "--on exit --buffer 16M --before 1s --after 0s"


def text_of(unit):
    return systemd.with_build(unit.read_text(), service.setting("ExecStart", unit).split()[0])


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    if systemd.missing():
        pytest.skip(systemd.missing())
    units = (service.ATTACH, service.FLIGHT, service.EXPORT)
    it = Systemd(tmp_path_factory.mktemp("systemd"), {u.name: text_of(u) for u in units})
    yield it
    it.close()


@pytest.fixture
def flight(machine):
    """flight(options) starts the unit of my-app."""

    def start(options):
        machine.path("/etc/default/ringtap-flight").write_text(f'RINGTAP_FLIGHT_OPTIONS="{options}"\n')
        machine.ctl("start", UNIT)

    yield start
    machine.ctl("stop", UNIT)
    machine.check(["sh", "-c", f"rm -rf /run/{UNIT}.service.log {service.STATE}/*"])
    machine.ctl("reset-failed")


def log(machine, unit=UNIT):
    return machine.path(f"/run/{unit}.service.log").read_text()


def incidents(machine, count):
    def complete():
        done = sorted(machine.path(f"{service.STATE}/{NAME}").glob(f"*/{INCIDENT}"))
        return done if len(done) >= count else None

    return [json.loads(p.read_text()) for p in until(complete, what=f"{count} incidents")]


@pytest.fixture
def pmd(machine, closing):
    """testpmd there, without the probe, forwarding."""

    def start():
        app = closing(Testpmd(["net_null0", "net_null1"], namespace=machine, prefix=NAME))
        app.start()
        return app

    yield start
    kill(machine)


def kill(machine):
    run([*machine.prefix, "pkill", "-9", "-x", "dpdk-testpmd"])


def test_black_box_of_an_application_that_comes_and_goes(machine, flight, pmd):
    """The unit waits for the application, attaches to it, writes what was kept when it is killed, and waits again."""
    flight(OPTIONS)
    assert machine.show(UNIT, "ActiveState") == "active"
    for count in (1, 2):
        app = pmd()
        until(lambda: log(machine).count("Keeping the packets of") == count, what="the recorder")
        before = app.stats(0)["RX-packets"]
        until(lambda: app.stats(0)["RX-packets"] > before, what="packets that are kept")
        kill(machine)
        app.proc.wait()
        assert incidents(machine, count)[-1]["packets"] > 0
    until(lambda: int(machine.show(UNIT, "NRestarts")) >= 2, what="the next recorder")
    assert machine.show(UNIT, "ActiveState") in ("active", "activating")


def test_recorder_that_is_killed(machine, flight, pmd):
    """systemd starts another one; the application does not notice."""
    flight(OPTIONS)
    app = pmd()
    until(lambda: log(machine).count("Keeping the packets of") == 1, what="the recorder")
    before = app.stats(0)["RX-packets"]
    machine.ctl("kill", "--signal=KILL", UNIT)
    until(lambda: log(machine).count("Keeping the packets of") == 2, what="another recorder")
    assert app.stats(0)["RX-packets"] > before
    assert app.quit() == 0


def test_wrong_options_are_not_tried_again(machine, flight):
    flight("--on nonsense")
    until(lambda: machine.show(UNIT, "ActiveState") == "failed", what="the end of the unit")
    assert machine.show(UNIT, "ExecMainStatus") == "2" and machine.show(UNIT, "NRestarts") == "0"
    assert "--on 'nonsense'" in log(machine)


@pytest.mark.nightly
def test_metrics(machine, pmd):
    """Metrics of an application that has the probe and belongs to another user."""
    machine.ctl("start", "ringtap-export")
    app = pmd()
    fetch = "from urllib.request import urlopen; print(urlopen('http://localhost:9777/metrics').read().decode())"
    machine.check([str(systemd.TREE / "cli" / "ringtap"), "attach", NAME])
    until(lambda: f'app="{NAME}"' in machine.check(["/usr/bin/python3", "-c", fetch]), what="its metrics")
    assert app.quit() == 0
    machine.ctl("stop", "ringtap-export")
    assert machine.show("ringtap-export", "Result") == "success"


def test_probe_at_each_start(machine, pmd):
    """The unit waits for the application, attaches to it, and to the one that is started after it."""
    unit = f"ringtap-attach@{NAME}"
    machine.ctl("start", unit)
    for count in (1, 2):
        app = pmd()
        until(lambda: log(machine, unit).count("The probe is in") == count, what="the probe")
        assert app.quit() == 0
    machine.ctl("stop", unit)
    assert machine.show(unit, "Result") == "success"
