# SPDX-License-Identifier: BSD-3-Clause
"""Files of `ringtap trace timeline`, by a reader of Perfetto's format of its own: the wire format of
protocol buffers, and the numbers of fields in perfetto/trace/*.proto. All that it does not know is
refused."""

from dataclasses import dataclass, field
from pathlib import Path

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
REALTIME, BOOTTIME, OF_SEQUENCE = 1, 6, 64

# Fields of a message: name, and the fields of the message in it.
DEFAULTS = {58: "clock", 11: ("event", {11: "track"})}
CLOCKS = {1: ("clocks", {1: "id", 2: "ns", 3: "incremental"}), 2: "primary"}
TRACK = {
    1: "uuid",
    2: "name",
    3: ("process", {1: "pid", 6: "name"}),
    4: ("thread", {1: "pid", 2: "tid", 5: "name"}),
    5: "parent",
    8: ("counter", {3: "unit"}),
}
EVENT = {
    4: ("arguments", {1: "name", 3: "number"}),
    9: "type",
    10: "name_id",
    23: "name",
    30: "value",
    47: "flows",
}
INTERNED = {2: ("names", {1: "id", 2: "text"}), 3: ("arguments", {1: "id", 2: "text"})}
PACKET = {
    6: ("clock_snapshot", CLOCKS),
    8: "time",
    10: "sequence",
    11: ("event", EVENT),
    12: ("interned", INTERNED),
    13: "flags",
    59: ("defaults", DEFAULTS),
    60: ("track", TRACK),
}


def varint(data, at):
    end = next(i for i in range(at, at + 10) if data[i] < 128) + 1
    return sum((byte & 127) << 7 * i for i, byte in enumerate(data[at:end])), end


def message(data, fields):
    """{name: [values]} of a message."""
    out, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = int.from_bytes(data[at : at + 8], "little"), at + 8
        else:
            assert kind == 2, f"wire type {kind}"
            size, at = varint(data, at)
            value, at = data[at : at + size], at + size
        assert at <= len(data), "a field beyond the end of its message"
        name = fields[key >> 3]
        if isinstance(name, tuple):
            name, inner = name
            value = message(value, inner)
        out.setdefault(name, []).append(value)
    return out


def only(values):
    (value,) = values
    return value


@dataclass
class Slice:
    name: str
    ns: int
    end: int  # equals ns for an instant
    depth: int
    args: dict
    flows: list
    instant: bool


@dataclass
class Track:
    uuid: int
    name: str
    parent: int
    kind: str
    pid: int = 0
    tid: int = 0
    slices: list = field(default_factory=list)  # in the order of their beginnings
    values: list = field(default_factory=list)  # (ns, value)


class Sequence:
    """Packets of one sequence: time stamps are differences, names are numbers."""

    def __init__(self, packet):
        assert packet["flags"] == [1], "it does not begin with a cleared state"
        defaults = only(packet["defaults"])
        assert defaults["clock"] == [OF_SEQUENCE]
        self.uuid = only(only(defaults["event"])["track"])
        snapshot = only(packet["clock_snapshot"])
        assert snapshot["primary"] == [REALTIME]
        self.clocks = {only(c["id"]): only(c["ns"]) for c in snapshot["clocks"]}
        assert [only(c["id"]) for c in snapshot["clocks"] if c.get("incremental")] == [OF_SEQUENCE]
        self.ns = self.clocks[REALTIME]
        self.names, self.arguments = {}, {}
        self.open = []

    def intern(self, interned):
        for kind, known in (("names", self.names), ("arguments", self.arguments)):
            for entry in interned.get(kind, []):
                number = only(entry["id"])
                assert number and number not in known
                known[number] = only(entry["text"]).decode()

    def event(self, track, packet):
        event = only(packet["event"])
        assert packet["flags"] == [2]
        self.ns += only(packet["time"])
        kind = only(event["type"])
        if kind == COUNTER:
            track.values.append((self.ns, only(event["value"])))
            return
        if kind == END:
            self.open.pop().end = self.ns
            return
        name = self.names[only(event["name_id"])] if "name_id" in event else only(event["name"]).decode()
        args = {self.arguments[only(a["name"])]: only(a["number"]) for a in event.get("arguments", [])}
        assert kind in (BEGIN, INSTANT)
        it = Slice(name, self.ns, self.ns, len(self.open), args, event.get("flows", []), kind == INSTANT)
        track.slices.append(it)
        if kind == BEGIN:
            self.open.append(it)


def described(packet):
    t = only(packet["track"])
    place = {"uuid": only(t["uuid"]), "parent": t.get("parent", [0])[0]}
    for kind in ("process", "thread"):
        if kind in t:
            inner = only(t[kind])
            return Track(
                **place,
                kind=kind,
                name=only(inner["name"]).decode(),
                pid=only(inner["pid"]),
                tid=inner.get("tid", [0])[0],
            )
    return Track(**place, kind="counter" if "counter" in t else "slices", name=only(t["name"]).decode())


class Timeline:
    """tracks: by number. clocks: CLOCK_REALTIME and CLOCK_BOOTTIME of one moment."""

    def __init__(self, path):
        sequences, self.tracks = {}, {}
        for data in message(Path(path).read_bytes(), {1: "packet"}).get("packet", []):
            packet = message(data, PACKET)
            number = only(packet["sequence"])
            if number not in sequences:
                sequences[number] = Sequence(packet)
                continue
            s = sequences[number]
            s.intern(only(packet["interned"]) if "interned" in packet else {})
            if "track" in packet:
                it = described(packet)
                assert it.uuid == s.uuid and it.uuid not in self.tracks
                assert not it.parent or it.parent in self.tracks
                self.tracks[it.uuid] = it
            else:
                s.event(self.tracks[s.uuid], packet)
        assert not any(s.open for s in sequences.values()), "a slice has no end"
        self.clocks = sequences[1].clocks

    def of(self, kind, name=None):
        return [t for t in self.tracks.values() if t.kind == kind and name in (None, t.name)]

    def children(self, track, name):
        """All slices on the track of this name below it."""
        return [s for t in self.of("slices", name) if t.parent == track.uuid for s in t.slices]
