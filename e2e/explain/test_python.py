# SPDX-License-Identifier: BSD-3-Clause
"""ringtap.explain() of the Python module."""

import json

import pytest
from harness.paths import RINGTAP
from harness.proc import run
from harness.traced import Plan, Writer

PYTHON = "/usr/bin/python3"


@pytest.fixture(scope="module")
def python(python_env):
    """Runs code with the module of the build folder, and with PROGRAM, the ringtap command."""

    def start(code, *args):
        head = f"import json, sys\nimport ringtap\nPROGRAM = {str(RINGTAP)!r}\n"
        done = run([PYTHON, "-c", head + code, *args], env=python_env)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return start


@pytest.fixture(scope="module")
def plan():
    return Plan(5, packets=400)


@pytest.fixture(scope="module")
def traced(plan, tmp_path_factory):
    return plan.write(Writer()).write(tmp_path_factory.mktemp("python") / "trace.pcapng")


def test_explain_in_python(python, traced, plan, tmp_path):
    """Outcomes, the summary, an iteration that stops early, and errors."""
    out = python(
        "for o in ringtap.explain(sys.argv[1], timeout=0.01, program=PROGRAM):\n    print(json.dumps(o._asdict()))",
        traced,
    )
    found = [json.loads(line) for line in out.splitlines()]
    sent = {(o["rx_frame"], o["tx_frame"]): o for o in found if o["fate"] == "sent"}
    for r in plan.received:
        for copy, s in enumerate(r.sendings):
            o = sent.pop((r.number, s.number))
            assert (o["id"], o["rx_ns"], o["tx_ns"], o["latency_ns"], o["copy"]) == (
                r.id,
                r.ns,
                s.ns,
                s.ns - r.ns,
                copy,
            )
            assert (o["rx_port"], o["tx_queue"]) == (f"p{r.port}", s.queue) and set(o["changes"]) == s.changes
            assert o["reordered"] is (r.reordered and not copy) and o["flow"]
    assert not sent
    lost = [o for o in found if o["fate"] in ("not_sent", "open")]
    assert {o["rx_frame"] for o in lost} == {r.number for r in plan.received if not r.sendings}
    assert all(o["tx_ns"] is None and o["latency_ns"] is None and o["changes"] == [] for o in lost)
    assert all(o["id"] is None and o["rx_ns"] is None for o in found if o["fate"] == "made")

    out = python(
        "for o in ringtap.explain([sys.argv[1]], program=PROGRAM):\n    break\n"
        "print(json.dumps(ringtap.explain_summary(sys.argv[1], timeout=0.01, memory=1 << 25, program=PROGRAM)))",
        traced,
    )
    summary = json.loads(out)
    assert summary["received"] == len(plan.received) and summary["timeout_ns"] == 10**7
    out = python(
        "for call in (lambda: next(ringtap.explain(sys.argv[1], program=PROGRAM)),\n"
        "             lambda: ringtap.explain_summary(sys.argv[1], program=PROGRAM),\n"
        "             lambda: ringtap.explain_summary(sys.argv[1], program='/no/ringtap')):\n"
        "    try:\n        print(call())\n    except ringtap.Error as e:\n        print(e)\n"
        "try:\n    ringtap.explain_summary([])\nexcept ValueError as e:\n    print(e)",
        tmp_path / "none",
    )
    lines = out.splitlines()
    assert len(lines) == 4 and "No such file" in lines[0] and "No such file" in lines[1]
    assert "install ringtap" in lines[2] and "empty" in lines[3]
