# SPDX-License-Identifier: BSD-3-Clause
"""VPP as a service of systemd, by the unit of its packages, and `ringtap-attach@vpp` beside it. RINGTAP_VPP as for test_vpp.py."""

import re

import pytest
from harness import service, systemd
from harness.proc import check, until
from harness.systemd import TREE, Systemd
from harness.vpp import BUILDS, FOLDER

ATTACH = "ringtap-attach@vpp"
CLI = "/run/vpp/cli.sock"
# As in VPP's src/pkg/debian/vpp.service, but for the path of the program and the module that no device here needs.
UNIT = """
[Unit]
Description=vector packet processing engine
After=network.target

[Service]
Type=simple
ExecStart={build}/bin/vpp -c /run/startup.conf
ExecStopPost=/bin/rm -f /dev/shm/db /dev/shm/global_vm /dev/shm/vpe-api
Restart=always
"""
# That of VPP's packages, with a device and without huge pages; as there nothing is passed to EAL.
STARTUP = """
unix {{ nodaemon log /run/vpp.log full-coredump cli-listen {cli} }}
api-trace {{ on }}
cpu {{ main-core 0 corelist-workers 1 }}
memory {{ main-heap-size 1G }}
buffers {{ buffers-per-numa 4096 page-size 4k }}
dpdk {{ no-pci no-hugetlb vdev net_null0 }}
plugins {{ path {plugins} plugin default {{ disable }} plugin dpdk_plugin.so {{ enable }} }}
"""

pytestmark = [pytest.mark.nightly, pytest.mark.skipif(not BUILDS, reason="RINGTAP_VPP names no build")]


@pytest.fixture(params=BUILDS)
def machine(request, tmp_path):
    if systemd.missing():
        pytest.skip(systemd.missing())
    build = FOLDER / request.param
    attach = service.ATTACH.read_text()
    units = {
        service.ATTACH.name: systemd.with_build(attach, service.setting("ExecStart", service.ATTACH).split()[0]),
        "vpp.service": UNIT.format(build=build),
    }
    it = Systemd(tmp_path, units)
    plugins = next((build / "lib").glob("*/vpp_plugins"))
    it.path("/run/startup.conf").write_text(STARTUP.format(cli=CLI, plugins=plugins))
    it.vppctl = lambda line: it.check([str(build / "bin" / "vppctl"), "-s", CLI, line])
    yield it
    it.close()


def probes(machine):
    """How many times the unit has loaded the probe."""
    return machine.path(f"/run/{ATTACH}.service.log").read_text().count("The probe is in")


def receive(machine, file):
    """Records 1,000 packets that VPP receives."""
    name = re.search(r"^((?:TenGigabit)?Ethernet\d+)", machine.vppctl("show interface"), re.M)[1]
    machine.vppctl(f"set interface state {name} up")
    machine.check([str(TREE / "cli" / "ringtap"), "record", "-i", "vpp:", "-c", "1000", "-w", f"/run/{file}"])
    assert len(check(["tshark", "-r", machine.path(f"/run/{file}")]).splitlines()) == 1000


def test_probe_at_each_start_of_the_service(machine):
    """Both start together, as at boot; VPP is started again by an operator, and by systemd after a kill. The probe is there
    each time, and VPP stays when the unit ends."""
    machine.ctl("start", "vpp", ATTACH)
    until(lambda: probes(machine) == 1, what="the probe")
    receive(machine, "first")
    machine.ctl("restart", "vpp")
    until(lambda: probes(machine) == 2, what="the probe after a restart")
    receive(machine, "second")
    machine.ctl("kill", "--signal=KILL", "vpp")
    until(lambda: probes(machine) == 3, what="the probe after a kill")
    receive(machine, "third")
    pid = machine.show("vpp", "MainPID")
    machine.ctl("stop", ATTACH)
    assert machine.show(ATTACH, "Result") == "success" and machine.show("vpp", "MainPID") == pid
    receive(machine, "fourth")
