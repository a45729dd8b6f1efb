# SPDX-License-Identifier: BSD-3-Clause
"""False applications: runtime folders of DPDK with sockets that do not behave."""

import os
import shutil
import socket
import threading
from pathlib import Path

from .. import dpdk

ROOT = 0


class Folder:
    """A runtime folder of DPDK with sockets that a user listens at: the false application is this process, with
    the effective user of the moment."""

    def __init__(self, parent=dpdk.RUN_DIR, user=ROOT, prefix=None):
        self.user = user
        self.prefix = prefix or dpdk.new_prefix("hostile")
        self.path = Path(parent) / self.prefix
        self.path.mkdir(mode=0o700, parents=True)
        os.chown(self.path, user, user)
        self.sockets = []

    @property
    def name(self):
        """As root's `ringtap list` has it."""
        return f"{self.prefix}@{self.user}" if self.user else self.prefix

    def listen(self, name, kind=socket.SOCK_SEQPACKET, backlog=64):
        """A socket of this name, which nobody serves; peers see the folder's user as its owner."""
        s = socket.socket(socket.AF_UNIX, kind)
        self.sockets.append(s)
        os.seteuid(self.user)
        try:
            s.bind(str(self.path / name))
            s.listen(backlog)
        finally:
            os.seteuid(ROOT)
        return s

    def close(self):
        for s in self.sockets:
            s.close()
        shutil.rmtree(self.path, ignore_errors=True)


class Telemetry(Folder):
    """As DPDK 23.11.0 without the probe: it serves ten clients, and one that leaves before the greeting counts for
    ever. The greeting comes late, so that those who do not wait for it have left."""

    LATE = 0.02
    GREETING = b'{"version":"DPDK 23.11.0","pid":1,"max_output_len":16384}'

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.clients = self.lost = 0
        self.socket = self.listen("dpdk_telemetry.v2")
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    def _serve(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:  # closed
                return
            self.clients += 1
            with client:
                client.settimeout(self.LATE)
                try:
                    gone = not client.recv(1, socket.MSG_PEEK)
                except TimeoutError:
                    gone = False
                if gone:
                    self.lost += 1
                    continue
                client.settimeout(None)
                client.send(self.GREETING)
                command = client.recv(4096).decode()
                if command:
                    client.send(b'{"%s":null}' % command.split(",")[0].encode())

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        super().close()
