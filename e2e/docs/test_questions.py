# SPDX-License-Identifier: BSD-3-Clause
"""docs/questions.md shows headings and sentences that the commands print; its numbers and names are those of other
runs."""

import re
import shlex

import pytest
from harness import pcap
from harness.paths import REPO, RINGTAP
from harness.proc import Proc, together

FRAME = bytes.fromhex("02000000000102000000000208004500002e00000000401100000a0000010a000002") + bytes(26)


def shown(name):
    """The first such command of the page, and its output, without what the page leaves out."""
    text = (REPO / "docs/questions.md").read_text(encoding="utf-8")
    (block,) = re.findall(rf"^    \$ (ringtap {name} .*(?:\n(?!    \$).*)*?)\n\n?(?=\S|    \$)", text, re.M)[:1]
    command, *lines = block.split("\n")
    return shlex.split(command), sentences(lines)


def sentences(lines):
    """Lines of several words without numbers, paths and names: headings of tables, sentences."""
    lines = [" ".join(line.split()) for line in lines]
    return [line for line in lines if " " in line and not re.search(r"(?<![\w.])\d|[…']", line)]


def start(closing, app, words, tmp_path):
    words = [app.prefix if word == "my-app" else word for word in words]
    return closing(Proc([RINGTAP, *words[1:]], cwd=tmp_path))


# Tables of packets that the capture lost on one side only: a busy machine loses all at once.
NOT_SENT = ("Flows with the most packets not sent", "flow received not sent reordered p50 p99 max")


def assert_as_shown(it, expected):
    assert it.wait() == 0, it.output
    if re.search(r"^ *not sent +0 ", it.output, re.MULTILINE):
        expected = [line for line in expected if line not in NOT_SENT]
    printed = sentences(it.output.replace("\r", "\n").splitlines())
    assert expected and [line for line in expected if line not in printed] == [], it.output


@pytest.mark.parametrize(
    "mode, names", [("io", [["list"], ["flows"], ["record", "explain"], ["latency"]]), ("rxonly", [["drops"]])]
)
def test_output(testpmd, closing, tmp_path, mode, names):
    file = pcap.write(tmp_path / "in.pcap", [FRAME] * 512)
    source = f"net_pcap0,rx_pcap={file},infinite_rx=1,tx_pcap=/dev/null"
    app = testpmd(source, "net_null0,no-rx=1", args=("--no-flush-rx",))
    app.cmd(f"set fwd {mode}")
    app.start()

    def ask(name):
        words, expected = shown(name)
        short = ["--duration", "1200ms"] if name == "record" else []  # the last one holds: a smaller file
        assert_as_shown(start(closing, app, [*words, *short], tmp_path), expected)

    together(lambda one: [ask(name) for name in one], names)


def test_held(play, closing, tmp_path):
    app = play()
    app.ring("a")
    words, expected = shown("held")
    it = start(closing, app, words, tmp_path)
    it.expect("^Measuring")
    app.do("hold 1")
    app.rx(data=FRAME, n=30)
    assert_as_shown(it, expected)
