# SPDX-License-Identifier: BSD-3-Clause
"""ringtap record --listen: PCAP-over-IP to tshark and to programs that read a socket."""

import signal
import sys

import pytest
from harness import pcap, pcapng
from harness.paths import RINGTAP
from harness.proc import Proc, until
from harness.ringtap import BUFFER, sessions

COUNT = 1000
# Writes what it receives from an address to standard output.
READ = """
import shutil, socket, sys
s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
shutil.copyfileobj(s.makefile("rb"), sys.stdout.buffer)
"""


def listen(closing, app, *args, address="127.0.0.1:0", namespace=None):
    argv = [RINGTAP, "record", "-i", f"{app.prefix}:", "--buffer", BUFFER, "--listen", address, *args]
    server = closing(namespace.start(argv) if namespace else Proc(argv))
    return server, server.expect(r"^Listening on \S+:(\d+)$").group(1).decode()


def test_tshark_reads_it_beside_other_clients(app, closing, tmp_path):
    """Each client has all packets from its connection on; one that is killed costs the others nothing."""
    server, port = listen(closing, app)
    assert not sessions(app)  # without a client nothing is captured
    reader = [sys.executable, "-c", READ, "127.0.0.1", port]
    out = tmp_path / "tshark.pcapng"
    tshark = closing(Proc(["tshark", "-i", f"TCP@127.0.0.1:{port}", "-w", out]))
    with open(tmp_path / "socket.pcapng", "wb") as file:
        other = closing(Proc(reader, stdout=file))
    killed = closing(Proc(reader))
    until(lambda: len([s for s in sessions(app) if s["start"]]) == 3, what="three sessions")
    killed.kill()
    assert app.burst("rx", n=COUNT, len=64, seq=0)[0] == COUNT
    until(lambda: len(sessions(app)) == 2, what="the session of the killed one ends")
    server.send_signal(signal.SIGTERM)
    assert server.wait() == 0 and other.wait() == 0 and tshark.wait() == 0
    wanted = [pcap.frame(64, n) for n in range(COUNT)]
    for name in ("tshark", "socket"):
        assert [p.data for p in pcapng.read(tmp_path / f"{name}.pcapng", name == "socket").packets] == wanted
    until(lambda: not sessions(app), what="no session is left")


@pytest.mark.nightly
def test_other_hosts_have_to_be_named(app, net, closing):
    """A client on another host is refused with its address, unless --allow names it or its network."""
    host, device = net.add_host("192.0.2.1")
    net.hub.check(["ip", "addr", "add", "192.0.2.254/24", "dev", device])
    for allowed, taken in (("192.0.2.2", False), ("192.0.2.0/30", True)):
        server, port = listen(closing, app, "--allow", allowed, address="0.0.0.0:0", namespace=net.hub)
        client = closing(host.start([sys.executable, "-c", READ, "192.0.2.254", port]))
        if taken:
            server.expect("^Capturing on")
        else:
            server.expect(r"client 192\.0\.2\.1:\d+ is refused: it is on another host; name that with --allow")
        server.send_signal(signal.SIGINT)
        assert server.wait() == client.wait() == 0
        assert bool(client.output) == taken
