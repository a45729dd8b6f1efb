# SPDX-License-Identifier: BSD-3-Clause
"""The part of a BPF program that the index can decide.

The program is run on symbols instead of a packet: each path through it is a chain of comparisons of packet fields
with constants. Where a field has a column, the comparison becomes one of SQL; where it has none, both outcomes are
possible. So the result holds for every packet that the program accepts, and for some that it does not. Only numbers
get from the filter into the SQL. A null column may hide any value: the packet is malformed, or it was cut.
"""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

RETURN = 0x06
_STATES_MAX = 20000
_TERMS_MAX = 400
_ALTERNATIVES_MAX = 16
_WORD = 0xFFFFFFFF
_VLANS = (0x8100, 0x88A8, 0x9100)
_IPV4, _IPV6 = 0x0800, 0x86DD
_MAPPED = 0xFFFF << 32
_SIZES = {0x00: 4, 0x08: 2, 0x10: 1}
# Next headers behind which the index has another protocol than the IPv6 header: RFC 7045, and some experiments.
_FRAGMENT = 44
_EXTENSIONS = {0, 43, 44, 50, 51, 60, 135, 139, 140, 253, 254}
# Ethertypes of packets without a flow, of which the index has addresses.
_NO_FLOW = {0x0806, 0x8035}
_ARP = 1  # instead of the IP version

# Where the link type has its ethertype, where the network header begins, whether VLAN tags may be in between.
_Link = collections.namedtuple("_Link", "type_at network tags")
_LINKS = {
    1: _Link(12, 14, True),
    113: _Link(14, 16, False),
    276: _Link(0, 20, False),
    101: _Link(None, 0, False),
    12: _Link(None, 0, False),
    228: _Link(None, 0, False),
    229: _Link(None, 0, False),
}

# What a path has found out: VLAN tags passed, 4 or 6, the IPv6 header's next header, and words of its addresses.
_Facts = collections.namedtuple("_Facts", "tags version next_header source destination")

TRUE, FALSE = ("true",), ("false",)


def _all(*terms):
    flat = []
    for term in terms:
        flat += term[1] if term[0] == "and" else [term] if term != TRUE else []
    if FALSE in flat:
        return FALSE
    flat = _narrowest(list(dict.fromkeys(flat)))
    return TRUE if not flat else flat[0] if len(flat) == 1 else ("and", tuple(flat))


def _any(*terms):
    flat = []
    for term in terms:
        flat += term[1] if term[0] == "or" else [term] if term != FALSE else []
    if TRUE in flat:
        return TRUE
    flat = list(dict.fromkeys(flat))
    return FALSE if not flat else flat[0] if len(flat) == 1 else ("or", tuple(flat))


def _narrowest(terms: list[tuple]):
    """The inner one of several ranges of one column, if they lie within each other."""

    def within(inner: tuple, outer: tuple):
        return (
            inner[0] == outer[0] == "range"
            and inner != outer
            and inner[1] == outer[1]
            and outer[2] <= inner[2]
            and inner[3] <= outer[3]
        )

    return [t for t in terms if not any(within(other, t) for other in terms)]


def _size(term: tuple):
    return sum(map(_size, term[1])) if term[0] in ("and", "or") else 1


class _Walk:
    """The program on symbols. Values: a number, ("at", offset, bytes) of the packet, ("l4", offset, bytes) behind
    the IPv4 header, ("header",) its length, ("length",) of the packet, ("and", value, mask); None: unknown."""

    def __init__(self, program: list[tuple], link: Any):
        self.program, self.link = program, link
        self.known = {}

    def run(self, at: int, a: tuple | None, x: int | tuple | None, memory: tuple, facts: Any) -> Any:
        """The term of all paths from here to an accepting return."""
        key = at, a, x, memory, facts
        if key not in self.known:
            if len(self.known) > _STATES_MAX:
                return TRUE
            self.known[key] = TRUE  # jumps go forward only: never read
            term = self._run(at, a, x, memory, facts)
            self.known[key] = TRUE if _size(term) > _TERMS_MAX else term
        return self.known[key]

    def _run(self, at: Any, a: Any, x: Any, memory: Any, facts: Any):
        while True:
            code, jt, jf, k = self.program[at]
            at += 1
            kind = code & 0x07
            if kind == 0x06:  # return
                return FALSE if code & 0x18 == 0 and k == 0 else TRUE
            if kind == 0x05:  # jump
                if code & 0xF0 == 0:
                    if k >= len(self.program) - at:
                        return TRUE  # backwards, as 'protochain' does
                    at += k
                    continue
                return self._branch(at, jt, jf, (code & 0xF0, a, x if code & 0x08 else k), (a, x, memory), facts)
            if kind == 0x00:
                a = self._load(code, k, x, memory, facts)
            elif kind == 0x01:
                x = self._load_x(code, k, memory, facts)
            elif kind in (0x02, 0x03):
                memory = tuple(sorted({**dict(memory), k: a if kind == 0x02 else x}.items()))
            elif kind == 0x04:
                a = _arithmetic(code, a, x if code & 0x08 else k)
            elif code & 0xF8 == 0x00:
                x = a
            else:
                a = x

    def _load(self, code: int, k: int, x: int | tuple | None, memory: tuple, facts: Any):
        mode, size = code & 0xE0, _SIZES.get(code & 0x18)
        if mode == 0x20:
            return "at", k, size
        if mode == 0x40 and x == ("header",):
            return "l4", k - self._network(facts), size
        return k if mode == 0x00 else dict(memory).get(k) if mode == 0x60 else ("length",) if mode == 0x80 else None

    def _load_x(self, code: int, k: int, memory: tuple, facts: Any):
        mode = code & 0xE0
        if mode == 0xA0 and facts.version == 4 and k == self._network(facts):
            return ("header",)
        return k if mode == 0x00 else dict(memory).get(k) if mode == 0x60 else None

    def _branch(self, at: int, jt: int, jf: int, comparison: tuple, registers: tuple, facts: Any):
        yes, no = self._outcomes(comparison, facts)
        after_yes = self.run(at + jt, *registers, yes[1]) if yes[0] != FALSE else FALSE
        after_no = self.run(at + jf, *registers, no[1]) if no[0] != FALSE else FALSE
        if after_yes == after_no:
            return after_yes
        if FALSE not in (after_yes, after_no) and after_no != TRUE:
            return _any(_all(yes[0], after_yes), after_no)  # the comparison again, negated, excludes little
        return _any(_all(yes[0], after_yes), _all(no[0], after_no))

    def _network(self, facts: Any):
        return self.link.network + 4 * facts.tags

    def _outcomes(self, comparison: tuple, facts: Any):
        """((term, facts) if the comparison is true, the same if it is false)"""
        operation, a, k = comparison
        mask = _WORD
        if isinstance(a, tuple) and a[0] == "and":
            _, a, mask = a
        if not isinstance(a, tuple) or not isinstance(k, int):
            return (TRUE, facts), (TRUE, facts)
        if a == ("length",):
            return [(term, facts) for term in _compared(operation, "length", k, 0xFFFFFFFF, mask)]
        if a[0] == "at" and a[1:] == (self._type_at(facts), 2):
            return self._ethertype(operation, k, mask, facts)
        if self.link.type_at is None and a == ("at", 0, 1) and mask == 0xF0 and operation == 0x10:
            return (TRUE, facts._replace(version={0x40: 4, 0x60: 6}.get(k))), (TRUE, facts)
        if a[0] == "l4" and facts.version == 4:
            return [(term, facts) for term in _transport(operation, a[1], a[2], k, mask)]
        if a[0] == "at" and facts.version == 4:
            return [(term, facts) for term in self._ipv4(operation, a[1] - self._network(facts), a[2], k, mask)]
        if a[0] == "at" and facts.version == _ARP:
            column = {(14, 4): "src", (24, 4): "dst"}.get((a[1] - self._network(facts), a[2]))
            return [(term, facts) for term in self._address(operation, column, k, mask)]
        if a[0] == "at" and facts.version == 6:
            return self._ipv6(operation, a[1] - self._network(facts), a[2], k, mask, facts)
        return (TRUE, facts), (TRUE, facts)

    def _type_at(self, facts: Any):
        return None if self.link.type_at is None or facts.version else self.link.type_at + 4 * facts.tags

    def _ethertype(self, operation: int, k: int, mask: int, facts: Any):
        if operation != 0x10 or mask != _WORD or k < 0x600:
            return (TRUE, facts), (TRUE, facts)
        if k in _VLANS:
            if not self.link.tags:
                return (TRUE, facts), (TRUE, facts)
            # The index has one outermost tag: behind two of them it is not known how many it has skipped.
            passed = facts._replace(tags=facts.tags + 1) if facts.tags < 2 else facts._replace(version=-1)
            return (TRUE, passed), (TRUE, facts)
        found = facts._replace(version={_IPV4: 4, _IPV6: 6}.get(k, _ARP if k in _NO_FLOW else -1))
        # Behind LLC and SNAP the index has a type where the frame has its length: nothing follows of "not k".
        return (("range", "ethertype", k, k), found), (TRUE, facts)

    def _ipv4(self, operation: int, offset: int, size: int, k: int, mask: int):
        if (offset, size) == (9, 1):
            return _compared(operation, "protocol", k, 0xFF, mask)
        if (offset, size) == (4, 2):
            return _compared(operation, "ip_id", k, 0xFFFF, mask)
        return self._address(operation, {(12, 4): "src", (16, 4): "dst"}.get((offset, size)), k, mask)

    @staticmethod
    def _address(operation: int, column: str | None, k: int, mask: int):
        """An IPv4 address; column None: none of the index."""
        if not column or operation not in (0x10, 0x20, 0x30):
            return TRUE, TRUE
        if operation != 0x10:
            return _compared(operation, column, k, _WORD, mask, _MAPPED)
        high = _range_end(k, mask)
        if high is None:
            return TRUE, TRUE
        return ("range", column, _MAPPED | k, _MAPPED | high), ("outside", column, _MAPPED | k, _MAPPED | high)

    def _ipv6(self, operation: int, offset: int, size: int, k: int, mask: int, facts: Any):
        same = (TRUE, facts), (TRUE, facts)
        if (offset, size) == (6, 1) and operation == 0x10 and mask == _WORD:
            found = facts._replace(next_header=k)
            return (("range", "protocol", k, k) if k not in _EXTENSIONS else TRUE, found), (TRUE, facts)
        if facts.next_header == _FRAGMENT:
            of_fragment = (offset, size, operation, mask) == (40, 1, 0x10, _WORD) and k not in _EXTENSIONS
            return (("range", "protocol", k, k) if of_fragment else TRUE, facts), (TRUE, facts)
        if offset >= 40 and facts.next_header not in (None, *_EXTENSIONS):
            return [(term, facts) for term in _transport(operation, offset - 40, size, k, mask)]
        for name, column, start in (("source", "src", 8), ("destination", "dst", 24)):
            words = getattr(facts, name)
            if size == 4 and operation == 0x10 and offset == start + 4 * len(words):
                high = _range_end(k, mask)
                if high is None:
                    return same
                shift = 96 - 32 * len(words)
                base = sum(word << (96 - 32 * i) for i, word in enumerate(words))
                term = ("range", column, base | k << shift, base | high << shift | ((1 << shift) - 1))
                return (term, facts._replace(**{name: (*words, k)}) if high == k else facts), (TRUE, facts)
        return same


def _arithmetic(code: int, a: int | tuple | None, k: Any):
    if code & 0xF0 == 0x50 and isinstance(k, int) and isinstance(a, tuple):  # and
        return ("and", a[1], a[2] & k) if a[0] == "and" else ("and", a, k)
    return None


def _range_end(k: int, mask: int):
    """The last of the words with k in the bits of the mask, if they are a range."""
    free = ~mask & _WORD
    return None if k & free or free & (free + 1) else k | free


def _transport(operation: int, offset: int, size: int, k: int, mask: int):
    if (offset, size) in ((0, 2), (2, 2)):
        return _compared(operation, "src_port" if offset == 0 else "dst_port", k, 0xFFFF, mask)
    if (offset, size) != (13, 1):
        return TRUE, TRUE
    if operation == 0x40:
        return ("bits", "tcp_flags", k & mask, None), ("bits", "tcp_flags", k & mask, 0)
    if operation == 0x10:
        wanted = ("bits", "tcp_flags", mask & 0xFF, k)
        return wanted, ("bits", "tcp_flags", mask & 0xFF, None) if k == 0 else TRUE
    return TRUE, TRUE


def _compared(operation: int, column: str, k: int, last: int, mask: int, base: int = 0):
    """A column of 0 to `last` with k; in the index its values begin at `base`."""
    if mask & last != last or operation == 0x40:
        return TRUE, TRUE
    low, high = {0x10: (k, k), 0x20: (k + 1, last), 0x30: (k, last)}[operation]
    high = min(high, last)
    if low > high:
        return FALSE, TRUE
    return ("range", column, base + low, base + high), ("outside", column, base + low, base + high)


def _sql(term: tuple, address: Callable, never_null: tuple = ()):
    kind = term[0]
    if kind in ("and", "or"):
        return "(" + f" {kind.upper()} ".join(_sql(t, address, never_null) for t in term[1]) + ")"
    if kind in ("true", "false"):
        return kind
    column = term[1]
    if kind == "bits":
        return f"(({column} & {term[2]}) {'<> 0' if term[3] is None else f'= {term[3]}'} OR {column} IS NULL)"
    low, high = [address(end.to_bytes(16, "big")) if column in ("src", "dst") else str(end) for end in term[2:]]
    if kind == "range":
        inside = f"{column} = {low}" if low == high else f"{column} BETWEEN {low} AND {high}"
    else:
        inside = f"{column} <> {low}" if low == high else f"{column} NOT BETWEEN {low} AND {high}"
    return inside if column in never_null else f"({inside} OR {column} IS NULL)"


_FLOW = {"src", "dst", "protocol", "src_port", "dst_port"}
_NOT_OF_ARP = {"protocol", "src_port", "dst_port"}
_OF_EACH_FLOW = ("src", "dst", "protocol")
_BACK = {"src": "dst", "dst": "src", "src_port": "dst_port", "dst_port": "src_port"}


def _of_non_ip(term: tuple):
    """The rest of a term for packets without IP's ethertypes."""
    if term[0] in ("and", "or"):
        return (_all if term[0] == "and" else _any)(*map(_of_non_ip, term[1]))
    if term[0] == "range" and term[1] == "ethertype":
        return FALSE if term[2] in (_IPV4, _IPV6) else term
    return TRUE if len(term) > 1 and term[1] in _NOT_OF_ARP else term


def _of_flow(term: tuple):
    """The rest of a term for a row of `flows`, for the packets of that flow."""
    if term[0] in ("and", "or"):
        return (_all if term[0] == "and" else _any)(*map(_of_flow, term[1]))
    if term[0] == "range" and term[1] == "ethertype":
        return FALSE if term[2] in _NO_FLOW else TRUE
    return term if len(term) > 1 and term[1] in _FLOW else term if term in (TRUE, FALSE) else TRUE


def _by_address(term: tuple):
    """Conditions of the term on addresses, as alternatives: sets of ranges that hold together. None: there are none."""
    if term[0] == "range" and term[1] in ("src", "dst"):
        return {frozenset([term])}
    if term[0] == "or":
        found = [_by_address(t) for t in term[1]]
        return None if None in found else _fewest(set().union(*found))
    if term[0] != "and":
        return set() if term == FALSE else None
    out = None
    for found in filter(None, map(_by_address, term[1])):
        out = found if out is None else _fewest({a | b for a in out for b in found if not _contradict(a | b)})
        if out is None:
            return None
    return out


def _contradict(ranges: frozenset[tuple]):
    return any(a[1] == b[1] and (a[3] < b[2] or b[3] < a[2]) for a in ranges for b in ranges)


def _fewest(alternatives: set[frozenset[tuple]]):
    """The alternatives without those that contain another one. None: there are too many."""
    out = {a for a in alternatives if not any(b < a for b in alternatives)}
    return out if len(out) <= _ALTERNATIVES_MAX else None


def _swapped(term: tuple):
    """The condition for packets in the other direction."""
    if term[0] in ("and", "or"):
        return term[0], tuple(map(_swapped, term[1]))
    return (term[0], _BACK.get(term[1], term[1]), *term[2:]) if len(term) > 1 else term


class Condition:
    """On rows of `packets`, and on rows of `flows`."""

    def __init__(self, term: tuple):
        self.term = term

    @property
    def always(self) -> bool:
        return self.term == TRUE

    @property
    def never(self) -> bool:
        return self.term == FALSE

    @property
    def of_flows(self) -> Condition:
        """A condition on `flows` that may have such packets in one of their directions; TRUE if none follows."""
        term = _of_flow(self.term)
        return Condition(_any(term, _swapped(term)))

    def flows(self, address: Callable) -> list[str]:
        """Alternative conditions on `flows` as SQL: one holds for each flow that may have such packets. Comparisons of
        addresses stand alone where that is possible: bloom filters are for those."""
        term = self.of_flows.term
        condition = _sql(term, address, _OF_EACH_FLOW)
        alternatives = _by_address(term)
        if not alternatives:
            return [condition]
        return [" AND ".join([*(_sql(t, address, _OF_EACH_FLOW) for t in sorted(a)), condition]) for a in alternatives]

    @property
    def of_non_ip(self) -> Condition:
        """A condition on packets that are not IP's."""
        return Condition(_of_non_ip(self.term))

    def __or__(self, other: Condition):
        return Condition(_any(self.term, other.term))

    def sql(self, address: Callable) -> str:
        """As SQL; `address` makes a literal of 16 bytes."""
        return _sql(self.term, address)


def condition(program: list[tuple], linktype: int) -> Condition:
    """A Condition that holds for every packet that the program accepts."""
    link = _LINKS.get(linktype)
    if link is None:
        return Condition(FALSE if all(i[0] & 0x1F == RETURN and i[3] == 0 for i in program) else TRUE)
    try:
        return Condition(_Walk(program, link).run(0, None, None, (), _Facts(0, None, None, (), ())))
    except RecursionError:  # hundreds of addresses: libpcap alone decides
        return Condition(TRUE)
