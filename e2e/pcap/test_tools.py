# SPDX-License-Identifier: BSD-3-Clause
"""Unmodified libpcap programs: the output for a port is that for the file that the port plays."""

import re
import shutil
import signal
import socket
import struct
import time

import pytest
from harness import corpus, pcap
from harness.cases import nightly
from harness.paths import RINGTAP
from harness.proc import Proc, check, run, until
from harness.ringtap import TCPDUMP_BUFFER, sessions

RUN = [RINGTAP, "run", "--"]
FILTERS = [nightly(""), "ip6 protochain 58"]


@pytest.fixture(scope="module")
def source(corpus_files, tmp_path_factory):
    """The whole corpus in one file, one packet per microsecond."""
    frames = [f for path in corpus_files for f in pcap.frames(path)]
    return pcap.write(tmp_path_factory.mktemp("tools") / "all.pcap", frames)


@pytest.fixture
def stage(testpmd, source, closing):
    """stage(argv) runs a program on a port, whose name replaces {}; play() plays the file."""
    pmd = testpmd(
        f"net_pcap0,rx_pcap={source},tx_pcap=/dev/null", "net_null1", args=["--no-flush-rx", "--forward-mode=rxonly"]
    )

    def start(*argv, **kwargs):
        if not shutil.which(str(argv[0])):
            pytest.skip(f"{argv[0]} is not installed")
        device = f"ringtap:{pmd.prefix}:net_pcap0"
        return closing(Proc([*RUN, *(str(a).replace("{}", device) for a in argv)], **kwargs))

    def play():
        until(lambda: any(s["start"] for s in sessions(pmd)), what="capture has begun")
        pmd.start()

    start.play = play
    start.pmd = pmd
    return start


def lines(text):
    return [line for line in text.replace("\r", "").splitlines() if line.strip()]


@pytest.mark.parametrize("expression", FILTERS)
def test_tcpdump(stage, source, expression, tmp_path):
    """Its output and its file. With a filter, which also applies to packets that wait in the
    ring."""
    expected = lines(check(["tcpdump", "-nn", "-t", "-XX", "-r", source, expression]))
    check(["tcpdump", "-r", source, "-w", tmp_path / "expected.pcap", expression])
    frames = pcap.frames(tmp_path / "expected.pcap")
    text = stage(
        "tcpdump",
        *TCPDUMP_BUFFER,
        "-nn",
        "-t",
        "-XX",
        "-l",
        "-i",
        "{}",
        "-c",
        len(frames),
        expression,
        stdout=(tmp_path / "out.txt").open("w"),
    )
    file = stage(
        "tcpdump",
        *TCPDUMP_BUFFER,
        "-U",
        "-i",
        "{}",
        "-c",
        len(frames),
        "-Z",
        "root",
        "-w",
        tmp_path / "out.pcap",
        expression,
    )
    for proc in (text, file):
        proc.expect("listening on")
    until(lambda: len(sessions(stage.pmd)) == 2, what="both capture")
    stage.play()
    assert text.wait() == 0 and file.wait() == 0
    assert lines((tmp_path / "out.txt").read_text()) == expected
    assert pcap.frames(tmp_path / "out.pcap") == frames
    assert "0 packets dropped by kernel" in text.output
    received = int(re.search(r"(\d+) packets received by filter", text.output)[1])
    assert received >= len(frames)


def test_tcpdump_without_privileges(stage, source, private_dir, tmp_path):
    """It drops privileges between opening and setting the filter."""
    private_dir.chmod(0o777)
    proc = stage(
        "tcpdump", *TCPDUMP_BUFFER, "-i", "{}", "-Z", "nobody", "-c", 20, "-w", private_dir / "out.pcap", "tcp"
    )
    proc.expect("listening on")
    stage.play()
    assert proc.wait() == 0, proc.output
    assert (private_dir / "out.pcap").stat().st_uid != 0
    check(["tcpdump", "-r", source, "-c", "20", "-w", tmp_path / "expected.pcap", "tcp"])
    assert pcap.frames(private_dir / "out.pcap") == pcap.frames(tmp_path / "expected.pcap")


def test_time_stamps(stage, app, source, tmp_path):
    """-j adapter: times of the NIC, which for net_pcap are those of the file; otherwise current
    times. Refused where the NIC has none."""
    nic, host = (
        stage(
            "tcpdump",
            *TCPDUMP_BUFFER,
            "-i",
            "{}",
            "-j",
            kind,
            "--time-stamp-precision=nano",
            "-c",
            500,
            "-w",
            tmp_path / kind,
        )
        for kind in ("adapter", "host")
    )
    for proc in (nic, host):
        proc.expect("listening on")
    before = time.time_ns()
    stage.play()
    assert nic.wait() == 0 and host.wait() == 0
    assert [ns for ns, _, _ in pcap.read(tmp_path / "adapter")] == [ns for ns, _, _ in pcap.read(source)[:500]]
    times = [ns for ns, _, _ in pcap.read(tmp_path / "host")]
    assert times == sorted(times)
    assert before - 10**6 <= times[0] and times[-1] <= time.time_ns() + 10**6
    done = run([*RUN, "tcpdump", "-i", f"ringtap:{app.prefix}:0", "-j", "adapter"])
    assert done.returncode == 1
    assert "time stamp type" in done.stderr


def test_direction(app, closing, tmp_path):
    for options, directions in ((["-Q", "in"], "rx"), (["-Q", "out"], "tx"), ([], "rx tx")):
        out = tmp_path / f"{directions}.pcap"
        proc = closing(
            Proc([*RUN, "tcpdump", *TCPDUMP_BUFFER, *options, "-i", f"ringtap:{app.prefix}:0", "-U", "-w", out])
        )
        proc.expect("listening on")
        app.rx(n=5, len=100)
        app.tx(n=5, len=101, seq=5)
        lengths = [length for direction, length in (("rx", 100), ("tx", 101)) if direction in directions]
        until(lambda: out.exists() and out.stat().st_size >= 24 + 5 * len(lengths) * 116, what="written")
        proc.stop(signal.SIGINT)
        assert [len(f) for f in pcap.frames(out)] == [n for n in lengths for _ in range(5)]


def test_several_ports_and_applications(app, play, closing, tmp_path):
    """Named ports, all ports of an application, and later ones; merged by time."""
    app.ring("b")
    app.ring("c")
    other = play()
    other.ring("d")
    names = [f"ringtap:{app.prefix}:0+net_ring_c+{other.prefix}:", f"ringtap:{app.prefix}"]
    files = [tmp_path / "some.pcap", tmp_path / "all.pcap"]
    procs = [
        closing(Proc([*RUN, "tcpdump", *TCPDUMP_BUFFER, "-i", name, "-U", "--time-stamp-precision=nano", "-w", out]))
        for name, out in zip(names, files)
    ]
    for proc in procs:
        proc.expect("listening on")
    for seq in range(20):
        for it, port in ((app, 0), (app, 1), (app, 2), (other, 0)):
            it.rx(port=port, len=100 + port + 10 * (it is other), seq=seq)
    late = app.ring("late")
    app.hooked(late)
    app.rx(port=late, len=150)
    for path, packets in zip(files, (60, 61)):
        until(lambda: len(pcap.frames(path)) == packets, what=f"{packets} packets")
    for proc in procs:
        proc.stop(signal.SIGINT)
    some, everything = (pcap.read(path) for path in files)
    assert [len(data) for _, data, _ in some] == [100, 102, 110] * 20
    assert [len(data) for _, data, _ in everything] == [100, 101, 102] * 20 + [150]
    for packets in (some, everything):
        assert [ns for ns, _, _ in packets] == sorted(ns for ns, _, _ in packets)


def test_tshark(stage, source, tmp_path):
    args = [
        "-o",
        "tcp.analyze_sequence_numbers:false",
        "-T",
        "fields",
        "-e",
        "frame.number",
        "-e",
        "frame.len",
        "-e",
        "eth.addr",
        "-e",
        "_ws.col.Protocol",
        "-e",
        "_ws.col.Info",
    ]
    expected = lines(check(["tshark", "-n", "-r", source, *args]))
    out = tmp_path / "out.txt"
    proc = stage("tshark", "-n", "-i", "{}", "-c", len(expected), *args, stdout=out.open("w"))
    stage.play()
    assert proc.wait() == 0, proc.output
    assert lines(out.read_text()) == expected


@pytest.mark.parametrize("options", [["-f", "tcp and not vlan"], nightly(["-s", "96"])], ids=lambda o: " ".join(o))
def test_dumpcap(stage, source, options, tmp_path):
    """The capture program of Wireshark, which uses select() on the descriptor."""
    check(["tcpdump", "-r", source, "-w", tmp_path / "expected.pcap", *(options[1:] if "-f" in options else [])])
    expected = pcap.frames(tmp_path / "expected.pcap")
    out = tmp_path / "out.pcapng"
    proc = stage("dumpcap", "-i", "{}", "-q", "-c", len(expected), "-w", out, *options)
    proc.expect("^File:")
    stage.play()
    assert proc.wait() == 0, proc.output
    cut = 96 if "-s" in options else None
    again = tmp_path / "again.pcap"
    check(["editcap", "-F", "nsecpcap", out, again])
    got = pcap.read(again)
    assert [data for _, data, _ in got] == [data[:cut] for data in expected]
    assert [length for _, _, length in got] == [len(data) for data in expected]
    assert pcap.read(again)[0][0] > 16 * 10**17, "a time of today, in nanoseconds"


def test_dumpcap_lists_and_stops(stage):
    listed = check([*RUN, "dumpcap", "-D"])
    assert f"ringtap:{stage.pmd.prefix}:net_pcap0" in listed
    proc = stage("dumpcap", "-i", "{}", "-q", "-w", "/dev/null")
    proc.expect("^File:")
    proc.stop(signal.SIGINT)
    assert "Packets captured: 0" in proc.output


@pytest.mark.skipif(corpus.WITHOUT is not None, reason=str(corpus.WITHOUT))
def test_ngrep(stage, source, tmp_path):
    args = ["-q", "-x", "-l", "Cisco|HTTP"]
    expected = lines(check(["ngrep", "-I", source, *args]))
    expected = expected[next(i for i, line in enumerate(expected) if line.startswith("match")) :]
    out = tmp_path / "out.txt"
    proc = stage("ngrep", "-d", "{}", *args, stdout=out.open("w"))
    stage.play()
    until(lambda: len(lines(out.read_text())) >= len(expected) + 1, what="everything printed")
    proc.stop(signal.SIGINT)
    got = lines(out.read_text())
    at = next(i for i, line in enumerate(got) if line.startswith("match"))
    assert got[at : at + len(expected)] == expected
    assert len(expected) > 20, "nothing matched: this shows nothing"


_NSE = """
description = "Prints the first packets of an interface."
prerule = function() return true end
action = function()
  local s = nmap.new_socket()
  s:set_timeout(20000)
  s:pcap_open(stdnse.get_script_args("dev"), 65535, true, "udp")
  local out = {}
  for i = 1, 50 do
    local ok, len, l2, l3 = s:pcap_receive()
    if not ok then break end
    out[i] = stdnse.tohex(l2 .. l3)
  end
  s:pcap_close()
  return table.concat(out, "\\n")
end
"""


@pytest.mark.nightly
def test_nmap(stage, source, tmp_path):
    """Its scripts capture with libpcap; its scans need a kernel interface for sending."""
    script = tmp_path / "first.nse"
    script.write_text("local nmap = require 'nmap'\nlocal stdnse = require 'stdnse'\n" + _NSE)
    proc = stage("nmap", "-sL", "-n", "--script", script, "--script-args", "dev={}", "127.0.0.1")
    stage.play()
    assert proc.wait() == 0, proc.output
    check(["tcpdump", "-r", source, "-c", "50", "-w", tmp_path / "expected.pcap", "udp"])
    got = re.findall(r"^\|[_ ]+(?:first: )?([0-9a-f]{28,})", proc.output, re.MULTILINE)
    assert got == [data.hex() for data in pcap.frames(tmp_path / "expected.pcap")]


_SCAPY = """
import sys
from scapy.all import AsyncSniffer, conf
conf.use_pcap = True
def show(packet):
    print(packet.original.hex(), flush=True)  # rebuilding fails for some that are broken
s = AsyncSniffer(**{sys.argv[1]: sys.argv[2]}, filter=sys.argv[3] or None, prn=show, store=False,
                 count=int(sys.argv[4]), started_callback=lambda: print("started", flush=True))
s.start()
s.join()
"""


def test_scapy(stage, source):
    """It loads libpcap with dlopen()."""
    expression, count = "udp", 100
    python = "/usr/bin/python3"
    expected = lines(check([python, "-c", _SCAPY, "offline", source, expression, count]))
    proc = stage(python, "-c", _SCAPY, "iface", "{}", expression, count)
    proc.expect("^started")
    stage.play()
    assert proc.wait() == 0, proc.output
    got = [line for line in lines(proc.output) if re.fullmatch("[0-9a-f]+", line)]
    assert got == [line for line in expected if re.fullmatch("[0-9a-f]+", line)]
    assert len(got) == count


class Collector:
    """Receives NetFlow version 5; returns a sorted list of flows."""

    def __init__(self):
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind(("127.0.0.1", 0))
        self.sock.settimeout(20)

    @property
    def address(self):
        return "127.0.0.1:%d" % self.sock.getsockname()[1]

    def flows(self, total):
        found = []
        while len(found) < total:
            data = self.sock.recv(2000)
            for i in range(struct.unpack_from(">H", data, 2)[0]):
                src, dst, packets, octets, sport, dport, flags, proto = struct.unpack_from(
                    ">II8xII8xHHxBB", data, 24 + 48 * i
                )
                found.append((src, dst, sport, dport, proto, flags, packets, octets))
        return sorted(found)

    def close(self):
        self.sock.close()


@pytest.mark.nightly
def test_softflowd(stage, source, closing, private_dir):
    """It becomes a daemon after opening, and uses poll() on the descriptor."""
    collector = closing(Collector())
    common = ["-n", collector.address, "-v", "5", "-m", "100000"]
    done = run(["softflowd", "-r", source, "-d", *common, "-c", "none", "-p", private_dir / "0"])
    records = int(re.search(r"Flows exported: \d+ \((\d+) records\)", done.stdout + done.stderr)[1])
    expected = collector.flows(records)
    control = private_dir / "ctl"
    # The text before the first colon is an index.
    proc = stage("softflowd", "-i", "1:{}", *common, "-c", control, "-p", private_dir / "pid")
    assert proc.wait() == 0, proc.output  # the child continues
    try:
        stage.play()
        total = len(pcap.frames(source))

        def all_seen():
            text = check(["softflowctl", "-c", control, "statistics"])
            found = re.search(r"Packets processed: (\d+)(?s:.*)Ignored packets: \d+ \((\d+) non-IP", text)
            return int(found[1]) + int(found[2]) == total

        until(all_seen, what="all packets seen")
    finally:
        check(["softflowctl", "-c", control, "shutdown"])
    assert collector.flows(records) == expected
    assert records > 100


@pytest.mark.smoke
def test_run_command(tmp_path):
    """Exit codes are those of env(1); the environment is extended, not replaced."""
    assert (
        check(
            [*RUN, "sh", "-c", "echo $LD_PRELOAD:$LD_LIBRARY_PATH"],
            env={"LD_PRELOAD": "libc.so.6", "LD_LIBRARY_PATH": "/x"},
        )
        .strip()
        .endswith(":/x")
    )
    for argv, status in ((["sh", "-c", "exit 7"], 7), (["/nosuch/program"], 127), ([tmp_path], 126), ([], 2)):
        proc = Proc([*RUN, *argv])
        assert proc.wait() == status
        proc.close()
