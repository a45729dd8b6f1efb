# SPDX-License-Identifier: BSD-3-Clause
"""A path with delay, jitter and loss between two interfaces, for kernels without netem.
usage: lossy_path.py INTERFACE INTERFACE FORTH BACK, where FORTH and BACK are DELAY_MS,JITTER_MS,LOSS_PERCENT

Prints "ready", then works until SIGTERM or SIGINT, and prints what it has done as JSON. Jitter reorders. Each frame has a delay
drawn from a seeded generator; times are those at which the frame was sent, so that what the scheduler adds is in them."""

import heapq
import itertools
import json
import random
import select
import signal
import socket
import sys
import time

ETH_P_ALL = 3
MAX_FRAME = 65536
OUTGOING = 4  # PACKET_OUTGOING: frames that this program has sent


def open_interface(name):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    s.bind((name, 0))
    s.setblocking(False)
    return s


class Way:
    """One direction."""

    def __init__(self, source, sink, text, seed):
        delay_ms, jitter_ms, loss = map(float, text.split(","))
        self.source, self.sink = source, sink
        self.delay_ns, self.jitter_ns, self.loss = delay_ms * 1e6, jitter_ms * 1e6, loss / 100
        self.random = random.Random(seed)
        self.counts = {"passed": 0, "lost": 0, "greatest_delay_ns": 0}

    def receive(self, queue, number):
        """Puts all frames that are there into the queue."""
        while True:
            try:
                frame, (_, _protocol, kind, *_) = self.source.recvfrom(MAX_FRAME)
            except BlockingIOError:
                return
            if kind == OUTGOING:
                continue
            now = time.monotonic_ns()
            if self.random.random() < self.loss:
                self.counts["lost"] += 1
                continue
            late = self.delay_ns + self.random.uniform(-1, 1) * self.jitter_ns
            heapq.heappush(queue, (now + max(0, round(late)), next(number), now, self, frame))

    def send(self, came_ns, frame):
        self.sink.send(frame)
        self.counts["passed"] += 1
        self.counts["greatest_delay_ns"] = max(self.counts["greatest_delay_ns"], time.monotonic_ns() - came_ns)


def main():
    a, b = map(open_interface, sys.argv[1:3])
    ways = Way(a, b, sys.argv[3], 1), Way(b, a, sys.argv[4], 2)
    by_socket = {way.source: way for way in ways}
    stop, wake = socket.socketpair()
    wake.setblocking(False)
    signal.set_wakeup_fd(wake.fileno())
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    queue, number, stopping = [], itertools.count(), False
    print("ready", flush=True)
    while queue or not stopping:
        wait = max(0, queue[0][0] - time.monotonic_ns()) / 1e9 if queue else None
        readable, _, _ = select.select([] if stopping else [stop, *by_socket], [], [], wait)
        for s in readable:
            if s is stop:
                stopping = True
            else:
                by_socket[s].receive(queue, number)
        while queue and queue[0][0] <= time.monotonic_ns():
            _, _, came_ns, way, frame = heapq.heappop(queue)
            way.send(came_ns, frame)
    print(json.dumps({"forth": ways[0].counts, "back": ways[1].counts}))


if __name__ == "__main__":
    main()
