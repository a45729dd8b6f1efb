# SPDX-License-Identifier: BSD-3-Clause
"""Ports of Open vSwitch by the names of the switch."""

import json
import signal
import socket
import threading

import pytest
from harness import dpdk, pcapng
from harness.host import Host
from harness.known import Measuring
from harness.paths import BUILD, RINGTAP
from harness.pcapng import RX, TX
from harness.proc import Proc, check, run
from harness.ringtap import FAILED, listing


@pytest.fixture
def switch(ovs, net):
    """Two hosts on one bridge. Returns (ovs, hosts, {name in the switch: ethdev name})."""
    hosts = [net.add_host(f"10.99.0.{i}") for i in (1, 2)]
    it = ovs()
    return it, [h for h, _ in hosts], {f"p{i}": it.add_port(f"p{i}", port) for i, (_, port) in enumerate(hosts)}


def ports_of(ovs):
    """{name: ethdev name} by `ringtap list`."""
    (entry,) = [a for a in listing() if a["name"] == ovs.prefix]
    return {p["name"]: p["device"] for p in entry["ports"]}


def ping(host):
    host.ping("10.99.0.2", 5)


def test_every_command_has_the_names(switch, record, closing):
    """The recorded file has the name of the switch, and that of ethdev in the description. Either name is taken."""
    it, (a, _b), devices = switch
    assert ports_of(it) == devices
    text = check([RINGTAP, "list"])  # ethdev names are shortened to fit
    assert all(f" {name} ({device[:4]}" in text for name, device in devices.items())
    assert f"ringtap:{it.prefix}:p0" in check([RINGTAP, "run", "--", "tcpdump", "-D"])
    assert f"ringtap:{it.prefix}:p0" in check([BUILD / "extcap" / "ringtap-extcap", "--extcap-interfaces"])
    (app,) = json.loads(check([RINGTAP, "top", "--once", "--interval", "0.2s", "--json", it.prefix]))["applications"]
    assert {p["name"] for p in app["ports"]} == set(devices)

    recorders = [record(it, "-f", "icmp", "-c", "10", ports=[port]) for port in ("p0", devices["p0"])]
    measured = [
        closing(Measuring("latency", it, "--packets", "5", "--duration", "1h", "--json", ports=[port]))
        for port in ("p0", devices["p0"])
    ]
    tcpdump = closing(
        Proc([RINGTAP, "run", "--", "tcpdump", "-l", "-n", "-c", "10", "-i", f"ringtap:{it.prefix}:p0", "icmp"])
    )
    tcpdump.expect("listening on")
    ping(a)
    for recorder in recorders:
        recorder.done()
        (interface,) = recorder.file().interfaces
        assert interface.name == "p0"
        assert interface.text(3).endswith(f", {devices['p0']}")
        assert len(recorder.file().packets) == 10
    assert tcpdump.wait() == 0
    for latency in measured:
        assert {(p["rx_port"]["name"], p["tx_port"]["name"]) for p in latency.json()["pairs"]} <= {
            ("p0", "p1"),
            ("p1", "p0"),
        }


@pytest.mark.smoke
def test_names_follow_the_switch(switch, net):
    """Port numbers are reused. Ports of vhost-user and of the host are not listed."""
    it, _hosts, devices = switch
    it.del_port("p0")
    del devices["p0"]
    _host, port = net.add_host("10.99.0.3")
    devices["other"] = it.add_port("other", port)
    assert ports_of(it) == devices
    it.vsctl(
        "add-port",
        "br0",
        "vhost0",
        "--",
        "set",
        "Interface",
        "vhost0",
        "type=dpdkvhostuserclient",
        f"options:vhost-server-path={it.dir}/vhost0",
    )
    it.vsctl("add-port", "br0", "inner", "--", "set", "Interface", "inner", "type=internal")
    assert ports_of(it) == devices


LIES = {
    "gone": None,
    "silent": b"",
    "nonsense": b"]}",
    "odd rows": b'{"result":[{"rows":[{"name":{}}]}]}',
    "endless": b"[" * 4096,
}


def test_without_the_database(switch, record):
    """Also with an invalid answer: ports then have ethdev names."""
    it, (a, _b), devices = switch
    it.db.stop(signal.SIGTERM)
    for what, lie in LIES.items():
        liar = lie is not None and Liar(it.dir / "db.sock", lie)
        try:
            assert ports_of(it) == {device: device for device in devices.values()}, what
            done = run([RINGTAP, "record", "-i", f"{it.prefix}:p0", "-c", "1", "-w", "/dev/null"])
            assert done.returncode == FAILED and "no port 'p0'" in done.stderr, what
            recorder = record(it, "-f", "icmp", "-c", "10", ports=[devices["p0"]])
            ping(a)
            recorder.done()
            assert [i.name for i in recorder.file().interfaces] == [devices["p0"]], what
            assert len(recorder.file().packets) == 10, what
        finally:
            if liar:
                liar.close()


class Liar:
    """Simulates the database: listens on its socket, and sends this text."""

    def __init__(self, path, text):
        path.unlink(missing_ok=True)
        self._sock = socket.socket(socket.AF_UNIX)
        self._sock.bind(str(path))
        self._sock.listen(8)
        self._text = text
        self._open = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        try:
            while True:
                connection, _ = self._sock.accept()
                self._open.append(connection)
                threading.Thread(target=self._one, args=(connection,), daemon=True).start()
        except OSError:
            pass  # closed

    def _one(self, connection):
        try:
            while self._text:
                connection.sendall(self._text)
        except OSError:
            pass  # the other side has closed the connection

    def close(self):
        self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()
        for connection in self._open:
            connection.close()


def test_the_internal_port_of_a_bridge_is_one_of_ringtap_host(switch, record, net, closing, tmp_path):
    """Which a message says. A recording of both has each packet at the port and at the bridge, in its order."""
    it, (a, _b), _ = switch
    refused = run([RINGTAP, "record", "-c", "1", f"{it.prefix}:br0"])
    assert refused.returncode == FAILED
    # The namespace of the switch is not the one of this command.
    assert f"'{it.prefix}' has no port 'br0'" in refused.stderr
    refused = run([*net.hub.prefix, RINGTAP, "flight", f"{it.prefix}:br0", "-w", tmp_path / "none"])
    assert "'ringtap host br0' captures on it" in refused.stderr

    net.hub.check(["ip", "addr", "add", "10.99.0.9/24", "dev", "br0"])
    net.hub.check(["ip", "link", "set", "br0", "up"])
    a.ping("10.99.0.9", 1)  # ARP is over
    host = closing(Host(net.hub, "br0"))
    recorder = record(it, "-i", f"{host.prefix}:br0", "-f", "icmp", "-c", "20", ports=["p0"])
    a.ping("10.99.0.9", 5)
    recorder.done()
    assert_way_to_the_bridge(recorder.file())
    host.finish()

    # The command starts and ends it.
    out = tmp_path / "both.pcapng"
    words = ("-i", f"{it.prefix}:p0", "-i", f"{it.prefix}:br0", "-f", "icmp", "-c", "20", "-w", out)
    recorder = closing(net.hub.start([RINGTAP, "record", *words]))
    recorder.expect("^Capturing on")
    a.ping("10.99.0.9", 5)
    assert recorder.wait() == 0, recorder.output
    file = pcapng.read(out)
    assert_way_to_the_bridge(file)
    assert {i.name for i in file.interfaces} >= {f"{it.prefix}:p0", "host-br0:br0"}
    assert not (dpdk.RUN_DIR / "host-br0").exists()


def assert_way_to_the_bridge(file):
    """Each packet at the port and at the bridge, in the order of time."""
    named = [file.interfaces[p.interface].name.rpartition(":")[2] for p in file.packets]
    assert sorted(named) == ["br0"] * 10 + ["p0"] * 10
    seen = {}
    for p, name in zip(file.packets, named):
        kind, which = p.data[34], p.data[38:42]  # behind Ethernet and IPv4
        seen.setdefault(which, []).append((name, p.direction, kind))
    assert list(seen.values()) == [[("p0", RX, 8), ("br0", RX, 8), ("br0", TX, 0), ("p0", TX, 0)]] * 5
    assert [p.ns for p in file.packets] == sorted(p.ns for p in file.packets)
