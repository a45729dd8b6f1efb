# SPDX-License-Identifier: BSD-3-Clause
"""VPP, in a temporary folder and a network namespace; devtools/vpp-build.sh makes its builds."""

import os
import re
import shutil
from pathlib import Path

from .paths import private_folder
from .proc import check, run, until

FOLDER = Path(os.environ.get("RINGTAP_VPP", "/nonexistent"))
BUILDS = [build for build in ("shared", "static") if (FOLDER / build / "bin" / "vpp").exists()]


class Vpp:
    """Routes between the devices of the namespace, which DPDK's net_af_packet uses: {device: address/length}."""

    def __init__(self, namespace, devices, build="shared", workers=1, env=None):
        self.build = FOLDER / build
        self.namespace = namespace
        self.dir = private_folder()
        self.cli = self.dir / "cli.sock"
        self.proc = namespace.start([self.build / "bin" / "vpp", *self._settings(devices, workers)], env=env)
        try:
            until(lambda: self._listens() or not self.proc.alive(), what="its command line")
            assert self.proc.alive(), self.proc.output
            self.names = self._interfaces(devices)
        except BaseException:
            self.close()
            raise

    def _settings(self, devices, workers):
        vdevs = " ".join(f"vdev net_af_packet{i},iface={device}" for i, device in enumerate(devices))
        return (
            f"unix {{ nodaemon runtime-dir {self.dir} cli-listen {self.cli} }} "
            f"api-segment {{ prefix {self.dir.name} }} statseg {{ socket-name {self.dir}/stats.sock }} "
            f"cpu {{ main-core 0 {f'workers {workers}' if workers else ''} }} "
            "buffers { buffers-per-numa 4096 page-size 4k } "
            f"dpdk {{ no-pci no-hugetlb {vdevs} }} "
            f"plugins {{ path {next((self.build / 'lib').glob('*/vpp_plugins'))} "
            "plugin default { disable } "
            + " ".join(f"plugin {p}_plugin.so {{ enable }}" for p in ("acl", "af_packet", "dpdk", "memif", "ping"))
            + " }"
        ).split()

    def _listens(self):
        """The socket is there before it takes connections."""
        return run([self.build / "bin" / "vppctl", "-s", self.cli, "show version"]).returncode == 0

    def ctl(self, line):
        return check([self.build / "bin" / "vppctl", "-s", self.cli, line])

    def _interfaces(self, devices):
        names = re.findall(r"^(Ethernet\d+)", self.ctl("show interface"), re.M)
        assert len(names) == len(devices), self.ctl("show interface")
        for name, address in zip(names, devices.values()):
            self.ctl(f"set interface ip address {name} {address}")
            self.ctl(f"set interface state {name} up")
        return names

    def errors(self):
        """Its own counters, {'node/reason': packets}."""
        rows = re.findall(r"^ *(\d+) +(\S+) +(.*?) +(?:error|info|warn|unknown) *$", self.ctl("show errors"), re.M)
        return {f"{node}/{reason}": int(count) for count, node, reason in rows}

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
