# SPDX-License-Identifier: BSD-3-Clause
"""pcap-ringtap.so as a plug-in of a libpcap that loads such, built by hand: `make libpcap` runs these tests.
RINGTAP_LIBPCAP names the folder that devtools/libpcap-build.sh makes."""

import os
import re
import shutil
import signal
import sys
from pathlib import Path

import pytest
from harness import pcap
from harness.paths import BUILD
from harness.proc import Proc, check, run, until
from harness.ringtap import TCPDUMP_BUFFER, sessions

FOLDER = Path(os.environ.get("RINGTAP_LIBPCAP", "/nonexistent"))
COUNT = 1000
# A program that loads libpcap by itself, so that no other object sees its functions.
LOADED = """
import ctypes, sys
lib = ctypes.CDLL("libpcap.so.1")
err = ctypes.create_string_buffer(256)
lib.pcap_open_live.restype = ctypes.c_void_p
p = lib.pcap_open_live(sys.argv[1].encode(), 65535, 1, 100, err)
assert p, err.value
print("open", flush=True)
header, data = ctypes.POINTER(ctypes.c_uint32)(), ctypes.POINTER(ctypes.c_ubyte)()
while True:
    got = lib.pcap_next_ex(ctypes.c_void_p(p), ctypes.byref(header), ctypes.byref(data))
    if got == 1:
        break
    assert got == 0
print(bytes(data[:64]).hex())
lib.pcap_close(ctypes.c_void_p(p))
"""


@pytest.fixture(autouse=True)
def plugged(monkeypatch):
    """Programs get this libpcap, and it the plug-in."""
    shutil.copy(BUILD / "pcap" / "plugin" / "pcap-ringtap.so", FOLDER / "plugins")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(FOLDER / "lib"))


def name_of(app):
    return f"ringtap:{app.prefix}:net_ring_a"


def test_ports_are_devices(app):
    """Beside the kernel's, each once."""
    names = re.findall(r"^\d+\.(\S+)", check(["tcpdump", "-D"]), re.M)
    assert names.count(name_of(app)) == names.count("lo") == names.count("any") == 1


def test_tcpdump_records_a_port(app, closing, tmp_path):
    """The packets that filter and direction let pass, byte for byte, and tcpdump's counts."""
    out = tmp_path / "out.pcap"
    words = ["-i", name_of(app), "-Q", "in", "-U", "-w", out, *TCPDUMP_BUFFER, "less 100"]
    tcpdump = closing(Proc(["tcpdump", *words]))
    tcpdump.expect("listening on .* EN10MB")
    assert "libringtap-pcap" not in Path(f"/proc/{tcpdump.pid}/maps").read_text()
    for direction in ("rx", "tx"):
        for length in (64, 200):
            assert app.burst(direction, n=COUNT, len=length, seq=0)[0] == COUNT
    until(lambda: len(pcap.frames(out)) == COUNT, what="tcpdump has them")
    tcpdump.send_signal(signal.SIGINT)
    assert tcpdump.wait() == 0
    assert pcap.frames(out) == [pcap.frame(64, n) for n in range(COUNT)]
    assert f"{COUNT} packets captured" in tcpdump.output and "0 packets dropped" in tcpdump.output
    until(lambda: not sessions(app), what="no session is left")


def test_errors_are_those_of_ringtap(app):
    """A port that is not there, a filter that is none, and a device of the kernel, which is not the plug-in's."""
    done = run(["tcpdump", "-i", f"ringtap:{app.prefix}:nosuch"])
    assert done.returncode == 1 and "nosuch" in done.stderr, done.stderr
    done = run(["tcpdump", "-i", name_of(app), "ip and"])
    assert done.returncode == 1 and "syntax error" in done.stderr, done.stderr
    done = run(["tcpdump", "-i", "nosuch"])
    assert done.returncode == 1 and "No such device" in done.stderr, done.stderr
    assert not sessions(app)


def test_a_program_that_loads_libpcap_by_itself(app, closing):
    """The plug-in finds the functions of that libpcap."""
    program = closing(Proc([sys.executable, "-c", LOADED, name_of(app)]))
    program.expect("^open")
    assert app.burst("rx", n=1, len=64, seq=7)[0] == 1
    assert program.wait() == 0
    assert pcap.frame(64, 7).hex() in program.output
