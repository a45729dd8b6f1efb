# SPDX-License-Identifier: BSD-3-Clause
"""ringtap-lab as a program, and what it leaves behind."""
import html.parser
import os
import re
import statistics
import subprocess
import sys

from ringtap_lab import scope

from .paths import BUILD, REPO
from .proc import Proc

LAB = REPO / "lab"


def environment(**more):
    return {"RINGTAP_BUILD": str(BUILD), "PYTHONPATH": str(LAB), "MPLCONFIGDIR": "/tmp/ringtap-mpl", **more}


def start(*args, program=("-m", "ringtap_lab.cli"), cwd=None, **env):
    """ringtap-lab, in the background. program: what runs it."""
    return Proc([sys.executable, *program, *args], env=environment(**env), cwd=cwd)


def run(*args, program=("-m", "ringtap_lab.cli"), timeout=300, cwd=None, wrap=(), **env):
    """CompletedProcess of ringtap-lab with text output. wrap: what to put before the command."""
    return subprocess.run([*map(str, wrap), sys.executable, *program, *map(str, args)], text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL, capture_output=True, cwd=cwd,
                          env={**os.environ, **environment(**env)})


def remains(pid):
    """What a run of that process has left in the system."""
    return scope.remains(lambda name: name.startswith(f"{scope.KIND}-{pid}-"))


class Page(html.parser.HTMLParser):
    """A report: its values, its links to elsewhere, its identifiers."""

    def __init__(self, text):
        super().__init__()
        self.values = []  # (attributes, text) of each value
        self.ids = []
        self.references = []  # whatever a browser would fetch
        self.tags = []
        self._value = None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append(tag)
        if "id" in attributes:
            self.ids.append(attributes["id"])
        for name in ("src", "href", "xlink:href", "srcset", "data", "action"):
            if attributes.get(name):
                self.references.append(attributes[name])
        self.references += re.findall(r"url\(([^)]*)\)", " ".join(v or "" for v in attributes.values()))
        if "data-cell" in attributes:
            self._value = [attributes, ""]

    def handle_data(self, data):
        if self._value:
            self._value[1] += data

    def handle_endtag(self, tag):
        if tag == "span" and self._value:
            self.values.append(tuple(self._value))
            self._value = None


def check_values(page, cells):
    """Each value that the page shows is that of the data, computed anew."""
    assert page.values
    for attributes, text in page.values:
        cell = cells.get(attributes["data-cell"], {"runs": [], "unavailable": None})
        runs = [r["values"].get(attributes["data-metric"]) for r in cell["runs"]]
        runs = [v for v in runs if v is not None]
        scale, digits = float(attributes["data-scale"]), int(attributes["data-digits"])
        if not runs:
            assert text == ("not available" if cell["unavailable"] else "–"), (attributes, text)
            continue
        if int(attributes["data-greatest"]):
            assert text.startswith(f"{max(runs) * scale:,.{digits}f}"), (attributes, text)
            continue
        wanted = f"{statistics.fmean(runs) * scale:,.{digits}f}"
        if len(runs) > 1:
            wanted += f" ± {statistics.stdev(runs) * scale:,.{digits}f}"
        assert text.startswith(wanted), (attributes, text, wanted)


def check_self_contained(page):
    """Nothing comes from elsewhere, no script, and no identifier is there twice."""
    strangers = [r for r in page.references if not r.startswith(("#", "data:"))]
    assert not strangers
    assert not {"script", "iframe", "object", "embed"} & set(page.tags)
    assert len(page.ids) == len(set(page.ids))
    inside = {f"#{i}" for i in page.ids}
    assert {r for r in page.references if r.startswith("#")} <= inside
