# SPDX-License-Identifier: BSD-3-Clause
"""`top` against sums over packets that the test made."""

import collections

import pytest
from harness.site import SECOND, START, TCP, UDP, Recorder, Site, frame

pytest.importorskip("duckdb")
MS = 10**6
FLOWS = [
    ("10.0.0.1", "10.0.0.2", 40000, 443, TCP),
    ("10.0.0.3", "10.0.0.2", 40001, 443, TCP),
    ("10.0.0.1", "10.0.0.4", 5353, 53, UDP),
    ("fd00::1", "fd00::2", 1024, 53, UDP),
    ("10.0.0.4", "10.0.0.1", 8080, 50000, TCP),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """a records all packets, b the rest after losses, and the forwarder fwd received and sent ones."""
    site = Site(tmp_path_factory.mktemp("top"), Recorder("a"), Recorder("b"), Recorder("fwd", interfaces=("p0", "p1")))
    for n in range(2000):
        src, dst, sport, dport, protocol = FLOWS[min(int(site.random.expovariate(0.8)), len(FLOWS) - 1)]
        if site.random.random() < 0.3:
            src, dst, sport, dport = dst, src, dport, sport
        data = frame(
            src, dst, sport, dport, protocol, n, bytes(site.random.randrange(1000)), vlan=7 if n % 5 == 0 else None
        )
        t = START + n * MS
        site.recorders["a"].record(t, data)
        if n % 10:
            site.recorders["b"].record(t + 1000, data)
        site.recorders["fwd"].record(t + 2000, data, 0, "rx")
        if n % 4:
            site.recorders["fwd"].record(t + 3000, data, 1, "tx")
        site.sent.append((t, (src, dst, sport, dport, protocol), len(data), n))
    arp = bytes.fromhex("ffffffffffff0200000000010806") + bytes(46)
    for n in range(10):
        site.recorders["a"].record(START + n * MS, arp)
    return site.ingest()


def sums(site, key, since=START, until=START + 10 * SECOND):
    """key -> [packets, bytes]; key(flow, n) gives those of a packet."""
    out = collections.defaultdict(lambda: [0, 0])
    for t, flow, length, n in site.sent:
        if since <= t < until:
            for k in key(flow, n):
                out[k][0] += 1
                out[k][1] += length
    return dict(out)


def rows(site, by, *words):
    return site.json("top", "--view", by, "--limit", 100, *words)["rows"]


def test_talkers(site):
    found = {r["address"]: r for r in rows(site, "talkers")}
    sent, received = sums(site, lambda f, n: [f[0]]), sums(site, lambda f, n: [f[1]])
    assert {k: [r["packets_out"], r["bytes_out"]] for k, r in found.items() if r["packets_out"]} == sent
    assert {k: [r["packets_back"], r["bytes_back"]] for k, r in found.items() if r["packets_back"]} == received
    assert all(r["recorder"] in ("a", "fwd") and r["recorders"] == 3 for r in found.values())
    assert [r["bytes"] for r in rows(site, "talkers")] == sorted((r["bytes"] for r in found.values()), reverse=True)


def test_conversations(site):
    found = {(r["a"], r["b"]): [r["packets"], r["bytes"]] for r in rows(site, "conversations", "--recorder", "a")}
    assert found == sums(site, lambda f, n: [tuple(sorted(f[:2]))])


@pytest.mark.parametrize("recorder", ["a", "fwd"])
@pytest.mark.parametrize("window", [(), (START + 400 * MS, START + 1500 * MS)], ids=["all", "window"])
def test_flows_count_once_and_within_the_window(site, recorder, window):
    """fwd received and sent: the same packets. Clients have the greater port."""
    times = ("--from", f"@{window[0] // SECOND}.4", "--to", f"@{window[1] // SECOND}.5") if window else ()
    found = {
        (r["a"], r["b"], r["a_port"], r["b_port"], r["protocol"]): [r["packets"], r["bytes"]]
        for r in rows(site, "flows", "--recorder", recorder, *times)
    }
    expected = sums(site, lambda f, n: [f if f[2] > f[3] else (f[1], f[0], f[3], f[2], f[4])], *window)
    if recorder == "fwd" and window:  # its clock is 2 and 3 us late: none of its packets is at the edge
        assert sum(p for p, _ in found.values()) == sum(p for p, _ in expected.values())
    assert found == expected


def test_ports_protocols_and_vlans(site):
    assert {(r["protocol"], r["port"]): r["packets"] for r in rows(site, "ports")} == {
        k: v[0] for k, v in sums(site, lambda f, n: [(f[4], min(f[2:4]))]).items()
    }
    protocols = {(r["ethertype"], r["protocol"]): r["packets"] for r in rows(site, "protocols")}
    assert protocols.pop((0x0806, None)) == 10
    assert protocols == {
        k: v[0] for k, v in sums(site, lambda f, n: [(0x86DD if ":" in f[0] else 0x0800, f[4])]).items()
    }
    assert {r["vlan"]: r["packets"] for r in rows(site, "vlans")} == {7: 400, None: 1610}


def test_recorders_and_interfaces_count_what_was_recorded(site):
    assert {r["recorded"]: r["packets"] for r in rows(site, "recorders")} == {"a": 2010, "b": 1800, "fwd": 3500}
    assert {(r["place"], r["direction"]): r["packets"] for r in rows(site, "interfaces")} == {
        ("a:eth0", None): 2010,
        ("b:eth0", None): 1800,
        ("fwd:p0", "rx"): 2000,
        ("fwd:p1", "tx"): 1500,
    }


def test_sum_adds_recorders_up(site):
    packets = sums(site, lambda f, n: ["all"])["all"][0]
    found = rows(site, "conversations", "--sum", "--recorder", "a", "--recorder", "b")
    assert sum(r["packets"] for r in found) == packets + packets * 9 // 10


def test_where_and_order(site):
    expected = sums(site, lambda f, n: [tuple(sorted(f[:2]))] if f[4] == UDP else [])
    found = rows(
        site, "conversations", "--where", "protocol = 17", "--by", "packets", "--recorder", "b", "--recorder", "a"
    )
    assert [r["packets"] for r in found] == sorted((p for p, _ in expected.values()), reverse=True)


def test_text(site):
    text = site.run("top", "--view", "flows", "--limit", 2)
    head, *body = [line for line in text.splitlines() if not line.startswith(("2025", "Each"))]
    assert head.split("  ")[0] == "A" and len(body) == 2 and "10.0.0.1:40000  10.0.0.2:443" in body[0]
    assert "[fd00::1]:1024" in site.run("top", "--view", "flows")


def test_an_empty_window_is_refused(site):
    assert "no packets in this window" in site.run("top", "--from", "2031-01-01", status=1)
