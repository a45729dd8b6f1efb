# SPDX-License-Identifier: BSD-3-Clause
"""The Python module ringtap: packets as tables of Arrow."""

import json
import sys

from harness import pcap
from harness.proc import Proc

TABLES = """
import json, sys
import ringtap
with ringtap.capture(sys.argv[1], ids=True, buffer_size=1 << 24) as capture:
    print("attached", flush=True)
    rows = []
    for b in capture.batches(size=5, data=True):
        table = b.to_arrow()
        assert table["time_ns"].cast("i8").to_pylist() == b.packets["time_ns"].tolist()
        rows += [{k: v.hex() if k == "data" else v for k, v in row.items()}
                 for row in table.drop_columns(["time_ns"]).to_pylist()]
        if len(rows) == 19:
            capture.stop()
print(json.dumps(rows))
"""


def test_tables_become_arrow(app, python_env, closing):
    """Port names and directions become dictionaries, unknown values null."""
    program = closing(Proc([sys.executable, "-c", TABLES, app.prefix], env=python_env))
    program.expect("^attached$")
    app.rx(n=12, len=100)
    app.tx(n=7, len=200, seq=100)
    assert program.wait() == 0, program.output
    rows = json.loads(program.output.splitlines()[-1])
    assert [row["data"] for row in rows] == [pcap.frame(100, i).hex() for i in range(12)] + [
        pcap.frame(200, 100 + i).hex() for i in range(7)
    ]
    assert {(row["app"], row["port"]) for row in rows} == {(app.prefix, "net_ring_a")}
    assert [row["direction"] for row in rows] == ["rx"] * 12 + ["tx"] * 7
    assert [row["id"] is None for row in rows] == [False] * 12 + [True] * 7
    assert all(row["hash"] is None for row in rows)
