# SPDX-License-Identifier: BSD-3-Clause
"""`hops` finds known losses, delays, order and clocks, packet by packet."""

import math

import pytest
from harness.documents import ns_of
from harness.site import SECOND, START, TCP, UDP, Recorder, Site, archive_command

pytest.importorskip("duckdb")
from ringtap_archive import clocks as clocks_of_recorders

MS, US = 10**6, 10**3
FORTH = ("10.0.0.1", "10.0.0.2", 40000, 443, TCP)
BACK = ("10.0.0.2", "10.0.0.1", 443, 40000, TCP)
AHEAD = {"a": 0, "b": 3 * MS, "c": -7200 * SECOND + 123_456_789}


def clocks(names="abc"):
    return [Recorder(name, ahead=lambda t, name=name: AHEAD[name]) for name in names]


def jitter(site, least=100 * US, most=900 * US):
    return lambda a, b: least + int(site.random.random() ** 3 * (most - least))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Three recorders; packets both ways, lost and reordered; clocks off by milliseconds and by hours."""
    site = Site(tmp_path_factory.mktemp("site"), *clocks())
    delay, t = jitter(site), START + SECOND
    flows = (
        [(FORTH, BACK)]
        + [
            ((f"10.1.{n}.1", "10.0.0.2", 5000 + n, 53, UDP), ("10.0.0.2", f"10.1.{n}.1", 53, 5000 + n, UDP))
            for n in range(5)
        ]
        + [(("fd00::1", "fd00::2", 40000, 80, UDP), ("fd00::2", "fd00::1", 80, 40000, UDP))]
    )
    for n in range(6000):
        t += site.random.randrange(20 * US, 200 * US)
        forth, back = flows[site.random.randrange(len(flows))]
        site.send("abc", forth, t, lost={"c": 0.03}, delay=delay) if n % 2 else site.send(
            "cba", back, t, lost={"b": 0.01, "a": 0.005}, delay=delay
        )
    for n in range(30):  # nothing is lost at the end: the last packets can be judged
        t += MS
        site.send("abc", FORTH, t, delay=delay)
        site.send("cba", BACK, t, delay=delay)
    return site.ingest()


@pytest.fixture(scope="module")
def told(site):
    return site.json("hops", "--lost", "--limit", 0)


def hop(told, a, b):
    found = [h for h in told["hops"] if (h["from"], h["to"]) == (f"{a}:eth0", f"{b}:eth0")]
    assert len(found) == 1, [(h["from"], h["to"]) for h in told["hops"]]
    return found[0]


def truth(site, a, b):
    """Packets from a to b: those that arrived, and those that did not."""
    names = list("abc")
    way = 1 if names.index(a) < names.index(b) else -1
    entered = [p for p in site.sent if a in p.times and (p.flow[1] in ("10.0.0.2", "fd00::2")) == (way == 1)]
    return [p for p in entered if b in p.times], [p for p in entered if b not in p.times]


def reordered(packets, a, b):
    """Packets, for each flow, that came out after one that entered later (RFC 4737)."""
    count, greatest = 0, {}
    for p in sorted(packets, key=lambda p: p.times[b]):
        before = greatest.get(p.flow, 0)
        count += before > p.times[a]
        greatest[p.flow] = max(before, p.times[a])
    return count


WAYS = [("a", "b"), ("b", "c"), ("a", "c"), ("b", "a"), ("c", "b"), ("c", "a")]


@pytest.mark.parametrize("a,b", WAYS)
def test_counts_of_each_hop_are_exact(site, told, a, b):
    arrived, lost = truth(site, a, b)
    found = hop(told, a, b)
    assert (found["arrived"], found["lost"], found["appeared"]) == (len(arrived), len(lost), 0)
    assert found["reordered"] == reordered(arrived, a, b) > 0
    assert found["via"] == (["b:eth0"] if {a, b} == {"a", "c"} else [])


@pytest.mark.parametrize("a,b", WAYS)
def test_delays_differ_from_true_ones_by_the_error_of_the_clock_only(site, told, a, b):
    clock = next(c for c in told["clocks"] if {c["recorder"], c["against"]} == {a, b})
    error = clock["offset_ns"] - (AHEAD[clock["recorder"]] - AHEAD[clock["against"]])
    assert abs(error) <= clock["bound_ns"] <= 240 * US
    error *= 1 if b == clock["recorder"] else -1
    delays = sorted(p.times[b] - p.times[a] + -error for p in truth(site, a, b)[0])
    found = hop(told, a, b)
    for name, share in (("p50_ns", 0.5), ("p90_ns", 0.9), ("p99_ns", 0.99)):
        assert found[name] == delays[math.ceil(share * len(delays)) - 1]
    assert (found["min_ns"], found["max_ns"]) == (delays[0], delays[-1])


def test_each_lost_packet_is_listed_where_it_was_seen_last(site, told):
    expected = []
    for p in site.sent:
        if p.lost_at:
            last = list(p.times)[-1]
            expected.append((p.times[last] + AHEAD[last], f"{last}:eth0", f"{p.lost_at}:eth0", p.flow))
    found = [
        (ns_of(r["in"]), r["from"], r["to"], (r["src"], r["dst"], r["src_port"], r["dst_port"], r["protocol"]))
        for r in told["lost"]
    ]
    assert sorted(found) == sorted(expected) and len(expected) > 100


def test_a_lost_packet_can_be_fetched(site, told, tmp_path):
    lost = told["lost"][0]
    site.run(
        "fetch",
        "--where",
        f"part = {lost['part']} AND file_offset = {lost['file_offset']}",
        "-w",
        tmp_path / "lost.pcapng",
    )
    data = (tmp_path / "lost.pcapng").read_bytes()
    packet = next(
        p
        for p in site.sent
        if p.lost_at
        and list(p.times)[-1] == lost["recorder"]
        and p.times[lost["recorder"]] + AHEAD[lost["recorder"]] == ns_of(lost["in"])
    )
    assert b"%012d" % packet.number in data
    assert sum(b"%012d" % p.number in data for p in site.sent[:200]) == (packet.number < 200)


def test_text_says_where_and_how_much(site, told):
    text = site.run("hops", "--lost", "--limit", 3)
    line = next(x for x in text.splitlines() if x.startswith("b:eth0") and " c:eth0 " in x)
    assert f"{hop(told, 'b', 'c')['lost']:,}" in line.split()
    assert "c - a: -7,199.87" in text and "The first 3; --limit 0 lists all." in text


def identical(folder, period, delay, lost, count=300, bidirectional=True):
    """The same datagram every `period`, with some losses."""
    site = Site(folder, *clocks("ab"))
    for n in range(count):
        t = START + SECOND + n * period
        p = site.send(
            "ab",
            ("10.0.0.1", "10.0.0.2", 7, 7, UDP),
            t,
            ip_id=0,
            payload=b"same",
            delay=lambda a, b: delay(n),
            lost={"b": 1 if lost(n) else 0},
        )
        assert bool(p.lost_at) == lost(n)
        if bidirectional:
            site.send("ab", FORTH, t + 10, delay=lambda a, b: delay(n))
            site.send("ba", BACK, t + 20, delay=lambda a, b: delay(n))
    return site


@pytest.mark.parametrize(
    "period,delay",
    [
        (10 * MS, lambda n: MS + n % 7 * US),
        (MS, lambda n: 5 * MS + n % 7 * US),
        (MS // 2, lambda n: 20 * MS + n % 3 * 100 * US),
        (2000 * MS, lambda n: 200 * US),
    ],
    ids=["sparse", "dense", "jitter", "keepalive"],
)
def test_of_identical_packets_the_lost_ones_are_found(tmp_path, period, delay):
    site = identical(tmp_path, period, delay, lambda n: n % 10 == 3 or n in (50, 51, 52))
    told = site.ingest().json("hops", "--lost", "--where", "protocol = 17", "--offset", "a=0", "--offset", "b=3ms")
    found = hop(told, "a", "b")
    lost = [p for p in site.sent if p.lost_at]
    assert (found["arrived"], found["lost"]) == (300 - len(lost), len(lost))
    assert [ns_of(r["in"]) for r in told["lost"]] == [p.times["a"] for p in lost]
    assert found["max_ns"] == max(p.times["b"] - p.times["a"] for p in site.sent if not p.lost_at and p.flow[4] == UDP)


def test_a_retransmission_with_equal_contents_is_no_delay(tmp_path):
    site = identical(tmp_path, 10 * MS, lambda n: MS, lambda n: False, count=50)
    flow = ("10.0.0.1", "10.0.0.2", 9, 9, UDP)
    for n in range(20):  # the first of two is lost: 200 ms later it is sent again
        for again in (0, 1):
            site.send(
                "ab",
                flow,
                START + 2 * SECOND + n * SECOND + again * 200 * MS,
                ip_id=n,
                payload=b"again",
                delay=lambda a, b: MS,
                lost={"b": 1 - again},
            )
    site.send("ab", FORTH, START + 30 * SECOND, delay=lambda a, b: MS)  # the recorders go on
    told = site.ingest().json("hops", "--lost", "--where", "src_port = 9", "--offset", "a=0", "--offset", "b=3ms")
    found = hop(told, "a", "b")
    assert (found["arrived"], found["lost"], found["min_ns"], found["max_ns"]) == (20, 20, MS, MS)
    assert [ns_of(r["in"]) for r in told["lost"]] == [START + 2 * SECOND + n * SECOND for n in range(20)]


def test_duplicates_of_the_network_appear(tmp_path):
    site = identical(tmp_path, 10 * MS, lambda n: MS, lambda n: False, count=40)
    for p in site.sent[::3][:5]:  # datagrams: each comes out again 100 us later
        b = site.recorders["b"]
        b.record(p.times["b"] + 100 * US, next(data for t, _, _, data in b.packets if t == p.times["b"]))
    told = site.ingest().json("hops", "--where", "protocol = 17")
    assert (hop(told, "a", "b")["arrived"], hop(told, "a", "b")["lost"], hop(told, "a", "b")["appeared"]) == (40, 0, 5)


@pytest.fixture(scope="module")
def one_way(tmp_path_factory):
    """From a to b only; the clock of b is behind by more than the delay."""
    site = Site(tmp_path_factory.mktemp("one_way"), Recorder("a"), Recorder("b", ahead=lambda t: -5 * MS))
    for n in range(200):
        site.send("ab", FORTH, START + SECOND + n * MS, delay=lambda a, b: MS + n * US)
    return site.ingest()


def test_offset_and_delay_cannot_be_told_apart_one_way(one_way):
    told = one_way.json("hops", "--path", "a,b")
    found, clock = hop(told, "a", "b"), told["clocks"][0]
    assert (found["timed"], clock["offset_ns"], clock["bound_ns"]) == (False, None, None)
    assert found["min_ns"] == -4 * MS  # delay and offset
    text = one_way.run("hops", "--path", "a,b")
    assert "b - a: cannot be told from delay: packets go one way only" in text and "-4.00 ms*" in text


def test_a_known_offset_makes_delays_of_one_way(one_way):
    found = hop(one_way.json("hops", "--offset", "a=0", "--offset", "b=-5ms"), "a", "b")
    assert (found["timed"], found["min_ns"], found["max_ns"]) == (True, MS, MS + 199 * US)


def test_given_clocks_that_contradict_packets_are_reported(site):
    assert "the given clocks contradict the packets" in site.run("hops", "--same-clock", "--between", "a,b")


def test_a_drifting_clock_is_followed(tmp_path):
    """100 ppm: 30 ms in five minutes, many times the delay."""
    site = Site(tmp_path, Recorder("a"), Recorder("b", ahead=lambda t: 50 * MS + (t - START) // 10_000))
    for n in range(3000):
        t = START + SECOND + n * 100 * MS
        site.send("ab", FORTH, t, delay=lambda a, b: MS)
        site.send("ba", BACK, t + 50 * MS, delay=lambda a, b: MS)
    told = site.ingest().json("hops")
    clock, found = told["clocks"][0], hop(told, "a", "b")
    assert not clock["steady"] and clock["drift_ppm"] == pytest.approx(100, rel=0.05)
    assert (found["arrived"], found["lost"]) == (3000, 0)
    assert abs(found["p50_ns"] - MS) < 4 * MS  # 6 ms of drift in a minute


def test_flows_of_which_nothing_comes_out_are_listed(tmp_path):
    site = Site(tmp_path, *clocks())
    for n in range(300):
        t = START + SECOND + n * MS
        site.send("abc", FORTH, t, delay=lambda a, b: MS)
        site.send("cba", BACK, t, delay=lambda a, b: MS)
        if 100 <= n < 150:
            site.send("ab", ("10.0.0.1", "10.0.0.2", 40001, 8080, TCP), t, delay=lambda a, b: MS)
            site.send(
                "a", ("10.0.0.1", "10.9.9.9", 40001, 8080, TCP), t
            )  # elsewhere: other packets to there do not come either
    told = site.ingest().json("hops")
    assert [(m["from"], m["to"], m["dst_port"], m["packets"]) for m in told["missing_flows"]] == [
        ("b:eth0", "c:eth0", 8080, 50)
    ]
    assert hop(told, "b", "c")["lost"] == 0


def test_packets_from_before_and_after_a_recording_are_not_lost(tmp_path):
    site = Site(tmp_path, *clocks("ab"))
    for n in range(400):
        t = START + SECOND + n * MS
        p = site.send("ab", FORTH, t, delay=lambda a, b: MS)
        if not 100 <= n < 300:
            site.recorders["b"].packets = [x for x in site.recorders["b"].packets if x[0] != p.times["b"]]
        if 100 <= n < 300:
            site.send("ba", BACK, t + 10, delay=lambda a, b: MS)
    found = hop(site.ingest().json("hops"), "a", "b")
    assert (found["arrived"], found["lost"]) == (200, 0) and found["not_judged"] == 200


def test_one_place_alone_is_refused(tmp_path):
    site = Site(tmp_path, Recorder("a"))
    site.send("a", FORTH, START)
    assert "packets of one place only" in site.ingest().run("hops", status=1)


def test_an_interface_that_was_not_recorded_loses_nothing(tmp_path):
    """No loss is reported while b does not record its second interface, half of the time."""
    site = Site(tmp_path, Recorder("a"), Recorder("b"), Recorder("b2", interfaces=("eth1",)))
    for n in range(1000):
        t = START + SECOND + n * 10 * MS
        site.send("ab", FORTH, t, delay=lambda a, b: 100 * US)
        site.send(
            ["a", "b2"] if n < 500 else ["a"], ("10.0.0.1", "10.0.0.3", 5000, 53, UDP), t, delay=lambda a, b: 100 * US
        )
    for name in site.recorders:
        file = tmp_path / f"{name}.pcapng"
        file.write_bytes(site.recorders[name].pcapng())
        status, _, errors = archive_command("ingest", "-A", site.archive, "--recorder", name[0], file)
        assert status == 0, errors
    told = site.json("hops")
    found = {h["to"]: h for h in told["hops"]}
    assert (found["b:eth0"]["arrived"], found["b:eth0"]["lost"]) == (1000, 0)
    second = found["b:eth1"]
    assert (second["arrived"], second["lost"], second["not_judged"]) == (500, 0, 500)


@pytest.mark.parametrize("where", ["direction IS NULL", "dst_port = 443 -- of the web", "interface = 0 OR part > 0"])
def test_any_condition(site, where):
    """A condition may use columns of the statements, and end in a comment."""
    assert site.json("hops", "--where", where)["hops"]


def far_apart(folder, ahead):
    """Flows from a to b only, which is behind or ahead by more than half of --apart; every tenth packet is lost."""
    site = Site(folder, Recorder("a"), Recorder("b", ahead=lambda t: ahead))
    lost = 0
    for n in range(1200):
        flow = ("10.0.0.1", "10.0.0.2", 4000 + n % 60, 53, 17)
        gone = n % 10 == 0 and 100 < n < 1100
        lost += gone
        # Flows have delays of their own: the median of all is between them.
        site.send("a" if gone else "ab", flow, START + SECOND + n * MS, delay=lambda a, b: MS + n % 60 * 10 * US)
    return site.ingest(), lost


@pytest.mark.parametrize("ahead", [-700 * MS, 700 * MS])
def test_the_direction_of_one_way_traffic_is_not_guessed(tmp_path, ahead):
    """Without --path hops reports no losses; with it all of them."""
    site, lost = far_apart(tmp_path, ahead)
    for words in ((), ("--json",)):
        text = site.run("hops", *words, status=1)
        assert "cannot tell the direction: packets go one way only" in text and "give --path a,b or --path b,a" in text
    found = site.json("hops", "--path", "a,b")["hops"]
    assert [(hop["from"][:1], hop["to"][:1], hop["lost"], hop["appeared"]) for hop in found] == [("a", "b", lost, 0)]
    site.run("report", "--html", tmp_path / "page.html")
    assert "cannot tell the direction" in (tmp_path / "page.html").read_text()


def test_clocks_that_are_known_well_tell_the_direction(tmp_path, monkeypatch):
    site, lost = far_apart(tmp_path, 700 * MS)
    monkeypatch.setattr(clocks_of_recorders, "errors", lambda parts: {"a": 300 * MS, "b": 300 * MS})
    found = site.json("hops")["hops"]
    assert [(hop["from"][:1], hop["to"][:1], hop["lost"]) for hop in found] == [("a", "b", lost)]
