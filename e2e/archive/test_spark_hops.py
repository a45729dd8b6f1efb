# SPDX-License-Identifier: BSD-3-Clause
"""The statements of hops, top and report compute the same in Spark and in DuckDB: `make test-spark`."""

import json
import subprocess

import pytest
from harness import archived
from harness.site import SECOND, START, TCP, UDP, Recorder, Site

MS, US = 10**6, 10**3
AHEAD = {"a": 0, "b": 3 * MS, "c": -7200 * SECOND + 123_456_789}
FORTH, BACK = ("10.0.0.1", "10.0.0.2", 40000, 443, TCP), ("10.0.0.2", "10.0.0.1", 443, 40000, TCP)
COMPARE = """
import json, sys
from ringtap_archive import engine, follow, hops, top
out = {}
for name, options in (("duckdb", {}), ("spark", {"master": "local-cluster[2,1,1024]", "settings": {"spark.sql.shuffle.partitions": "4"}})):
    with engine.open(sys.argv[1], name, **options) as con:
        found = follow.Follower(con).run()
        captured = follow.rows_of(con, follow.statement("hops_captured"))
        out[name] = {"hops": hops.as_json(found, found.lost(), found.missing(), captured, {}),
                     "time": found.over_time(found.zero, 10**8)}
        zero, bucket = found.zero, 10**8
        out[name]["rates"] = follow.rows_of(con, follow.statement("report_rates", zero=zero, bucket=bucket))
        for kind in top.KINDS:
            out[name][kind] = [top.as_json(r) for r in top.top(con, kind)]
        if name == "spark":
            executors = len(con.session.sparkContext._jsc.sc().statusTracker().getExecutorInfos()) - 1  # and the driver
        out[name]["where"] = [top.as_json(r) for r in top.top(con, "flows", where="protocol = 17")]
print(json.dumps([executors, out]))
"""


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    site = Site(tmp_path_factory.mktemp("spark_hops"), *[Recorder(n, ahead=lambda t, n=n: AHEAD[n]) for n in "abc"])
    t = START + SECOND

    def delay(a, b):
        return 100 * US + int(site.random.random() ** 3 * 800 * US)

    for n in range(1500):
        t += 200 * US
        site.send("abc", FORTH, t, lost={"c": 0.03}, delay=delay)
        site.send("cba", BACK, t, lost={"b": 0.01}, delay=delay)
        if n % 10 == 0:
            site.send(
                "abc", ("10.0.0.1", "10.0.0.2", 7, 7, UDP), t, ip_id=0, payload=b"same", lost={"c": 0.2}, delay=delay
            )
        if n % 100 == 0:
            site.send("ab", ("10.0.0.1", "10.0.0.2", 99, 99, UDP), t, delay=delay)
    site.ingest()
    done = subprocess.run(
        [archived.python(), "-c", COMPARE, str(site.archive)],
        env=archived.environment(),
        check=False,
        capture_output=True,
        text=True,
        timeout=550,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    executors, found = json.loads(done.stdout.splitlines()[-1])
    assert executors == 2
    return site, found


def test_the_same_of_both_engines(compared):
    _, found = compared
    assert sorted(found["duckdb"]) == sorted(found["spark"])
    for name, ours in found["duckdb"].items():
        assert ours == found["spark"][name], name
        assert ours


def test_losses_are_those_of_the_traffic(compared):
    site, found = compared
    assert len(found["spark"]["hops"]["lost"]) == sum(bool(p.lost_at) for p in site.sent) > 50
