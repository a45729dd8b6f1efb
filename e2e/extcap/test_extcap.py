# SPDX-License-Identifier: BSD-3-Clause
"""Ports as interfaces of tshark, and the extcap program alone."""

import json
import os
import re
import signal

import pytest
from harness import pcap, pcapng, wireshark
from harness.cases import nightly
from harness.paths import BUILD, REPO
from harness.proc import Proc, check, freeze, run, until
from harness.ringtap import BUFFER, FAILED, OK, USAGE, sessions
from harness.wireshark import EXTCAP, Tshark, interface, preference, tshark

pytestmark = pytest.mark.skipif(wireshark.missing() is not None, reason=str(wireshark.missing()))


def armed(app, count=1):
    """Waits until this number of captures of the application run."""
    until(lambda: len([s for s in sessions(app) if s["start"]]) == count, what="capture runs")


def gone(app):
    until(lambda: sessions(app) == [], what="no session is left")
    assert app.one("callbacks 0") == 0


def extcap(*args, status=OK):
    done = run([EXTCAP, *args])
    assert done.returncode == status, done.stderr
    return done.stdout if status == OK else done.stderr


@pytest.fixture
def capture(closing, tmp_path):
    """capture(app, interface, args...) starts tshark and waits until it captures."""

    def start(app, name, *args):
        out = tmp_path / "out.pcapng"
        it = closing(Tshark([*preference(name, "buffer", BUFFER), *args, "-i", name, "-w", out]))
        it.out = out
        armed(app)
        return it

    return start


def finish(shark, packets):
    """Ends tshark once the file has this number of packets, as it does not drain its pipe."""
    until(lambda: len(frames(shark.out, whole=False)) >= packets, what=f"{packets} packets in the file")
    shark.send_signal(signal.SIGINT)
    assert shark.wait() == 0
    return pcapng.read(shark.out)


def frames(path, whole=True):
    return [p.data for p in pcapng.read(path, whole).packets] if path.exists() else []


def test_tshark_lists_every_port(play):
    """Those of stopped applications are omitted, and those of others are listed."""
    apps = [play() for _ in range(3)]
    for app in apps:
        app.ring("a")
    apps[1].plug("net_null7")
    listed = tshark("-D").stdout
    for name in (
        interface(apps[0], "net_ring_a"),
        interface(apps[1], "net_ring_a"),
        interface(apps[1], "net_null7"),
        interface(apps[1]),
    ):
        assert f" {name} (" in listed
    assert f" {interface(apps[0])} (" in listed  # includes later ports
    assert "EN10MB" in tshark("-L", "-i", interface(apps[0], "net_ring_a")).stdout
    assert apps[0].one("callbacks 0") == 0
    stopped = apps[:2]
    try:
        for app in stopped:
            freeze(app.pid)
        output = extcap("--extcap-interfaces")
    finally:
        for app in stopped:
            os.kill(app.pid, signal.SIGCONT)
    assert [interface(a, "net_ring_a") in output for a in apps] == [False, False, True]


def test_tshark_captures_the_played_packets(testpmd, capture, corpus_files, tmp_path):
    """The same packets of a file that tcpdump reads from it."""
    expression = "(tcp or arp) and not vlan"  # which says vlan: as tcpdump reads a file
    played = [f for path in corpus_files for f in pcap.frames(path)][::3]
    source = pcap.write(tmp_path / "source.pcap", played)
    pmd = testpmd(
        f"net_pcap0,rx_pcap={source},tx_pcap=/dev/null", "net_null1", args=["--no-flush-rx", "--forward-mode=rxonly"]
    )
    check(["tcpdump", "-r", source, "-w", tmp_path / "wanted.pcap", expression])
    wanted = pcap.frames(tmp_path / "wanted.pcap")
    name = interface(pmd, "net_pcap0")
    shark = capture(pmd, name, "-f", expression, *preference(name, "ids", "true"))
    pmd.start()
    file = finish(shark, len(wanted))
    assert [p.data for p in file.packets] == wanted
    assert len(wanted) > 100
    assert len({p.id for p in file.packets} - {None}) == len(wanted)
    assert {p.direction for p in file.packets} == {pcapng.RX}
    pmd.stop()


def test_options_of_a_capture(play, capture):
    app = play()
    app.ring("a", rxq=2, txq=2)
    name = interface(app, "net_ring_a")
    options = {"snapshot-length": 60, "direction": "tx", "queue": 1, "buffer": "1M"}
    shark = capture(app, name, *(word for o in options.items() for word in preference(name, *o)))
    (session,) = sessions(app)
    assert session["buffer_bytes"] == 1 << 20
    for queue in (0, 1):
        app.rx(0, queue, n=10, len=100)
        app.tx(0, queue, n=10, len=100)
    file = finish(shark, 10)
    assert len(file.packets) == 10
    assert {(p.direction, p.queue, len(p.data), p.length) for p in file.packets} == {(pcapng.TX, 1, 60, 100)}


def ended_by(file):
    return [c for i in file.interfaces for c in i.stats[-1][1] if c.startswith(b"capture ended")]


def test_tshark_reports_no_error_when_the_application_ends(app, capture):
    """It is an ordinary end: its reason is in the file."""
    shark = capture(app, interface(app, "net_ring_a"), *preference(interface(app, "net_ring_a"), "buffer", ""))
    app.rx(n=10)
    until(lambda: len(frames(shark.out, whole=False)) == 10, what="packets in the file")
    app.quit()
    assert shark.wait() == 0
    assert "extcap" not in shark.output.replace(str(shark.out), "")
    assert ended_by(pcapng.read(shark.out)) == [b"capture ended by: application"]
    assert run(["capinfos", shark.out]).returncode == 0


def test_configuration_follows_the_application(play):
    app = play()
    app.ring("a", rxq=2, txq=3)
    output = extcap("--extcap-interface", interface(app, "net_ring_a"), "--extcap-config")
    for option in ("direction", "queue", "snapshot-length", "buffer", "timestamp"):
        assert f"{{call=--{option}}}" in output
    reload = ("--extcap-config", "--extcap-reload-option", "queue", "--extcap-interface")
    values = extcap(*reload, interface(app, "net_ring_a")).splitlines()
    assert [line.split("{value=")[1].split("}")[0] for line in values] == ["all", "0", "1", "2"]
    app.do("stop 0")
    app.do("reconf 0 rxq=1 txq=1")
    assert len(extcap(*reload, interface(app, "net_ring_a")).splitlines()) == 1


def test_mistakes_are_reported_in_one_line(app):
    """extcap/extcap_test.c has all of them."""
    assert extcap("--extcap-interface", "ringtap:x:y", "--extcap-capture-filter", "vlan 5 and udp") == ""
    expression = "host 300.1.1.1"
    theirs = run(["tcpdump", "-d", "-y", "EN10MB", expression]).stderr.strip().splitlines()[-1]
    output = extcap("--extcap-interface", "ringtap:x:y", "--extcap-capture-filter", expression)
    assert output.strip() == theirs.removeprefix("tcpdump: ").strip()
    loops = extcap("--extcap-interface", "ringtap:x:y", "--extcap-capture-filter", "ip protochain 6")
    assert "loop" in loops and len(loops.splitlines()) == 1
    for args, status, words in (
        (["--nonsense"], USAGE, "--nonsense"),
        (["--capture", "--fifo", "/dev/null", "--extcap-interface", "ringtap:no-such-app:y"], FAILED, "no-such-app"),
        (
            ["--capture", "--fifo", "/nonexistent/f", "--extcap-interface", interface(app, "net_ring_a")],
            FAILED,
            "extcap: cannot write '/nonexistent/f'",
        ),
    ):
        output = extcap(*args, status=status)
        assert words in output and len(output.strip().splitlines()) == 1
        assert "record" not in output


class Fifo:
    """A pipe to which the extcap program writes."""

    def __init__(self, app, folder, *args, port="net_ring_a"):
        self.path = folder / "fifo"
        os.mkfifo(self.path)
        self.proc = Proc(
            [
                EXTCAP,
                "--capture",
                "--extcap-interface",
                interface(app, port),
                "--fifo",
                self.path,
                *([] if "--buffer" in args else ["--buffer", BUFFER]),
                *args,
            ]
        )
        self.reader = open(self.path, "rb", buffering=0)
        armed(app)

    def read(self):
        """Everything until the other end closes."""
        return pcapng.parse(b"".join(iter(lambda: self.reader.read(65536), b"")))

    def close(self):
        self.proc.close()
        self.reader.close()


@pytest.mark.smoke
def test_signal_ends_the_capture(play, tmp_path, closing):
    """A port by its number, given on the command line, as Wireshark accepts only listed interfaces; with -s, the form of its
    preference."""
    app = play()
    app.ring("a")
    app.ring("b", rxq=3, txq=1)
    name = interface(app, "1")
    assert "value=2}" in extcap("--extcap-interface", name, "--extcap-config", "--extcap-reload-option", "queue")
    fifo = closing(Fifo(app, tmp_path, "-s", "96", port="1"))
    app.rx(0, 0, n=10)
    app.rx(1, 2, n=10, len=500)
    fifo.proc.send_signal(signal.SIGTERM)
    file = fifo.read()
    assert fifo.proc.wait() == OK
    assert fifo.proc.output == ""
    assert [i.name for i in file.interfaces] == ["net_ring_b"]
    assert [(len(p.data), p.length) for p in file.packets] == 10 * [(96, 500)]
    assert pcapng.stat(file.interfaces[0], 4) == 10
    assert ended_by(file) == [b"capture ended by: signal"]
    gone(app)


def test_all_ports_until_the_application_ends(play, tmp_path, closing):
    app = play()
    app.ring("a")
    app.ring("b")
    fifo = closing(Fifo(app, tmp_path, port=None))
    app.rx(0, n=5)
    app.rx(1, n=7)
    app.quit()
    file = fifo.read()
    names = [file.interfaces[p.interface].name for p in file.packets]
    assert names == ["net_ring_a"] * 5 + ["net_ring_b"] * 7
    assert fifo.proc.wait() == OK
    assert fifo.proc.output == ""
    assert ended_by(file) == [b"capture ended by: application"] * 2


@pytest.mark.parametrize("packets", [0, nightly(10)])
def test_reader_of_the_pipe_closes(app, tmp_path, closing, packets):
    """Without packets, no write can fail."""
    fifo = closing(Fifo(app, tmp_path))
    if packets:
        app.rx(n=packets)
    fifo.reader.close()
    if packets:
        app.rx(n=packets)
    assert fifo.proc.wait() == OK
    assert fifo.proc.output == ""
    gone(app)


def test_losses_are_reported(app, tmp_path, closing):
    """In the file, and at the end for Wireshark to show."""
    fifo = closing(Fifo(app, tmp_path, "--buffer", "64K"))
    app.rx(n=5000, len=500)  # more than pipe and ring hold, and nobody reads
    fifo.proc.send_signal(signal.SIGTERM)
    file = fifo.read()
    assert fifo.proc.wait() == OK
    seen, lost, delivered = (pcapng.stat(file.interfaces[0], code) for code in (4, 7, 8))
    assert seen == 5000 == lost + delivered
    assert lost > 0 and delivered == len(file.packets)
    share = f"{100 * lost / seen:.1f} %"
    assert f"{lost:,} packets were lost ({share}): ring_full {lost:,}; " in fifo.proc.output
    assert len(fifo.proc.output.strip().splitlines()) == 1


def test_killed_tshark_leaves_no_hooks(app, capture):
    shark = capture(app, interface(app, "net_ring_a"))
    children = check(["pgrep", "-g", str(os.getpgid(shark.pid))]).split()
    assert len(children) >= 3  # tshark, dumpcap and ours
    for pid in children:
        os.kill(int(pid), signal.SIGKILL)
    shark.wait()
    gone(app)


def test_installed_in_the_folders_of_wireshark(installation):
    """The Lua plugin in the one of global plugins, where the prefix is Wireshark's."""
    (found,) = installation.rglob("ringtap-extcap")
    options = json.loads(check(["meson", "introspect", "--buildoptions", BUILD]))
    if {o["name"]: o["value"] for o in options}["prefix"] in ("/usr", "/usr/local"):
        assert found.parent == installation / wireshark.folder().lstrip("/")
    assert "ringtap:APP" in next(installation.rglob("ringtap-extcap.1")).read_text()
    assert "extcap {version=" in check([found, "--extcap-interfaces"])
    plugin = REPO / "extcap" / "ringtap.lua"
    installed = list(installation.rglob("wireshark/plugins/ringtap.lua"))
    assert [p.read_text() for p in installed] == [plugin.read_text()]
    folder = re.search(r"Global Lua Plugins:\s+(\S+)", check(["tshark", "-G", "folders"])).group(1)
    assert folder == f"/{installed[0].parent.relative_to(installation)}"


def test_the_dialog_refuses_what_the_program_refuses(app):
    """A size has a unit, in Wireshark's dialog as on the command line."""
    name = interface(app, "net_ring_a")
    text = extcap("--extcap-interface", name, "--extcap-config")
    (pattern,) = re.findall(r"call=--buffer}.*{validation=(.*?)}{", text)
    assert re.search(pattern, "64M") and re.search(pattern, "1G") and not re.search(pattern, "64")
