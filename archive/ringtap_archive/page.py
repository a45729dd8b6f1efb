# SPDX-License-Identifier: BSD-3-Clause
"""Documents of docs/view.md, and the page that draws them, which the build of ringtap makes of web/."""

from __future__ import annotations

import datetime
import json
import socket
from importlib.metadata import PackageNotFoundError, version

from .built import candidates
from .errors import Refused

PAGE = "page.html"
CURVES = 7  # colours that differ


def _version():
    try:
        return version("ringtap-archive")
    except PackageNotFoundError:
        return "unknown"


def moment(ns: int) -> str:
    """As interface.md has points in time."""
    return f"{datetime.datetime.fromtimestamp(ns // 10**9, datetime.UTC):%Y-%m-%dT%H:%M:%S}.{ns % 10**9:09d}Z"


class Document:
    """Times that are passed are ns since the epoch."""

    def __init__(self, command: str, title: str, first: int, last: int):
        self.origin = first
        self.data = {
            "schema": 1,
            "ringtap": _version(),
            "command": command,
            "time": moment(int(datetime.datetime.now(datetime.UTC).timestamp() * 10**9)),
            "host": socket.gethostname(),
            "applications": [],
            "view": 1,
            "title": title,
            "origin": moment(first),
            "range": {"from_ns": 0, "to_ns": max(last - first, 1)},
            "panels": [],
        }

    def fact(self, name: str, value: str, note: str | None = None) -> None:
        self.data.setdefault("facts", []).append({"name": name, "value": value, **({"note": note} if note else {})})

    def finding(self, grade: str, title: str, evidence: list[str]) -> None:
        self.data.setdefault("findings", []).append({"grade": grade, "title": title, "evidence": list(evidence)})

    def _panel(self, kind: str, name: str, title: str, notes: list[str] | tuple, **more):
        notes = [note for note in notes if note]
        panel = {"kind": kind, "id": name, "title": title, **({"notes": notes} if notes else {}), **more}
        self.data["panels"].append(panel)

    def levels(
        self,
        name: str,
        title: str,
        unit: str,
        edges: list[int],
        series: dict,
        notes: list[str] | tuple = (),
        log: bool = False,
    ) -> None:
        """series: {name: values}, of which the first CURVES are shown."""
        shown = [{"name": n, "values": v, "colour": k} for k, (n, v) in enumerate(list(series.items())[:CURVES])]
        if shown:
            edges = [ns - self.origin for ns in edges]
            self._panel("levels", name, title, notes, unit=unit, edges_ns=edges, series=shown, log=log)

    def table(
        self, name: str, title: str, head: list[str], rows: list[list[str]], names: int, notes: list[str] | tuple = ()
    ) -> None:
        """names: how many columns are names; the others begin with a number."""
        columns = [{"name": h, "kind": "text" if n < names else "label"} for n, h in enumerate(head)]
        self._panel("table", name, title, notes, columns=columns, rows=[[str(c) for c in row] for row in rows])

    def page(self) -> str:
        """One self-contained HTML file."""
        paths = candidates("RINGTAP_ARCHIVE_PAGE", f"web/{PAGE}", [f"share/ringtap/{PAGE}"])
        path = next((p for p in paths if p.is_file()), None)
        if not path:
            raise Refused(f"{PAGE} was not found; build ringtap ('make'), or name it with RINGTAP_ARCHIVE_PAGE")
        text = json.dumps(self.data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        # '<' is in strings only: no name can end the script that the document is in.
        before, after = path.read_text(encoding="utf-8").split("@DOCUMENT@")
        return before + text.replace("<", "\\u003c").encode("utf-8", "replace").decode() + after
