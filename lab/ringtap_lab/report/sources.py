# SPDX-License-Identifier: BSD-3-Clause
"""Sources of published values: title, author, year and link, for the report and the documents."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Source:
    author: str
    title: str
    kind: str
    date: str
    setup: str = ""  # what it was measured on
    link: str = ""

    def __str__(self):
        return ", ".join(filter(None, [f"{self.author}: {self.title}", self.kind, self.date])) + (
            f"; {self.setup}" if self.setup else ""
        )


LATENCY = Source(
    "slankdev",
    "Latency of DPDK and PF_PACKET measured with rdtsc (in Japanese)",
    "blog",
    "2016",
    "code: libslankdev, libpgen",
    "https://github.com/slankdev/libslankdev",
)
MEMORY = Source(
    "CodiLime",
    "How memory types affect DPDK application performance — case study",
    "blog",
    "2022",
    "",
    "https://codilime.com/blog/how-memory-types-affect-dpdk-application-performance/",
)
CAPTURE = Source(
    "Alexander Fiveg",
    "Ringmap Capturing Stack for High Performance Packet Capturing in FreeBSD",
    "slides",
    "28 September 2010",
    "",
    "https://wiki.freebsd.org/AlexandreFiveg/RingmapOverview",
)
TRACING = Source(
    "Stephen Hemminger (Microsoft)",
    "Analyzing DPDK applications with eBPF: Sharpening the toolset",
    "FOSDEM",
    "1 February 2020",
    "DPDK 19.11, NIC of 25 Gbit/s",
    "https://archive.fosdem.org/2020/",
)
PDUMP = Source(
    "Napatech",
    "DPDK Packet Capture (PDUMP)",
    "blog",
    "2016",
    "DPDK 16.07, Intel XL710, 2 × 10 Gbit/s; patches: github.com/napatech/dpdk, branch v16.07-batching",
    "https://www.napatech.com/dpdk-packet-capture-pdump/",
)


@dataclass(frozen=True)
class Published:
    """A published value: what was measured, the value as text, the Source, its link."""

    what: str
    value: str
    source: str
    link: str = ""

    @classmethod
    def of(cls, source: Source, *pairs) -> tuple:
        """One for each pair of what and value, all of this Source."""
        return tuple(cls(what, value, str(source), source.link) for what, value in pairs)
