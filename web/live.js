// SPDX-License-Identifier: BSD-3-Clause
// A document that goes on: the server sends it, and each second one of the second, which is merged into it.

import { Actions } from "./actions.js";
import { element } from "./dom.js";
import { Page } from "./page.js";

const keyOf = (row) => (row[0]?.text ?? String(row[0]));

// Series of the newest steps behind those that are there; what one of the two lacks is unknown.
function mergeLevels(old, next) {
  const skipped = next.edges_ns[0] > old.edges_ns.at(-1) ? 1 : 0;
  old.counts?.push(...Array(skipped).fill([]), ...next.counts); // columns of a heat map
  old.series ??= [];
  for (const s of next.series ?? []) {
    if (!old.series.some((o) => o.name === s.name)) old.series.push({ ...s, values: Array(old.edges_ns.length - 1).fill(null) });
  }
  for (const o of old.series) {
    const s = next.series?.find((n) => n.name === o.name);
    o.values.push(...Array(skipped).fill(null), ...(s?.values ?? Array(next.edges_ns.length - 1).fill(null)));
  }
  old.edges_ns.push(...next.edges_ns.slice(skipped ? 0 : 1));
}

function trimLevels(panel, from) {
  const gone = panel.edges_ns.findIndex((e, i, all) => i === all.length - 1 || all[i + 1] > from);
  if (gone <= 0) return;
  panel.edges_ns.splice(0, gone);
  panel.counts?.splice(0, gone);
  panel.series.forEach((s) => s.values.splice(0, gone));
}

function mergeTable(old, next, most) {
  const before = new Map(old.rows.map((row) => [keyOf(row), row]));
  old.rows = next.rows;
  old.columns.forEach((c, k) => {
    if (c.kind !== "spark") return;
    for (const row of old.rows) row[k] = [...(before.get(keyOf(row))?.[k] ?? []), ...row[k]].slice(-most);
  });
}

function mergeLanes(old, next, from) {
  for (const lane of next.lanes) {
    const o = old.lanes.find((l) => l.name === lane.name);
    if (!o) old.lanes.push(lane);
    else o.intervals = [...o.intervals.filter((v) => v[0] + v[1] > from), ...lane.intervals];
  }
}

export function merge(d, update) {
  const from = update.range.from_ns, steps = Math.ceil((update.range.to_ns - from) / 1e9) + 1;
  for (const key of ["title", "range", "facts", "notes", "findings", "time", "applications", "actions"]) d[key] = update[key];
  d.panels = update.panels.map((next) => {
    const old = d.panels.find((p) => p.id === next.id && p.kind === next.kind);
    if (!old) return next;
    if (next.kind === "levels" || next.kind === "heat") {
      mergeLevels(old, next);
      trimLevels(old, from);
    } else if (next.kind === "table") {
      mergeTable(old, next, steps);
    } else if (next.kind === "lanes") {
      mergeLanes(old, next, from);
    } else {
      Object.assign(old, next);
    }
    old.notes = next.notes;
    return old;
  });
}

// What a page is built of: with another shape it is built again. A pipeline draws its notes at each update.
function shape(d) {
  return JSON.stringify(d.panels.map((p) => [p.kind, p.id, p.title, p.kind === "pipeline" || p.notes, p.series?.map((s) => s.name), p.lanes?.map((l) => l.name), p.columns?.map((c) => c.name)]));
}

export class Live {
  constructor(url) {
    this.url = url;
    this.updates = 0;
  }

  build(main) {
    this.status = element("span", { className: "soft", role: "status" });
    this.path = element("nav", { ariaLabel: "views" });
    this.pauses = element("button", { type: "button", title: "hold the page as it is", onclick: () => this.pause() }, "Pause");
    this.body = element("div");
    this.actions = new Actions();
    main.replaceChildren(element("div", { className: "live" }, this.path, this.status, this.pauses), this.actions.root, this.actions.answer, this.body);
    // The cookie stands for the token from here on.
    if (location.search) history.replaceState(null, "", location.pathname + location.hash);
    addEventListener("hashchange", () => this.connect());
    this.connect();
  }

  get time() { return this.page.time; }
  get panels() { return this.page?.panels ?? []; }

  // Where the page is: parts of the place that an event stream is asked for.
  parts() { return [...new URLSearchParams(location.hash.slice(1))].filter(([k]) => ["app", "port", "thread"].includes(k)); }

  connect() {
    const parts = this.parts(), query = new URLSearchParams(parts);
    this.source?.close();
    this.document = null;
    this.actions.answer.replaceChildren();
    this.showPath(parts);
    this.say("connecting …");
    this.source = new EventSource(`${this.url}?${query}`);
    this.source.addEventListener("document", (e) => this.take(JSON.parse(e.data)));
    this.source.addEventListener("update", (e) => this.update(JSON.parse(e.data)));
    this.source.onerror = () => this.say(this.source.readyState === EventSource.CLOSED ? "the server refuses this page: open its URL again" : "not connected; trying again …");
  }

  say(text) { this.status.textContent = text; }

  showPath(parts) {
    const link = (text, n) => element("a", { href: `#${new URLSearchParams(parts.slice(0, n))}` }, text);
    this.path.replaceChildren(link("All applications", 0), ...parts.flatMap(([, v], n) => [" › ", link(v, n + 1)]));
  }

  take(d) {
    this.document = d;
    this.say("live");
    this.actions.show(d.actions, Object.fromEntries(this.parts()));
    this.updates++;
    if (!this.held) this.show();
  }

  update(d) {
    if (!this.document) return;
    merge(this.document, d);
    this.say("live");
    this.actions.show(d.actions, Object.fromEntries(this.parts()));
    this.updates++;
    if (this.held) return;
    if (this.page && this.page.document === this.document && this.shown === shape(this.document)) this.page.refresh();
    else this.show();
  }

  show() {
    const before = this.page, y = scrollY;
    before?.ended.abort();
    this.page = new Page(this.document);
    this.page.build(this.body);
    if (before && before.document.title === this.document.title) this.page.inherit(before);
    this.shown = shape(this.document);
    scrollTo(0, y);
  }

  pause() {
    this.held = !this.held;
    this.pauses.textContent = this.held ? "Go on" : "Pause";
    if (!this.held && this.document) this.show();
  }
}
