// SPDX-License-Identifier: BSD-3-Clause
// What ringtap drops and ringtap held report, as tables: docs/fate.md.

import { element } from "./dom.js";
import { Table } from "./table.js";
import { clock, count, duration, parseTime, value } from "./text.js";
import { Time } from "./time.js";

const column = (name, kind = "count", note = undefined) => ({ name, kind, ...(note ? { note } : {}) });
const share = (part, all) => (all ? part / all : null);

function where(example) {
  return `${example.port?.name ?? "a port"}, queue ${example.queue}`;
}

// Groups of packets: what kinds there are, with an example of each.
function groups(g, title) {
  return [
    { id: "kinds", title, columns: [column("protocol", "text"), column("packets"), column("oldest", "ns"), column("example", "text"), column("received at", "text"), column("its age", "ns")],
      rows: g.protocols.map((p) => [p.protocol, p.packets, p.oldest_ns, p.example?.packet ?? null, p.example ? where(p.example) : null, p.example?.age_ns ?? null]) },
    { id: "given", title: "By reason, as the application gave it", columns: [column("reason", "text"), column("packets"), column("share", "share")],
      rows: g.reasons.map((r) => [r.reason ?? "none", r.packets, share(r.packets, g.packets)]) },
    { id: "flows", title: "Their flows", columns: [column("flow", "text"), column("packets"), column("bytes", "bytes")], rows: g.flows.map((f) => [f.flow, f.packets, f.bytes]) },
  ];
}

function drops(a) {
  const c = a.counted_by_application, other = a.open || a.unknown ? `; ${count(a.open)} open, ${count(a.unknown)} unknown` : "";
  return {
    title: "Packets that are not sent",
    notes: [`Of ${count(a.received)} packets received in ${duration(a.duration_ns)}, ${count(a.not_offered)} (${value(share(a.not_offered, a.received), "share")}) were passed to no port${other}. ` +
        "The application freed or consumed them, or sent copies.",
      ...(a.copies_not_seen ? ["A switch copies packets for its internal ports, and such copies are not seen."] : []),
      ...(a.lost ? [`${count(a.lost)} of them are in counts only: there was no room for the packets.`] : []),
      ...(c?.error ? [`The application's own counters: ${c.error}`] : []),
      ...(c?.of_not_offered ? [`${count(c.of_not_offered)} of these packets are those that ${c.source} counts as ${c.equal_to.join(" and ")}.`] : [])],
    tables: [
      { id: "reasons", title: "Where packets vanish", columns: [column("port", "text"), column("missed", "count", "the NIC had no free descriptor"),
        column("no mbuf", "count", "the driver had no free buffer"), column("passed to TX"), column("refused", "count", "the driver did not take the packet"), column("state", "text")],
      rows: a.ports.map((p) => [p.name, p.missed, p.no_mbuf, p.offered, p.refused, p.stopped ? "stopped" : "running"]) },
      { id: "fates", title: "What became of received packets", columns: [column("port", "text"), column("queue"), column("received"), column("passed to TX"), column("not passed"), column("share", "share"),
        column("open", "count", "neither passed to TX nor freed yet"), column("unknown")],
      rows: a.queues.map((q) => [q.port.name, q.queue, q.received, q.offered, q.not_offered, share(q.not_offered, q.received), q.open, q.unknown]) },
      ...(c?.counters.length ? [{ id: "reported", title: `What ${c.source} counted in this time`, columns: [column("counter", "text"), column("packets"), column("meaning", "text")],
        rows: c.counters.filter((v) => v.packets).map((v) => [v.name, v.packets, v.meaning]) }] : []),
      ...groups(a.not_offered_packets, "Packets that were passed to no port"),
    ],
  };
}

function held(a, d) {
  const older = `older than ${duration(d.older_than_ns)}`;
  return {
    title: "Packets that the application holds",
    notes: [`${count(a.open)} received packets were neither passed to a port nor freed, ${count(a.older)} of them ${older}${a.oldest_ns ? `, the oldest ${duration(a.oldest_ns)}` : ""}.`,
      ...(a.grows ? ["Their number grows: a queue in the application, or buffers that are not freed."] : []),
      ...(a.maybe_in_descriptors ? [`Up to ${count(a.maybe_in_descriptors)} of them may lie in RX descriptors: freed, and not received again.`] : [])],
    tables: [
      { id: "places", title: "Where they were received", columns: [column("mempool", "text"), column("port", "text"), column("queue"), column("open"), column(older), column("more a second", "")],
        rows: a.places.map((p) => [p.pool, p.port?.name ?? null, p.queue, p.open, p.older, p.older_per_second]) },
      { id: "ages", title: "Their age", columns: [column("from", "ns"), column("to", "ns"), column("packets")], rows: a.ages.filter((g) => g.packets).map((g) => [g.from_ns, g.to_ns, g.packets]) },
      ...groups(a.older_packets, `Packets ${older}`),
    ],
  };
}

// An answer of the server as an element.
export function fates(d) {
  const a = d.applications[0], { title, notes, tables } = (d.command === "held" ? held : drops)(a, d);
  const origin = parseTime(d.time), page = { origin, time: new Time({ from_ns: 0, to_ns: 1 }) };
  return element("section", { id: d.command }, element("h2", {}, title, element("small", {}, ` until ${clock(origin, 0)}`)),
    ...notes.map((n) => element("p", { className: "note" }, n)),
    ...tables.filter((t) => t.rows.length).map((t) => new Table({ kind: "table", ...t, id: `${d.command}-${t.id}` }, page).root));
}
