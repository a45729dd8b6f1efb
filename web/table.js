// SPDX-License-Identifier: BSD-3-Clause
// Tables: only rows in sight are in the page. They follow the selected time, and a text.

import { colour } from "./colours.js";
import { csv, element, replace, save } from "./dom.js";
import { clock, value } from "./text.js";

const SPARK = [130, 20]; // pixels
const ROW = 26, SHOWN = 14, AHEAD = 5, RUNS = 100, WIDEST = 90, NARROWEST = 26;
const LEFT = new Set(["text", "time"]);
const SIZES = { n: 1e-9, u: 1e-6, m: 1e-3, k: 1e3, K: 1024, M: 1e6, G: 1e9, T: 1e12 };

// What a text such as "12.3 us" or "1,234" is sorted by.
function number(text) {
  const found = /^(-?[\d,]*\.?\d+)\s*([numkKMGT]?)/.exec(text ?? "");
  return found ? Number(found[1].replaceAll(",", "")) * (SIZES[found[2]] ?? 1) : null;
}

export class Table {
  constructor(spec, page) {
    Object.assign(this, { spec, page, order: null, words: "", current: null, found: new WeakMap() });
    this.columns = spec.columns;
    this.at = this.columns.findIndex((c) => c.kind === "time");
    this.frame = this.columns.findIndex((c) => c.kind === "frame");
    this.all = spec.rows.map((_r, i) => i);
    this.build();
    page.time.addEventListener("selection", () => this.select());
  }

  // Columns never become narrower, as rows change.
  setWidths() {
    this.widths = this.columns.map((c, k) => {
      let most = Math.max(c.name.length + 2, this.widths?.[k] ?? 0);
      for (const row of this.spec.rows.slice(0, 300)) most = Math.max(most, this.text(row, k).length);
      return Math.min(most, WIDEST);
    });
    // Texts share what is left, and are cut where that is too little: the chosen row has them in full.
    const all = this.widths.map((most, k) => {
      const { kind } = this.columns[k], width = most + 2;
      return kind === "spark" ? [`${SPARK[0] + 16}px`] : kind === "text" ? [`${Math.min(width, NARROWEST)}ch`, `${width}fr`] : [`${width}ch`];
    });
    this.grid.style.setProperty("--columns", all.map(([least, most]) => (most ? `minmax(${least}, ${most})` : least)).join(" "));
    this.grid.style.minWidth = `calc(${all.map(([least]) => least).join(" + ")})`;
  }

  build() {
    this.head = element("div", { className: "row head", role: "row" }, ...this.columns.map((c, k) => {
      const b = element("button", { type: "button", title: c.note ?? "sort", onclick: () => this.sort(k) }, c.name);
      const cell = element("span", { role: "columnheader", className: LEFT.has(c.kind) ? "" : "number" }, b);
      return cell;
    }));
    this.space = element("div", { className: "space" });
    this.body = element("div", { className: "body", tabIndex: 0, role: "rowgroup", onscroll: () => this.draw() }, this.space);
    this.grid = element("div", { className: "grid", role: "table", ariaLabel: this.spec.title }, this.head, this.body);
    this.setWidths();
    this.says = element("span", { className: "soft", role: "status" });
    const words = this.input = element("input", { type: "search", placeholder: "filter", ariaLabel: `filter of ${this.spec.title}`,
      oninput: () => { this.words = words.value.toLowerCase(); this.select(); } });
    const bar = element("p", { className: "bar" }, words, this.says,
      element("button", { type: "button", onclick: () => save(`${this.spec.id ?? "table"}.csv`, "text/csv", [csv(this.csv())]) }, "CSV"));
    this.root = element("section", { className: "table", id: this.spec.id ?? "" }, element("h2", {}, this.spec.title),
      ...(this.spec.notes ?? []).map((n) => element("p", { className: "note" }, n)), bar, element("div", { className: "sideways" }, this.grid));
    this.details = element("dl", { className: "facts" });
    this.root.append(this.details);
    if (this.frame >= 0) {
      this.filter = element("input", { readOnly: true, ariaLabel: "display filter for Wireshark" });
      this.root.append(element("p", { className: "bar" }, "Wireshark: ", this.filter,
        element("button", { type: "button", onclick: () => this.copy() }, "Copy")));
    }
    this.select();
  }

  text(row, k) {
    const { kind } = this.columns[k], v = row[k];
    if (kind === "time") return v === null ? "–" : clock(this.page.origin, v, false);
    if (kind === "spark") return "";
    if (v?.text) return v.text;
    return kind === "text" || kind === "label" ? v ?? "–" : kind === "frame" ? String(v) : value(v, kind);
  }

  // What a filter finds in a row. Making it takes longer than finding it.
  searched(row) {
    if (!this.found.has(row)) this.found.set(row, this.columns.map((_c, k) => this.text(row, k).toLowerCase()).join("\n"));
    return this.found.get(row);
  }

  sort(k) {
    const down = this.order?.[0] === k && !this.order[1];
    this.order = [k, down];
    [...this.head.children].forEach((c, n) => { c.ariaSort = n === k ? (down ? "descending" : "ascending") : "none"; });
    this.select();
  }

  // Other rows, of which those in sight and the chosen one stay.
  refresh() {
    const top = this.body.scrollTop, current = this.name;
    this.setWidths();
    this.all = this.spec.rows.map((_r, i) => i);
    this.select();
    this.current = current === undefined ? null : this.all.find((i) => this.text(this.spec.rows[i], 0) === current) ?? null;
    this.body.scrollTop = top;
    if (top || this.current !== null) this.draw();
    this.describe();
  }

  // Rows of another table in the selected time, as groups.
  regroup() {
    const { table, by, count, sum } = this.spec.groups, s = this.page.time.selection, found = new Map();
    const from = this.page.document.panels.find((p) => p.id === table), [time, name, what, size] = ["time", by, count, sum].map((title) => from?.columns.findIndex((c) => c.name === title));
    this.whole ??= this.spec.rows;
    const rows = s && from ? from.rows.filter((row) => row[time] >= s[0] && row[time] <= s[1]) : null;
    for (const row of rows ?? []) {
      const key = row[name], group = found.get(key) ?? this.columns.map((_c, k) => (k ? 0 : key));
      this.columns.forEach((c, k) => { if (k) group[k] += c.name === sum ? row[size] : Number(row[what] === c.name); });
      found.set(key, group);
    }
    this.spec = { ...this.spec, rows: rows ? [...found.values()].sort((a, b) => b[1] + b[2] - a[1] - a[2]) : this.whole };
    this.all = this.spec.rows.map((_r, i) => i);
    return rows ? ` (selected time: of ${rows.length.toLocaleString("en-US")} packets below)` : "";
  }

  select() {
    const grouped = this.spec.groups ? this.regroup() : "", s = this.page.time.selection, { rows } = this.spec;
    this.rows = this.all.filter((i) => (!s || this.at < 0 || (rows[i][this.at] >= s[0] && rows[i][this.at] <= s[1])) &&
      (!this.words || this.searched(rows[i]).includes(this.words)));
    if (this.order) {
      const [k, down] = this.order, sign = down ? -1 : 1;
      this.rows.sort((a, b) => {
        const of = this.columns[k].kind === "label" ? number : (v) => (Array.isArray(v) ? v.at(-1) : v?.text ?? v), x = of(rows[a][k]), y = of(rows[b][k]);
        return x === y ? a - b : x === null ? 1 : y === null ? -1 : sign * (x < y ? -1 : 1);
      });
    }
    this.says.textContent = `${this.rows.length.toLocaleString("en-US")} of ${rows.length.toLocaleString("en-US")} rows` +
      (s && this.at >= 0 ? " (selected time)" : grouped);
    this.space.style.height = `${this.rows.length * ROW}px`;
    this.body.style.height = `${Math.min(Math.max(this.rows.length, 1), SHOWN) * ROW}px`;
    this.body.scrollTop = 0;
    this.current = null;
    this.draw();
    this.describe();
    this.showFilter();
  }

  // A text, a link to another view, or a curve without axes.
  content(row, k) {
    const v = row[k];
    if (this.columns[k].kind === "spark") return spark(v, this.columns[k].colour ?? 0);
    if (v?.page) return element("a", { href: `incident?${new URLSearchParams(v.page)}`, target: "_blank", rel: "noopener" }, v.text);
    return v?.view ? element("a", { href: `#${new URLSearchParams(v.view)}` }, v.text) : this.text(row, k);
  }

  draw() {
    const first = Math.max(0, Math.floor(this.body.scrollTop / ROW) - AHEAD), { rows } = this.spec;
    replace(this.space, this.rows.slice(first, first + SHOWN + 2 * AHEAD).map((i, n) => {
      const row = element("div", { className: i === this.current ? "row current" : "row", role: "row",
        onclick: () => this.choose(i) }, ...this.columns.map((c, k) => element("span", { role: "cell", title: c.kind === "text" ? this.text(rows[i], k) : "",
        className: LEFT.has(c.kind) ? "" : "number" }, this.content(rows[i], k))));
      row.style.top = `${(first + n) * ROW}px`;
      return row;
    }));
  }

  inherit(table) {
    if (!table) return;
    Object.assign(this, { order: table.order, words: table.words });
    this.input.value = table.input.value;
    this.select();
  }

  choose(i) {
    this.current = this.current === i ? null : i;
    this.name = this.current === null ? undefined : this.text(this.spec.rows[i], 0);
    if (this.at >= 0) this.page.time.point(this.current === null ? null : this.spec.rows[i][this.at]);
    this.draw();
    this.describe();
    this.showFilter();
  }

  // The texts of the chosen row.
  describe() {
    const row = this.spec.rows[this.current];
    this.details.replaceChildren(...(row ? this.columns.flatMap((c, k) => (c.kind !== "text" ? []
      : [element("div", { className: "long" }, element("dt", {}, c.name), element("dd", {}, this.text(row, k)))])) : []));
  }

  // Frames of the row that was clicked, or of all rows that are shown.
  showFilter() {
    if (!this.filter) return;
    const rows = this.current === null ? this.rows : [this.current], runs = [];
    for (const n of rows.map((i) => this.spec.rows[i][this.frame]).sort((a, b) => a - b)) {
      if (runs.length && runs.at(-1)[1] === n - 1) runs.at(-1)[1] = n;
      else runs.push([n, n]);
    }
    const few = runs.length > RUNS ? [[runs[0][0], runs.at(-1)[1]]] : runs;
    this.filter.value = !few.length ? "" : few.length === 1 && few[0][0] === few[0][1] ? `frame.number == ${few[0][0]}`
      : `frame.number in {${few.map(([a, b]) => (a === b ? a : `${a}..${b}`)).join(", ")}}`;
  }

  copy() {
    this.filter.select();
    (navigator.clipboard?.writeText(this.filter.value) ?? Promise.reject()).catch(() => document.execCommand("copy"));
  }

  csv() {
    const cell = (v) => (Array.isArray(v) ? v.map((n) => n ?? "").join(" ") : v?.text ?? v);
    return [this.columns.map((c) => c.name), ...this.rows.map((i) => this.spec.rows[i].map(cell))];
  }
}

// The most of each pixel, from 0 on.
function spark(values, hue) {
  const [width, height] = SPARK, scale = devicePixelRatio, most = values.reduce((m, v) => Math.max(m, v ?? 0), 0);
  const canvas = element("canvas", { width: width * scale, height: height * scale, className: "spark", title: `0 to ${value(most, "")}` });
  const context = canvas.getContext("2d"), columns = new Map();
  values.forEach((v, i) => {
    const x = Math.floor((i + 600 - values.length) / 600 * width);
    if (v !== null) columns.set(x, Math.max(columns.get(x) ?? 0, v));
  });
  context.fillStyle = colour(hue);
  columns.forEach((v, x) => {
    const high = Math.max(1, most ? v / most * (height - 1) : 1) * scale;
    context.fillRect(x * scale, height * scale - high, scale, high);
  });
  return canvas;
}
