# SPDX-License-Identifier: BSD-3-Clause
"""Reads a report of ringtap-lab as a browser does, and computes its values again from the data.
Uses no code of the report generator, whose faults must not be repeated here."""

import base64
import csv
import html.parser
import io
import json
import math
import re

NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
VOID = {"meta", "link", "br", "img", "hr", "input"}


def numbers(text):
    """The numbers in a text, without separators: 1,200 and 1200 are the same."""
    return {n.replace(",", "").rstrip(".") for n in NUMBER.findall(text)}


class Element:
    def __init__(self, tag, attributes, parent):
        self.tag, self.attributes, self.parent, self.children = tag, attributes, parent, []

    def text(self):
        return "".join(c if isinstance(c, str) else c.text() for c in self.children)

    def classes(self):
        return self.attributes.get("class", "").split()

    def all(self, wanted):
        """Elements below this one for which wanted() is true."""
        for child in self.children:
            if isinstance(child, Element):
                if wanted(child):
                    yield child
                yield from child.all(wanted)

    def tagged(self, *tags):
        return list(self.all(lambda e: e.tag in tags))

    def classed(self, name):
        return list(self.all(lambda e: name in e.classes()))


class Page(html.parser.HTMLParser):
    """The tree of elements, and the URLs that a browser would fetch."""

    def __init__(self, text):
        super().__init__()
        self.root = self._open = Element("", {}, None)
        self.ids, self.references, self.tags = [], [], []
        self.feed(text)
        assert self._open is self.root, f"<{self._open.tag}> is not closed"
        self.values = self.root.classed("value")

    def handle_starttag(self, tag, attributes):
        attributes = {k: v or "" for k, v in attributes}
        element = Element(tag, attributes, self._open)
        self._open.children.append(element)
        if tag not in VOID:
            self._open = element
        self.tags.append(tag)
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if tag == "a" and "source" in element.classes() and attributes["href"].startswith("https://"):
            return  # fetched only if a reader follows the link
        self.references += [
            attributes[n] for n in ("src", "href", "xlink:href", "srcset", "data", "action") if attributes.get(n)
        ]
        self.references += re.findall(r"url\(([^)]*)\)", " ".join(attributes.values()))

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert tag == self._open.tag, f"</{tag}> where <{self._open.tag}> is open"
        self._open = self._open.parent

    def handle_data(self, data):
        self._open.children.append(data)

    def experiments(self):
        """Sections of the experiments, by name."""
        sections = self.root.classed("experiment")
        return {section.tagged("h2")[0].attributes["id"]: section for section in sections}


def load(folder):
    """The data files of a report, by name of the experiment."""
    found = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    return {data["experiment"]: data for data in found}


def check_self_contained(page):
    """Checks that the page loads nothing, has no script, and no identifier twice."""
    strangers = [r for r in page.references if not r.startswith(("#", "data:"))]
    assert not strangers
    assert not {"script", "iframe", "object", "embed"} & set(page.tags)
    assert len(page.ids) == len(set(page.ids))
    inside = {f"#{i}" for i in page.ids}
    assert {r for r in page.references if r.startswith("#")} <= inside


# Statistics of the values of a metric, by definition.


def _mean(values):
    return math.fsum(values) / len(values)


def _deviation(values):
    middle = _mean(values)
    return math.sqrt(math.fsum((v - middle) ** 2 for v in values) / (len(values) - 1))


_MADE = {"mean": _mean, "least": min, "greatest": max, "sum": math.fsum, "runs": math.fsum}


def _cell(data, marks, prefix="data-"):
    experiment = data[marks["data-experiment"]]
    return next(
        (c for c in experiment["cells"] if c["cell"] == marks[f"{prefix}cell"]), {"runs": [], "unavailable": None}
    )


def _values(cell, metric):
    return [r["values"][metric] for r in cell["runs"] if r["values"].get(metric) is not None]


def _datum(cell, path):
    keys = path.split("/")
    found = next((r["data"] for r in cell["runs"] if keys[0] in r["data"]), None)
    for key in keys if found is not None else ():
        found = found[int(key)] if isinstance(found, list) else found[key]
    return found


def wanted(data, marks):
    """The expected text of a value, without its unit."""
    return _wanted(data, marks).replace("-", "\N{MINUS SIGN}")


def _wanted(data, marks):
    cell, digits = _cell(data, marks), int(marks["data-digits"])
    missing = "not available" if cell["unavailable"] else "–"
    if "data-path" in marks:
        number = _datum(cell, marks["data-path"])
        return missing if number is None else f"{number:,.{digits}f}"
    values, scale = _values(cell, marks["data-metric"]), float(marks["data-scale"])
    made = _MADE[marks["data-how"]](values) if values else None
    if "data-base-cell" in marks:
        base = _values(_cell(data, marks, "data-base-"), marks["data-base-metric"])
        under = _MADE[marks["data-base-how"]](base) if base else None
        if made is None or not under:
            return "–"
        return (
            f"{100 * made / under - 100:+,.{digits}f}" if int(marks["data-change"]) else f"{made / under:,.{digits}f}"
        )
    if made is None:
        return missing
    text = f"{made * scale:,.{digits}f}"
    if marks["data-how"] == "runs":
        return f"{text} of {len(values)} runs"
    if marks["data-how"] == "mean" and len(values) > 1:
        text += f" ± {_deviation(values) * scale:,.{digits}f}"
    return text


def _same(shown, right):
    """Whether two numbers are equal, or differ in the last digit only, as sums in another order
    may."""
    ours, theirs = NUMBER.findall(shown), NUMBER.findall(right)
    if NUMBER.sub("#", shown) != NUMBER.sub("#", right):
        return False
    return all(
        abs(float(a.replace(",", "")) - float(b.replace(",", ""))) <= 1.01 * 10 ** -len(b.partition(".")[2]) * (a != b)
        for a, b in zip(ours, theirs)
    )


def check_values(page, data):
    """Checks each value on the page against the data."""
    assert page.values
    for element in page.values:
        right, shown = wanted(data, element.attributes), element.text()
        unit = shown[len(right) :]
        assert _same(shown[: len(right)], right), (element.attributes, shown, right)
        assert not NUMBER.search(unit), (element.attributes, shown)
    _check_conditions(page, data)


def _check_conditions(page, data):
    def runs(element):
        return [r for c in data[element.attributes["data-experiment"]]["cells"] for r in c["runs"]]

    for element in page.root.classed("around"):
        shares = [100 * r["around"][element.attributes["data-around"]] for r in runs(element)]
        assert _same(element.text(), f"{_mean(shares):.1f} ({max(shares):.1f})"), element.text()
    for element in page.root.classed("spent"):
        assert _same(element.text(), f"{math.fsum(r['seconds'] for r in runs(element)) / 60:.1f}")
    for element in page.root.classed("runs"):
        assert element.text() == str(len(runs(element)))


def _is_result(cell):
    """Whether a cell is a result: not the name of a row, a published value or a value of the
    machine."""
    table = next(e for e in _above(cell) if e.tag == "table")
    if {"name", "published", "fact"} & set(cell.classes()) or "facts" in table.classes():
        return False
    return not ("summary" in table.classes() and cell.attributes.get("data-head") in ("claim", "published"))


def _above(element):
    while element.parent:
        element = element.parent
        yield element


def _unmarked(element):
    """The text without marked values, names of values, and times of day."""
    marked = {"value", "around", "spent", "runs", "name"}
    text = "".join(
        c if isinstance(c, str) else "" if marked & set(c.classes()) else _unmarked(c) for c in element.children
    )
    return re.sub(r"\d+ \w+ \d{4}, \d\d:\d\d UTC – \d\d:\d\d", "", text)


def check_no_figure_is_unmarked(page):
    """Checks that each measured value in a table is marked. (Names may contain digits.)"""
    for cell in page.root.tagged("td"):
        if _is_result(cell):
            loose = re.search(r"(?<![\w-])\d", _unmarked(cell))
            assert not loose, (cell.attributes, cell.text())


def check_published(page, data, documents):
    """Checks that each published value is in the data, with its publisher, or in the documents."""
    sources = numbers(documents)
    for name, experiment in data.items():
        assert all(p["source"] for p in experiment["published"]), name
        for p in experiment["published"]:
            sources |= numbers(" ".join(p.values()))
    shown = page.root.classed("published")
    assert shown
    for element in shown:
        assert numbers(element.text()) <= sources, element.text()


def check_downloads(page, data):
    """Checks that the embedded CSV files have every value of every run."""
    links = {
        a.attributes["download"]: a.attributes["href"] for a in page.root.tagged("a") if "download" in a.attributes
    }
    assert set(links) == {f"{name}.csv" for name, d in data.items() if any(c["runs"] for c in d["cells"])}
    for link, address in links.items():
        kind, _, encoded = address.partition(",")
        assert kind == "data:text/csv;base64"
        rows = list(csv.DictReader(io.StringIO(base64.b64decode(encoded).decode())))
        cells = {c["cell"]: c for c in data[link.removesuffix(".csv")]["cells"]}
        assert len(rows) == sum(len(c["runs"]) for c in cells.values())
        for row in rows:
            run = next(r for r in cells[row["cell"]]["runs"] if r["repetition"] == int(row["repetition"]) - 1)
            for metric, value in run["values"].items():
                assert row[metric] == ("" if value is None else str(value)) or float(row[metric]) == value


def check(page, data, documents):
    """All checks."""
    check_self_contained(page)
    check_values(page, data)
    check_no_figure_is_unmarked(page)
    check_published(page, data, documents)
    check_downloads(page, data)
    assert not page.root.classed("broken")


# In a browser:

_PLOTS = """[...document.querySelectorAll('figure svg')].map(s => {
    const box = s.getBoundingClientRect();
    return [box.left, box.right, box.height, s.querySelectorAll('path').length,
            [...s.querySelectorAll('text')].filter(t => t.getBoundingClientRect().height > 6).length];
    })"""
# Elements beyond the width of the page, except in scrollable ones.
_OUTSIDE = """[...document.querySelectorAll('body *')].filter(e => {
    const box = e.getBoundingClientRect();
    return box.width && box.right > window.innerWidth + 1 && !e.closest('.scroll, pre, svg');
    }).map(e => e.outerHTML.slice(0, 120))"""
# Numbers in the summary that are truncated or overlap.
_CROWDED = """[...document.querySelectorAll('.summary li')].filter(e => {
    const [a, b] = [...e.children].map(c => c.getBoundingClientRect());
    return e.scrollWidth > e.clientWidth + 1 || a.right > b.left + 1;
    }).map(e => e.textContent)"""


def check_drawn(browser, path, width):
    """Checks a page in a window of this width: it fetches nothing, has no errors, plots are drawn,
    and nothing exceeds the width. Returns the number of plots."""
    assert browser.complaints == []
    assert {u for u in browser.requests if not u.startswith("data:")} == {f"file://{path}"}
    assert browser.ask("document.documentElement.scrollWidth") <= width  # tables are scrollable
    assert browser.ask(_OUTSIDE) == []
    assert browser.ask(_CROWDED) == []
    plots = browser.ask(_PLOTS)
    for left, right, height, paths, texts in plots:
        assert right - left >= 300 and left >= 0 and right <= width and height > 150 and paths > 20 and texts > 5
    return len(plots)
