# SPDX-License-Identifier: BSD-3-Clause
"""Ports as interfaces of tshark, and the extcap program alone."""
import json
import os
import signal
import time

import pytest

from harness import pcap, pcapng, wireshark
from harness.paths import BUILD
from harness.proc import Proc, check, freeze, run, until
from harness.ringtap import BUFFER, FAILED, OK, USAGE, sessions
from harness.wireshark import EXTCAP, Tshark, interface, preference, tshark

pytestmark = pytest.mark.skipif(wireshark.missing() is not None, reason=str(wireshark.missing()))


def armed(app, count=1):
    """Waits until this number of captures of the application run."""
    until(lambda: len([s for s in sessions(app) if s["start_ns"]]) == count, 30, "capture runs")


def gone(app):
    until(lambda: sessions(app) == [], 20, "no session is left")
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
    until(lambda: len(frames(shark.out, whole=False)) >= packets, 20, f"{packets} packets in the file")
    shark.send_signal(signal.SIGINT)
    assert shark.wait() == 0
    return pcapng.read(shark.out)


def frames(path, whole=True):
    return [p.data for p in pcapng.read(path, whole).packets] if path.exists() else []


def test_tshark_lists_every_port(play, closing):
    apps = [play(), play()]
    for app in apps:
        app.ring("a")
    apps[1].plug("net_null7")
    listed = tshark("-D").stdout
    for name in (interface(apps[0], "net_ring_a"), interface(apps[1], "net_ring_a"),
                 interface(apps[1], "net_null7"), interface(apps[1])):
        assert f" {name} (" in listed
    assert f" {interface(apps[0])} (" in listed  # includes later ports
    assert "EN10MB" in tshark("-L", "-i", interface(apps[0], "net_ring_a")).stdout
    assert apps[0].one("callbacks 0") == 0


def test_stopped_applications_do_not_delay_the_list(play):
    """They are omitted, and the others are listed without a long wait."""
    apps = [play() for _ in range(4)]
    for app in apps:
        app.ring("a")
    until(lambda: all(interface(a, "net_ring_a") in extcap("--extcap-interfaces") for a in apps), 30, "all")
    stopped = apps[:3]
    try:
        for app in stopped:
            freeze(app.pid)
        begin = time.monotonic()
        output = extcap("--extcap-interfaces")
        took_s = time.monotonic() - begin
    finally:
        for app in stopped:
            os.kill(app.pid, signal.SIGCONT)
    assert [interface(a, "net_ring_a") in output for a in apps] == [False] * 3 + [True]
    assert took_s < 9  # waiting for one of them would take 5 s


def test_application_without_the_probe_is_no_interface(testpmd):
    pmd = testpmd("net_null0", plugin=None)
    assert pmd.prefix not in extcap("--extcap-interfaces")


@pytest.mark.parametrize("expression", ["", "tcp or arp"])
def test_tshark_captures_the_played_packets(testpmd, capture, corpus_files, tmp_path, expression):
    """The same packets of a file that tcpdump reads from it."""
    played = [f for path in corpus_files for f in pcap.frames(path)][::3]
    source = pcap.write(tmp_path / "source.pcap", played)
    pmd = testpmd(f"net_pcap0,rx_pcap={source},tx_pcap=/dev/null", "net_null1",
                  args=["--no-flush-rx", "--forward-mode=rxonly"])
    wanted = played
    if expression:
        check(["tcpdump", "-r", source, "-w", tmp_path / "wanted.pcap", expression])
        wanted = pcap.frames(tmp_path / "wanted.pcap")
    name = interface(pmd, "net_pcap0")
    shark = capture(pmd, name, *(["-f", expression] if expression else []))
    pmd.start()
    file = finish(shark, len(wanted))
    assert [p.data for p in file.packets] == wanted
    assert len(wanted) > 100
    assert {p.direction for p in file.packets} == {pcapng.RX}
    pmd.stop()


def test_options_of_a_capture(play, capture):
    app = play()
    app.ring("a", rxq=2, txq=2)
    name = interface(app, "net_ring_a")
    options = {"snaplen": 60, "direction": "tx", "queue": 1, "buffer": "1M"}
    shark = capture(app, name, *(word for o in options.items() for word in preference(name, *o)))
    session, = sessions(app)
    assert session["buffer_bytes"] == 1 << 20
    for queue in (0, 1):
        app.rx(0, queue, n=10, len=100)
        app.tx(0, queue, n=10, len=100)
    file = finish(shark, 10)
    assert len(file.packets) == 10
    assert {(p.direction, p.queue, len(p.data), p.length) for p in file.packets} == \
        {(pcapng.TX, 1, 60, 100)}


@pytest.mark.parametrize("value", ["true", "false"])
def test_ids_of_a_capture(app, capture, value):
    name = interface(app, "net_ring_a")
    shark = capture(app, name, *preference(name, "ids", value))
    app.rx(n=10)
    ids = {p.id for p in finish(shark, 10).packets}
    assert ids == {None} if value == "false" else len(ids - {None}) == 10


def ended_by(file):
    return [c for i in file.interfaces for c in i.stats[-1][1] if c.startswith(b"capture ended")]


def test_tshark_reports_no_error_when_the_application_ends(app, capture):
    """It is an ordinary end: its reason is in the file."""
    shark = capture(app, interface(app, "net_ring_a"), *preference(interface(app, "net_ring_a"), "buffer", ""))
    app.rx(n=10)
    until(lambda: len(frames(shark.out, whole=False)) == 10, 20, "packets in the file")
    app.quit()
    assert shark.wait() == 0
    assert "extcap" not in shark.output.replace(str(shark.out), "")
    assert ended_by(pcapng.read(shark.out)) == [b"capture ended by: application"]
    assert run(["capinfos", shark.out]).returncode == 0


def test_all_ports_of_an_application(play, capture):
    app = play()
    app.ring("a")
    app.ring("b")
    shark = capture(app, interface(app))
    app.rx(0, n=5)
    app.rx(1, n=7)
    file = finish(shark, 12)
    names = [file.interfaces[p.interface].name for p in file.packets]
    assert names == ["net_ring_a"] * 5 + ["net_ring_b"] * 7


def test_configuration_follows_the_application(play):
    app = play()
    app.ring("a", rxq=2, txq=3)
    output = extcap("--extcap-interface", interface(app, "net_ring_a"), "--extcap-config")
    for option in ("direction", "queue", "snaplen", "buffer", "timestamp"):
        assert f"{{call=--{option}}}" in output
    reload = ("--extcap-config", "--extcap-reload-option", "queue", "--extcap-interface")
    values = extcap(*reload, interface(app, "net_ring_a")).splitlines()
    assert [line.split("{value=")[1].split("}")[0] for line in values] == ["all", "0", "1", "2"]
    app.do("stop 0")
    app.do("reconf 0 rxq=1 txq=1")
    assert len(extcap(*reload, interface(app, "net_ring_a")).splitlines()) == 1


@pytest.mark.parametrize("expression", ["tcp port 80", "", "vlan 5 and udp"])
@pytest.mark.smoke
def test_valid_filters(expression):
    assert extcap("--extcap-interface", "ringtap:x:y", "--extcap-capture-filter", expression) == ""


@pytest.mark.parametrize("expression", ["ip and and", "host 300.1.1.1", "tcp port"])
def test_invalid_filters(expression):
    """The error text of libpcap."""
    output = extcap("--extcap-interface", "ringtap:x:y", "--extcap-capture-filter", expression)
    theirs = run(["tcpdump", "-d", "-y", "EN10MB", expression]).stderr.strip().splitlines()[-1]
    assert output.strip() == theirs.removeprefix("tcpdump: ").strip()


@pytest.mark.parametrize("expression", ["inbound", "outbound and udp", "ip protochain 6", "ifindex 1"])
def test_accepted_filters_are_valid_for_a_capture(module_app, record, expression):
    output = extcap("--extcap-interface", interface(module_app), "--extcap-capture-filter", expression)
    recorder = record(module_app, "-f", expression, out="/dev/null", attach=False)
    try:
        recorder.attached()
        taken = True
    except AssertionError:  # it has ended
        taken = False
    assert (output == "") == taken
    assert taken == ("bound" in expression)


@pytest.mark.parametrize("args,status,words", [
    (["--extcap-interface", "eth0", "--extcap-dlts"], USAGE, "eth0"),
    (["--extcap-interface", "ringtap:", "--extcap-dlts"], USAGE, "ringtap:"),
    (["--extcap-dlts"], USAGE, "--extcap-interface"),
    (["--extcap-interface", "ringtap:x:y"], USAGE, "nothing to do"),
    (["--capture", "--extcap-interface", "ringtap:x:y"], USAGE, "--fifo"),
    (["--capture", "--fifo", "/dev/null", "--extcap-interface", "ringtap:no-such-app:y"], FAILED,
     "no-such-app"),
    (["--capture", "--fifo", "/dev/null", "--extcap-interface", "ringtap:x:y", "--snaplen", "z"],
     USAGE, "--snaplen z: not a size"),
    (["--capture", "--fifo", "/dev/null", "--extcap-interface", "ringtap:x:y", "--queue", "z"],
     USAGE, "--queue z: not a queue"),
    (["--capture", "--fifo", "/dev/null", "--extcap-interface", "ringtap:x:y", "--buffer", "5"],
     USAGE, "--buffer 5: not a size; give 64K to 64G"),
    (["--capture", "--fifo", "/nonexistent/f", "--extcap-interface", "ringtap:APP:net_ring_a"], FAILED,
     "extcap: cannot write '/nonexistent/f'"),
    (["--nonsense"], USAGE, "--nonsense"),
], ids=lambda v: " ".join(v[-2:]) if isinstance(v, list) else "")
def test_mistakes_are_reported_in_one_line(module_app, args, status, words):
    output = extcap(*(a.replace("APP", module_app.prefix) for a in args), status=status)
    assert words in output and len(output.strip().splitlines()) == 1
    assert "record" not in output


class Fifo:
    """A pipe to which the extcap program writes."""

    def __init__(self, app, folder, *args, port="net_ring_a"):
        self.path = folder / "fifo"
        os.mkfifo(self.path)
        self.proc = Proc([EXTCAP, "--capture", "--extcap-interface", interface(app, port),
                          "--fifo", self.path, *([] if "--buffer" in args else ["--buffer", BUFFER]), *args])
        self.reader = open(self.path, "rb", buffering=0)
        armed(app)

    def read(self):
        """Everything until the other end closes."""
        return pcapng.parse(b"".join(iter(lambda: self.reader.read(65536), b"")))

    def close(self):
        self.proc.close()
        self.reader.close()


@pytest.mark.smoke
def test_ports_by_number(play, tmp_path, closing):
    """Given on the command line, as Wireshark accepts only listed interfaces."""
    app = play()
    app.ring("a")
    app.ring("b", rxq=3, txq=1)
    name = interface(app, "1")
    assert "value=2}" in extcap("--extcap-interface", name, "--extcap-config", "--extcap-reload-option", "queue")
    fifo = closing(Fifo(app, tmp_path, port="1"))
    app.rx(0, 0, n=10)
    app.rx(1, 2, n=10)
    fifo.proc.send_signal(signal.SIGTERM)
    file = fifo.read()
    assert [i.name for i in file.interfaces] == ["net_ring_b"] and len(file.packets) == 10


def test_signal_ends_the_capture(app, tmp_path, closing):
    fifo = closing(Fifo(app, tmp_path))
    app.rx(n=10)
    fifo.proc.send_signal(signal.SIGTERM)
    file = fifo.read()
    assert fifo.proc.wait() == OK
    assert fifo.proc.output == ""
    assert len(file.packets) == 10
    assert pcapng.stat(file.interfaces[0], 4) == 10
    assert ended_by(file) == [b"capture ended by: signal"]
    gone(app)


def test_reader_of_the_pipe_closes(app, tmp_path, closing):
    fifo = closing(Fifo(app, tmp_path))
    app.rx(n=10)
    fifo.reader.close()
    app.rx(n=10)
    assert fifo.proc.wait() == OK
    assert fifo.proc.output == ""
    gone(app)


def test_reader_of_the_pipe_closes_without_packets(app, tmp_path, closing):
    fifo = closing(Fifo(app, tmp_path))
    fifo.reader.close()
    assert fifo.proc.wait() == OK
    assert fifo.proc.output == ""
    gone(app)


def test_application_ends(app, tmp_path, closing):
    fifo = closing(Fifo(app, tmp_path))
    app.rx(n=10)
    app.quit()
    file = fifo.read()
    assert len(file.packets) == 10
    assert fifo.proc.wait() == OK
    assert fifo.proc.output == ""
    assert ended_by(file) == [b"capture ended by: application"]


def test_snapshot_length(app, tmp_path, closing):
    """-s and --snaplen, the form of Wireshark's preference."""
    fifo = closing(Fifo(app, tmp_path, "-s", "96"))
    app.rx(n=5, len=500)
    fifo.proc.send_signal(signal.SIGTERM)
    assert {(len(p.data), p.length) for p in fifo.read().packets} == {(96, 500)}


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


def test_installed_in_the_folder_of_wireshark(installation):
    found, = installation.rglob("ringtap-extcap")
    options = json.loads(check(["meson", "introspect", "--buildoptions", BUILD]))
    if {o["name"]: o["value"] for o in options}["prefix"] in ("/usr", "/usr/local"):
        assert found.parent == installation / wireshark.folder().lstrip("/")
    assert "ringtap:APP" in next(installation.rglob("ringtap-extcap.1")).read_text()
    assert "extcap {version=" in check([found, "--extcap-interfaces"])
