# SPDX-License-Identifier: BSD-3-Clause
"""`ringtap web`, and its page in a browser."""

import json
import urllib.error
import urllib.parse
import urllib.request

from .paths import RINGTAP
from .proc import Proc, until
from .view import View, validate


class Web:
    def __init__(self, *apps, args=(), namespace=None):
        inside = namespace.prefix if namespace else []
        self.proc = Proc([*inside, RINGTAP, "web", "--listen", "127.0.0.1:0", *args, *(a.prefix for a in apps)])
        try:
            self.url = self.proc.expect(r"^(http://\S+/\?token=\S+)\r?$").group(1).decode()
        except BaseException:
            self.close()
            raise
        self.root, _, self.token = self.url.partition("/?token=")

    def request(self, path, method="GET", **headers):
        """(status, headers, text); with the token as curl sends it, unless there is another one."""
        request = urllib.request.Request(self.root + path, method=method)
        for name, value in {"Authorization": f"Bearer {self.token}", **headers}.items():
            if value is not None:
                request.add_header(name, value)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as e:
            return e.code, e.headers, e.read()

    def events(self, **place):
        """Yields (kind, document) of a stream; each document is valid."""
        request = urllib.request.Request(f"{self.root}/events?{urllib.parse.urlencode(place)}")
        request.add_header("Authorization", f"Bearer {self.token}")
        with urllib.request.urlopen(request, timeout=60) as stream:
            kind = None
            for line in stream:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name == "event":
                    kind = value
                elif name == "data":
                    document = json.loads(value)
                    validate(document)
                    yield kind, document

    def close(self):
        self.proc.close()


class LiveView(View):
    """The page; place: its view."""

    def __init__(self, browser, web, width=1280, **place):
        super().__init__(browser, web.url + (f"#{urllib.parse.urlencode(place)}" if place else ""), width)
        self.root = web.root

    def updates(self, n=1):
        """Waits for n more updates."""
        seen = self.ask("view.updates")
        until(lambda: self.ask("view.updates") >= seen + n)

    def table(self, name):
        """Rows as shown, a dictionary for each: by the names of the columns."""
        return self.ask(
            f"(() => {{ const t = view.page?.tables.find(t => t.spec.id === {json.dumps(name)}); if (!t) return [];"
            "return t.rows.map(i => Object.fromEntries(t.columns.map((c, k) => [c.name, t.spec.rows[i][k]?.text ?? t.spec.rows[i][k]]))); })()"
        )

    def text(self):
        return self.ask("document.body.innerText")

    def check(self):
        """Nothing is loaded from elsewhere, nothing reported, and the page has the width of the window."""
        assert self.browser.complaints == []
        assert {u for u in self.browser.requests if not u.startswith(("data:", "blob:", self.root + "/"))} == set()
        assert self.ask("document.documentElement.scrollWidth") <= self.width
