# SPDX-License-Identifier: BSD-3-Clause
"""Traffic of the archive's demo: a page over HTTP, again and again, and datagrams at a steady rate.
usage: archive_demo_traffic.py ADDRESS SECONDS"""

import socket
import sys
import threading
import time
from urllib.request import urlopen

RATE = 400  # datagrams a second
SIZES = (64, 300, 1200)


def fetch(address, end):
    """To the end; the last page need not be complete."""
    while time.monotonic() < end:
        with urlopen(f"http://{address}/page", timeout=30) as page:
            while time.monotonic() < end and page.read(16384):
                pass


def datagrams(address, end):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect((address, 5000))
        number = 0
        due = time.monotonic()
        while due < end:
            try:
                s.send(number.to_bytes(8, "big") + bytes(SIZES[number % len(SIZES)] - 8))
            except ConnectionRefusedError:  # the answer to an earlier one: nothing listens
                pass
            number, due = number + 1, due + 1 / RATE
            time.sleep(max(0, due - time.monotonic()))


def main():
    address, end = sys.argv[1], time.monotonic() + float(sys.argv[2])
    other = threading.Thread(target=fetch, args=(address, end))
    other.start()
    datagrams(address, end)
    other.join()


main()
