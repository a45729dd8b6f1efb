# SPDX-License-Identifier: BSD-3-Clause
"""Puts the modules of web/ into one page that needs nothing else, with the place of a document in it.

usage: page.py FOLDER PAGE HEADER

The page allows its own scripts and styles only, by their hashes. The header has the page before and behind the document as
bytes for C."""

import base64
import hashlib
import re
import sys
from pathlib import Path

# Each after those that it imports.
MODULES = (
    "dom",
    "text",
    "colours",
    "data",
    "time",
    "panels",
    "charts",
    "table",
    "pipeline",
    "page",
    "fates",
    "actions",
    "live",
    "start",
)
UPLOT = "uplot/uPlot.iife.min.js"
POLICY_END = "form-action 'none'"
LIMIT = 150_000  # bytes of a page without its document


def module(path):
    """The text of a module without imports and exports: the names of all modules are different."""
    text = path.read_text(encoding="utf-8")
    for name in re.findall(r'^import .* from "\./(\w+)\.js";$', text, re.MULTILINE):
        if MODULES.index(name) >= MODULES.index(path.stem):
            raise SystemExit(f"page.py: {path.stem}.js imports {name}.js, which comes later")
    text = re.sub(r"^import .*;\n", "", text, flags=re.MULTILINE)
    # Comments take a tenth of the page.
    text = re.sub(r"^ *//.*\n", "", text, flags=re.MULTILINE)
    return re.sub(r"^export ", "", text, flags=re.MULTILINE)


def source(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def page(folder):
    read = {
        name: (folder / name).read_text(encoding="utf-8").strip()
        for name in (UPLOT, "uplot/uPlot.min.css", "style.css", "page.html")
    }
    sums = dict(reversed(line.split()) for line in (folder / "uplot" / "SHA256SUMS").read_text().splitlines())
    for name, wanted in sums.items():
        if hashlib.sha256((folder / "uplot" / name).read_bytes()).hexdigest() != wanted:
            raise SystemExit(f"page.py: uplot/{name} is not the file of the release")
    modules = "\n" + "".join(module(folder / f"{name}.js") for name in MODULES)
    style = "\n" + read["uplot/uPlot.min.css"] + "\n" + read["style.css"] + "\n"
    for text in (modules, style, read[UPLOT]):
        if re.search(r"</(script|style)|<!--", text, re.IGNORECASE):
            raise SystemExit("page.py: a script or style would end early")
    policy = (
        f"default-src 'none'; script-src {source(read[UPLOT])} {source(modules)}; style-src {source(style)}; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    parts = {"CSP": policy, "STYLE": style, "UPLOT": read[UPLOT], "MODULES": modules}
    out = re.sub(r"@(CSP|STYLE|UPLOT|MODULES)@", lambda m: parts[m[1]], read["page.html"]) + "\n"
    if len(out.encode()) > LIMIT:
        raise SystemExit(f"page.py: {len(out.encode())} bytes, more than {LIMIT}")
    return out


def array(name, text):
    data = text.encode()
    lines = (",".join(map(str, data[i : i + 40])) for i in range(0, len(data), 40))
    return f"static const unsigned char {name}[] = {{\n" + ",\n".join(lines) + "};\n"


def main():
    folder, html, header = map(Path, sys.argv[1:])
    text = page(folder)
    html.write_text(text, encoding="utf-8")
    before, after = text.split("@DOCUMENT@")
    # Where C may add to the policy: the page that is served connects to its server.
    end = len(before[: before.index(POLICY_END) + len(POLICY_END)].encode())
    header.write_text(
        f"#define PAGE_POLICY_END {end}\n" + array("page_before", before) + array("page_after", after), encoding="utf-8"
    )


main()
