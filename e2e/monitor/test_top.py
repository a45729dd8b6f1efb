# SPDX-License-Identifier: BSD-3-Clause
"""`ringtap top`: statistics match those of the application, and it works in any terminal."""

import json
import os
import re
import signal
import time
from collections import Counter
from pathlib import Path

import pytest
from harness import dpdk, tmux
from harness.documents import ns_of
from harness.paths import RINGTAP
from harness.proc import Proc, check, freeze, run, until
from harness.ringtap import FAILED
from harness.tmux import Terminal

UTF8 = {"LC_ALL": "C.UTF-8"}


class Lines:
    """A running `ringtap top --json`, and its documents on one application."""

    def __init__(self, app, *args):
        self.name = app.prefix
        self.documents = []
        self.proc = Proc([RINGTAP, "top", "--json", "--interval", "0.2s", *args, app.prefix])

    def next(self):
        line = self.proc.expect(r"^(\{.*\})$").group(1)
        app = next(a for a in json.loads(line)["applications"] if a["name"] == self.name)
        self.documents.append(app)
        return app

    def ports(self, name):
        return [p for d in self.documents for p in d.get("ports", ()) if p["name"] == name]

    def packets(self, port, direction):
        return sum(p[direction]["packets"] for p in self.ports(port))

    def bursts(self, port, direction):
        total = Counter()
        for p in self.ports(port):
            total.update({int(k): v for k, v in p[direction]["bursts"].items()})
        return dict(total)

    def until(self, condition):
        return until(lambda: self.next() and condition(), what=f"figures in {self.documents[-1:]}")

    def close(self):
        self.proc.close()


@pytest.fixture
def lines(closing):
    def start(app, *args):
        it = closing(Lines(app, *args))
        it.next()
        return it

    return start


def once(app, *args, locale=None):
    return check([*(["env", f"LC_ALL={locale}"] if locale else []), RINGTAP, "top", "--once", *args, app.prefix])


def document(app, *args, good=lambda doc: True):
    """A document that fulfils the condition: on a busy machine a thread may have no CPU for a whole
    interval."""

    def get():
        text = check([RINGTAP, "top", "--once", "--json", *args, app.prefix])
        doc = json.loads(text)["applications"][0]
        return doc if good(doc) else None

    return until(get, what="a good interval")


def worked(doc):
    """The polling thread ran, and the counters of drivers and of the kernel were read."""
    return any(t["cpu_share"] and t["polls_per_second"] for t in doc["threads"]) and all(
        p["driver_per_second"]["rx_packets"] is not None for p in doc["ports"]
    )


# ---- statistics


@pytest.mark.nightly
def test_xstats_are_those_of_dpdks_telemetry(app, lines):
    """DPDK reads them by itself, for each port. The application sends and receives nothing meanwhile."""
    app.rx(n=100, burst=32, len=60)
    app.tx(n=64, burst=16, len=128)
    it = lines(app, "--collectors", "xstats")
    port = {p["name"]: p["index"] for p in it.documents[0]["ports"]}["net_ring_a"]
    truth = dpdk.telemetry(app.prefix, f"/ethdev/xstats,{port}")["/ethdev/xstats"]
    it.next()
    shown = {x["name"]: x["value"] for x in it.documents[-1]["xstats"] if x["port"]["name"] == "net_ring_a"}
    assert shown == truth and truth["rx_good_packets"] == 100 and truth["tx_good_packets"] == 64


@pytest.mark.nightly
def test_rings_are_freed_while_they_are_sampled(app, lines):
    """Rings of one name, 20,000 of them: the application goes on, and what is shown was in one of them."""
    it = lines(app, "--collectors", "polls,pools")
    assert app.one("rings 20000") == 20000
    app.rx(n=7)
    it.until(lambda: it.packets("net_ring_a", "rx") == 7)
    rings = [r for d in it.documents for r in d["rings"] if r["name"] == "come and gone"]
    assert all(r["capacity"] == 63 and max(r["used"], r["highest"]) <= 40 for r in rings)


@pytest.mark.smoke
def test_counts_are_exact(app, lines):
    """Packets, bursts, bytes, gaps and microbursts."""
    it = lines(app, "--collectors", "polls,bytes,busy,gaps")
    _, before, _ = app.rx(n=100, burst=32, len=60)
    app.rx(n=5, burst=1, len=1000)
    app.tx(n=64, burst=16, len=128)
    it.until(lambda: it.packets("net_ring_a", "tx") == 64)
    assert it.packets("net_ring_a", "rx") == 105
    assert it.bursts("net_ring_a", "rx") == {32: 3, 4: 1, 1: 5}
    assert it.bursts("net_ring_a", "tx") == {16: 4}
    assert sum(p["rx"]["bytes"] for p in it.ports("net_ring_a")) == 100 * 60 + 5 * 1000
    assert sum(p["tx"]["bytes"] for p in it.ports("net_ring_a")) == 64 * 128
    assert sum(p["rx"]["empty_calls"] for p in it.ports("net_ring_a")) == 0
    app.rx(n=1)  # after the gap that this command caused
    _, _, after = app.rx(n=1)
    found = []

    def seen():
        found.extend(g for t in it.documents[-1]["threads"] for g in t["gaps"])
        return len(found) > 2

    it.until(seen)
    for g in found:
        assert g["port"]["name"] == "net_ring_a" and g["queue"] == 0 and g["duration_ns"] > 0
        assert g["packets"] in (1, 4, 32)
        assert before - 5_000_000 < ns_of(g["start"]) < after + 5_000_000


@pytest.mark.nightly
def test_a_gap_counts_once_where_it_ends(app, lines):
    """It lasts over several readings, which show its age."""
    it = lines(app, "--collectors", "polls,busy,gaps")

    def gaps(state):
        return [
            (t["max_gap_ns"], g["duration_ns"])
            for d in it.documents
            for t in d["threads"]
            for g in t["gaps"]
            if g["open"] == state and g["duration_ns"] > 200e6
        ]

    app.rx(n=1)
    it.until(lambda: len(gaps(True)) == 2)
    lasted = max(ns for _, ns in gaps(True))
    app.rx(n=1)
    it.until(lambda: gaps(False))
    it.next()
    ((longest, length),) = gaps(False)
    assert longest >= length >= lasted


def test_counts_are_those_of_testpmd(testpmd, lines):
    """A complete run: packets, and its own histogram of bursts."""
    pmd = testpmd("net_ring0", "net_ring1", args=("--record-burst-stats",))
    it = lines(pmd)
    pmd.start("start tx_first 2")
    it.until(lambda: it.packets("net_ring0", "rx") > 10000)
    ports = pmd.stop()
    for port in (0, 1):
        name = f"net_ring{port}"
        it.until(lambda: it.packets(name, "rx") >= ports[port][0])
        assert it.packets(name, "rx") == ports[port][0]
        # tx_first sends two bursts before it counts. A document may be of the moment before the last sending.
        it.until(lambda: it.packets(name, "tx") - ports[port][1] in (0, 64))


def test_rates_and_shares(testpmd):
    """All in one document, which has what is switched on only."""
    pmd = testpmd("net_null0", "net_null1", mbufs=2000)
    pmd.start()

    def good(doc):
        """The driver's counters are read at other times, between which the thread may have no CPU."""
        port = doc["ports"][0]
        return (
            worked(doc)
            and port["rx"]["packets"]
            and sum(p["packets"] for p in doc["latency"]) > 1000
            and 0.3 < (port["driver_per_second"]["rx_packets"] / port["rx"]["packets_per_second"]) < 3
        )

    doc = document(pmd, "--collectors", "all", good=good)
    port = doc["ports"][0]
    rx = port["rx"]
    assert rx["packets_per_second"] == pytest.approx(rx["packets"] / (doc["interval_ns"] / 1e9))
    assert rx["bits_per_second"] == pytest.approx(8 * 64 * rx["packets_per_second"])
    assert rx["packets_per_call"] == rx["packets_per_busy_call"] == 32
    assert rx["burst_p50"] == rx["burst_p99"] == rx["max_burst"] == 32
    (thread,) = (t for t in doc["threads"] if t["lcore"] == 1)
    assert thread["busy_share"] > 0.99
    assert 1 < thread["cycles_per_packet"] < 1e6
    assert 0.2 < thread["cpu_share"] + thread["wait_share"] < 1.5
    driver = port["driver_per_second"]
    assert driver["refused"] == 0 and driver["missed"] == 0
    pool = next(p for p in doc["pools"] if p["name"] == "mb_pool_0")
    assert pool["size"] == 2000
    assert pool["in_use"] == 2000 - pool["available"]
    assert pool["in_caches"] <= pool["available"]
    pair = next(p for p in doc["latency"] if p["packets"] and p["rx_port"]["name"] == "net_null0")
    assert pair["tx_port"]["name"] == "net_null1"
    assert 0 < pair["p50_ns"] <= pair["p99_ns"] <= pair["p999_ns"]
    doc = document(pmd)
    assert "latency" not in doc["collectors"] and not doc["latency"]


def test_refused_packets(testpmd):
    """testpmd drops packets that net_ring0 refuses, and counts them."""
    pmd = testpmd("net_ring0", "net_null1", args=("--forward-mode=txonly",))
    pmd.start()
    until(lambda: pmd.stats(0)["TX-packets"] == 1023, what="a full ring")
    # Only the TX side uses the ring of net_ring0: nothing drains it.
    doc = document(pmd, good=lambda d: any(r["used"] for r in d["rings"]))
    (ring,) = (r for r in doc["rings"] if r["used"])
    assert ring["used"] == ring["capacity"] == ring["highest"] == 1023
    assert not [r["name"] for r in doc["rings"] if r["name"].startswith("MP_")]
    # Certainly refused packets, between two readings of the driver's counters.
    doc = document(pmd, good=lambda d: d["ports"][0]["driver_per_second"]["refused"])
    driver = {p["name"]: p["driver_per_second"] for p in doc["ports"]}
    assert driver["net_ring0"]["refused"] == driver["net_ring0"]["offered"] > 0
    assert driver["net_null1"]["refused"] == 0 < driver["net_null1"]["offered"]
    ports = pmd.stop()
    assert ports[0][3] > 0 == ports[1][3]


# ---- without a terminal


def test_tables(testpmd):
    """net_null receives most, net_ring only packets that it has sent, net_null2 is between the two."""
    pmd = testpmd("net_null0", "net_ring1", "net_null2", args=("--forward-mode=rxonly",))
    pmd.start()
    document(pmd, good=worked)
    head, *rows = once(pmd, "--wide", "--interval", "0.2s").splitlines()
    assert head.split()[:4] == ["APP", "PORT", "ID", "RXPPS"]
    assert [r.split()[1] for r in rows] == ["net_null0", "net_ring1", "net_null2"]

    def order(*args):
        return [r.split()[1] for r in once(pmd, "--interval", "0.2s", *args).splitlines()[1:]]

    assert order("--by", "port", "--reverse") == ["net_ring1", "net_null2", "net_null0"]
    # A thread without a CPU receives nothing for a whole interval.
    until(lambda: order("--by", "rxpps")[2] == "net_ring1", what="it is last")
    for locale, full in (("C.UTF-8", "\u2588"), ("C", "@")):
        until(lambda: full in once(pmd, "--view", "queues", "--interval", "0.2s", locale=locale), what=locale)
    done = run([RINGTAP, "top", "--once", "--interval", "0.2s", pmd.prefix, "nowhere"])
    assert done.returncode == 0 and "net_ring1" in done.stdout
    assert "no application is called 'nowhere'" in done.stderr
    # top --json | head -1 must end.
    done = run(["sh", "-c", f"{RINGTAP} top --json --interval 0.1s {pmd.prefix} | head -1"])
    assert done.stdout.startswith("{")


def test_ended_top_leaves_no_hooks(app, lines):
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGKILL:
        it = lines(app)
        assert app.one("callbacks 0") > 0
        it.proc.send_signal(number)
        assert it.proc.wait() == (-9 if number == signal.SIGKILL else 0)
        until(lambda: app.one("callbacks 0") == 0, what="removed callbacks")


# ---- on a terminal


@pytest.fixture
def terminal(closing):
    reason = tmux.missing()
    if reason:
        pytest.skip(reason)

    def start(*args, columns=80, lines=24, env=UTF8):
        argv = [RINGTAP, "top", "--interval", "0.2s", *args]
        return closing(Terminal(argv, columns, lines, env))

    return start


@pytest.fixture
def forwarding(testpmd):
    pmd = testpmd("net_ring0", "net_null1")
    pmd.start("start tx_first")
    return pmd


def fits(screen, columns):
    return all(len(line) <= columns for line in screen)


def test_80_columns_then_200(forwarding, terminal):
    window = terminal(forwarding.prefix)
    screen = window.shows(r"net_ring0 .*\d[kM]")
    assert fits(screen, 80) and len(screen) <= 24
    title = next(line for line in screen if "RXPPS" in line)
    assert "REFUSED" in title and "NO-MBUF" not in title
    window.resize(200, 50)
    screen = window.shows("RXPPS.*NO-MBUF")
    assert fits(screen, 200)
    screen = window.shows("\u2588")  # the bar of a busy thread, in some interval
    assert any(forwarding.prefix in line for line in screen)  # not shortened
    window.resize(40, 8)
    window.shows(r"^\S+ +net_ring0 +[\d.]+[kM] ")
    until(lambda: fits(window.screen(), 40) and len(window.screen()) <= 8)
    window.keys("q")
    assert window.ended() == 0


VIEWS = (
    ("u", "DIR", r"net_ring0 +0 rx"),
    ("t", "CYC/PKT", "lcore 1"),
    ("m", "LOWEST", "mb_pool_0"),
    ("x", "XSTAT", "rx_good_packets +[0-9]+"),
    ("d", "STAT +VALUE", "no event, crypto or DMA device"),
    ("g", "LENGTH", "(busy|idle) gap|microburst"),
    ("l", "P99", r"net_ring0 net_null1|net_null1 net_ring0"),
    ("p", "RXPPS", "net_null1"),
    ("Right", "DIR", "net_ring0"),
    ("Left", "RXPPS", "net_null1"),
    ("a", "60 s OF RXPPS", r"\d[kM] +.*[\u2581-\u2588]"),
    ("Left", "FLOW", "PPS"),
    ("Left", "LENGTH", "(busy|idle) gap|microburst"),
)


def test_views(forwarding, terminal):
    window = terminal(forwarding.prefix)
    window.shows("net_ring0")
    for key, title, row in VIEWS:
        window.keys(key)
        window.shows(title)
        screen = window.shows(row)
        assert fits(screen, 80) and "gaps flows  ?" in screen[1], key
    window.keys("q")
    assert window.ended() == 0


def test_enter_and_escape(forwarding, play, terminal):
    """From all applications to one's ports, a port's queues, a queue's thread, and back."""
    other = play()
    other.ring("b")
    window = terminal("--view", "apps", columns=120)
    screen = window.shows(rf"^{forwarding.prefix} .*\d[kM] ")
    screen = window.shows(rf"^{other.prefix} ")
    row = next(i for i, line in enumerate(screen[3:]) if line.startswith(forwarding.prefix))
    window.keys(*["Down"] * row, "Enter")
    screen = window.shows(rf"of {forwarding.prefix}$")
    window.shows("net_null1")
    assert not any("net_ring_b" in line for line in window.screen())
    window.keys("Down", "Enter")
    window.shows("of net_null1$")
    # The main lcore may have emptied the queues as well, when forwarding started.
    screen = window.shows(r"net_null1 +0 rx +lcore 1")
    assert not any("net_ring0" in line for line in screen)
    row = next(i for i, line in enumerate(screen[3:]) if re.search(r"net_null1 +0 rx +lcore 1", line))
    window.keys(*["Down"] * row, "Enter")
    window.shows("of lcore 1")
    screen = window.shows(r"^\S+ +lcore 1 ")
    assert any("CYC/PKT" in line for line in screen)
    assert sum(bool(re.match(r"\S+ +lcore", line)) for line in screen[3:]) == 1  # not a fault of it below
    window.keys("Enter")  # all queues of the thread
    window.shows(r"net_ring0 +0 tx")
    for key, title in (("Escape", "CYC/PKT"), ("Escape", "DIR"), ("BSpace", "RXPPS +RXBIT/s +TXPPS +TXBIT/s +POLLS")):
        window.keys(key)
        window.shows(title)
    window.keys("Escape")
    window.shows(rf"^{other.prefix} ")
    window.keys("q")
    assert window.ended() == 0


def test_filter(forwarding, terminal):
    window = terminal(forwarding.prefix)
    window.shows("net_ring0")
    window.keys("/", "N", "u", "L", "l", "x", "BSpace")
    window.shows("/NuLl$")
    until(lambda: not any("net_ring0" in line for line in window.screen()), what="one row")
    assert any("net_null1" in line for line in window.screen())
    window.keys("q", "Enter")  # the text has it; it does not end top
    window.shows("no row has this text")
    window.keys("Escape")
    window.shows("net_ring0")
    window.keys("q")
    assert window.ended() == 0


def test_help_pause_sort_and_interval(forwarding, terminal):
    window = terminal("--view", "queues", forwarding.prefix)
    window.shows(r"net_ring0 +0 rx")
    window.keys("h")
    window.shows("Columns of queues")
    window.keys("h")
    window.shows(r"net_ring0 +0 rx")
    window.keys("Space")
    window.shows("PAUSED")
    still = window.screen()[2:]
    assert window.screen()[2:] == still
    window.keys("Space")
    until(lambda: not any("PAUSED" in line for line in window.screen()))
    until(lambda: window.screen()[2:] != still, what="figures that go on")
    window.keys("+", "+")
    window.shows("every 1.0 s")
    window.keys("-", "-", "-", "-", "-")
    window.shows("every 0.1 s")
    window.keys("b")
    window.shows(r"net_ring0 +0 rx .*lcore 1 +[\d.]+[kM] +[\d.]+[MG]")
    window.keys("<")  # the last visible column, then the one before

    def sorted_by():
        line = next(x for x in window.screen(styles=True) if "PORT" in x)
        marked = re.findall(r"\x1b\[(?:[\d;]*;)?(?:1|4)[\d;]*m([A-Z/%]\S*)", line)
        return marked

    until(sorted_by, what="a marked column")


def test_applications_start_and_end(play, terminal):
    """An end is shown at once, also during a pause, while the other statistics stand still."""
    ends = play()
    ends.ring("a")
    window = terminal(columns=200)
    window.shows(ends.prefix)
    stays = play()
    stays.ring("b")
    window.shows(rf"{stays.prefix}\s+net_ring_b")
    window.keys("Space")
    window.shows("PAUSED")
    ends.proc.kill()
    screen = "\n".join(window.shows(f"{ends.prefix}: the application has ended"))
    assert "1 application  PAUSED" in screen and "net_ring_b" in screen and "net_ring_a" not in screen
    window.keys("Space")
    until(lambda: not any(ends.prefix in line for line in window.screen()), what="its end")
    assert any(stays.prefix in line for line in window.screen())


@pytest.mark.nightly
def test_a_pause_needs_no_cpu(app, terminal):
    window = terminal(app.prefix)
    window.shows("net_ring_a")
    window.keys("Space")
    window.shows("PAUSED")
    pid = int(check(["pgrep", "-P", window.pid()]))

    def ticks():
        return sum(int(n) for n in Path(f"/proc/{pid}/stat").read_text().split()[13:15])

    before, due = ticks(), time.monotonic() + 2
    until(lambda: time.monotonic() > due, what="a pause")
    assert ticks() - before < 0.1 * os.sysconf("SC_CLK_TCK")


def test_waiting_and_other_terminals(app, terminal):
    window = terminal("not-there-yet")
    window.shows("no application is called 'not-there-yet'")
    window.keys("C-c")
    assert window.ended() == 0
    # Unknown and dumb terminals.
    window = terminal(app.prefix, env={**UTF8, "TERM": "moon"})
    assert window.ended() == FAILED
    window = terminal(app.prefix, "--interval", "0.2s", env={**UTF8, "TERM": "dumb"})
    window.shows(r"net_ring_a")
    until(lambda: sum("net_ring_a" in line for line in window.screen()) > 1, what="the next table")
    window.keys("C-c")
    assert window.ended() == 0


def test_application_without_the_probe_is_named(testpmd, terminal):
    pmd = testpmd("net_null0", plugin=None)
    window = terminal(pmd.prefix, columns=200)
    window.shows("Load it now")
    window.keys("n", "Enter")
    window.shows(f"{pmd.prefix}: without the probe; 'ringtap attach {pmd.prefix}'")


def test_updates_on_a_screen(app, closing):
    window = closing(Terminal([RINGTAP, "top", "--updates", "2", "--interval", "100ms", app.prefix], 80, 24))
    assert window.ended() == 0
    assert app.one("callbacks 0") == 0


def test_terminal_is_closed(app, terminal):
    window = terminal(app.prefix)
    window.shows("net_ring_a")
    assert app.one("callbacks 0") > 0
    window.kill()
    until(lambda: app.one("callbacks 0") == 0, what="removed callbacks")


def test_colours(testpmd, terminal):
    """Values that are too high, unless NO_COLOR is set."""
    pmd = testpmd("net_ring0", "net_null1", args=("--forward-mode=txonly",))
    pmd.start()
    window = terminal(pmd.prefix, env={**UTF8, "TERM": "screen-256color", "NO_COLOR": "1"})
    window.shows(r"net_ring0.*\d[kM]$")

    def bold():
        return [x for x in window.screen(styles=True) if "net_ring0" in x and "\x1b[1m" in x]

    assert not re.search(r"\x1b\[[\d;]*31m", until(bold, what="a bold value")[0])
    window = terminal(pmd.prefix, env={**UTF8, "TERM": "screen-256color"})
    window.shows(r"net_ring0.*\d[kM]$")

    def red():
        return any(
            "\x1b[1m\x1b[31m" in x or re.search(r"\x1b\[[\d;]*31m", x)
            for x in window.screen(styles=True)
            if "net_ring0" in x
        )

    until(red, what="a red value")
    fault = rf"^{pmd.prefix}: TX refuses packets: net_ring0; [\d,]+ packets handed over"  # the line may end here
    assert any(re.search(fault, x) for x in window.shows(fault)[-2:])


def test_stopped_application(forwarding, terminal):
    """Keys work without delay, and a late answer to a switch is accepted: the application is shown
    again."""
    window = terminal(forwarding.prefix)
    window.shows("net_ring0")
    freeze(forwarding.proc.pid)
    try:
        window.keys("l")
        took = []
        for _ in range(5):  # each would wait 5 s for an answer
            begun = time.monotonic()
            window.keys("h")
            window.shows("Columns of latency")
            window.keys("h")
            took.append(time.monotonic() - begun)
        assert min(took) < 4, took
    finally:
        forwarding.proc.send_signal(signal.SIGCONT)
    window.shows("net_ring0 net_null1|net_null1 net_ring0")


def counted(app):
    """Names of the ports in the application's statistics."""
    (answer,) = dpdk.telemetry(app.prefix, "/ringtap/ports").values()
    return [port["name"] for port in answer["ports"].values()]


@pytest.mark.nightly
def test_ports_beyond_the_table(app, terminal):
    """The table has 64 entries, which earlier ports have used."""
    screen = terminal(app.prefix, columns=120)
    screen.shows("net_ring_a")
    for i in range(64):
        app.plug(f"net_null{i}")
        if i < 63:
            until(lambda: f"net_null{i}" in counted(app), what="counted")
            app.do(f"unplug net_null{i}")
    screen.shows("ports without an entry: 1;")
    text = check([RINGTAP, "top", "--once", "--json", "--interval", "0.2s", app.prefix])
    assert json.loads(text)["applications"][0]["uncounted_ports"] == 1
    app.do("unplug net_null63")
    app.plug("net_null5")  # this port has an entry
    screen.shows("net_null5 ")
