# SPDX-License-Identifier: BSD-3-Clause
"""Makes the pictures of docs/look.md: an incident, live and afterwards. Run as root: RINGTAP_BUILD=build devtools/look.py

A forwarder gets 200,000 packets a second; a task with a real-time priority takes its CPU, each time for 36 ms. One time
in some ten it does so between the reception of a packet and its sending, which is the condition."""

import base64
import os
import signal
import sys
import tempfile
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPO / "e2e"), str(REPO / "lab")]

from harness import dpdk, sandbox  # noqa: E402
from harness.browser import Browser, Chromium  # noqa: E402
from harness.flight import INCIDENT, Flight  # noqa: E402
from harness.fwd import Fwd  # noqa: E402
from harness.live import LiveView, Web  # noqa: E402
from harness.proc import Proc, check, until  # noqa: E402
from harness.view import View, document_of  # noqa: E402

IMAGES = REPO / "docs" / "images"
WIDTH, TAKEN, OTHERS = 1100, 36_000_000, 13_000_000  # pixels; ns; ns of other gaps
PAUSE = 0.8  # s
FORWARDS = "fwd-1"  # name of the thread
NAME = "backup-job"
TASK = f"""
import ctypes, os, time
ctypes.CDLL(None).prctl(15, b"{NAME}", 0, 0, 0)
os.sched_setaffinity(0, {{0}})
os.sched_setaffinity(0, {{1}})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
while True:
    end = time.monotonic_ns() + {TAKEN}
    while time.monotonic_ns() < end:
        pass
    time.sleep({PAUSE})
"""


def set_priorities(app):
    """Only the task that is the example delays the forwarding thread. The generator never sleeps: the browser and the server
    have as much of its CPU as itself, and the recorder more, or conditions would not be read for seconds."""
    # And of what this starts from now on.
    os.sched_setaffinity(0, {0})
    os.setpriority(os.PRIO_PROCESS, 0, -10)
    for thread in Path(f"/proc/{app.proc.pid}/task").iterdir():
        forwards = (thread / "comm").read_text().startswith(FORWARDS)
        os.setpriority(os.PRIO_PROCESS, int(thread.name), -20 if forwards else -10)


def shoot(browser, name, top, bottom):
    """From the top of an element to that of another one."""

    def edge(selector):
        return browser.ask(f"document.querySelector({selector!r}).getBoundingClientRect().top + scrollY")

    out = IMAGES / f"look-{name}.png"
    begin = edge(top) if top else 0
    clip = {"x": 0, "y": begin, "width": WIDTH, "height": edge(bottom) - begin, "scale": 1}
    shot = browser.do("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
    out.write_bytes(base64.b64decode(shot["data"]))
    check(["pngquant", "--force", "--speed", "1", "--output", out, "64", out])


def live(browser, app):
    web = Web(app, args=("--collectors", "polls,busy,pools,gaps,latency", "--history", "10m"))
    try:
        shown = LiveView(browser, web, WIDTH, app=app.prefix)
        until(lambda: shown.table("threads"))
        shown.updates(5)
        until(lambda: shown.ask("document.querySelector('#pipeline').textContent.includes('refused')"))
        shoot(browser, "live", "#pipeline", "#rates")
    finally:
        web.close()


def incident(browser, page):
    shown = View(browser, page, WIDTH)
    shoot(browser, "incident", None, "#threads")
    shoot(browser, "timeline", "#threads", "#losses")
    zero = shown.ask("view.zero")
    found = "view.document.panels.find(p => p.id === 'slow').rows[0]"
    at = shown.ask(f"{found}[view.tables.find(t => t.spec.id === 'slow').at]")
    shown.run(f"view.time.show({at - TAKEN / 2}, {max(zero, at) + TAKEN * 2})")
    shown.hover("threads", at + TAKEN / 2, below=0.3)
    shoot(browser, "gap", "#threads", "#losses")
    shown.mouse("mouseMoved", 1, 1)
    shown.run("document.querySelector('#slow .space .row').click()")
    shoot(browser, "packets", "#passages", "#slow + section")


def why_not(document):
    """None: the slow packet is in the file (a stall may also begin within the hook that stamps it), and waited for our task; no
    other load of this machine took its CPU for long."""
    panels = {p["id"]: p for p in document["panels"]}
    slow = panels.get("slow", {"rows": ()})["rows"]  # no panel: none is in the file
    if not slow:
        (where,) = (f["value"] for f in document["facts"] if f["name"] == "where")
        return f"no slow packet, {where}"
    if NAME not in str(slow[0]):
        return f"the slow packet waited for another cause: {slow[0][-1]}"
    for lane in panels["threads"]["lanes"]:
        longest = OTHERS if f"({FORWARDS}," in lane["name"] else 2 * OTHERS
        for _from, ns, state, *text in lane["intervals"]:
            low = panels["threads"]["states"][state].get("low")
            if ns > longest and not low and NAME not in text[0]:
                return f"{lane['name']}: {ns / 1e6:.1f} ms, {text[0]}"
    return None


def named(kept, read):
    """The page of an incident that is clear."""
    for folder in kept.folders():
        page = folder / "index.html"
        if page in read or not (folder / INCIDENT).exists():
            continue
        read.add(page)
        reason = why_not(document_of(page))
        print(f"{folder.name}: {reason or 'clear'}", flush=True)
        if not reason:
            return page
    return None


def pictures(app, browser, folder):
    task = Proc([sys.executable, "-c", TASK])
    try:
        live(browser, app)
        page = recorded(app, folder)
    finally:
        task.close()
    app.close()
    incident(browser, page)


def recorded(app, folder):
    read = set()
    kept = Flight(
        app,
        folder / "incidents",
        "--on",
        "latency > 20ms",
        "--before",
        "200ms",
        "--after",
        "100ms",
        "--cooldown",
        "1s",
        "--collectors",
        "all",
        "--fates",
        prefix=("nice", "-n", "-10"),
    )
    try:
        return until(lambda: named(kept, read))
    finally:
        kept.close()


def main():
    # What it has started ends with it.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    sandbox.enter()
    dpdk.new_prefix = lambda kind: "my-router"
    with tempfile.TemporaryDirectory(prefix="ringtap-look-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        roles = ("generate:a@0", "oneway:a,b@1", "sink:b@0")
        args = [
            "--ring",
            "a:8192",
            "--ring",
            "b:512",
            "--pool-size",
            "32767",
            *(x for role in roles for x in ("--role", role)),
        ]
        app = Fwd([*args, "--frame", "udp", "--rate", "200k", "--tx-full", "drop"])
        try:
            app.running()
            set_priorities(app)
            chromium = Chromium(folder / "profile")
            try:
                pictures(app, Browser(chromium), folder)
            finally:
                chromium.close()
        finally:
            app.close()


if __name__ == "__main__":
    main()
