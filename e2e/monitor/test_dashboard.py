# SPDX-License-Identifier: BSD-3-Clause
"""The dashboard and the alert rules: accepted by Grafana and Prometheus, with metrics that the
exporter has."""

import copy
import json
import subprocess

import jsonschema
import pytest
import yaml
from harness import grafana, prometheus
from harness.flight import Flight
from harness.paths import REPO
from harness.proc import until
from harness.prometheus import OF_PROMETHEUS, Exporter, Prometheus, labels_by_name, names_in

FOLDER = REPO / "dashboards"
BOARD = json.loads((FOLDER / "ringtap.json").read_text())
RULES = sorted(FOLDER.glob("*.rules.yml"))


def rules():
    """(name, expression) of all alert and recording rules."""
    return [
        (rule.get("alert") or rule["record"], rule["expr"])
        for path in RULES
        for group in yaml.safe_load(path.read_text())["groups"]
        for rule in group["rules"]
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("prometheus")


@pytest.fixture
def exporter(testpmd, closing, tmp_path):
    """An exporter of an application with data of all collectors: one port delivers no packets, so
    that not all polls are busy, and one forwards them, so that there is latency. It has a flight
    recorder."""
    pmd = testpmd("net_ring0", "net_null1")
    pmd.start()
    closing(Flight(pmd, tmp_path / "incidents", "--buffer", "16M", "--direction", "rx"))
    return closing(Exporter(pmd, args=("--collectors", "all")))


@pytest.fixture
def server(exporter, closing, folder):
    reason = prometheus.missing()
    if reason:
        pytest.skip(reason)
    server = closing(Prometheus(folder, exporter.address))
    until(lambda: server.query("count_over_time(ringtap_up[1m]) > 3"), what="some scrapes")
    return server


def check_names_are_exported(exporter):
    def known():
        found = labels_by_name(exporter.series())
        return {name: labels | OF_PROMETHEUS for name, labels in {**found, "up": set()}.items()}

    expressions = [e for e, _legend in grafana.queries(BOARD)] + [e for _name, e in rules()]
    # The first snapshots lack latency and the counters of the kernel and of drivers.
    late = {metric for e in expressions for metric in names_in(e)[0]}

    def complete():
        now = known()
        return now if late <= set(now) else None

    found = until(complete, what=f"all of {sorted(late)}")
    for expression in expressions:
        check_names(expression, found)
    for metric, label in grafana.variables(BOARD):
        assert label in found[metric]
    for wrong in (
        "ringtap_queue_packet_total",
        'ringtap_up{application="a"}',
        "sum by (kueue) (ringtap_queue_packets_total)",
    ):
        with pytest.raises(AssertionError):
            check_names(wrong, found)


def healthy(server):
    (target,) = server.targets()
    return target["health"] == "up" and not target["lastError"]


def test_every_query_has_data_and_its_labels(exporter, server):
    check_names_are_exported(exporter)
    until(lambda: healthy(server), what="a scrape in time")
    (up,) = (value for labels, value in server.query("ringtap_up"))
    assert up == 1
    queries = list(grafana.queries(BOARD))
    assert len(queries) > 15
    for expression, legend in queries:
        until(lambda: server.query(expression), what=f"data for {expression}")
        for labels, _value in server.query(expression):
            assert legend <= set(labels), (expression, labels)
    for metric, label in grafana.variables(BOARD):
        assert all(label in labels for labels, _value in server.query(metric)), metric
    # An alert that does not fire has no data; an invalid query is an error.
    assert RULES
    for path in RULES:
        done = subprocess.run(["promtool", "check", "rules", path], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
    for _name, expression in rules():
        server.query(expression)


def check_names(expression, known):
    """Checks that metrics and labels of an expression are exported."""
    selected, grouped = names_in(expression)
    assert selected, expression
    for metric, labels in selected.items():
        assert metric in known, f"{expression}: the exporter has no {metric}"
        assert labels <= known[metric], f"{expression}: {metric} has no label {labels - known[metric]}"
        assert grouped <= known[metric], f"{expression}: {metric} has no label {grouped - known[metric]}"


SPOILED = (
    lambda b: b.pop("schemaVersion"),
    lambda b: b.update(graphTooltip=3),
    lambda b: b.update(boards=[]),
    lambda b: b["panels"][1].update(type="graph2"),
    lambda b: b["panels"][1].pop("gridPos"),
    lambda b: b["panels"][1]["gridPos"].update(x=20),
    lambda b: b["panels"][2].update(id=b["panels"][1]["id"]),
    lambda b: b["panels"][1]["targets"][0].pop("refId"),
    lambda b: b["panels"][1]["targets"][0].update(query="up"),
    lambda b: b["panels"][1]["fieldConfig"]["defaults"].update(unit="packets"),
    lambda b: b["panels"][1]["targets"][0].update(expr="ringtap_up{app=~\"$application\"}"),
    lambda b: b["templating"]["list"][1].update(refresh=7),
    lambda b: b["panels"][1]["fieldConfig"]["defaults"]["links"][0].update(url="${web}/#app=${__field.labels.host}"),
    lambda b: b["panels"][1]["fieldConfig"]["defaults"].update(links=[]),
)


def test_dashboard_matches_the_documentation_of_grafana():
    """The check finds each of these faults."""
    jsonschema.Draft7Validator.check_schema(grafana.SCHEMA)
    grafana.check(BOARD)
    for spoil in SPOILED:
        board = copy.deepcopy(BOARD)
        spoil(board)
        with pytest.raises((jsonschema.ValidationError, AssertionError, KeyError)):
            grafana.check(board)
