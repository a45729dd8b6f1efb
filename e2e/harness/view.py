# SPDX-License-Identifier: BSD-3-Clause
"""Documents of docs/view.md, and their page in a browser."""

import functools
import json

import fastjsonschema

from .paths import BUILD, REPO

SCHEMA = json.loads((REPO / "web" / "view.schema.json").read_text())
_BEGIN, _END = '<script type="application/json" id="document">', "</script>"


@functools.cache
def _validator():
    """A function that fastjsonschema generates: jsonschema takes ten seconds for a document of 10^5 rows."""
    return fastjsonschema.compile(SCHEMA)


def validate(document):
    _validator()(document)


@functools.lru_cache(maxsize=8)
def _validate_text(text):
    """Once for each document: tests read a page several times."""
    validate(json.loads(text))


def write(path, document):
    """A page as web/page.c writes it."""
    page = (BUILD / "web" / "page.html").read_text()
    path.write_text(page.replace("@DOCUMENT@", json.dumps(document).replace("<", "\\u003c")))
    return path


def document_of(path):
    """The document in a page, which is valid."""
    text = path.read_text()
    text = text[text.index(_BEGIN) + len(_BEGIN) :].partition(_END)[0]
    _validate_text(text)
    document = json.loads(text)
    for table in (p for p in document["panels"] if p["kind"] == "table"):
        for k, texts in ((k, c["texts"]) for k, c in enumerate(table["columns"]) if "texts" in c):
            for row in table["rows"]:
                row[k] = None if row[k] is None else texts[row[k]]
    return document


class View:
    """A page that is open. Times are ns after the document's origin; x and y are pixels of the window."""

    def __init__(self, browser, path, width=1280, height=900):
        self.browser, self.path, self.width = browser, path, width
        browser.requests.clear()
        browser.open(path, width, height)

    def ask(self, expression):
        return self.browser.ask(expression)

    def run(self, expression):
        """Evaluates an expression and, if it is a promise, waits for it. Returns its value, or None."""
        done = self.browser.do("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def window(self):
        return self.ask("[view.time.from, view.time.to]")

    def _panel(self, name):
        return f"view.panels.find(p => p.spec.id === {json.dumps(name)})"

    def box(self, panel):
        """Left edge, top, width and height of a plotted area, scrolled into the window."""
        return self.ask(
            f"(() => {{ const o = {self._panel(panel)}.plot.over; o.scrollIntoView({{block: 'center'}});"
            "const b = o.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()"
        )

    def pixels(self, panel):
        """The plotted area as rows of (red, green, blue)."""
        width, data = self.ask(
            f"(() => {{ const u = {self._panel(panel)}.plot, b = u.bbox, c = document.createElement('canvas');"
            "c.width = b.width; c.height = b.height; const x = c.getContext('2d', {willReadFrequently: true});"
            "x.fillStyle = getComputedStyle(document.body).backgroundColor; x.fillRect(0, 0, b.width, b.height);"
            "x.drawImage(u.ctx.canvas, -b.left, -b.top);"
            "return [b.width, [...x.getImageData(0, 0, b.width, b.height).data]]; })()"
        )
        rgb = [tuple(data[i : i + 3]) for i in range(0, len(data), 4)]
        return [rgb[i : i + width] for i in range(0, len(rgb), width)]

    def mouse(self, kind, x, y, **more):
        self.browser.do("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def place(self, panel, ns, below=0.5):
        left, top, width, height = self.box(panel)
        start, end = self.window()
        return left + (ns - start) / (end - start) * width, top + below * height

    def wheel(self, panel, ns, delta, **more):
        x, y = self.place(panel, ns)
        self.mouse("mouseWheel", x, y, deltaX=0, deltaY=delta, **more)

    def drag(self, panel, start, end, modifiers=0):
        (x1, y), (x2, _) = self.place(panel, start), self.place(panel, end)
        self.mouse("mouseMoved", x1, y)
        self.mouse("mousePressed", x1, y, button="left", buttons=1, clickCount=1, modifiers=modifiers)
        self.mouse("mouseMoved", (x1 + x2) / 2, y, button="left", buttons=1, modifiers=modifiers)
        self.mouse("mouseMoved", x2, y, button="left", buttons=1, modifiers=modifiers)
        self.mouse("mouseReleased", x2, y, button="left", clickCount=1, modifiers=modifiers)

    def hover(self, panel, ns, below=0.5):
        """The lines beside the pointer."""
        self.mouse("mouseMoved", *self.place(panel, ns, below))
        return self.ask(
            "document.getElementById('tip').hidden ? [] : [...document.getElementById('tip').children].map(p => p.textContent)"
        )

    def key(self, key):
        self.browser.do("Input.dispatchKeyEvent", type="keyDown", key=key, text=key if len(key) == 1 else "")
        self.browser.do("Input.dispatchKeyEvent", type="keyUp", key=key)

    def check(self):
        """The page has loaded nothing, reported nothing, and has the width of the window."""
        assert self.browser.complaints == []
        assert {u for u in self.browser.requests if not u.startswith("data:")} == {f"file://{self.path}"}
        assert self.ask("document.documentElement.scrollWidth") <= self.width


def runs(row, wanted):
    """[first, last] pixels of each run of a row for which wanted() is true."""
    out = []
    for x, pixel in enumerate(row):
        if not wanted(pixel):
            continue
        if out and out[-1][1] == x - 1:
            out[-1][1] = x
        else:
            out.append([x, x])
    return out
