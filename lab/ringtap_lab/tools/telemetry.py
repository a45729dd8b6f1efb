# SPDX-License-Identifier: BSD-3-Clause
"""Client of DPDK's telemetry socket: reads the application's own counters."""
import json
import os
import socket
import time


def runtime_dir(prefix):
    """Folder where the application with this file-prefix keeps its sockets."""
    if os.geteuid() == 0:
        base = "/var/run"
    else:
        base = os.environ.get("XDG_RUNTIME_DIR", "/tmp")
    return os.path.join(base, "dpdk", prefix)


class Telemetry:
    def __init__(self, prefix, timeout_s=5.0):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(timeout_s)
        try:
            self.sock.connect(os.path.join(runtime_dir(prefix), "dpdk_telemetry.v2"))
            self.max_len = json.loads(self.sock.recv(4096))["max_output_len"]
        except OSError:
            self.sock.close()
            raise

    def ask(self, command):
        self.sock.send(command.encode())
        return json.loads(self.sock.recv(self.max_len))[command.split(",")[0]]

    def received(self, ports):
        """(seconds, packets): when, and how many packets these ports have received so far."""
        before = time.monotonic()
        packets = sum(self.ask(f"/ethdev/stats,{p}")["ipackets"] for p in ports)
        return (before + time.monotonic()) / 2, packets

    def close(self):
        self.sock.close()
