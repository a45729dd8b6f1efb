# SPDX-License-Identifier: BSD-3-Clause
"""The ringtap-fwd program, and frames with its stamp."""

import json
import signal
import struct

from . import dpdk
from .paths import BUILD
from .proc import Proc, run

FWD = BUILD / "fwd" / "ringtap-fwd"
STAMP = 42  # offset


def udp(number, stream=0, tsc=0, length=60):
    """A frame built by the description in docs/fwd.md, not by the program."""
    head = bytes.fromhex("0200000000010200000000020800")
    ip = struct.pack(">BBHHHBBHII", 0x45, 0, length - 14, 0, 0, 64, 17, 0, 0xC6120001, 0xC6120002)
    ports = struct.pack(">HHHH", 0x5254, 0x5254, length - 34, 0)
    stamp = b"RTfw" + bytes([stream]) + number.to_bytes(5, "big") + struct.pack(">Q", tsc)
    return (head + ip + ports + stamp).ljust(length, b"\0")


class Report:
    """The output of --json."""

    def __init__(self, text):
        self.data = json.loads(text)

    def __getitem__(self, key):
        return self.data[key]

    def role(self, name):
        """The only role of that name."""
        found = [r for r in self.data["roles"] if r["role"] == name]
        assert len(found) == 1, [r["description"] for r in self.data["roles"]]
        return found[0]

    def total(self, name):
        return self.role(name)["total"]


class Fwd:
    """A ringtap-fwd that runs until it is stopped or comes to its end."""

    def __init__(self, args, namespace=None, huge=False, name=None, json_out=True, eal=(), around=(), program=FWD):
        self.prefix = name or dpdk.new_prefix("fwd")
        inside = namespace.prefix if namespace else []
        packet = "--plane" in args
        own = [] if packet else ["--name", self.prefix, *([] if huge else ["--no-huge"])]
        argv = [*inside, *around, program, *own, *args, *(["--json"] if json_out else [])]
        self.out_text = None
        self.proc = Proc([*argv, *(["--", *eal] if eal else [])])

    def running(self):
        self.proc.expect("ringtap-fwd: running")
        return self

    def done(self, status=0):
        """Waits for the end. Returns the report, or the output if it failed."""
        got = self.proc.wait()
        text = self.proc.output
        assert got == status, f"status {got}, not {status}:\n{text[-3000:]}"
        if status or "{" not in text:
            return text
        return Report(text[text.index("\n{") + 1 :] if not text.startswith("{") else text)

    def stop(self, number=signal.SIGINT):
        self.proc.send_signal(number)
        return self.done()

    def close(self):
        self.proc.close()
        dpdk.remove_run_dir(self.prefix)


def refused(*args, status=1, prefix=(), program=FWD):
    """Runs it. It must fail with one line of error message, which is returned."""
    done = run([*prefix, program, *args])
    assert done.returncode == status, (args, done)
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("ringtap-fwd: "), done.stderr
    assert done.stdout == ""
    return lines[0]
