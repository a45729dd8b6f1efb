# SPDX-License-Identifier: BSD-3-Clause
"""Client of DPDK's telemetry socket: reads the application's own counters."""

from __future__ import annotations

import errno
import json
import math
import os
import socket
import struct
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any


def runtime_dir(prefix: str) -> str:
    """Folder where the application with this file-prefix keeps its sockets."""
    base = "/var/run" if os.geteuid() == 0 else os.environ.get("XDG_RUNTIME_DIR", "/tmp")
    return os.path.join(base, "dpdk", prefix)


class Telemetry:
    def __init__(self, prefix: str, timeout_s: float = 5.0):
        deadline = time.monotonic() + timeout_s
        while not (greeting := self._connect(prefix, timeout_s)):
            if time.monotonic() > deadline:
                raise OSError(errno.EBUSY, "telemetry serves ten clients already")
            time.sleep(0.01)
        self.max_len = json.loads(greeting)["max_output_len"]

    def _connect(self, prefix: str, timeout_s: float):
        """The greeting; empty, and closed, while DPDK serves ten clients."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # Not settimeout(): it would fail at once while the backlog is full.
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", math.ceil(timeout_s), 0))
        greeting = b""
        try:
            self.sock.connect(os.path.join(runtime_dir(prefix), "dpdk_telemetry.v2"))
            self.sock.settimeout(timeout_s)
            greeting = self.sock.recv(4096)
        finally:
            if not greeting:
                self.sock.close()
        return greeting

    def ask(self, command: Any) -> Any:
        self.sock.send(command.encode())
        return json.loads(self.sock.recv(self.max_len))[command.split(",")[0]]

    def received(self, ports: Any) -> tuple:
        """(seconds, packets): when, and how many packets these ports have received so far."""
        before = time.monotonic()
        packets = sum(self.ask(f"/ethdev/stats,{p}")["ipackets"] for p in ports)
        return (before + time.monotonic()) / 2, packets

    def close(self) -> None:
        self.sock.close()
