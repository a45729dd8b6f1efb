// SPDX-License-Identifier: BSD-3-Clause
// The page of a document: docs/view.md.

import { csv, element, save } from "./dom.js";
import { KINDS } from "./charts.js";
import { Pipeline } from "./pipeline.js";
import { Table } from "./table.js";
import { clock, duration, parseTime } from "./text.js";
import { Time } from "./time.js";
import { ink, isDark } from "./colours.js";

const VERSION = 1, LONG = 60; // LONG: characters of a fact that has a line of its own

// Panels along the time.
const ALONG = new Set(["counts", "levels", "lanes", "heat"]);

const WITHOUT_PLOT = { table: Table, pipeline: Pipeline };

// Texts of which a document has each once.
function expand(table) {
  table.columns.forEach((c, k) => {
    if (!c.texts) return;
    for (const row of table.rows) row[k] = c.texts[row[k]] ?? null;
    delete c.texts;
  });
}

export class Page {
  // text: the document as it came; null: it changes.
  constructor(document, text = null) {
    Object.assign(this, { document, text });
    if (this.document.view !== VERSION) throw new Error(`this page draws documents of version ${VERSION}, not ${this.document.view}`);
    for (const p of this.document.panels) if (p.kind === "table") expand(p);
    this.origin = parseTime(this.document.origin);
    this.zero = this.document.zero_ns ?? 0;
    this.time = new Time(this.document.range);
    this.panels = [];
    this.tables = [];
    this.ended = new AbortController(); // listeners of the window go with the page
  }

  build(main) {
    const d = this.document, { signal } = this.ended;
    document.title = d.title;
    this.top = element("div");
    main.replaceChildren(this.heading(), this.top);
    this.describe();
    if (d.panels.some((p) => ALONG.has(p.kind))) main.append(this.tools());
    for (const p of d.panels) {
      const one = new (WITHOUT_PLOT[p.kind] ?? KINDS[p.kind])(p, this);
      main.append(one.root);
      (one.start ? this.panels : this.tables).push(one);
      if (one.start) one.start();
      else one.draw();
    }
    if (this.panels.length) main.append(element("p", { className: "soft" }, "Wheel: zoom. Shift and wheel or drag: move. Double click: all." +
      (this.shown ? " Drag: select a time, which filters the tables. Keys: + − ← → 0, Enter: zoom to the selection, Escape: no selection." : "")));
    addEventListener("resize", () => [...this.panels, ...this.tables].forEach((p) => p.resize?.()), { signal });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.repaint(), { signal });
    addEventListener("keydown", (e) => this.key(e), { signal });
    this.time.addEventListener("window", () => this.label());
    this.label();
  }

  // All that stands above the panels.
  describe() {
    const d = this.document;
    this.top.replaceChildren(this.facts());
    for (const m of d.missing ?? []) {
      this.top.append(element("p", { className: "note missing" },
        `${duration(m.to_ns - m.from_ns)} were not kept, from ${clock(this.origin, m.from_ns)} on: ${m.reason}`));
    }
    for (const n of d.notes ?? []) this.top.append(element("p", { className: "note" }, n));
    this.findings(this.top);
  }

  // After the document has changed: see merge() of live.js.
  refresh() {
    this.describe();
    [...this.panels, ...this.tables].forEach((p) => p.refresh());
    this.time.slide(this.document.range);
  }

  // The window and the state of tables of a page that this one replaces.
  inherit(page) {
    if (page.time.from > page.time.full[0] || page.time.to < page.time.full[1]) this.time.show(page.time.from, page.time.to);
    for (const t of this.tables) t.inherit?.(page.tables.find((o) => o.spec.id === t.spec.id));
  }

  heading() {
    const button = (text, title, onclick) => element("button", { type: "button", title, onclick }, text);
    return element("header", {}, element("h1", {}, this.document.title), element("span", { className: "buttons" },
      button("PNG", "the plots as a picture", () => this.png()),
      button("JSON", "the data of this page", () => save(`${this.name()}.json`, "application/json", [this.text ?? JSON.stringify(this.document)])),
      button("CSV", "the values of the plots", () => this.csv()),
      button("◐", "light or dark", () => { document.documentElement.dataset.theme = isDark() ? "light" : "dark"; this.repaint(); })));
  }

  name() { return this.document.title.replace(/[^\w.-]+/g, "-").slice(0, 80); }

  facts() {
    return element("dl", { className: "facts" }, ...(this.document.facts ?? []).map((f) => element("div", { className: (f.value ?? "").length > LONG ? "long" : "" }, element("dt", {}, f.name),
      element("dd", {}, f.value ?? "–", ...(f.note ? [element("small", {}, ` ${f.note}`)] : [])))));
  }

  findings(main) {
    const all = this.document.findings ?? [];
    if (!all.length) return;
    main.append(element("section", { id: "findings" }, element("h2", {}, all.some((f) => f.grade !== "note") ? "Verdicts" : "Notes"), ...all.map((f) => element("article",
      { className: `finding ${f.grade}` }, element("h3", {}, element("b", {}, f.grade), ` ${f.title}`),
      element("ul", {}, ...(f.evidence ?? []).map((e) => element("li", {}, e))),
      ...(f.advice ? [element("p", {}, `Next: ${f.advice}`)] : [])))));
  }

  tools() {
    const button = (text, title, onclick) => element("button", { type: "button", title, ariaLabel: title, onclick }, text);
    const middle = () => (this.time.from + this.time.to) / 2;
    this.shown = element("span", { role: "status" });
    return element("div", { className: "tools" }, this.shown, element("span", { className: "buttons" },
      button("−", "zoom out", () => this.time.zoom(middle(), 2)), button("+", "zoom in", () => this.time.zoom(middle(), 0.5)),
      button("←", "earlier", () => this.time.pan(-0.25)), button("→", "later", () => this.time.pan(0.25)),
      button("Selection", "zoom to the selection", () => this.time.showSelection()), button("All", "all of the time", () => this.time.reset())));
  }

  label() {
    if (this.shown) this.shown.textContent = `${clock(this.origin, this.time.from)} – ${clock(this.origin, this.time.to, false)} (${duration(this.time.to - this.time.from, 4)})`;
  }

  key(e) {
    const t = this.time, middle = (t.from + t.to) / 2;
    const actions = { "+": () => t.zoom(middle, 0.5), "=": () => t.zoom(middle, 0.5), "-": () => t.zoom(middle, 2), ArrowLeft: () => t.pan(-0.25),
      ArrowRight: () => t.pan(0.25), 0: () => t.reset(), Home: () => t.reset(), Enter: () => t.showSelection(), Escape: () => t.select(null) };
    const takes = e.target instanceof Element && e.target.closest("input, button, .body");
    if (!actions[e.key] || e.ctrlKey || e.altKey || e.metaKey || (takes && e.key !== "Escape")) return;
    e.preventDefault();
    actions[e.key]();
  }

  repaint() {
    this.panels.forEach((p) => { p.explain(p.entries); p.plot.redraw(); });
    this.tables.forEach((t) => t.draw());
  }

  png() {
    const scale = devicePixelRatio, bar = 26 * scale, all = this.panels.map((p) => [p, p.plot.ctx.canvas]);
    const canvas = element("canvas", { width: Math.max(...all.map(([, c]) => c.width), 1), height: all.reduce((sum, [, c]) => sum + c.height + bar, bar) });
    const context = canvas.getContext("2d");
    context.fillStyle = ink("page");
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.fillStyle = ink("ink");
    context.font = `bold ${14 * scale}px system-ui, sans-serif`;
    context.fillText(`${this.document.title}  ${clock(this.origin, this.time.from)}`.slice(0, 200), 8 * scale, 18 * scale);
    let y = bar;
    for (const [panel, c] of all) {
      context.fillText(panel.spec.title, 8 * scale, y + 18 * scale);
      context.drawImage(c, 0, y + bar);
      y += c.height + bar;
    }
    canvas.toBlob((blob) => save(`${this.name()}.png`, "image/png", [blob]));
  }

  csv() {
    const rows = this.panels.flatMap((p) => [[p.spec.title], ...p.rows(), []]);
    save(`${this.name()}.csv`, "text/csv", [csv([["times are ns after", this.document.origin], [], ...rows])]);
  }
}
