# SPDX-License-Identifier: BSD-3-Clause
"""`make bench ONLY=page`: how long Chromium takes to draw a document of a million points, and frames a second of panning.

The aims are 1 s and 30 frames/s. Prints a table, and writes the measurements as JSON. No time makes it fail."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import random
import statistics
import sys
import tempfile

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
sys.path.append(str(REPOSITORY / "e2e"))

from harness import view  # noqa: E402
from harness.browser import Browser, Chromium, missing  # noqa: E402

POINTS, RANGE_NS, SIZE = 1_000_000, 1_500_000_000, (1280, 900)
FRAMES = 60
DRAWN = "addEventListener('load', () => requestAnimationFrame(() => requestAnimationFrame(() => { globalThis.drawn = performance.now(); })))"
PANNED = f"""new Promise(done => {{
  const begun = performance.now();
  let n = 0;
  const frame = () => {{
    view.time.pan(0.1);
    if (++n === {FRAMES}) done(1000 * n / (performance.now() - begun));
    else requestAnimationFrame(frame);
  }};
  requestAnimationFrame(frame);
}})"""


def counts(points: int) -> dict:
    chance = random.Random(1)
    values = [chance.randrange(100) for _ in range(points)]
    grid = {"from_ns": 0, "step_ns": RANGE_NS // points, "to_ns": RANGE_NS // points * points}
    series = [{"name": "received", "values": values}]
    return {"kind": "counts", "id": "counts", "title": "Counts", "unit": "packets", "grid": grid, "series": series}


def levels(points: int) -> dict:
    chance = random.Random(2)
    edges = [RANGE_NS * i // points for i in range(points + 1)]
    series = [{"name": "p99", "values": [chance.randrange(1000, 1_000_000) for _ in range(points)]}]
    return {"kind": "levels", "id": "levels", "title": "Levels", "unit": "ns", "edges_ns": edges, "series": series}


def lanes(points: int, count: int = 4) -> dict:
    chance, each = random.Random(3), points // count
    step = RANGE_NS // each
    states = [{"name": "busy", "colour": 5, "low": True}, {"name": "gap", "colour": 1}]
    intervals = [[[i * step, chance.randrange(1, step), i % 2] for i in range(each)] for _ in range(count)]
    named = [{"name": f"lcore {k}", "intervals": v} for k, v in enumerate(intervals)]
    return {"kind": "lanes", "id": "lanes", "title": "Lanes", "states": states, "lanes": named}


DOCUMENTS = {
    "counts": lambda: [counts(POINTS)],
    "levels": lambda: [levels(POINTS)],
    "all kinds": lambda: [lanes(POINTS // 10), counts(POINTS // 2), levels(POINTS * 4 // 10)],
}


def document(panels: list) -> dict:
    head = {"schema": 1, "ringtap": "0", "command": "bench", "time": "2026-01-01T00:00:00Z", "host": "host"}
    about = {"view": 1, "title": "A million points", "origin": "2026-01-01T00:00:00.000000000Z"}
    return {**head, "applications": [], **about, "range": {"from_ns": 0, "to_ns": RANGE_NS}, "panels": panels}


def once(browser: Browser, path: pathlib.Path) -> tuple[float, float]:
    """Seconds until it is drawn, and frames a second."""
    browser.do("Page.addScriptToEvaluateOnNewDocument", source=DRAWN)
    shown = view.View(browser, path, *SIZE)
    drawn = shown.run("new Promise(r => { const f = () => globalThis.drawn ? r(drawn) : setTimeout(f, 10); f(); })")
    shown.run(f"view.time.show(0, {RANGE_NS // 10})")
    frames = shown.run(PANNED)
    assert shown.window()[0] > 0 and browser.complaints == []
    return drawn / 1000, frames


def main(argv: list[str] | None = None) -> int:
    build = pathlib.Path(os.environ.get("RINGTAP_BUILD", REPOSITORY / "build"))
    p = argparse.ArgumentParser(prog="ringtap_lab.run.page", description=__doc__.split("\n")[0])
    p.add_argument("--repetitions", type=int, default=5, metavar="N", help="measurements of each (5)")
    p.add_argument("-w", "--write", dest="out", type=pathlib.Path, default=build / "bench", metavar="DIR")
    o = p.parse_args(argv)
    if reason := missing():
        sys.exit(f"ringtap_lab.run.page: {reason}")
    results = {}
    with tempfile.TemporaryDirectory(prefix="ringtap-page-", ignore_cleanup_errors=True) as folder:
        chromium = Chromium(pathlib.Path(folder) / "profile")
        try:
            print(f"{'document':10} {'drawn in (aim 1 s)':>24} {'panning (aim 30/s)':>24}")
            for name, panels in DOCUMENTS.items():
                path = view.write(pathlib.Path(folder) / "page.html", document(panels()))
                measured = [once(Browser(chromium), path) for _ in range(o.repetitions)]
                took, frames = zip(*measured, strict=True)
                results[name] = {"drawn_s": took, "frames_per_second": frames, "bytes": path.stat().st_size}
                print(
                    f"{name:10} {statistics.median(took):7.2f} s ({min(took):.2f} – {max(took):.2f})"
                    f" {statistics.median(frames):8.0f}/s ({min(frames):.0f} – {max(frames):.0f})",
                    flush=True,
                )
        finally:
            chromium.close()
    o.out.mkdir(parents=True, exist_ok=True)
    (o.out / "page.json").write_text(json.dumps(results, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
