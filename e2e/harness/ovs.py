# SPDX-License-Identifier: BSD-3-Clause
"""Unmodified Open vSwitch with DPDK, in temporary folders and a network namespace; an installed and
running one is not affected."""

import re
import shutil
from pathlib import Path

from . import dpdk
from .paths import private_folder
from .proc import Proc, check, run
from .testpmd import Testpmd

VSWITCHD = Path("/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk")
SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")


def missing():
    """The reason why it cannot run, or None."""
    for path in (VSWITCHD, SCHEMA):
        if not path.exists():
            return f"{path} is not installed (openvswitch-switch-dpdk)"
    return None


class Guest(Testpmd):
    """A virtual machine's network card, and an application that sends back what it receives."""

    def __init__(self, path, devargs="", vdevs=(), args=(), start=True):
        """devargs: more of its device; vdevs: more devices; start: it passes packets at once."""
        super().__init__(
            [f"net_virtio_user0,path={path},server=1{devargs}", *vdevs],
            lcores="0@0,1@0",
            memory_mb=128,
            mbufs=4096,
            args=args,
            eal=["--single-file-segments", "--no-telemetry"],
        )
        if start:
            self.start()


class Ovs:
    """One bridge `br0`; ports are devices of the namespace, used by net_af_packet. huge: with huge
    pages and --in-memory, which is how OVS starts DPDK by default. settings: more columns of the table Open_vSwitch."""

    def __init__(self, namespace, plugin, huge=False, pmd_mask="0x2", memory_mb=384, settings=()):
        self.namespace = namespace
        self.dir = private_folder()
        self.prefix = dpdk.new_prefix("ovs")
        self.db = self.switch = None
        try:
            self._start_db()
            self._start_switch(self._eal(plugin, huge, memory_mb), pmd_mask, settings)
        except BaseException:
            self.close()
            raise

    def _eal(self, plugin, huge, memory_mb):
        if huge:
            args = ["--no-pci", "--file-prefix", self.prefix, "-m", memory_mb]
            return args + (["-d", plugin] if plugin else [])
        # OVS adds --in-memory, which EAL refuses next to --no-huge, unless --legacy-mem is given.
        return dpdk.eal_args(self.prefix, plugin, lcores=None, memory_mb=memory_mb, extra=["--legacy-mem"])

    @property
    def _env(self):
        names = ("OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR")
        return {name: str(self.dir) for name in names}

    def _start_db(self):
        conf = self.dir / "conf.db"
        check(["ovsdb-tool", "create", conf, SCHEMA])
        self.db = Proc(
            [
                "ovsdb-server",
                conf,
                f"--remote=punix:{self.dir}/db.sock",
                f"--unixctl={self.dir}/db.ctl",
                "--no-chdir",
                "-vconsole:info",
            ],
            env=self._env,
        )
        self.db.expect(r"ovsdb-server \(Open vSwitch\)")
        self.vsctl("--no-wait", "init")

    def _start_switch(self, eal, pmd_mask, settings):
        extra = " ".join(str(a) for a in eal)
        self.vsctl(
            "--no-wait",
            "set",
            "Open_vSwitch",
            ".",
            "other_config:dpdk-init=true",
            f'other_config:dpdk-extra="{extra}"',
            f"other_config:pmd-cpu-mask={pmd_mask}",
            # A pool for all ports takes as many mbufs as there are, and OVS gives up if DPDK has a rest too small
            # for one (ENOBUFS) when it creates the pool, which depends on the layout of the heap.
            "other_config:per-port-memory=true",
            *settings,
        )
        self.switch = self.namespace.start(
            [VSWITCHD, f"unix:{self.dir}/db.sock", f"--unixctl={self.dir}/sw.ctl", "--no-chdir", "-vconsole:info"],
            env=self._env,
        )
        self.switch.expect(r"DPDK Enabled - initialized")
        self.vsctl("add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev")

    def vsctl(self, *args):
        done = run(["ovs-vsctl", f"--db=unix:{self.dir}/db.sock", "--timeout=120", *args])
        assert done.returncode == 0, f"{args}: {done.stderr}" + self._state()
        return done.stdout

    def _state(self):
        """How the switch is, and what it said last."""
        if not self.switch:
            return ""
        state = "alive" if self.switch.alive() else f"dead, {self.switch.child.returncode}"
        log = [line for line in self.switch.output.splitlines() if "|coverage|" not in line]
        return "\n".join([f"\nthe switch is {state}", *log[-30:]])

    def appctl(self, *args):
        return check(["ovs-appctl", f"--target={self.dir}/sw.ctl", *args])

    def add_port(self, name, interface, devargs=""):
        """Returns the name of its ethdev, which is not the name of the port. devargs: more of them."""
        vdev = f"net_af_packet_of_{interface}"
        self.add_vdev(name, f"{vdev},iface={interface}{devargs}")
        return vdev

    def add_vdev(self, name, devargs, *settings):
        """A port with these columns of its interface, besides."""
        self.vsctl(
            "add-port",
            "br0",
            name,
            "--",
            "set",
            "Interface",
            name,
            "type=dpdk",
            f"options:dpdk-devargs={devargs}",
            *settings,
        )
        # A bridge without a datapath takes ports, without an error, and gives them no number.
        number, error = self.vsctl("get", "Interface", name, "ofport", "error").split(maxsplit=1)
        assert error.strip() == "[]" and int(number) > 0, f"port {name}: {number} {error}" + self._state()

    def add_vhost(self, name):
        """A vhost-user port, the client of a guest. Returns the path of the guest's socket."""
        path = self.dir / f"{name}.sock"
        options = ["type=dpdkvhostuserclient", f"options:vhost-server-path={path}"]
        self.vsctl("add-port", "br0", name, "--", "set", "Interface", name, *options)
        return path

    def pass_on(self, *names):
        """Each port passes to the next one all that it receives, the last one to the first."""
        self._ofctl("del-flows")
        for name, to in zip(names, [*names[1:], names[0]]):
            self.copy(name, to)

    def copy(self, name, *to):
        """Packets that the port receives go to each of these."""
        self._ofctl("add-flow", f"in_port={name},actions=" + ",".join(f"output:{other}" for other in to))

    def drop_from(self, name):
        self._ofctl("add-flow", f"in_port={name},actions=drop")

    def _ofctl(self, what, *args):
        check(["ovs-ofctl", "-O", "OpenFlow14", "--names", what, f"unix:{self.dir}/br0.mgmt", *args])

    def is_connected(self, name):
        return "status=connected" in self.vsctl("get", "Interface", name, "status").replace('"', "")

    def statistic(self, name, key):
        """A counter of a port that only OVS has, now: its database has it every five seconds."""
        text = check(["ovs-ofctl", "-O", "OpenFlow14", "dump-ports", f"unix:{self.dir}/br0.mgmt", name])
        found = re.search(rf"\b{key}=(\d+)", text)
        assert found, text
        return int(found[1])

    def del_port(self, name):
        """Removes the port from the bridge; OVS then removes its ethdev from DPDK."""
        self.vsctl("del-port", "br0", name)

    @property
    def pid(self):
        return self.switch.pid

    def close(self):
        for proc in (self.switch, self.db):
            if proc:
                proc.close()
        dpdk.remove_run_dir(self.prefix)
        shutil.rmtree(self.dir, ignore_errors=True)
