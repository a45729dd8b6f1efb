#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Prints a software bill of materials, SPDX 2.3 as JSON, of lines on standard input:

    package NAME VERSION [LICENCE...]  what is described; those below belong to it
    contains NAME VERSION [LICENCE...] is inside of it
    depends NAME [VERSION]             is needed beside it, or one of those described; without a version, any may be there

usage: sbom.py NAME: the document's name. Its time is SOURCE_DATE_EPOCH; the same lines make the same document.
"""

import hashlib
import json
import os
import re
import sys
import time

RELATIONS = {"contains": "CONTAINS", "depends": "DEPENDS_ON"}


def package(name, version="", *licence):
    expression = " ".join(licence) or "NOASSERTION"
    return {
        "SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", f"{name}-{version}".rstrip("-")),
        "name": name,
        "versionInfo": version or "NOASSERTION",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": expression,
        "licenseDeclared": expression,
        "copyrightText": "NOASSERTION",
    }


def document(name, lines, epoch):
    packages, relations, owner = {}, [], None
    words = [line for line in map(str.split, lines) if line]
    described = {line[1]: line[1:] for line in words if line[0] == "package"}
    for kind, *fields in words:
        one = package(*(described.get(fields[0], fields) if kind == "depends" else fields))
        packages.setdefault(one["SPDXID"], one)
        if kind == "package":
            owner = one["SPDXID"]
            relations.append(("SPDXRef-DOCUMENT", "DESCRIBES", owner))
        else:
            relations.append((owner, RELATIONS[kind], one["SPDXID"]))
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": name,
        "documentNamespace": f"https://spdx.org/spdxdocs/{name}-{digest}",
        "creationInfo": {
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch)),
            "creators": ["Tool: devtools/sbom.py of ringtap"],
        },
        "packages": list(packages.values()),
        "relationships": [
            {"spdxElementId": a, "relationshipType": how, "relatedSpdxElement": b}
            for a, how, b in dict.fromkeys(relations)
        ],
    }


def main():
    lines = sys.stdin.read().splitlines()
    json.dump(document(sys.argv[1], lines, int(os.environ.get("SOURCE_DATE_EPOCH", "0"))), sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
