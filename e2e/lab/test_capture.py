# SPDX-License-Identifier: BSD-3-Clause
"""The experiment capture: all ways to capture count the sent packets."""

import json

import pytest
from harness import lab

CELLS = ("none", "libpcap", "host", "xdp", "port")


@pytest.mark.nightly
@pytest.mark.slow
def test_every_way_of_capturing(tmp_path):
    done = lab.run(
        "capture",
        "--quick",
        "--repetitions",
        "1",
        "--capture-duration",
        "300ms",
        "--only",
        ",".join(f"{way}-100k" for way in CELLS),
        "-w",
        tmp_path / "out",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "out" / "capture.json").read_text())
    cells = {c["cell"]: c for c in results["cells"]}
    assert set(cells) == {f"{way}-100k" for way in CELLS}
    for way in CELLS:
        if cells[f"{way}-100k"]["unavailable"]:
            assert way == "xdp"
            continue
        (run,) = cells[f"{way}-100k"]["runs"]
        values = run["values"]
        assert values["sent"] > 1000
        assert 0 <= values["system"] <= 1
        if way != "none":
            # On a busy machine, packets may be lost: then they are counted.
            assert values["counted"] <= values["sent"]
            assert values["loss"] == pytest.approx(1 - values["counted"] / values["sent"])
            assert values["sent"] - values["counted"] <= values["dropped"] + values["ifdropped"]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Loss against packet rate" in page and "below 0.02 %" in page
