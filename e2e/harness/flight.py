# SPDX-License-Identifier: BSD-3-Clause
"""ringtap flight, and its incidents."""

import json
import signal

from . import pcapng, view
from .documents import ns_of, only
from .paths import RINGTAP
from .proc import Proc, check, run, until

COMMENT = 1  # code of opt_comment
PACKETS, INCIDENT = "packets.pcapng", "incident.json"


class Incident:
    """A complete one."""

    def __init__(self, folder):
        self.folder = folder
        self.data = json.loads((folder / INCIDENT).read_text())

    def __getitem__(self, key):
        return self.data[key]

    def at(self, key):
        """A point in time, in nanoseconds since the epoch."""
        return ns_of(self[key])

    @property
    def file(self):
        return pcapng.read(self.folder / PACKETS)

    @property
    def condition(self):
        return self["trigger"]["condition"]


class Flight:
    """A running `ringtap flight`; packets are kept from when this returns."""

    def __init__(self, app, folder, *args, ports=(), prefix=(), **kwargs):
        self.folder = folder
        words = [f"{app.prefix}:{port}" for port in ports] or [app.prefix]
        self.proc = Proc([*prefix, RINGTAP, "flight", *words, "-w", folder, *args], **kwargs)
        try:
            self.proc.expect("^Keeping the packets of")
        except BaseException:
            self.close()
            raise

    def folders(self):
        return sorted(p for p in self.folder.iterdir() if p.is_dir())

    def incidents(self, count):
        """Waits until this number of incidents are complete; returns those that are."""

        def complete():
            done = [p for p in self.folders() if (p / INCIDENT).exists()]
            return done if len(done) >= count else None

        return [Incident(p) for p in until(complete, what=f"{count} incidents")]

    def finish(self, number=signal.SIGINT, status=0):
        self.proc.send_signal(number)
        return self.done(status)

    def done(self, status=0):
        got = self.proc.wait()
        assert got == status, f"status {got}, not {status}:\n{self.proc.output[-3000:]}"
        return self.proc.output

    def close(self):
        self.proc.close()


def command(name, folder, *args, status=0):
    """ringtap flight list, show, prune or trigger; returns what it printed."""
    done = run([RINGTAP, "flight", name, "--folder", folder, *args])
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def document(incident):
    """The document that index.html draws."""
    return view.document_of(incident.folder / "index.html")


def panel(incident, name):
    (found,) = (p for p in document(incident)["panels"] if p["id"] == name)
    return found


def counts(panel):
    """The values of each series of counts, by name: -n stands for n zeros."""
    return {s["name"]: [n for v in s["values"] for n in ([0] * -v if v < 0 else [v])] for s in panel["series"]}


def facts(incident):
    return {f["name"]: f["value"] for f in document(incident)["facts"]}


def advice(incident):
    """The recommendations of index.html."""
    (found,) = (f for f in document(incident)["findings"] if f["title"] == "What to look at next")
    return "\n".join(found["evidence"])


def state(app):
    """The answer of the only recorder of an application."""
    answer = run([RINGTAP, "flight", "top", "--once", app.prefix, "--json"])
    assert answer.returncode == 0, answer.stderr
    (found,) = only(json.loads(answer.stdout))["recorders"]
    return found


def numbers(file, port, direction):
    """Time by sequence number, of the packets of ringtap-fwd at a port."""
    return {
        int.from_bytes(p.data[47:52], "big"): p.ns
        for p in file.packets
        if p.direction == direction and file.interfaces[p.interface].name == port
    }


def within(packets, incident):
    """Those of the window."""
    begin, end = incident.at("from"), incident.at("to")
    return [p for p in packets if begin <= p.ns <= end]


def content(file, packets):
    """Fields that identify packets, without the comment of an incident."""
    return [(file.interfaces[p.interface].name, p.ns, p.direction, p.queue, p.data) for p in packets]


def assert_same_packets(incident, recorded):
    """An incident has the packets that ringtap record has of its window, one by one: both have the
    time that a hook reads once for all sessions."""
    file = incident.file
    pcapng.assert_in_order(file)
    wanted = within(recorded.packets, incident)
    # Packets of one time may come in another order, of two threads.
    assert sorted(content(file, file.packets)) == sorted(content(recorded, wanted))
    assert incident["packets"] == len(wanted)
    assert incident["lost"] == 0 and incident["error"] is None
    return file


def comments(file):
    return [p.options[COMMENT][0].decode() for p in file.packets if COMMENT in p.options]


def assert_counted(recorder, source, counters):
    """The counters of the application are in an incident's document, on its page, and in explain. {name: packets}"""
    recorder.proc.send_signal(signal.SIGUSR1)
    (incident,) = recorder.incidents(1)
    own = incident["counted_by_application"]
    assert own["source"] == source and own["error"] is None
    packets = {c["name"]: c["packets"] for c in own["counters"]}
    assert {name: packets.get(name) for name in counters} == counters
    assert own["from"] < own["to"] and own["of_not_offered"] == 0
    title = f"{source} counted from {own['from']} to {own['to']}"
    (table,) = (p for p in document(incident)["panels"] if p.get("title") == title)
    file = incident.folder / PACKETS
    text = check([RINGTAP, "explain", file])
    assert title in text
    for name, number in counters.items():
        assert [name, str(number)] in [row[:2] for row in table["rows"]] and name in text
    explained = json.loads(check([RINGTAP, "explain", "--json", file]))
    assert explained["counted_by_application"]["counters"] == own["counters"]
