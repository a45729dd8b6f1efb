# SPDX-License-Identifier: BSD-3-Clause
"""The alert rules in a Prometheus server; `meson test alert-rules` tests what raises them."""

import re

import pytest
from harness import prometheus
from harness.flight import Flight
from harness.paths import REPO
from harness.proc import check, until
from harness.prometheus import Exporter, Prometheus

RULES = REPO / "dashboards" / "ringtap.rules.yml"


@pytest.fixture
def forwarding(testpmd):
    pmd = testpmd("net_ring0", "net_ring1")
    pmd.start("start tx_first")
    return pmd


def test_prometheus_evaluates_the_rules(forwarding, closing, tmp_path):
    """Without errors, and without alerts of losses or of missing applications; all their metrics are exported by the
    default collectors, as the service has no options."""
    if prometheus.missing():
        pytest.skip(prometheus.missing())
    assert "12 rules found" in check(["promtool", "check", "rules", "--lint-fatal", RULES])
    used = set(re.findall(r"\bringtap_\w+", re.sub(r"#.*", "", RULES.read_text())))
    assert len(used) > 10
    closing(Flight(forwarding, tmp_path / "incidents", "--buffer", "16M"))
    exporter = closing(Exporter(forwarding))
    # Counters of drivers and of the kernel are there after their first reading.
    until(lambda: used <= {series.split("{")[0] for series in exporter.series()}, what=f"all of {sorted(used)}")
    server = closing(Prometheus(tmp_path, exporter.address, rules=RULES))
    until(lambda: server.query("count_over_time(ringtap_up[1m]) > 3"), what="some scrapes")

    def evaluated():
        rules = [rule for group in server.api("rules")["groups"] for rule in group["rules"]]
        return len(rules) == 12 and all(rule["health"] == "ok" for rule in rules) and rules

    rules = until(evaluated, what="rules that are evaluated")
    assert not [rule["name"] for rule in rules if rule["state"] == "firing"]
