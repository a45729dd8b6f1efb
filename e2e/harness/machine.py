# SPDX-License-Identifier: BSD-3-Clause
"""A virtual machine with network cards behind an IOMMU. Its programs are the host's; see init."""

import json
import os
import re
import resource
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from harness.paths import BUILD, E2E, REPO
from harness.proc import Proc, until

# Minimum timeouts. On a busy machine the emulated processor gets a small part of one, and all takes that much longer;
# a timeout that is not reached costs nothing.
BOOT_S, ANSWER_S, FRAME_S = 1200, 900, 600
LARGEST = 65536
# Kernel and libc copy and clear memory by the instruction `rep movsb` where it is fast; emulation does a byte at a time.
EMULATED = "max,erms=off,fsrm=off"
# Detours of indirect calls, and a clock that asks a device because the TSC might not be constant, cost an emulated processor more.
WORDS = "mitigations=off tsc=reliable"
VERSIONS = {}  # versions of QEMU, by card


def accelerator():
    """QEMU's own emulation if RINGTAP_ACCEL names nothing else: /dev/kvm may be there and not work."""
    return os.environ.get("RINGTAP_ACCEL", "tcg")


class Wire:
    """The other end of a card's wire: whole frames."""

    def __init__(self, folder, number):
        self.here, self.there = folder / f"wire{number}", folder / f"card{number}"
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self.sock.bind(str(self.here))

    def netdev(self, name):
        return f"dgram,id={name},local.type=unix,local.path={self.there},remote.type=unix,remote.path={self.here}"

    def send(self, frame, seconds=None):
        """Returns whether QEMU took it in this time: it takes none for a card that has no room."""
        self.sock.settimeout(seconds)
        try:
            self.sock.sendto(frame, str(self.there))
        except TimeoutError:
            return False
        return True

    def receive(self, seconds):
        """The next frame; None if none comes."""
        self.sock.settimeout(seconds)
        try:
            return self.sock.recv(LARGEST)
        except TimeoutError:
            return None

    def close(self):
        self.sock.close()


class Port:
    """A stream of lines of JSON."""

    def __init__(self, path):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(1)
        self.file = None

    def accept(self, seconds):
        self.listener.settimeout(seconds)
        sock, _ = self.listener.accept()
        self.file = sock.makefile("rwb", buffering=0)
        self.sock = sock

    def read(self, seconds):
        self.sock.settimeout(seconds)
        line = b""
        while not line.endswith(b"\n"):
            data = self.file.readline()
            if not data:
                raise AssertionError("the virtual machine has closed its port")
            line += data
        return json.loads(line)

    def write(self, message):
        self.sock.sendall(json.dumps(message).encode() + b"\n")

    def close(self):
        if self.file:
            self.file.close()
            self.sock.close()
        self.listener.close()


class Program:
    """One that runs in the guest, on a terminal."""

    def __init__(self, machine, name, command):
        self.machine, self.name = machine, name
        self.path = machine.work / f"{name}.out"
        self.pid = machine.ask("start", name=name, command=[str(a) for a in command])["pid"]
        self.seen = 0

    @property
    def output(self):
        return self.path.read_text(errors="replace") if self.path.exists() else ""

    def expect(self, pattern, seconds=ANSWER_S):
        def found():
            assert "error while loading shared libraries" not in self.output, self.output
            return re.compile(pattern, re.MULTILINE).search(self.output, self.seen)

        until(found, seconds, what=f"{pattern!r} of {self.name}, which said:\n{self.output[-4000:]}")
        match = found()
        self.seen = match.end()
        return match

    def say(self, line):
        """Types a line; returns what comes up to the next prompt of testpmd."""
        at = len(self.output)
        self.seen = at
        self.machine.ask("write", name=self.name, text=line + "\n")
        self.expect(r"^testpmd> \Z|^testpmd> $")
        return self.output[at:]

    def signal(self, number):
        self.machine.ask("signal", name=self.name, number=int(number))

    def wait(self):
        return self.machine.ask("wait", name=self.name, timeout=ANSWER_S)["code"]


class Machine:
    """cards: the models of QEMU, in order; card N has the PCI address addresses[N] and wire N. suite: the release of
    Debian whose kernel it has, if not this one's; writable: it writes into a copy of the host's root folder."""

    def __init__(
        self, cards, memory_mb=1536, trace=None, qemu=("qemu-system-x86_64",), iommu=True, suite=None, writable=False
    ):
        guest = BUILD / f"guest-{suite}" if suite else BUILD / "guest"
        subprocess.run([REPO / "devtools" / "guest.sh", guest, *([suite] if suite else [])], check=True)
        self.folder = Path(tempfile.mkdtemp(prefix="ringtap-qemu-"))
        self.work = self.folder / "work"
        self.work.mkdir()
        self.wires = [Wire(self.folder, i) for i in range(len(cards))]
        self.agent, self.qmp = Port(self.folder / "agent"), Port(self.folder / "qmp")
        self.trace = self.folder / "trace"
        # no_timer_check: the kernel counts interrupts of a timer while it boots, and panics if an emulated processor that
        # rarely runs has too few ("timer doesn't work through Interrupt-remapped IO-APIC").
        argv = [
            *("setpriv", "--pdeathsig", "KILL"),
            *qemu,
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
            "-no-reboot",
            "-serial",
            "stdio",
            "-machine",
            "q35,kernel-irqchip=split" if accelerator() == "kvm" else "q35",
            "-accel",
            accelerator(),
            "-cpu",
            "host,-arch-capabilities" if accelerator() == "kvm" else EMULATED,
            "-smp",
            "2",
            "-m",
            str(memory_mb),
            "-kernel",
            guest / "vmlinuz",
            "-initrd",
            guest / "initramfs",
            "-append",
            f"console=ttyS0 quiet panic=-1 no_timer_check intel_iommu=on {WORDS} agent={E2E / 'qemu' / 'agent.py'}"
            + " writable" * writable,
            "-virtfs",
            "local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap",
            "-virtfs",
            f"local,path={self.work},mount_tag=work,security_model=none",
            "-device",
            "virtio-serial-pci,id=serial",
            "-chardev",
            f"socket,id=agent,path={self.folder / 'agent'}",
            "-device",
            "virtserialport,chardev=agent,name=ringtap",
            "-qmp",
            f"unix:{self.folder / 'qmp'},server=off",
        ]
        if iommu:
            argv[argv.index("-virtfs") : argv.index("-virtfs")] = [
                "-device",
                "intel-iommu,intremap=on,caching-mode=on" if accelerator() == "kvm" else "intel-iommu,caching-mode=on",
            ]
        for event in trace or ():
            argv += ["-trace", f"enable={event},file={self.trace}"]
        self.models = cards
        for i, model in enumerate(cards):
            argv += ["-netdev", self.wires[i].netdev(f"net{i}"), *self._card(i, model)]
        self.proc = Proc(argv, preexec_fn=_many_files)
        try:
            self.qmp.accept(BOOT_S)
            self.qmp.read(BOOT_S)
            self.order("qmp_capabilities")
            self.agent.accept(BOOT_S)
            begin = time.monotonic()
            assert self.agent.read(BOOT_S) == {"ready": True}
            self.boot_s = time.monotonic() - begin
        except BaseException:
            print(self.proc.output[-4000:])
            self.close()
            raise

    @staticmethod
    def _card(i, model):
        """Behind a root port of its own, so that it can be unplugged; PCI cards are not."""
        name, _, options = model.partition(",")
        options = f",{options}" if options else ""
        if name == "e1000":
            return ["-device", f"{name},netdev=net{i},id=card{i},mac={mac(i)}{options},addr=0x{16 + i:x}"]
        return [
            "-device",
            f"pcie-root-port,id=port{i},chassis={i + 1},addr=0x{16 + i:x}",
            "-device",
            f"{name},netdev=net{i},id=card{i},bus=port{i},mac={mac(i)}{options}",
        ]

    def ask(self, do, **request):
        """The agent's answer."""
        self.agent.write({"do": do, **request})
        answer = self.agent.read(request.get("timeout", 60) + ANSWER_S)
        assert "error" not in answer, answer["error"]
        return answer

    def run(self, *command, ok=True, timeout=ANSWER_S):
        done = self.ask("run", command=[str(a) for a in command], timeout=timeout)
        assert not ok or done["code"] == 0, f"{command}: {done}"
        return done

    def order(self, command, **arguments):
        """A command to QEMU."""
        self.qmp.write({"execute": command, "arguments": arguments})
        while True:
            answer = self.qmp.read(ANSWER_S)
            if "event" not in answer:
                assert "return" in answer, answer
                return answer["return"]

    def address(self, i):
        """The PCI address of a card."""
        found = self.run("sh", "-c", "cd /sys/bus/pci/devices && for d in *; do echo $d $(readlink $d); done")["out"]
        slot = f"0000:00:{16 + i:02x}.0"
        for line in found.splitlines():
            name, path = line.split()
            on_root_bus = self.models[i].split(",")[0] == "e1000"
            if name == slot if on_root_bus else f"/{slot}/" in path and name != slot:
                return name
        raise AssertionError(f"card {i} is not there: {found}")

    def start(self, name, command):
        return Program(self, name, command)

    def close(self):
        self.proc.kill()
        for end in (*self.wires, self.agent, self.qmp):
            end.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def _many_files():
    """Open files for the guest, which has the host's files open."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def mac(i):
    return f"52:54:00:00:00:{i + 1:02x}"
