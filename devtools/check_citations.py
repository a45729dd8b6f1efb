# SPDX-License-Identifier: BSD-3-Clause
"""Prints what comments and Markdown cite that does not exist: functions, identifiers with our prefix,
paths of files, and the messages in docs/troubleshooting.md. Run by devtools/lint.sh; exit status 1
if anything is printed."""

import os
import re
import subprocess
import sys
from pathlib import Path

# Functions of the C library, the kernel, and other libraries and languages, by prefix or by name.
# Those that our code calls are found there and need no entry.
FOREIGN_PREFIXES = ("rte_", "RTE_", "eal_", "eth_", "pthread_", "pcap_", "lttng_", "__")
FOREIGN = {"adjtimex", "build_csv", "compadd", "getchar", "gettid", "sigaltstack", "sniff"}
# Paths outside the tree: system headers, folders of the system and of an installation.
FOREIGN_PATHS = re.compile(
    r"^(/|~|\.\.\.|build[/-]|sys/|linux/|netinet/|arpa/|net/|asm/|bits/|ringtap/(?!probe|reader|monitor)|"
    r"PREFIX/|DATADIR/|NAME\.|results/|bench\.(md|json)$|(incident|metrics|trace|meta)\.json$|pcap-common\.c$|(index|trace|latency|buffers)\.html$|"
    r"dpdk-telemetry\.py|(term|cmocka)\.h$|rte_|share/|include/(?!ringtap)|lib/|drivers/|app/test)"
)
# Messages of EAL, the loader, the C library and libpcap.
FOREIGN_MESSAGE = re.compile("EAL: |cannot open shared object|No such (file|device)|can't parse filter")
EXTENSIONS = "c|h|py|sh|md|bt|build|map|json|html|txt|css|ini|toml"
CALL = re.compile(r"(?<![\w/.$*-])([A-Za-z_]\w*)\(\)")
OURS = re.compile(r"(?<![\w/.-])(rt_[a-z]\w*)\b(?![*…{])")
PATH = re.compile(rf"(?<![\w/.<$*{{}}-])((?:[\w.-]+/)*[\w-]+\.(?:{EXTENSIONS}))\b(?![\w(*/])")
# The partner of an atomic access is a function, or the kernel.
PAIRS = re.compile(r"\b([Pp]airs?\s(?:\*\s)?with)\s")
WORD = re.compile(r"[A-Za-z_]\w*")
C_TOKEN = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
PYTHON_TOKEN = re.compile(r'""".*?"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|#[^\n]*', re.S)


def tracked():
    out = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    return [name for name in out.splitlines() if os.path.isfile(name)]


def comments_of(text, token, is_comment):
    """(line, comment) pairs, and the text without them."""
    found, code, at = [], [], 0
    for match in token.finditer(text):
        code.append(text[at : match.start()])
        at = match.end()
        if is_comment(match.group()):
            found.append((text.count("\n", 0, match.start()) + 1, match.group()))
        else:
            code.append(match.group())
    return found, "".join([*code, text[at:]])


def passages(name, text):
    """The prose of a file, as (line, text) pairs; and the rest of it."""
    if name.endswith((".c", ".h")):
        return comments_of(text, C_TOKEN, lambda token: token.startswith("/"))
    if name.endswith(".py"):
        return comments_of(text, PYTHON_TOKEN, lambda token: token.startswith(('"""', "#")))
    if name.endswith((".md", ".txt")):
        return list(enumerate(text.splitlines(), 1)), ""
    return [], text


class Tree:
    def __init__(self, names):
        self.names = set(names)
        self.folders = {str(p) for n in names for p in Path(n).parents}
        self.top = {n.split("/")[0] for n in names if "/" in n}
        self.base = {n.rsplit("/", 1)[-1] for n in names}
        self.words = set()
        self.literals = []  # strings of the C sources
        self.prose = []
        for name in names:
            text = Path(name).read_text(encoding="utf-8", errors="replace")
            prose, code = passages(name, text)
            self.words.update(WORD.findall(code))
            if name.endswith(".c"):
                # Adjacent literals are one string.
                joined = re.sub(r'"\s*(?:[A-Z_]+\s*)?"', "", code)
                self.literals += re.findall(r'"((?:\\.|[^"\\\n])*)"', joined)
            # A changelog has names that are no more.
            if not name.startswith(("docs/report/", "fuzz/corpus/", "docs/history", "CHANGELOG")):
                self.prose.append((name, prose))

    def has_function(self, name):
        return name in self.words or name in FOREIGN or name.startswith(FOREIGN_PREFIXES)

    def has_path(self, path, cited_in):
        if "/" not in path:
            return path in self.base or FOREIGN_PATHS.match(path)
        # A path of the tree, one beside the file that cites it, or an installed header.
        beside = os.path.normpath(os.path.join(os.path.dirname(cited_in), path))
        return any(p in self.names for p in (path, beside, "include/" + path)) or FOREIGN_PATHS.match(path)

    def messages(self, name="docs/troubleshooting.md"):
        """Messages in the first column that no string of the sources has; `…` stands for anything."""
        literals = "\n".join(self.literals)
        for line, text in enumerate(Path(name).read_text(encoding="utf-8").splitlines(), 1):
            if not text.startswith("| ") or FOREIGN_MESSAGE.search(text):
                continue
            for message in re.findall(r"`([^`]*)`", text.split(" | ")[0]):
                for part in re.split("…", message):
                    # What a program prints before the message, and words that are not a message.
                    part = re.sub(r"^(record|trace): ", "", part).strip(" :;")
                    if " " in part and part not in literals:
                        yield f"{name}:{line}: no such message: {part}"

    def missing(self):
        for name, prose in self.prose:
            for line, text in prose:
                for kind, match in self.wrong(name, text):
                    at = line + text.count("\n", 0, match.start())
                    yield f"{name}:{at}: no such {kind}: {match.group(1)}"

    def wrong(self, name, text):
        markdown = name.endswith(".md")
        for match in PAIRS.finditer(text):
            if not markdown and "()" not in text[match.start() :] and "kernel" not in text:
                yield "function named that it", match
        for match in CALL.finditer(text):
            if not self.has_function(match.group(1)):
                yield "function", match
        for match in OURS.finditer(text):
            if match.group(1) not in self.words and not self.has_function(match.group(1)):
                yield "name", match
        for match in PATH.finditer(text):
            # Links of Markdown are checked by check_markdown.py.
            if markdown and text[: match.start()].count("`") % 2 == 0:
                continue
            if not self.has_path(match.group(1), name):
                yield "file", match


def main():
    os.chdir(Path(__file__).resolve().parents[1])
    tree = Tree(tracked())
    wrong = [*tree.missing(), *tree.messages()]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
