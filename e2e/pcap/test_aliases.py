# SPDX-License-Identifier: BSD-3-Clause
"""Aliases of ports, and requests of programs to the kernel for an interface of that name."""

import re
import signal
import struct

from harness import pcap
from harness.netns import Namespace
from harness.paths import RINGTAP
from harness.proc import Proc, check, run, until
from harness.ringtap import TCPDUMP_BUFFER, listing, sessions

# <linux/sockios.h>
SIOCGIFFLAGS, SIOCGIFADDR, SIOCGIFMTU, SIOCGIFHWADDR, SIOCGIFINDEX = 0x8913, 0x8915, 0x8921, 0x8927, 0x8933

_REQUESTS = """
import errno, fcntl, socket, struct, sys
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for request in map(int, sys.argv[2:]):
    try:
        reply = fcntl.ioctl(sock, request, struct.pack("16s24x", sys.argv[1].encode()[:16]))
        print(reply[:16].rstrip(bytes(1)).decode(), reply[16:32].hex())
    except OSError as e:
        print(errno.errorcode[e.errno])
"""


def requests(name, *numbers, prefix=()):
    return check([*prefix, RINGTAP, "run", "/usr/bin/python3", "-c", _REQUESTS, name, *numbers]).splitlines()


def ports(app):
    (mine,) = [a for a in listing() if a["name"] == app.prefix]
    return mine["alias"], mine["ports"]


def test_aliases_are_names_of_ports(play, closing, tmp_path):
    """For each port of two applications, and for all ports of one."""
    apps = [play(), play()]
    for app in apps:
        app.ring("a")
        app.ring("b")
    names = [alias for app in apps for alias in (ports(app)[0], *(p["alias"] for p in ports(app)[1]))]
    assert len(set(names)) == 6
    procs = [
        closing(Proc([RINGTAP, "run", "--", "tcpdump", *TCPDUMP_BUFFER, "-i", name, "-U", "-w", tmp_path / name]))
        for name in names
    ]
    for proc in procs:
        proc.expect("listening on")
    for i, app in enumerate(apps):
        for port in range(2):
            app.rx(port=port, len=100 + 10 * i + port)
    expected = [[100, 101], [100], [101], [110, 111], [110], [111]]
    for proc, name, lengths in zip(procs, names, expected):
        until(lambda: len(pcap.frames(tmp_path / name)) == len(lengths), what="written")
        proc.stop(signal.SIGINT)
        assert [len(f) for f in pcap.frames(tmp_path / name)] == lengths
    text = check([RINGTAP, "run", "tcpdump", "-D"])
    alias, (first, second) = ports(apps[0])
    for name, expected in ((":net_ring_a", first["alias"]), (":net_ring_b", second["alias"]), ("", alias)):
        assert re.search(rf"\.ringtap:{apps[0].prefix}{name} \(.*, alias {expected}\)", text), text


def test_interface_of_the_kernel_precedes_an_alias(app, closing, tmp_path):
    alias = ports(app)[1][0]["alias"]
    space = closing(Namespace())
    space.check(["ip", "link", "add", alias, "type", "veth", "peer", "name", "far0"])
    space.check(["ip", "link", "set", alias, "address", "02:00:00:00:00:99", "up"])
    assert requests(alias, SIOCGIFHWADDR, prefix=space.prefix) == [f"{alias} 0100020000000099" + 8 * "00"]
    proc = closing(space.start([RINGTAP, "run", "tcpdump", "-i", alias, "-w", tmp_path / "out"]))
    proc.expect("listening on")
    assert sessions(app) == []


def test_requests_for_an_interface(play, testpmd):
    """As for a kernel interface without addresses; the hardware address is that of the port. What is cut to 15
    characters may be another port's name."""
    app = play()
    app.plug("net_null0")  # its address is random
    port = ports(app)[1][0]
    flags, mac, mtu, address, index = requests(
        port["alias"], SIOCGIFFLAGS, SIOCGIFHWADDR, SIOCGIFMTU, SIOCGIFADDR, SIOCGIFINDEX
    )
    assert port["mac"] != "00:00:00:00:00:00"
    assert mac.split() == [port["alias"], "0100" + port["mac"].replace(":", "") + 8 * "00"]
    assert struct.unpack_from("=H", bytes.fromhex(flags.split()[1]))[0] & ~0x40 == 0x1003  # up, broadcast, multicast
    assert struct.unpack_from("=i", bytes.fromhex(mtu.split()[1]))[0] == port["mtu"] > 0
    assert address == "EADDRNOTAVAIL" and index == "ENODEV"
    for name in ("nosuch0", "rt4711p0", f"ringtap:{app.prefix}:0"):
        assert requests(name, SIOCGIFFLAGS) == ["ENODEV"], name
    assert requests("lo", SIOCGIFMTU) == [check(["/usr/bin/python3", "-c", _REQUESTS, "lo", str(SIOCGIFMTU)]).strip()]

    done = run([RINGTAP, "run", "tcpdump", "-i", "rt4711p0"])
    assert done.returncode == 1 and "no alias 'rt4711p0'" in done.stderr
    pmd = testpmd("net_null0", prefix="pmd")
    for name, expected in (
        (f"ringtap:{pmd.prefix}:0", "ringtap:pmd:0 "),
        (f"ringtap:{pmd.prefix}:0+0", "ENODEV"),
        (f"ringtap:{pmd.prefix}:7", "ENODEV"),
    ):
        assert requests(name, SIOCGIFHWADDR)[0].startswith(expected)
