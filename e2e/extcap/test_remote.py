# SPDX-License-Identifier: BSD-3-Clause
"""The interface ringtap-ssh: tshark records an application of another host, which is this one behind an SSH server."""

import signal
from pathlib import Path

import pytest
from harness import pcap, pcapng, sandbox, wireshark
from harness.paths import RINGTAP
from harness.proc import Proc, check, until
from harness.ringtap import BUFFER, sessions

COUNT = 1000

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(wireshark.missing() is not None, reason=str(wireshark.missing())),
]


@pytest.fixture
def ssh_port(closing, tmp_path):
    """A server for this user's key alone; ~/.ssh is another one meanwhile. Commands find ringtap."""
    own = Path("~/.ssh").expanduser()
    sandbox.mount("none", own, "tmpfs")
    own.chmod(0o700)
    check(["dropbearkey", "-t", "ed25519", "-f", tmp_path / "host"])
    check(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", own / "id_ed25519"])
    key = (own / "id_ed25519.pub").read_text()
    command = f'PATH={RINGTAP.parent}:$PATH; eval $SSH_ORIGINAL_COMMAND'
    (own / "authorized_keys").write_text(f'command="{command}" {key}')
    (own / "authorized_keys").chmod(0o600)
    options = ["-F", "-E", "-s", "-P", tmp_path / "pid", "-r", tmp_path / "host"]
    port = "22022"
    server = closing(Proc(["dropbear", *options, "-p", f"127.0.0.1:{port}"]))
    server.expect("Not backgrounding")
    (own / "config").write_text(f"Host r1\n HostName 127.0.0.1\n Port {port}\n StrictHostKeyChecking accept-new\n")
    yield port
    sandbox.unmount(own)


def test_a_port_of_another_host(app, ssh_port, closing, tmp_path):
    """The packets of the port that was chosen, those that the filter matches, and no session remains there."""
    out = tmp_path / "out.pcapng"
    name = "ringtap-ssh"
    fields = {"host": "r1", "target": f"{app.prefix}:net_ring_a", "direction": "rx", "buffer": BUFFER}
    words = [word for field, value in fields.items() for word in wireshark.preference(name, field, value)]
    shark = closing(wireshark.Tshark([*words, "-i", name, "-f", "less 100", "-w", out]))
    until(lambda: [s for s in sessions(app) if s["start"]] or not shark.alive(), what="it captures")
    assert shark.alive(), shark.output
    for length in (64, 200):
        assert app.burst("rx", n=COUNT, len=length, seq=0)[0] == COUNT
    until(lambda: out.exists() and len(pcapng.read(out, False).packets) >= COUNT, what="tshark has them")
    shark.send_signal(signal.SIGINT)
    assert shark.wait() == 0
    assert [p.data for p in pcapng.read(out).packets] == [pcap.frame(64, n) for n in range(COUNT)]
    until(lambda: not sessions(app), what="no session is left")


def test_a_host_that_does_not_answer(closing, ssh_port, tmp_path):
    """tshark prints what ssh printed."""
    words = [*wireshark.preference("ringtap-ssh", "host", "127.0.0.1"), "-i", "ringtap-ssh", "-w", tmp_path / "out"]
    shark = closing(wireshark.Tshark([*words, *wireshark.preference("ringtap-ssh", "ssh-port", "1")]))
    assert shark.wait() != 0
    assert "Connection refused" in shark.output
