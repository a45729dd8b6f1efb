# SPDX-License-Identifier: BSD-3-Clause
"""The workflow is YAML, and the steps that it names are those of .ci/run."""

import re
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")
REPO = Path(__file__).resolve().parents[2]
STEPS = [a or b for a, b in re.findall(r"^step (?:'([^']+)'|(\S+)) \d+ ", (REPO / ".ci/run").read_text(), re.MULTILINE)]
APART = {"build ABI": ["build", "ABI"]}


def test_steps_of_the_workflow():
    jobs = yaml.safe_load((REPO / ".github/workflows/ci.yml").read_text())["jobs"]
    named = jobs["steps"]["strategy"]["matrix"]["step"]
    assert {one for step in named for one in APART.get(step, [step])} <= set(STEPS) and len(STEPS) > 10
    for job in jobs.values():
        for command in (step["run"] for step in job["steps"] if step.get("run", "").startswith("make ")):
            for target in command.split()[1:]:
                assert re.search(rf"^([\w-]+ )*{target}( [\w-]+)*:", (REPO / "Makefile").read_text(), re.MULTILINE), (
                    target
                )


def test_containers_of_the_workflow_are_privileged():
    jobs = yaml.safe_load((REPO / ".github/workflows/ci.yml").read_text())["jobs"]
    containers = {name: job["container"] for name, job in jobs.items() if "container" in job}
    assert set(containers) >= {"build", "steps", "arm64"}
    assert all("--privileged" in container["options"].split() for container in containers.values()), containers


def test_packages_of_the_workflow_exist_in_every_suite():
    """A package with a release of LLVM in its name exists in one suite."""
    deps = (REPO / "devtools/deps.sh").read_text()
    assert re.search(r"^\tci\) .*libclang-rt-dev", deps, re.MULTILINE)
    assert not re.search(r"(clang|llvm)\S*-\d+", deps)
