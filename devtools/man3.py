# SPDX-License-Identifier: BSD-3-Clause
"""Manual pages of section 3 out of the public headers, which are their only source.

A heading `/* ---- Name: what it is about ---- */` begins a page, ringtap_name(3); a header without one is
a page of its own. Pages of functions refer to the page they are on. A page's example is the shortest program of
examples/ that calls one of its functions.
usage: man3.py VERSION OUTPUT_FOLDER HEADER...
       man3.py --list HEADER...   names of the files that are written
"""

import re
import sys
from pathlib import Path

HEADING = re.compile(r"/\* ---- (\w+): (.*?) -{4,}\s*(.*?)\*/", re.S)
COMMENT = re.compile(r"/\*(.*?)\*/", re.S)
FUNCTION = re.compile(r"\b(ringtap_\w+)\(")
EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def plain(comment):
    """The text of a comment, as paragraphs."""
    lines = [re.sub(r"^\s*\*? ?", "", line).rstrip() for line in comment.strip().splitlines()]
    return [" ".join(p.split()) for p in "\n".join(lines).split("\n\n") if p.strip()]


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...")
    text = "".join(c if ord(c) < 128 else f"\\[u{ord(c):04X}]" for c in text)
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def blocks(text):
    """Comments and declarations that belong together: parted by empty lines outside of braces."""
    block, depth, found = [], 0, []
    in_comment = False
    for line in [*text.splitlines(), ""]:
        code = re.sub(r"/\*.*?\*/", "", line)
        in_comment = ("/*" in code) or (in_comment and "*/" not in code)
        depth += 0 if in_comment else code.count("{") - code.count("}")
        if line.strip() or depth or in_comment:
            block.append(line)
        elif block:
            found.append("\n".join(block))
            block = []
    return found


def declarations(code):
    """Prototypes, inline functions without their body, structures and enumerations."""
    functions = []
    for match in re.finditer(
        r"^(?:static inline |RINGTAP_INLINE )?((?:const )?(?:struct )?\w+[ *]+ringtap_\w+\([^;{]*?\))\s*(?:;|\{)",
        code,
        re.M | re.S,
    ):
        functions.append(" ".join(match.group(1).split()).replace("( ", "(") + ";")
    types = re.findall(r"^(?:(?:struct|enum) \w+|enum) \{(?:[^}\n]*\};|\n.*?^\};)", code, re.M | re.S)
    types += re.findall(r"^#define RINGTAP_\w+ +[^\n\\]+(?:\n\t\t+ \*[^\n]*)*", code, re.M)
    return functions, types


def example(names):
    """Source of the shortest program that calls one of these functions, or None."""
    texts = [path.read_text() for path in sorted(EXAMPLES.glob("*.c"))]
    calls = [text for text in texts if set(FUNCTION.findall(text)).intersection(names)]
    if not calls:
        return None
    return min(calls, key=len).split("\n", 1)[1].strip("\n")  # behind the licence


class Page:
    def __init__(self, header, name, about, text, intro):
        self.header, self.name, self.about, self.intro = header, name, about, intro
        self.functions, self.parts = [], []
        for block in blocks(text):
            self._add(block)

    def _add(self, block):
        functions, types = declarations(block)
        self.functions += functions
        # Comments within braces belong to what is declared there.
        outside = re.sub(r"\{.*?^\}", "", block, flags=re.M | re.S)
        for match in COMMENT.finditer(outside):
            behind = outside[match.end() :]
            following = COMMENT.split(behind)[0]
            named = FUNCTION.findall(following.split("\n\n")[0])
            self.parts.append((list(dict.fromkeys(named)), plain(match.group(1))))
        self.parts += [(None, t) for t in types]

    def names(self):
        return list(dict.fromkeys(FUNCTION.search(f).group(1) for f in self.functions))

    def write(self, folder, version, others):
        out = [
            f'.TH {self.name} 3 "" "ringtap {version}" "libringtap"',
            ".SH NAME",
            roff(", ".join(self.names() or [self.name])) + f" \\- {roff(self.about)}",
            ".SH SYNOPSIS",
            ".nf",
            f".B #include <ringtap/{self.header}>",
            ".PP",
        ]
        out += [f".BI \"{roff(f)}\"" for f in self.functions]
        out += [".fi", ".SH DESCRIPTION"]
        for paragraph in self.intro:
            out += [roff(paragraph), ".PP"]
        for names, content in self.parts:
            if names is None:
                out += [".nf", roff(content.expandtabs(4)), ".fi", ".PP"]
            elif names:
                out += [".TP", ".B " + roff(", ".join(n + "()" for n in names))]
                out += ["\n.IP\n".join(roff(p) for p in content), ".PP"]
            else:
                out += ["\n.PP\n".join(roff(p) for p in content), ".PP"]
        while out[-1] == ".PP":
            out.pop()
        source = example(self.names())
        out.append(".SH EXAMPLES")
        if source:
            out += [".nf", roff(source.expandtabs(4)), ".fi"]
        else:
            out += ["Short programs are in", ".BR ringtap_opening (3)", "and", ".BR ringtap_monitors (3)."]
        see = [f".BR {name} (3)" for name in others if name != self.name]
        out += [".SH SEE ALSO", *[s + "," for s in see[:-1]], *see[-1:]]
        # A paragraph directly before a list item or another paragraph is none.
        text = re.sub(r"\.PP\n(?=\.TP|\.PP|\.SH|\.nf\n\.PP)", "", "\n".join(out) + "\n")
        (folder / f"{self.name}.3").write_text(text)
        for name in self.names():
            if name != self.name:
                (folder / f"{name}.3").write_text(f".so man3/{self.name}.3\n")


def pages_of(path):
    text = Path(path).read_text()
    head = COMMENT.findall(text)[1]
    body = text[text.index('extern "C" {') + len('extern "C" {') : text.rindex("#ifdef __cplusplus")]
    body = body.split("#endif", 1)[1]
    intro = plain(head)
    found = list(HEADING.finditer(body))
    if not found:
        return [Page(path.name, f"ringtap_{path.stem}", intro[0].split(": ")[-1].split(".")[0], body, intro)]
    before = body[: found[0].start()]  # definitions that all of them use
    pages = []
    for here, behind in zip(found, [*found[1:], None]):
        name, about, more = here.groups()
        part = body[here.end() : behind.start() if behind else len(body)]
        pages.append(
            Page(path.name, f"ringtap_{name.lower()}", about, (before if not pages else "") + part, intro + plain(more))
        )
    return pages


def main(args):
    listing = args[0] == "--list"
    headers = [Path(a) for a in args[1 if listing else 2 :]]
    pages = [page for header in headers for page in pages_of(header)]
    if listing:
        for page in pages:
            print("\n".join(f"{n}.3" for n in dict.fromkeys([page.name, *page.names()])))
        return
    for page in pages:
        page.write(Path(args[1]), args[0], [p.name for p in pages])


if __name__ == "__main__":
    main(sys.argv[1:])
