# SPDX-License-Identifier: BSD-3-Clause
"""The structure of Grafana's dashboards by its documentation ("Dashboard JSON model", the classic
one, and the schema of the kind "dashboard"), as far as this project's files use it. Grafana ignores
unknown properties: here they are errors."""

import json
import re

import jsonschema


def _object(required, optional=(), **more):
    """An object that has these properties and no others."""
    return {
        "type": "object",
        "required": list(required),
        "properties": {**required, **dict(optional)},
        "additionalProperties": False,
        **more,
    }


TEXT, FLAG, NUMBER, COUNT = (
    {"type": "string", "minLength": 1},
    {"type": "boolean"},
    {"type": "number"},
    {"type": "integer", "minimum": 0},
)
ANY_TEXT = {"type": "string"}


def _one_of(*values):
    return {"enum": list(values)}


def _list(items, least=0):
    return {"type": "array", "items": items, "minItems": least}


DATASOURCE = _object({"type": _one_of("prometheus"), "uid": _one_of("${datasource}")})
GRID = _object(
    {
        "h": {"type": "integer", "minimum": 1},
        "w": {"type": "integer", "minimum": 1, "maximum": 24},
        "x": {"type": "integer", "minimum": 0, "maximum": 23},
        "y": COUNT,
    }
)
TARGET = _object(
    {"datasource": DATASOURCE, "expr": TEXT, "legendFormat": TEXT, "refId": {"type": "string", "pattern": "^[A-Z]$"}},
    {
        "editorMode": _one_of("code", "builder"),
        "range": FLAG,
        "instant": FLAG,
        "format": _one_of("time_series", "table", "heatmap"),
        "hide": FLAG,
        "interval": ANY_TEXT,
    },
)
# Names of units in Grafana's lists of value formats.
UNITS = _one_of(
    "pps", "bps", "Bps", "percent", "percentunit", "short", "ops", "s", "ms", "\u00b5s", "ns", "bytes", "none", "bool"
)
LINES = _object(
    {},
    {
        "drawStyle": _one_of("line", "bars", "points"),
        "lineWidth": {"type": "integer", "minimum": 0, "maximum": 10},
        "fillOpacity": {"type": "integer", "minimum": 0, "maximum": 100},
        "showPoints": _one_of("auto", "never", "always"),
        "lineInterpolation": _one_of("linear", "smooth", "stepBefore", "stepAfter"),
        "spanNulls": FLAG,
        "axisLabel": ANY_TEXT,
        "stacking": _object({"mode": _one_of("none", "normal", "percent")}, {"group": TEXT}),
    },
)
LINK = _object({"title": TEXT, "url": TEXT, "targetBlank": FLAG})
FIELDS = _object(
    {
        "defaults": _object(
            {"unit": UNITS},
            {
                "min": NUMBER,
                "max": NUMBER,
                "decimals": COUNT,
                "custom": LINES,
                "links": _list(LINK),
                "color": {"type": "object"},
                "thresholds": {"type": "object"},
            },
        ),
        "overrides": _list({"type": "object", "required": ["matcher", "properties"]}),
    }
)
LEGEND = _object(
    {"showLegend": FLAG, "displayMode": _one_of("list", "table", "hidden"), "placement": _one_of("bottom", "right")},
    {"calcs": _list(TEXT)},
)
TOOLTIP = _object({"mode": _one_of("single", "multi", "none")}, {"sort": _one_of("asc", "desc", "none")})
HEATMAP = _object(
    {
        "calculate": FLAG,
        "color": _object(
            {"mode": _one_of("scheme", "opacity")},
            {
                "scheme": TEXT,
                "scale": _one_of("linear", "exponential"),
                "exponent": NUMBER,
                "steps": COUNT,
                "reverse": FLAG,
                "fill": TEXT,
            },
        ),
    },
    {"cellGap": COUNT, "yAxis": {"type": "object"}, "tooltip": {"type": "object"}, "legend": {"type": "object"}},
)
_PANEL = {"id": {"type": "integer", "minimum": 1}, "title": TEXT, "gridPos": GRID}
_QUERIED = {**_PANEL, "datasource": DATASOURCE, "description": TEXT, "fieldConfig": FIELDS, "targets": _list(TARGET, 1)}
PANELS = {
    "row": _object({**_PANEL, "type": _one_of("row"), "collapsed": FLAG, "panels": {"type": "array", "maxItems": 0}}),
    "timeseries": _object(
        {**_QUERIED, "type": _one_of("timeseries"), "options": _object({"legend": LEGEND, "tooltip": TOOLTIP})}
    ),
    "heatmap": _object({**_QUERIED, "type": _one_of("heatmap"), "options": HEATMAP, "links": _list(LINK, 1)}),
}
_VARIABLE = {
    "name": {"type": "string", "pattern": r"^\w+$"},
    "label": TEXT,
    "hide": _one_of(0, 1, 2),
    "current": {"type": "object"},
    "includeAll": FLAG,
    "multi": FLAG,
    "options": {"type": "array"},
    "refresh": _one_of(0, 1, 2),
    "regex": ANY_TEXT,
}
VARIABLE = {
    "oneOf": [
        _object(
            {"name": TEXT, "label": TEXT, "type": _one_of("textbox"), "query": TEXT, "current": {"type": "object"}},
            {"hide": _one_of(0, 1, 2), "options": {"type": "array"}},
        ),
        _object({**_VARIABLE, "type": _one_of("datasource"), "query": _one_of("prometheus")}),
        _object(
            {
                **_VARIABLE,
                "type": _one_of("query"),
                "datasource": DATASOURCE,
                "definition": TEXT,
                "query": _object({"query": TEXT, "refId": TEXT}),
            },
            {"allValue": TEXT, "sort": {"type": "integer", "minimum": 0, "maximum": 6}},
        ),
    ]
}
SCHEMA = _object(
    {
        "title": TEXT,
        "uid": {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,40}$"},
        "tags": _list(TEXT),
        "schemaVersion": {"type": "integer", "minimum": 36},
        "editable": FLAG,
        "graphTooltip": _one_of(0, 1, 2),
        "time": _object({"from": TEXT, "to": TEXT}),
        "templating": _object({"list": _list(VARIABLE)}),
        "annotations": _object({"list": _list({"type": "object"})}),
        "panels": _list({"type": "object", "required": ["type"]}, 1),
    },
    {
        "description": TEXT,
        "version": COUNT,
        "refresh": ANY_TEXT,
        "timezone": ANY_TEXT,
        "links": _list({"type": "object"}),
        "id": {"type": "null"},
    },
)


def check(board):
    """Fails, with the place, if a dashboard differs from the documentation."""
    _validate(board, SCHEMA)
    for panel in board["panels"]:
        # By type, as the error of a "oneOf" would list all alternatives.
        _validate(panel, PANELS[panel["type"]])
    ids = [p["id"] for p in board["panels"]]
    assert len(ids) == len(set(ids))
    _check_places(board["panels"])
    for panel in board["panels"]:
        refs = [t["refId"] for t in panel.get("targets", ())]
        assert len(refs) == len(set(refs)), panel["title"]
    names = {v["name"] for v in board["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)\}?", json.dumps(board)))
    assert used - names <= {"__rate_interval", "__interval", "__all", "__field"}
    _check_links(board["panels"])


def _validate(value, schema):
    """As jsonschema.validate(), which checks the schema each time: a hundred times the work."""
    error = jsonschema.exceptions.best_match(jsonschema.Draft7Validator(schema).iter_errors(value))
    if error:
        raise error


def _check_links(panels):
    """Checks that each panel has a link to `ringtap web`, and each series the labels that it names."""
    for panel in panels:
        links = [*panel.get("links", ()), *panel.get("fieldConfig", {}).get("defaults", {}).get("links", ())]
        assert panel["type"] == "row" or any(link["url"].startswith("${web}/") for link in links), panel["title"]
        for link in links:
            for label in re.findall(r"__field\.labels\.(\w+)", link["url"]):
                assert all(f"{{{{{label}}}}}" in t["legendFormat"] for t in panel["targets"]), panel["title"]


def _check_places(panels):
    """Checks that panels do not overlap, and are within the 24 columns."""
    taken = set()
    for panel in panels:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24, panel["title"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells


def queries(board):
    """(expression as sent to Prometheus, labels in its legend)."""
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            yield (
                target["expr"].replace("$app", ".*").replace("$instance", ".*").replace("$__rate_interval", "1m"),
                set(re.findall(r"\{\{\s*(\w+)\s*\}\}", target["legendFormat"])),
            )


def variables(board):
    """(metric, label) of its variables of the kind label_values(metric, label)."""
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            yield re.fullmatch(r"label_values\((\w+)(?:\{.*\})?, *(\w+)\)", variable["query"]["query"]).groups()
