# SPDX-License-Identifier: BSD-3-Clause
"""`ringtap web` for ten minutes: twenty clients, an application that comes, hangs and ends. RINGTAP_WEB_SECONDS: for so long."""

import os
import signal
import threading
import time
import urllib.request
from pathlib import Path

import pytest
from harness.live import Web
from harness.proc import freeze, until

SECONDS = int(os.environ.get("RINGTAP_WEB_SECONDS", "600"))
CLIENTS = 20
STEADY = ("--ring", "a", "--role", "generate:0@1", "--role", "sink:0@1", "--rate", 2000)


class Client(threading.Thread):
    """Reads an event stream, and counts its events."""

    def __init__(self, web, place):
        super().__init__(daemon=True)
        self.request = urllib.request.Request(f"{web.root}/events?{place}")
        self.request.add_header("Authorization", f"Bearer {web.token}")
        self.documents = self.updates = 0
        self.start()

    def run(self):
        try:
            with urllib.request.urlopen(self.request, timeout=60) as stream:
                for line in stream:
                    self.documents += line == b"event: document\n"
                    self.updates += line == b"event: update\n"
        except OSError:
            pass  # the server has ended


def cpu_s(pid):
    return sum(map(int, Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13])) / os.sysconf(
        "SC_CLK_TCK"
    )


def memory_kb(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


class Use:
    """CPU and memory of a process between two times."""

    def __init__(self, pid):
        self.pid, self.begun, self.cpu, self.memory = pid, time.monotonic(), cpu_s(pid), memory_kb(pid)

    def share(self):
        return (cpu_s(self.pid) - self.cpu) / (time.monotonic() - self.begun)

    def grown_kb(self):
        return memory_kb(self.pid) - self.memory


def passed(seconds):
    end = time.monotonic() + seconds
    until(lambda: time.monotonic() > end, timeout=seconds + 60, what="time")


@pytest.mark.nightly
def test_twenty_clients(fwd, closing, capsys):
    """Each client gets an event a second, whatever an application does. Nothing is kept for clients: memory grows with the
    minutes that are kept, and then no more."""
    steady = fwd(*STEADY).running()
    web = closing(Web(args=("--collectors", "polls,busy,pools,gaps,latency")))
    pid = web.proc.pid
    one = Client(web, f"app={steady.prefix}")
    until(lambda: one.updates > 5, what="updates")
    first = Use(pid)
    passed(SECONDS / 20)
    alone = first.share()
    clients = [one, *(Client(web, "" if i % 2 else f"app={steady.prefix}") for i in range(CLIENTS - 1))]
    until(lambda: all(c.documents and c.updates for c in clients), what="all clients")
    documents = [c.documents for c in clients]
    before, all_of_it = [c.updates for c in clients], Use(pid)
    passed(SECONDS / 10)
    other = fwd(*STEADY).running()  # comes
    passed(SECONDS / 10)
    freeze(other.proc.pid)  # hangs
    passed(SECONDS / 10)
    other.proc.send_signal(signal.SIGCONT)
    passed(SECONDS / 10)
    other.proc.kill()  # ends
    halfway = Use(pid)
    passed(SECONDS * 11 / 20)
    grown, share = halfway.grown_kb(), all_of_it.share()
    took = time.monotonic() - all_of_it.begun
    events = [c.updates - b for c, b in zip(clients, before, strict=True)]
    with capsys.disabled():
        print(
            f"\nserver: {alone:.2%} of a CPU with one client, {share:.2%} with {CLIENTS}; {memory_kb(pid)} KiB,"
            f" {grown} KiB more in the last {SECONDS * 11 / 20:.0f} s; {min(events)} to {max(events)} updates in {took:.0f} s"
        )
    assert all(c.is_alive() for c in clients) and [c.documents for c in clients] == documents
    assert max(events) - min(events) <= 2 and min(events) > 0.8 * took
    assert grown < 4096
