# SPDX-License-Identifier: BSD-3-Clause
"""Root, and an application of another user in /tmp/dpdk, EAL's folder without XDG_RUNTIME_DIR."""

import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from harness import dpdk, pcap, service
from harness.paths import BUILD, RINGTAP
from harness.proc import run, until
from harness.prometheus import Exporter
from harness.ringtap import Recorder, frames_of, listing
from harness.sandbox import public

NOBODY = 65534
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
COUNT = 30


@pytest.fixture
def folder():
    """The folder of EAL for user nobody; /tmp/dpdk may belong to any user."""
    path = Path("/tmp/dpdk") / dpdk.new_prefix("nobody")
    path.mkdir(mode=0o700, parents=True)
    os.chown(path, NOBODY, NOBODY)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def nobodys(folder, testpmd, tmp_path):
    """testpmd as user nobody, and the frames that it receives after its start."""
    frames = [pcap.frame(100, i) for i in range(COUNT)]
    path = pcap.write(tmp_path / "in.pcap", frames)
    for parent in (path, *path.parents):
        if parent.is_relative_to("/tmp/") and parent != Path("/tmp"):
            parent.chmod(0o755)
    pmd = testpmd(
        f"net_pcap0,rx_pcap={path},tx_pcap=/dev/null",
        args=["--no-flush-rx"],
        prefix=folder.name,
        plugin=public(BUILD / "probe" / "libringtap-probe.so"),
        namespace=SimpleNamespace(prefix=["env", "-u", "XDG_RUNTIME_DIR", *AS_NOBODY]),
    )
    pmd.frames = frames
    return pmd


def test_root_may_record_it_by_a_distinct_name(nobodys, closing, tmp_path):
    names = {a["name"]: a for a in listing() if a["name"].startswith(nobodys.prefix)}
    assert list(names) == [f"{nobodys.prefix}@{NOBODY}"]
    assert not names[f"{nobodys.prefix}@{NOBODY}"]["error"]
    out = tmp_path / "out.pcapng"
    recorder = closing(
        Recorder(["-i", f"{nobodys.prefix}@{NOBODY}:", "--direction", "rx", "-c", COUNT], out)
    ).attached()
    nobodys.start()
    recorder.done()
    assert frames_of(recorder.file()) == nobodys.frames


def test_the_service_reads_it(nobodys, closing):
    """With root's capabilities limited to those of the systemd unit."""
    up = f'ringtap_up{{app="{nobodys.prefix}@{NOBODY}"}}'
    exporter = closing(Exporter(args=["--users", "root,nobody"], prefix=service.confined()))
    until(lambda: exporter.series().get(up) == 1, what="its metrics")


def test_root_exports_others_on_request_only(nobodys, app, closing):
    """Any user could make the exporter busy with false applications."""
    up = f'ringtap_up{{app="{nobodys.prefix}@{NOBODY}"}}'
    exporter = closing(Exporter())
    until(lambda: exporter.up(app) == 1, what="metrics of root's")
    assert up not in exporter.series()
    everyones = closing(Exporter(args=["--users", "all"]))
    until(lambda: everyones.series().get(up) == 1, what="metrics of the other user's")


@pytest.mark.smoke
def test_links_of_the_user_are_not_followed_by_root(nobodys, app, folder):
    """A link in a folder of user nobody to an application of root."""
    link = folder.parent / f"{folder.name}-link"
    link.symlink_to(dpdk.RUN_DIR / app.prefix)
    try:
        assert any(a["dir"] == str(link) for a in listing())  # a link of root
        os.lchown(link, NOBODY, NOBODY)
        done = run([RINGTAP, "list"])
    finally:
        link.unlink()
    assert done.returncode == 0 and str(link) not in done.stdout
    assert f"skipped {link} is reached by a symbolic link of user {NOBODY}" in done.stderr
    assert app.prefix in done.stdout and f"{nobodys.prefix}@{NOBODY}" in done.stdout
