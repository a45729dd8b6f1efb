# SPDX-License-Identifier: BSD-3-Clause
"""fits() takes documents that jsonschema takes, and no damaged one that jsonschema refuses."""

import copy
import random
import sys
from pathlib import Path

import pytest

pytest.importorskip("jsonschema")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import schemas


def goldens():
    for path in sorted(schemas.REPO.glob("cli/*/golden/*.json")):
        for document in schemas.documents(path.read_text(encoding="utf-8")):
            if schemas.is_document(document) and schemas.name_of(document) in schemas.schemas():
                yield pytest.param(document, id=f"{path.parent.parent.name}/{path.stem}")
                break


def places(value):
    """(container, key) of all that is in a document."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from places(value[key])


def damage(document, rng):
    out = copy.deepcopy(document)
    container, key = rng.choice(list(places(out)))
    if isinstance(container, dict) and rng.random() < 0.3:
        if rng.random() < 0.5:
            del container[key]
        else:
            container["moon"] = 1
    else:
        container[key] = rng.choice([None, True, -1, 1 << 70, 0.5, "moon", [], {}, [container[key]]])
    return out


@pytest.mark.parametrize("document", goldens())
def test_fits_is_as_strict_as_jsonschema(document):
    checker = schemas.validator(schemas.name_of(document))
    assert schemas.fits(checker.schema, document)
    rng = random.Random(1)
    refused = 0
    for _ in range(40):
        damaged = damage(document, rng)
        valid = checker.is_valid(damaged)
        refused += not valid
        assert valid or not schemas.fits(checker.schema, damaged)
    assert refused
