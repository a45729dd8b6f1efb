# SPDX-License-Identifier: BSD-3-Clause
"""Two applications with one file-prefix: without a shared configuration they share a runtime
folder."""

import pytest
from harness import dpdk, pcap
from harness.cases import nightly
from harness.paths import BUILD, RINGTAP
from harness.proc import check
from harness.ringtap import Recorder, frames_of, listing

COUNT = 40
MEMORY_MB = 128


class Shared:
    """A file-prefix, and its applications, each of which plays other frames when started."""

    def __init__(self, testpmd, closing, folder, mode):
        self.prefix = dpdk.new_prefix("shared")
        self._testpmd, self._closing, self._folder, self._mode = testpmd, closing, folder, mode
        self._made = 0
        # EAL refuses --in-memory next to --no-huge.
        self._huge = dpdk.HugePages(folder / "huge") if mode == "--in-memory" else None
        if self._huge:
            self._huge.folder.mkdir()

    def app(self):
        self._made += 1
        frames = [pcap.frame(64 + self._made, self._made * 1000 + i) for i in range(COUNT)]
        path = pcap.write(self._folder / f"{self._made}.pcap", frames)
        pmd = self._testpmd(
            f"net_pcap0,rx_pcap={path},tx_pcap=/dev/null",
            mbufs=2048,
            memory_mb=MEMORY_MB,
            args=["--no-flush-rx"],
            eal=[self._mode],
            prefix=self.prefix,
            huge=self._huge,
        )
        pmd.frames = frames
        return pmd

    def pids(self):
        """Process ids by listed name. All applications answer."""
        mine = [a for a in listing() if a["name"].startswith(self.prefix)]
        assert not any(a["error"] for a in mine)
        return {a["name"].removeprefix(self.prefix): a["pid"] for a in mine}

    def recorder(self, number, *args):
        out = self._folder / f"{self._made}{number}.pcapng"
        return self._closing(
            Recorder(["-i", f"{self.prefix}{number}:net_pcap0", "--direction", "rx", *args], out)
        ).attached()


@pytest.fixture(params=["--no-shconf", nightly("--in-memory")])
def shared(request, testpmd, closing, tmp_path):
    if request.param == "--in-memory" and dpdk.HugePages.free_mb() < 2 * MEMORY_MB:
        pytest.skip("needs huge pages for two applications")
    return Shared(testpmd, closing, tmp_path, request.param)


def test_two_applications_and_the_second_alone(shared):
    """Each is recorded by its own name, which all consumers use."""
    one, two = shared.app(), shared.app()
    assert shared.pids() == {"": one.pid, "#1": two.pid}
    names = {f"{shared.prefix}{number}:net_pcap0" for number in ("", "#1")}
    assert names <= set(check([RINGTAP, "record", "-D"]).split())
    extcap = check([BUILD / "extcap" / "ringtap-extcap", "--extcap-interfaces"])
    assert all(f"value=ringtap:{name}}}" in extcap for name in names), extcap
    measured = check([RINGTAP, "memory", f"{shared.prefix}#1", "--json", "--duration", "0.1s"])
    assert f'"{shared.prefix}#1"' in measured
    recorders = [shared.recorder(number, "-c", COUNT) for number in ("", "#1")]
    one.start()
    recorders[0].done()
    one.quit()
    assert shared.pids() == {"#1": two.pid}
    two.start()
    recorders[1].done()
    for pmd, recorder in zip((one, two), recorders):
        assert frames_of(recorder.file()) == pmd.frames


def test_remains_of_killed_applications_are_replaced(shared):
    one, two = shared.app(), shared.app()
    recorders = [shared.recorder(number) for number in ("", "#1")]  # keep the probes awake
    folder = dpdk.RUN_DIR / shared.prefix
    for pmd in (one, two):
        pmd.proc.kill()
    for recorder in recorders:
        recorder.done()
    assert {"ringtap.sock", "ringtap.sock:1"} <= {path.name for path in folder.iterdir()}
    assert shared.pids() == {}
    one, two = shared.app(), shared.app()
    assert shared.pids() == {"": one.pid, "#1": two.pid}
    recorder = shared.recorder("#1", "-c", COUNT)
    two.start()
    recorder.done()
    assert frames_of(recorder.file()) == two.frames
