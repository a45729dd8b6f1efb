# SPDX-License-Identifier: BSD-3-Clause
"""Names of protocols are those of the C commands."""

import re

from harness.paths import REPO
from ringtap_archive import show


def names(of):
    text = (REPO / "packet" / "protocols.h").read_text()
    part = re.search(rf"#define {of}\(P\)((?:.*\\\n)*.*)", text)[1]
    return {int(number, 0): name for number, name in re.findall(r'P\((\w+), "(\w+)"\)', part)}


def test_names_of_protocols_are_those_of_the_c_commands():
    assert names("IP_PROTOCOLS") == show.PROTOCOLS and names("ETHERTYPES") == show.ETHERTYPES
    assert (show.protocol(17), show.protocol(253), show.ethertype(0x88B5)) == ("UDP", "proto 253", "0x88b5")
