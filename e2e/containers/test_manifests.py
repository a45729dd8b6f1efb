# SPDX-License-Identifier: BSD-3-Clause
"""The manifests and the image: their form as far as it is known without a cluster, and that ringtap takes the arguments."""

import re

import jsonschema
import yaml
from harness.paths import REPO, RINGTAP
from harness.proc import run

# The part of Kubernetes' API v1 for a Pod that the manifests use. Misspelt fields are refused.
CONTAINER = {
    "type": "object",
    "required": ["name", "image"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"},
        "image": {"type": "string"},
        "command": {"type": "array", "items": {"type": "string"}},
        "args": {"type": "array", "items": {"type": "string"}},
        "volumeMounts": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name", "mountPath"],
                "additionalProperties": False,
                "properties": {
                    "name": {"type": "string"},
                    "mountPath": {"type": "string"},
                    "readOnly": {"type": "boolean"},
                },
            },
        },
        "resources": {"type": "object", "additionalProperties": False, "properties": {"limits": {"type": "object"}}},
        "securityContext": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "allowPrivilegeEscalation": {"type": "boolean"},
                "readOnlyRootFilesystem": {"type": "boolean"},
                "runAsUser": {"type": "integer"},
                "seccompProfile": {"type": "object"},
                "capabilities": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {
                        kind: {"type": "array", "items": {"type": "string", "pattern": "^(ALL|[A-Z_]+)$"}}
                        for kind in ("add", "drop")
                    },
                },
            },
        },
    },
}
POD = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "additionalProperties": False,
    "properties": {
        "apiVersion": {"const": "v1"},
        "kind": {"const": "Pod"},
        "metadata": {"type": "object", "required": ["name"]},
        "spec": {
            "type": "object",
            "required": ["containers"],
            "additionalProperties": False,
            "properties": {
                "containers": {"type": "array", "minItems": 1, "items": CONTAINER},
                "initContainers": {"type": "array", "items": CONTAINER},
                "volumes": {
                    "type": "array",
                    "items": {"type": "object", "required": ["name"], "maxProperties": 2, "minProperties": 2},
                },
                "nodeName": {"type": "string"},
                "hostPID": {"type": "boolean"},
                "restartPolicy": {"enum": ["Always", "OnFailure", "Never"]},
            },
        },
    },
}


def pods():
    for name in "sidecar", "debug-container":
        yield yaml.safe_load((REPO / "packaging" / "kubernetes" / f"{name}.yaml").read_text())


def assert_form(pod):
    jsonschema.validate(pod, POD)
    spec = pod["spec"]
    volumes = {volume["name"] for volume in spec["volumes"]}
    mounts = {m["name"] for c in [*spec["containers"], *spec.get("initContainers", [])] for m in c["volumeMounts"]}
    assert mounts == volumes


def test_form_and_arguments():
    """Help comes after the options are checked up to it."""
    for pod in pods():
        assert_form(pod)
        for container in pod["spec"]["containers"]:
            if "ringtap" not in container["image"] or "args" not in container:
                continue
            command, *rest = container["args"]
            done = run([RINGTAP, command, *rest, "--help"])
            assert done.returncode == 0 and done.stdout.startswith(f"Usage: ringtap {command}"), done.stderr


DIGEST = "docker.io/library/debian@sha256:" + "0123456789abcdef" * 4


BASES = [
    (DIGEST, "", True),
    ("localhost/debian:bookworm", "", True),
    ("docker.io/library/debian:bookworm-slim", "yes", True),
    ("docker.io/library/debian:bookworm-slim", "", False),
    ("docker.io/library/debian", "", False),
    (DIGEST[:-1], "", False),
    ("localhost.example.org/debian:1", "", False),
    ("", "", False),
]


def test_base_of_the_image():
    """A tag is refused: what it names is the registry's choice."""
    text = (REPO / "packaging" / "container" / "Containerfile").read_text().replace("\\\n", "")
    check = next(line for line in text.splitlines() if line.startswith("RUN case")).removeprefix("RUN ")
    for base, unpinned, good in BASES:
        done = run(["sh", "-c", check], env={"BASE": base, "UNPINNED": unpinned})
        assert (done.returncode == 0) == good and ("UNPINNED=yes" in done.stderr) != good, base
    # Without a base, nothing is built or installed before this message.
    done = run(["make", "--no-print-directory", "-C", REPO, "image", "BASE="])
    assert done.returncode == 2 and done.stdout == "", done
    assert re.fullmatch(
        r"make: .*make image BASE=\S+@sha256:.*docs/containers.md.*\nmake\S*: \*\*\* .*\n", done.stderr
    ), done
