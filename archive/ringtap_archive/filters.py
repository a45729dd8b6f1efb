# SPDX-License-Identifier: BSD-3-Clause
"""libpcap's filters: compiled by libpcap, applied to packets by libpcap.

What the index can decide of a filter is read off its program, see bpf.py.
"""

from __future__ import annotations

import ctypes
import functools
import operator
import re
from typing import TYPE_CHECKING

from . import bpf
from .errors import Refused, WrongCommandLine

if TYPE_CHECKING:
    from typing import Any

    from .bpf import Condition

SNAPLEN = 262144
_NAMES = ("libpcap.so.0.8", "libpcap.so.1", "libpcap.so")
_NETMASK_UNKNOWN = 0xFFFFFFFF
_REJECTS_ALL = b"expression rejects all packets"
# LINKTYPE_ of files that are another DLT_ in libpcap: pcap-common.c, where they are not the same.
_DLT = {100: 11, 101: 12, 102: 15, 103: 16, 106: 19}

ETHERNET = 1
TPIDS = (0x8100, 0x88A8, 0x9100)
MAX_INSTRUCTIONS = 4096  # BPF_MAXINSNS
_JUMP_IF_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K


class _Program(ctypes.Structure):
    _fields_ = [("count", ctypes.c_uint), ("instructions", ctypes.c_void_p)]


class _Instruction(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32)]


class _Header(ctypes.Structure):
    _fields_ = [
        ("seconds", ctypes.c_long),
        ("microseconds", ctypes.c_long),
        ("captured", ctypes.c_uint32),
        ("length", ctypes.c_uint32),
    ]


_loaded = None


def _libpcap():
    global _loaded
    if _loaded:
        return _loaded
    for name in _NAMES:
        try:
            pcap = ctypes.CDLL(name)
            break
        except OSError:
            continue
    else:
        raise Refused("libpcap is not installed, which filters need; install libpcap0.8, or use --where")
    pcap.pcap_open_dead.restype = ctypes.c_void_p
    pcap.pcap_geterr.restype = ctypes.c_char_p
    pcap.pcap_geterr.argtypes = pcap.pcap_close.argtypes = [ctypes.c_void_p]
    pcap.pcap_compile.argtypes = [
        ctypes.c_void_p,
        ctypes.POINTER(_Program),
        ctypes.c_char_p,
        ctypes.c_int,
        ctypes.c_uint32,
    ]
    pcap.pcap_freecode.argtypes = [ctypes.POINTER(_Program)]
    pcap.pcap_offline_filter.argtypes = [ctypes.POINTER(_Program), ctypes.POINTER(_Header), ctypes.c_void_p]
    _loaded = pcap
    return pcap


def _behind_tags(expression: str) -> str:
    """The expression behind no, one and two VLAN tags, by what a packet has. In libpcap's grammar, vlan moves all tests
    that are right of it."""
    untagged = " and ".join(f"not ether proto {tpid:#x}" for tpid in TPIDS)
    plain = f"({untagged} and ({expression}))"
    return f"{plain} or (vlan and ({plain} or (vlan and ({expression}))))"


class Filter:
    """One expression for one link type. any_tags: it matches packets with VLAN tags, too, unless it is about tags."""

    def __init__(self, expression: str, linktype: int = ETHERNET, any_tags: bool = False):
        self.linktype = linktype
        self._program = _Program()
        self._header = _Header()
        self._match = None
        self.rejects_all = False
        self._compile(expression)
        # As reader/capture/tags.c: three of a long one would not fit, and libpcap takes seconds for each.
        short = self._program.count <= MAX_INSTRUCTIONS // 3
        if any_tags and linktype == ETHERNET and short and not self._is_about_tags(expression):
            self._free()
            self._compile(_behind_tags(expression))
            if self._program.count > MAX_INSTRUCTIONS:
                self._free()
                self._compile(expression)

    def _is_about_tags(self, expression: str) -> bool:
        return (
            self.rejects_all
            or re.search(r"(?<![\w.-])vlan(?![^\W_])", expression) is not None
            or any(code == _JUMP_IF_EQUAL and k in TPIDS for code, _, _, k in self.instructions())
        )

    def _compile(self, expression: str):
        pcap = _libpcap()
        handle = pcap.pcap_open_dead(_DLT.get(self.linktype, self.linktype), SNAPLEN)
        try:
            if pcap.pcap_compile(handle, ctypes.byref(self._program), expression.encode(), 1, _NETMASK_UNKNOWN) == 0:
                self._match = pcap.pcap_offline_filter
                return
            error = pcap.pcap_geterr(handle)
        finally:
            pcap.pcap_close(handle)
        if error != _REJECTS_ALL:
            raise WrongCommandLine(
                f"the filter '{expression}' does not compile: {error.decode(errors='replace')}; see pcap-filter(7)"
            )
        self.rejects_all = True

    def _free(self):
        if self._match:
            _libpcap().pcap_freecode(ctypes.byref(self._program))

    def __del__(self):
        self._free()

    def instructions(self) -> list[tuple]:
        """(code, jt, jf, k) of the program."""
        if self.rejects_all:
            return [(bpf.RETURN, 0, 0, 0)]
        array = ctypes.cast(self._program.instructions, ctypes.POINTER(_Instruction * self._program.count)).contents
        return [(i.code, i.jt, i.jf, i.k) for i in array]

    def condition(self) -> Condition:
        """The part that the index can decide: a bpf.Condition that holds for every matching packet."""
        return bpf.condition(self.instructions(), self.linktype)

    def matches(self, address: int, captured: int, length: int) -> bool:
        """Whether the packet at this address of memory matches."""
        if self.rejects_all:
            return False
        self._header.captured = captured
        self._header.length = length
        return self._match(self._program, self._header, address) != 0


class _None:
    """The filter means nothing for the link type: no packet matches."""

    @staticmethod
    def matches(*_) -> bool:
        return False

    @staticmethod
    def condition() -> Any:
        return bpf.Condition(bpf.FALSE)


def for_linktype(expression: str, linktype: int, any_tags: bool) -> Any:
    """A filter, or one that matches nothing if the expression is not for packets of this link type."""
    try:
        return Filter(expression, linktype, any_tags)
    except Refused:
        return _None


def condition(expression: str, linktypes: list[int], any_tags: bool) -> Condition | None:
    """On packets of interfaces with these link types, a bpf.Condition. Refused if the filter is for none of them."""
    found, refused = [], None
    for linktype in linktypes:
        try:
            found.append(Filter(expression, linktype, any_tags).condition())
        except Refused as error:
            refused = error
    if refused and not found:
        raise refused
    return functools.reduce(operator.or_, found, bpf.Condition(bpf.FALSE))
