# SPDX-License-Identifier: BSD-3-Clause
"""Files of other projects have their licences in the packages."""

import re
import subprocess
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]


def texts(name):
    return (REPO / name).read_text(encoding="utf-8")


def folders():
    """Folders with a licence of their own."""
    files = subprocess.run(["git", "-C", REPO, "ls-files"], check=True, capture_output=True, text=True).stdout.split()
    return sorted({Path(name).parent.as_posix() for name in files if re.search(r"/LICEN[CS]E[^/]*$", name)})


def test_debian_names_each_licence():
    text = texts("debian/copyright")
    stanzas = dict(re.findall(r"^Files: (.*)\nCopyright: (?:.*\n )*.*\nLicense: (.*)", text, re.M))
    texts_of = set(re.findall(r"^License: (.*)\n ", text, re.M))
    assert "web/uplot" in folders()
    for folder in folders():
        assert stanzas[f"{folder}/*"] != "BSD-3-Clause", folder
    for licence in stanzas.values():
        assert set(licence.split(" and ")) <= texts_of, licence


def test_packages_have_the_licence_of_the_page():
    spec = texts("packaging/ringtap.spec")
    assert re.search(r"^License: +BSD-3-Clause AND MIT$", spec, re.M)
    assert re.search(r"^%files\n%license LICENSE LICENSE.uPlot$", spec, re.M)
    assert "install_data('web/uplot/LICENSE', rename: 'uPlot'" in texts("meson.build")
