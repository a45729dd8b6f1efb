# SPDX-License-Identifier: BSD-3-Clause
"""Spark and DuckDB compute the same of the same files: `make test-spark`.

Spark runs as a cluster of two worker processes of one core each, which exchange what they sort and join over
sockets."""

import json
import subprocess

import pytest
from harness import archived, corpus

RECORDERS = ("alpha", "beta", "gamma")
PACKETS = 60_000

QUERIES = {
    "all columns": "SELECT * FROM packets WHERE time_ns % 101 = 0",
    "count by recorder": "SELECT recorder, date, hour, count(*) AS n, sum(length) AS bytes FROM packets GROUP BY recorder, date, hour",
    "talkers": "SELECT src, count(*) AS n, sum(length) AS bytes FROM packets GROUP BY src",
    "conversations": "SELECT src, dst, protocol, src_port, dst_port, count(*) AS n, min(time_ns) AS first, max(time_ns) AS last "
    "FROM packets GROUP BY src, dst, protocol, src_port, dst_port",
    "addresses as text": "SELECT ip_text(src) AS a, ip_text(dst) AS b, count(*) AS n FROM packets GROUP BY ip_text(src), ip_text(dst)",
    "one address": "SELECT time_ns, part, file_offset FROM packets WHERE src = ip('10.0.0.1') OR dst = ip('10.0.0.1')",
    "a network": "SELECT dst, count(*) AS n FROM packets WHERE src BETWEEN ip('10.0.0.0') AND ip('10.0.0.15') GROUP BY dst",
    "an address that is computed": "SELECT count(*) AS n FROM packets WHERE dst = ip(concat('10.0.0.', CAST(hour + 2 AS STRING)))",
    "of IPv6": "SELECT src, count(*) AS n FROM packets WHERE src >= ip('2000::') GROUP BY src",
    "rate": "SELECT time_ns - time_ns % 1000000 AS start, count(*) AS n, sum(length) AS bytes FROM packets "
    "GROUP BY time_ns - time_ns % 1000000",
    "sizes": "SELECT length - length % 64 AS size, count(*) AS n, avg(captured) AS mean FROM packets GROUP BY length - length % 64",
    "flags": "SELECT tcp_flags & 2 AS syn, tcp_flags & 4 AS reset, count(*) AS n FROM packets WHERE protocol = 6 "
    "GROUP BY tcp_flags & 2, tcp_flags & 4",
    "tunnels": "SELECT tunnel, tunnel_id, inner_src, count(*) AS n FROM packets WHERE tunnel IS NOT NULL GROUP BY tunnel, tunnel_id, inner_src",
    "flows": "SELECT recorder, flow_id, packets_ab, packets_ba, bytes_ab, bytes_ba, tcp_flags, retransmissions, rtt_ns, latency_p50_ns "
    "FROM flows",
    "largest flows": "SELECT flow_id, sum(bytes_ab + bytes_ba) AS bytes FROM flows GROUP BY flow_id ORDER BY bytes DESC, flow_id LIMIT 10",
    "packets of flows": "SELECT f.recorder, f.flow_id, f.packets_ab + f.packets_ba AS counted, count(*) AS n FROM flows f JOIN packets p "
    "ON p.flow_id = f.flow_id AND p.part = f.part GROUP BY f.recorder, f.flow_id, f.packets_ab + f.packets_ba",
    "from host to host": "SELECT a.recorder AS start, b.recorder AS stop, count(*) AS n, min(b.time_ns - a.time_ns) AS least "
    "FROM packets a JOIN packets b ON a.digest = b.digest AND a.flow_id = b.flow_id AND a.recorder < b.recorder "
    "GROUP BY a.recorder, b.recorder",
    "gaps": "SELECT max(gap) AS longest, recorder FROM (SELECT recorder, time_ns - lag(time_ns) OVER (PARTITION BY recorder, flow_id "
    "ORDER BY time_ns, file_offset) AS gap FROM packets) AS g GROUP BY recorder",
    "median": "SELECT recorder, length FROM (SELECT recorder, length, row_number() OVER (PARTITION BY recorder ORDER BY length, time_ns, "
    "file_offset) AS place, count(*) OVER (PARTITION BY recorder) AS n FROM packets) AS r WHERE 2 * place = n + 1 - (n + 1) % 2",
    "losses": "SELECT l.recorder, i.name, l.reason, sum(l.packets) AS n FROM losses l JOIN interfaces i "
    "ON l.part = i.part AND l.interface = i.interface GROUP BY l.recorder, i.name, l.reason",
    "interfaces": "SELECT recorder, interface, name, linktype, snaplen, part FROM interfaces",
    "not in the others": "SELECT count(*) AS n FROM packets a LEFT JOIN packets b ON a.digest = b.digest AND b.recorder = 'beta' "
    "WHERE a.recorder = 'alpha' AND b.digest IS NULL",
}

COMPARE = """
import decimal, hashlib, json, sys, time
from ringtap_archive import engine
archive, master, queries = json.load(sys.stdin)

def plain(value):
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).hex()
    if isinstance(value, decimal.Decimal):
        value = float(value)
    if isinstance(value, float):
        return f"{value:.12g}"
    return "null" if value is None else str(value)

def digest(table):
    rows = sorted([plain(v) for v in row.values()] for row in table.to_pylist())
    return [len(rows), table.column_names, hashlib.sha256(json.dumps(rows).encode()).hexdigest()]

out = {}
for name, options in (("duckdb", {}), ("spark", {"master": master})):
    with engine.open(archive, name, **options) as con:
        out[name] = {}
        for title, sql in queries.items():
            begin = time.monotonic()
            out[name][title] = digest(con.sql(sql).arrow()) + [round(time.monotonic() - begin, 2)]
        if name == "spark":
            hosts = con.session.sparkContext._jsc.sc().statusTracker().getExecutorInfos()
            out["executors"] = len(hosts) - 1  # and the driver
print(json.dumps(out))
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """The same traffic at two hosts, one of which loses some; other traffic at a third; and the corpus."""
    folder = tmp_path_factory.mktemp("spark")
    make = ["generate", "--packets", PACKETS, "--flows", "300", "--mix", "realistic"]
    commands = [
        [*make, "--seed", seed, *more, "-w", folder / f"{name}.pcapng"]
        for name, seed, more in zip(RECORDERS, (1, 1, 2), ([], ["--loss", "0.01"], ["--ids"]))
    ]
    commands += [
        ["ingest", "-q", "-A", folder / "archive", "--recorder", name, folder / f"{name}.pcapng"] for name in RECORDERS
    ]
    commands.append(["ingest", "-q", "-A", folder / "archive", "--recorder", "007", *corpus.make(folder)[:20]])
    statuses, errors = archived.many(commands)
    assert not any(statuses), errors
    return folder / "archive"


@pytest.fixture(scope="module")
def compared(archive):
    done = subprocess.run(
        [archived.python(), "-c", COMPARE],
        env=archived.environment(),
        check=False,
        capture_output=True,
        text=True,
        input=json.dumps([str(archive), "local-cluster[2,1,1024]", QUERIES]),
        timeout=550,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_two_workers(compared):
    assert compared["executors"] == 2 and len(QUERIES) >= 20


@pytest.mark.parametrize("title", QUERIES)
def test_same_result(compared, title):
    ours, theirs = compared["duckdb"][title], compared["spark"][title]
    print(f"{title}: {ours[0]} rows, DuckDB {ours[3]} s, Spark {theirs[3]} s")
    assert ours[:3] == theirs[:3] and ours[0] > 0


def test_command(archive):
    sql = "SELECT recorder, src, count(*) AS n FROM packets GROUP BY recorder, src ORDER BY recorder, src"
    words = ["query", "-A", archive, sql, "--csv", "--recorder", "alpha"]
    assert (
        archived.run(*words).stdout
        == archived.run(*words, "--engine", "spark", "--master", "local[2]", timeout=550).stdout
    )
    done = archived.run(
        "query", "-A", archive, "SELEKT", "--engine", "spark", "--master", "local[1]", status=1, timeout=550
    )
    assert done.stderr.splitlines()[-1].startswith("ringtap: archive: Spark: ")
