# SPDX-License-Identifier: BSD-3-Clause
"""ringtap export, and a Prometheus server that scrapes it."""

import json
import re
import shutil
import socket
import urllib.error
import urllib.parse
import urllib.request

from .paths import RINGTAP
from .proc import Proc, until

OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"


def missing():
    """The reason why it cannot run, or None."""
    for program in ("prometheus", "promtool"):
        if not shutil.which(program):
            return f"{program} is not installed (prometheus)"
    return None


def get(url, accept=None, method="GET", timeout=20, host=None):
    """(status, content type, text)"""
    request = urllib.request.Request(
        url, method=method, headers={k: v for k, v in (("Accept", accept), ("Host", host)) if v}
    )
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.headers["Content-Type"], e.read().decode()


def parse(text):
    """{series: value}; fails if a series is there twice."""
    found = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        series, _, value = line.rpartition(" ")
        assert series not in found, f"twice: {series}"
        found[series] = float(value)
    return found


def labels_by_name(series):
    """{metric: names of its labels}. Series of a metric may have different ones."""
    found = {}
    for name in series:
        metric, _, labels = name.partition("{")
        found.setdefault(metric, set()).update(re.findall(r'(\w+)="', labels))
    return found


_SELECTOR = re.compile(r"\b(ringtap_\w+|up(?=\s*\{))(?:\s*\{([^}]*)\})?")
# Labels that Prometheus adds to each series.
OF_PROMETHEUS = {"instance", "job"}
_GROUPED = re.compile(r"\b(?:by|on|ignoring|without|group_left|group_right)\s*\(([^)]*)\)")


def names_in(expression):
    """({metric: labels that it is selected by}, labels by which it is grouped) of an expression in PromQL."""
    selected = {}
    for metric, labels in _SELECTOR.findall(expression):
        selected.setdefault(metric, set()).update(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", labels))
    grouped = {name.strip() for names in _GROUPED.findall(expression) for name in names.split(",")}
    return selected, grouped - {""}


def post(exporter, path, data=b"", headers=None):
    """The status of the answer."""
    request = urllib.request.Request(
        f"http://{exporter.address}{path}", method="POST", data=data, headers=headers or {}
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status
    except urllib.error.HTTPError as e:
        return e.code


class Exporter:
    """A `ringtap export` at a free port."""

    def __init__(self, *apps, args=(), prefix=()):
        self.proc = Proc([*prefix, RINGTAP, "export", "--listen", "127.0.0.1:0", *args, *(a.prefix for a in apps)])
        try:
            found = self.proc.expect(r"^Exporting at (\S+)$")
        except BaseException:
            self.close()
            raise
        self.url = found.group(1).decode()
        self.address = self.url.split("/")[2]
        for app in apps:
            self.shows(app)

    def connect(self):
        host, port = self.address.split(":")
        return socket.create_connection((host, int(port)), timeout=20)

    def text(self, accept=None):
        status, _type, text = get(self.url, accept)
        assert status == 200, text
        return text

    def series(self, accept=None):
        return parse(self.text(accept))

    def values(self, name, **labels):
        """Values of the series of this name with these labels, among others."""
        wanted = {f'{k}="{v}"' for k, v in labels.items()}
        return [
            v
            for s, v in self.series().items()
            if s.split("{")[0] == name and wanted <= set(re.findall(r'\w+="[^"]*"', s))
        ]

    def value(self, name, **labels):
        """Value of the only one of these series."""
        found = self.values(name, **labels)
        assert len(found) == 1, f"{name} {labels}: {found}"
        return found[0]

    def becomes(self, name, value, **labels):
        """Waits until the only one of these series, which may be absent before, has this value."""
        until(lambda: self.values(name, **labels) == [value], what=f"{name} {labels}: {value}")

    def up(self, app):
        return self.series().get(f'ringtap_up{{app="{app.prefix}"}}')

    def shows(self, app):
        until(lambda: self.up(app) == 1, what=f"metrics of {app.prefix}")

    def close(self):
        self.proc.close()


class Prometheus:
    """In a temporary folder, at a free port."""

    def __init__(self, folder, target, interval="500ms", rules=None):
        config = folder / "prometheus.yml"
        config.write_text(f"""\
global: {{scrape_interval: {interval}, scrape_timeout: {interval}, evaluation_interval: 1s}}
rule_files: [{rules or ''}]
scrape_configs:
  - job_name: ringtap
    static_configs: [{{targets: ['{target}']}}]
""")
        until(lambda: self._started(config, folder / "data"), what="a port that stays free")

    def _started(self, config, data):
        """At a port that was free; another process may have taken it meanwhile."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = "127.0.0.1:%d" % free.getsockname()[1]
        self.proc = Proc(
            [
                "prometheus",
                f"--config.file={config}",
                f"--storage.tsdb.path={data}",
                f"--web.listen-address={self.address}",
            ]
        )
        try:
            self.proc.expect("Server is ready to receive web requests")
        except BaseException:
            self.close()
            if "address already in use" in self.proc.output:
                return False
            raise
        return True

    def api(self, what, **args):
        _status, _type, text = get(f"http://{self.address}/api/v1/{what}?" + urllib.parse.urlencode(args))
        answer = json.loads(text)
        assert answer["status"] == "success", f"{args}: {text}"
        return answer["data"]

    def query(self, expression):
        """[(labels, value)]"""
        return [(r["metric"], float(r["value"][1])) for r in self.api("query", query=expression)["result"]]

    def targets(self):
        return self.api("targets")["activeTargets"]

    def close(self):
        self.proc.close()
