# SPDX-License-Identifier: BSD-3-Clause
"""The largest flows of running applications in the tables of top and on the page of ringtap web."""

import re
import shlex

import pytest
from harness import pcap, tmux
from harness.live import LiveView, Web
from harness.paths import RINGTAP
from harness.proc import check, until
from harness.ringtap import sessions
from harness.tmux import Terminal

# Six of nine packets, two, and one: hosts 10.0.0.0, 10.0.0.1 and 10.0.0.2.
FLOWS = (0, 0, 0, 0, 0, 0, 1, 1, 2)
RATE = 1_000_000


def udp(host):
    ip = bytes([0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, host, 192, 0, 2, 1])
    return bytes.fromhex("020000000001020000000002") + b"\x08\x00" + ip + bytes([4, host, 0, 53]) + bytes(22)


@pytest.fixture
def app(testpmd, tmp_path):
    file = pcap.write(tmp_path / "in.pcap", [udp(host) for host in FLOWS])
    pmd = testpmd(f"net_pcap0,rx_pcap={file},infinite_rx=1", "net_null0,no-rx=1")
    pmd.start()
    return pmd


def number(text):
    """The value of a cell: 3.72M."""
    return float(text.rstrip("kMG")) * {"k": 1e3, "M": 1e6, "G": 1e9}.get(text[-1], 1)


def test_top_has_the_largest_flows(app, fwd):
    """With the bounds of all estimates; the rate of a generator is known."""
    text = check([RINGTAP, "top", "--once", "--wide", "--view", "flows", app.prefix])
    flow, rates = r"10\.0\.0\.(\d):\S+ > 192\.0\.2\.1:53 UDP", r"(\S+) +(\S+) +(\S+) +\S+"
    pattern = rf"^\S+ +{flow} +{rates} +(\d+) +(\S+) +60\.0 +0\.0 +(\d+) net_pcap0"
    rows = re.findall(pattern, text, re.M)
    assert [(host, share) for host, *_, share, _, _ in rows] == [("0", "67"), ("1", "22"), ("2", "11")]
    for _, rate, bound, bits, _, of_share, every in rows:
        assert number(bits) == pytest.approx(480 * number(rate), rel=0.01)
        assert 0 <= float(of_share) <= 2  # one packet size, so that the mean is exact
        assert 0 < number(bound) < 0.1 * number(rate) or every == "1"
    assert "This view costs at most 2 %" in text
    # Rates are of all packets, not of the sample.
    steady = fwd("--ring", "a", "--role", "generate:0@1", "--role", "sink:0@1", "--rate", RATE).running()
    text = check([RINGTAP, "top", "--once", "--wide", "--view", "flows", steady.prefix])
    rate, bound, every = re.search(r" ARP +(\S+) +(\S+) .* (\d+) net_ring_a, queue 0", text).groups()
    assert number(rate) == pytest.approx(RATE, rel=0.2) and int(every) > 1
    assert 0 < number(bound) < 0.01 * RATE


@pytest.mark.nightly
def test_the_screen_of_top_begins_and_ends_the_capture(app, closing):
    if tmux.missing():
        pytest.skip(tmux.missing())
    term = closing(Terminal([RINGTAP, "top", app.prefix], 140, 30, {"LC_ALL": "C.UTF-8"}))
    term.shows(r"net_pcap0 ")
    term.keys("f")
    term.shows(r" 10\.0\.0\.0:1024 > 192\.0\.2\.1:53 UDP .*net_pcap0, queue 0")
    term.shows(r"^This view costs at most 2 %")
    assert len(sessions(app)) == 1
    term.keys("/", *"0.2:", "Enter")
    assert not any("10.0.0.0:" in line for line in term.shows(r" 10\.0\.0\.2:1026 > "))
    term.keys("Escape", "p")
    term.shows(r"net_null0 ")
    until(lambda: not sessions(app), what="the capture has ended")
    term.keys("q")
    assert term.ended() == 0


@pytest.mark.nightly
def test_enter_in_top_shows_the_packets_of_a_flow(app, closing, tmp_path):
    """Only those, decoded, and the command that records them; Esc shows the table again."""
    if tmux.missing():
        pytest.skip(tmux.missing())
    term = closing(Terminal([RINGTAP, "top", app.prefix, "--view", "flows"], 200, 30, {"LC_ALL": "C.UTF-8"}))
    term.shows(r" 10\.0\.0\.1:1025 > ")
    term.keys("Down", "Enter")
    lines = term.shows(
        r"^  \d\d:\d\d:\d\d\.\d{9}  net_pcap0, queue 0 received, 60 bytes: 10\.0\.0\.1:1025 > .* TTL 64$"
    )
    assert not any("10.0.0.0:1024" in line or "10.0.0.2:1026" in line for line in lines)
    (command,) = [line.strip() for line in lines if "ringtap record" in line]
    check([RINGTAP, *shlex.split(command)[1:-1], tmp_path / "flow.pcapng", "-c", "100"])
    sources = check(["tshark", "-r", tmp_path / "flow.pcapng", "-T", "fields", "-e", "ip.src"]).split()
    assert sources == ["10.0.0.1"] * 100
    term.keys("Escape")
    term.shows(r" 10\.0\.0\.2:1026 > ")
    term.keys("q")
    assert term.ended() == 0


def test_the_page_has_the_largest_flows_once_they_are_switched_on(app, browser, closing):
    """Their price is beside the switch."""
    web = closing(Web(app, args=("--allow-actions",)))
    shown = LiveView(browser, web, app=app.prefix)
    until(lambda: shown.table("queues"), what="the application")
    assert shown.table("flows") == [] and "Largest flows" not in shown.text()
    assert web.request("/collectors?name=flows&on=1", "POST", **{"Content-Length": "0"})[0] == 202
    rows = until(lambda: shown.table("flows"), what="flows")
    assert [row["flow"].partition(":")[0] for row in rows] == ["10.0.0.0", "10.0.0.1", "10.0.0.2"]
    assert [row["share"] for row in rows] == pytest.approx([6 / 9, 2 / 9, 1 / 9], abs=0.02)
    assert all(row["received by"] == "net_pcap0, queue 0" for row in rows)
    assert all(row["bits"] == pytest.approx(480 * row["received"], rel=0.01) for row in rows)
    assert "This table costs at most 2 %" in shown.text()
    assert web.request("/collectors?name=flows&on=0", "POST", **{"Content-Length": "0"})[0] == 202
    until(lambda: "Largest flows" not in shown.text())
    shown.check()
