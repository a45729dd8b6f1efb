# SPDX-License-Identifier: BSD-3-Clause
"""VPP, in a temporary folder and a network namespace; devtools/vpp-build.sh makes its builds."""

import math
import os
import re
import shutil
from pathlib import Path

from . import pcap
from .attach import attach
from .paths import BUILD, private_folder
from .proc import check, run, until
from .ringtap import frames_of

FOLDER = Path(os.environ.get("RINGTAP_VPP", "/nonexistent"))
BUILDS = [build for build in ("shared", "static", "newest") if (FOLDER / build / "bin" / "vpp").exists()]
KINDS = [(build, workers) for build in BUILDS for workers in (1, 0, 4)]
# From net_tap of DPDK 22.11, VPP with four workers receives nothing.
TAPS = [kind for kind in KINDS if kind[0] == "newest" or kind[1] < 4]


class Vpp:
    """Routes between the devices of the namespace, which DPDK's net_af_packet uses: {device: address/length}.
    vdevs: DPDK's devices before these; dev: settings of all."""

    def __init__(self, namespace, devices, build="shared", workers=1, env=None, frame=2048, vdevs=(), dev=""):
        self.build = FOLDER / build
        self.namespace = namespace
        self.dir = private_folder()
        self.cli = self.dir / "cli.sock"
        if workers + 1 > os.cpu_count():
            env = {"LD_PRELOAD": str(BUILD / "e2e" / "librt_many_cpus.so"), **(env or {})}
        self.proc = namespace.start(
            [self.build / "bin" / "vpp", *self._settings(devices, vdevs, workers, frame, dev)], env=env
        )
        try:
            until(lambda: self._listens() or not self.proc.alive(), what="its command line")
            assert self.proc.alive(), self.proc.output
            self.names = self._interfaces(devices, len(vdevs))
        except BaseException:
            self.close()
            raise

    def _settings(self, devices, vdevs, workers, frame, dev):
        queues = max(workers, 1)
        ring = f"qpairs={queues},framesz={frame},blocksz={math.lcm(frame, 4096)}"
        vdevs = [*vdevs, *(f"net_af_packet{i},iface={device},{ring}" for i, device in enumerate(devices))]
        vdevs = " ".join(f"vdev {vdev}" for vdev in vdevs)
        folder = next((self.build / "lib").glob("*/vpp_plugins"))
        plugins = sorted(path.name for path in folder.glob("*_plugin.so"))
        # VPP leaves out buffers that lie in two pages: of this size most. DPDK's pool has more than its caches' 512.
        buffers = 4096 if frame == 2048 else 16384
        return (
            f"unix {{ nodaemon runtime-dir {self.dir} cli-listen {self.cli} }} "
            f"api-segment {{ prefix {self.dir.name} }} statseg {{ socket-name {self.dir}/stats.sock }} "
            f"cpu {{ main-core 0 {f'workers {workers}' if workers else ''} }} "
            "memory { main-heap-size 6G } "
            f"buffers {{ buffers-per-numa {buffers} page-size 4k default data-size {frame} }} "
            f"dpdk {{ no-pci no-hugetlb dev default {{ num-rx-queues {queues} {dev} }} {vdevs} }} "
            f"plugins {{ path {folder} plugin default {{ disable }} "
            + " ".join(f"plugin {name} {{ enable }}" for name in plugins)
            + " }"
        ).split()

    def _listens(self):
        """The socket is there before it takes connections."""
        return run([self.build / "bin" / "vppctl", "-s", self.cli, "show version"]).returncode == 0

    def ctl(self, line):
        return check([self.build / "bin" / "vppctl", "-s", self.cli, line])

    def _interfaces(self, devices, others):
        names = re.findall(r"^((?:TenGigabit)?Ethernet\d+)", self.ctl("show interface"), re.M)
        assert len(names) == others + len(devices), self.ctl("show interface")
        for name, address in zip(names[others:], devices.values()):
            self.ctl(f"set interface ip address {name} {address}")
            self.ctl(f"set interface state {name} up")
        return names

    def errors(self):
        """Its own counters, {'node/reason': packets}."""
        rows = re.findall(r"^ *(\d+) +(\S+) +(.*?) +(?:error|info|warn|unknown) *$", self.ctl("show errors"), re.M)
        return {f"{node}/{reason}": int(count) for count, node, reason in rows}

    def passed(self):
        """[(received, sent)] packets of each of its interfaces."""
        text = self.ctl("show interface")
        parts = [re.search(rf"^{name} .*(?:\n .*)*", text, re.M)[0] for name in self.names]
        return [(_counter("rx packets", part), _counter("tx packets", part)) for part in parts]

    def losses(self):
        """Packets that its interfaces have lost, {'interface counter': packets}."""
        found, interface = {}, None
        for line in self.ctl("show interface").splitlines():
            interface = line.split()[0] if line[:1].strip() else interface
            for name in ("drops", "punt", "rx-miss", "rx-no-buf", "rx-error", "tx-error"):
                if m := re.search(rf" {name} +(\d+)$", line.rstrip()):
                    found[f"{interface} {name}"] = int(m.group(1))
        return found

    @property
    def pid(self):
        return self.proc.pid

    @property
    def prefix(self):
        return str(self.pid)

    def close(self):
        self.proc.close()
        shutil.rmtree(self.dir, ignore_errors=True)
        for left in Path("/dev/shm").glob(f"{self.dir.name}-*"):  # the api-segment: a killed VPP leaves it
            left.unlink()


def _counter(name, text):
    """VPP leaves out counters that are 0."""
    found = re.search(rf" {name} +(\d+)", text)
    return int(found[1]) if found else 0


def _keep_address(host, address):
    """Or its kernel would ask for the address again, at any time."""
    found = re.search(r"lladdr (\S+)", host.check(["ip", "neigh", "show", address]))
    host.check(["ip", "neigh", "replace", address, "lladdr", found[1], "dev", "eth0", "nud", "permanent"])


def routed(net, closing, kind, count=2, **kwargs):
    """VPP of a kind, with the probe, and a host in each of its networks, of which each has the address of all."""
    hosts = [net.add_host(f"10.99.{i}.1") for i in range(1, count + 1)]
    devices = {port: f"10.99.{i}.254/24" for i, (_, port) in enumerate(hosts, 1)}
    vpp = closing(Vpp(net.hub, devices, *kind, **kwargs))
    hosts = [host for host, _ in hosts]
    for i, host in enumerate(hosts, 1):
        host.check(["ip", "route", "add", "default", "via", f"10.99.{i}.254"])
    # VPP drops what waits for an address.
    for i in range(2, count + 1):
        once = [*hosts[0].prefix, "ping", "-q", "-c", "1", "-W", "1", f"10.99.{i}.1"]
        until(lambda: run(once).returncode == 0, what="addresses are resolved")
    for i, host in enumerate(hosts, 1):
        _keep_address(host, f"10.99.{i}.254")
    attach(vpp.pid)
    return vpp, hosts


class Kernel:
    """tcpdump of packets that arrive at a device: those that a port there receives, or that VPP has sent to it. side: "out":
    those that the kernel sends to it."""

    def __init__(self, namespace, device, count, file, expression="udp", side="in"):
        options = ["-Q", side, "-B", "16384", "-U", "-c", str(count), "-w", file]
        self.count, self.file = count, file
        self.proc = namespace.start(["tcpdump", "-i", device, *options, expression])
        self.proc.expect("listening on")

    def assert_recorded(self, recorded, port, direction, in_order=True):
        """They are those of a recording, byte for byte. in_order: False: several threads had them, each in order."""
        assert self.proc.wait() == 0
        seen = [data for _, data, _ in pcap.read(self.file)]
        found = frames_of(recorded, port, direction)
        assert len(seen) == self.count
        assert found == seen if in_order else sorted(found) == sorted(seen)

    def close(self):
        self.proc.close()
