# SPDX-License-Identifier: BSD-3-Clause
"""A headless Chromium, controlled by the DevTools protocol over two pipes."""

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import time

PROGRAM = "chromium"


def missing():
    """The reason why there is no browser, or None."""
    return None if shutil.which(PROGRAM) else f"{PROGRAM} is not installed"


class Chromium:
    """The program, which keeps nothing between its pages: see Browser."""

    def __init__(self, profile):
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()

        def place():  # descriptors of the protocol
            os.dup2(theirs_in, 3)
            os.dup2(theirs_out, 4)

        self._process = subprocess.Popen(
            [
                PROGRAM,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                "--remote-debugging-pipe",
                f"--user-data-dir={profile}",
                "--no-first-run",
                "--no-startup-window",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=place,
            pass_fds=(3, 4),
            start_new_session=True,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._in, self._out, self._buffer = ours_in, ours_out, b""
        self._number = 0

    def message(self, timeout):
        """The next answer or event."""
        end = time.monotonic() + timeout
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(end - time.monotonic(), 0))
            more = os.read(self._in, 1 << 20) if ready else b""
            assert more, "the browser is silent, or has ended"
            self._buffer += more
        text, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(text)

    def do(self, method, params, timeout=30, session=None, note=None):
        """Executes a command, of a session if there is one; returns its result. note: called for each event meanwhile."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.message(timeout)
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            if note:
                note(answer)

    def close(self):
        os.killpg(self._process.pid, signal.SIGKILL)  # its processes write to the profile
        self._process.wait()
        os.close(self._in)
        os.close(self._out)


class Browser:
    """A page of Chromium with cookies, storage and cache of its own, which end with it. complaints: console messages, except
    informational ones."""

    def __init__(self, chromium):
        self.chromium = chromium
        self.complaints = []
        self.requests = []
        self._events = []
        self._session = None
        self._context = chromium.do("Target.createBrowserContext", {})["browserContextId"]
        page = chromium.do("Target.createTarget", {"url": "about:blank", "browserContextId": self._context})["targetId"]
        self._session = chromium.do("Target.attachToTarget", {"targetId": page, "flatten": True})["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.do(f"{domain}.enable")

    def _note(self, event):
        if event.get("sessionId") != self._session:
            return
        method, about = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(str(about["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning", "assert"):
            self.complaints.append(str(about["args"]))
        elif method == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            self.complaints.append(about["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        self._events.append(method)

    def do(self, method, timeout=30, **params):
        """Executes a command of the page; returns its result."""
        return self.chromium.do(method, params, timeout, self._session, self._note)

    def open(self, path, width, height=900):
        """Opens a file, or a URL, in a window of this size, and waits until it is loaded."""
        self.do("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self._events.clear()
        self.do("Page.navigate", url=path if ":" in str(path) else f"file://{path}")
        while "Page.loadEventFired" not in self._events:
            self._note(self.chromium.message(30))

    def ask(self, expression):
        """The value of a JavaScript expression in the page."""
        return self.do("Runtime.evaluate", expression=expression, returnByValue=True)["result"]["value"]

    def screenshot(self, path, height=None):
        """The whole page as PNG, or that many pixels of it."""
        width = self.ask("innerWidth")
        clip = {"clip": {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}} if height else {}
        shot = self.do("Page.captureScreenshot", captureBeyondViewport=True, **clip)
        path.write_bytes(base64.b64decode(shot["data"]))

    def pdf(self, path):
        """The page as PDF."""
        path.write_bytes(base64.b64decode(self.do("Page.printToPDF", timeout=60)["data"]))

    def close(self):
        self.chromium.do("Target.disposeBrowserContext", {"browserContextId": self._context})
