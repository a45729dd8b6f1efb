# SPDX-License-Identifier: BSD-3-Clause
"""`make test-image`: the probe out of the image, and the image as a sidecar of another user without capabilities."""

import os
from pathlib import Path

from harness import pcapng
from harness.podman import Podman
from harness.proc import Proc, check, until

IMAGE = os.environ["RINGTAP_IMAGE"]
USER = 1000
TESTPMD = [
    "dpdk-testpmd",
    "--no-huge",
    "-m",
    "64",
    "--no-pci",
    "--file-prefix",
    "app",
    "-l",
    "0,1",
    "-d",
    "/probe/libringtap-probe.so",
    "--vdev",
    "net_null0",
    "--",
    "--no-mlockall",
    "--total-num-mbufs=2048",
    "--forward-mode",
    "rxonly",
    "--auto-start",
]


class Image(Podman):
    """Containers of the image, which is in the store of the machine."""

    def __init__(self, *options):
        super().__init__()
        self.run = [*self.own_mounts, "podman", "run", "--rm", "-i", "--network=none", *self.limits, *options, IMAGE]


def test_a_sidecar_without_rights(closing, tmp_path):
    folders = {name: tmp_path / name for name in ("runtime", "probe", "captures")}
    for folder in folders.values():
        folder.mkdir()
        os.chown(folder, USER, USER)
    mounts = [f"--volume={folders['runtime']}:/var/run/dpdk", f"--volume={folders['probe']}:/probe"]
    copy = "cp -r /usr/lib/*/libringtap-probe.so /usr/lib/*/ringtap /probe/"
    check([*closing(Image("--entrypoint=sh", *mounts)).run, "-c", copy])
    user = [f"--user={USER}:{USER}", "--env=XDG_RUNTIME_DIR=/var/run", "--cap-drop=all", *mounts]
    closing(Proc([*closing(Podman(*user)).prefix, *TESTPMD]))
    captures = f"--volume={folders['captures']}:/captures"
    ringtap = closing(Image(*user, captures, "--read-only")).run
    until(lambda: "app" in check([*ringtap, "list"]), what="the application is listed")
    check([*ringtap, "record", "-i", "app", "-c", "1000", "-w", "a.pcapng"])
    file = folders["captures"] / "a.pcapng"
    assert len(pcapng.read(file).packets) == 1000 and file.stat().st_uid == USER
    assert Path(folders["probe"] / "libringtap-probe.so").exists() and "libringtap" in check([*ringtap, "--version"])
