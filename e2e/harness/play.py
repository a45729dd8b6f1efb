# SPDX-License-Identifier: BSD-3-Clause
"""rt_play, an application that sends and receives on command; see e2e/apps/rt_play.c."""

from . import dpdk
from .paths import BUILD
from .proc import PATIENCE, Proc, until


class Refused(AssertionError):
    """rt_play reported an error."""


class Play:
    """plugin: loaded with -d; None: the program with the probe linked in. program: another one with
    the same form of commands and answers. huge_dir: memory in huge pages, which other processes can
    map."""

    def __init__(
        self,
        plugin,
        lcores="0,1",
        memory_mb=256,
        vdevs=(),
        eal=(),
        program=None,
        namespace=None,
        huge_dir=None,
        prefix=None,
    ):
        self.prefix = prefix or dpdk.new_prefix("play")
        program = BUILD / "e2e" / (program or ("rt_play" if plugin else "rt_play_linkin"))
        inside = namespace.prefix if namespace else []
        self.proc = Proc(
            [*inside, program, *dpdk.eal_args(self.prefix, plugin, vdevs, lcores, memory_mb, eal, huge_dir)]
        )
        try:
            self.proc.expect("^ready$")
        except BaseException:
            self.close()
            raise

    @property
    def pid(self):
        return self.proc.pid

    def do(self, line, timeout=PATIENCE):
        """Sends a command; returns the numbers of its answer."""
        self.proc.send(line)
        found = self.proc.expect(r"^(ok|error) ?(.*)$", timeout)
        text = found.group(2).decode()
        if found.group(1) == b"error":
            raise Refused(f"{line[:100]}: {text}")
        return [int(word) for word in text.split()]

    def one(self, line):
        """The only, or first, number of the answer."""
        return self.do(line)[0]

    def ring(self, name, rxq=1, txq=1):
        """Makes a port net_ring_NAME, whose other side rt_play owns; returns its id."""
        return self.one(f"ring {name} rxq={rxq} txq={txq}")

    def plug(self, name, args="", rxq=1, txq=1):
        return self.one(f"plug {name} args={args} rxq={rxq} txq={txq}")

    def burst(self, direction, port=0, queue=0, data=None, **shape):
        """One rx or tx command. data: exact bytes. Returns (packets, before_ns, after_ns)."""
        words = [direction, str(port), str(queue), *(f"{k}={v}" for k, v in shape.items())]
        if data is not None:
            words.append("hex=" + data.hex())
        return self.do(" ".join(words))

    def rx(self, *args, **shape):
        return self.burst("rx", *args, **shape)

    def tx(self, *args, **shape):
        return self.burst("tx", *args, **shape)

    def unhooked(self, port=0):
        """For shared applications: waits until the hooks of the previous test are removed. Returns
        self."""
        until(lambda: self.one(f"callbacks {port}") == 0, what="no callback is left")
        return self

    def hooked(self, port, callbacks=2):
        """Waits until a port that came during a capture is captured."""
        until(lambda: self.one(f"callbacks {port}") == callbacks, what=f"{callbacks} callbacks on port {port}")
        # The callbacks come first, taps are linked to them later under the same lock. A query takes it, too.
        dpdk.telemetry(self.prefix, "/ringtap/ports")

    def quit(self):
        self.proc.send("quit")
        return self.proc.wait()

    def close(self):
        self.proc.close()
        dpdk.remove_run_dir(self.prefix)


def pace(app, times=3):
    """Packets per second of CPU time of the application, the median of several: almost independent
    of other load."""

    def look():
        with open(f"/proc/{app.pid}/stat", encoding="ascii") as f:
            fields = f.read().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12]), app.one("count")

    paces = []
    for _ in range(times):
        ran, count = look()
        until(lambda: look()[0] >= ran + 20, what="0.2 s of CPU time")
        ran_since, count_since = look()
        paces.append((count_since - count) / (ran_since - ran))
    return sorted(paces)[times // 2]


class Visitor(Proc):
    """A secondary process of an rt_deeds, on an lcore of its own: caches of pools are by lcore."""

    def __init__(self, app):
        super().__init__(
            [
                BUILD / "e2e" / "rt_deeds",
                "--proc-type=secondary",
                "--file-prefix",
                app.prefix,
                "--no-pci",
                "--lcores",
                "5@0",
                "--huge-dir",
                "/dev/hugepages",
            ]
        )
        try:
            self.expect("^ready$")
        except BaseException:
            self.close()
            raise
