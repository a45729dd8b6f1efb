// SPDX-License-Identifier: BSD-3-Clause
// Panels with curves of steps. uPlot draws axes and steps.

import { colour, faint, ink } from "./colours.js";
import { Counts, Levels, countPoints, levelPoints, lowerBound, withZeros } from "./data.js";
import { element } from "./dom.js";
import { apart, clock, count, duration, ticks, value } from "./text.js";
import { usePointer } from "./time.js";

export const COLUMN = 3;  // pixels of a step, at least
export const NEAR = 3;    // pixels from the pointer to a bar
export const INCREMENTS = Array.from({ length: 45 }, (_, k) => [1, 2, 5][k % 3] * 10 ** Math.floor(k / 3));

const gutter = () => (innerWidth < 600 ? 52 : 72);

export class Panel {
  constructor(spec, page) {
    Object.assign(this, { spec, page, time: this.window(spec) ?? page.time });
    this.along = this.time === page.time;
    this.host = element("div", { className: "plot" });
    this.legend = element("p", { className: "legend" });
    this.root = element("section", { className: "panel", id: spec.id ?? "" },
      element("h2", {}, spec.title, element("small", {}, this.says())), this.legend, ...(spec.notes ?? []).map((n) => element("p", { className: "note" }, n)), this.host);
    this.line = element("div", { className: "cursor", hidden: true });
    this.chosen = element("div", { className: "chosen", hidden: true });
  }

  // After it is in the page: it needs a width.
  start() {
    this.plot = new uPlot(this.options(), this.points(), this.host);
    this.plot.over.append(this.chosen, this.line);
    usePointer(this.plot.over, this.time, () => ({ left: 0, width: this.plot.over.clientWidth }),
      (t, y) => [...this.where(t), ...(this.along ? this.events(t) : []), ...this.hover(t, y)]);
    this.time.addEventListener("window", () => this.draw());
    this.time.addEventListener("selection", () => this.mark());
    this.time.addEventListener("cursor", () => this.mark());
    this.mark();
  }

  // A panel that is not along the time has a window of its own.
  window() { return null; }

  where(t) {
    return [`${clock(this.page.origin, t)}  (${ticks([t - this.page.zero], (this.time.to - this.time.from) / 1000)[0]})`];
  }

  xAxis() {
    return { incrs: INCREMENTS, splits: (u, _i, from, to, step) => this.splits(from, to, step),
      values: (_u, at) => ticks(at.map((v) => v - this.page.zero), at.length > 1 ? at[1] - at[0] : this.time.to - this.time.from) };
  }

  options() {
    const grid = { stroke: () => ink("grid"), width: 1 }, axis = { stroke: () => ink("soft"), grid, ticks: grid, font: "12px system-ui, sans-serif" };
    return {
      width: this.host.clientWidth, height: this.height(), padding: [10, 30, 0, 0],
      cursor: { show: false }, legend: { show: false },
      scales: { x: { time: false, range: () => [this.time.from, this.time.to] }, y: this.scale() },
      axes: [
        { ...axis, size: 28, space: innerWidth < 600 ? 76 : 100, ...this.xAxis() },
        { ...axis, size: gutter(), space: 26, gap: 3, ticks: { ...grid, size: 4 }, ...this.axis() },
      ],
      series: [{}, ...this.series()],
      hooks: { drawClear: [(u) => this.under(u)], draw: [(u) => this.over(u)] },
    };
  }

  // Numbers are those since the event, and so are the ticks.
  splits(from, to, step) {
    const out = [], zero = this.page.zero;
    for (let k = Math.ceil((from - zero) / step); zero + k * step <= to; k++) out.push(zero + k * step);
    return out;
  }

  // The unit of the axis, behind the title.
  says() { return ""; }
  scale() { return { range: () => [0, 1] }; }
  axis() { return { values: () => [], grid: { show: false }, ticks: { show: false } }; }
  series() { return [{ show: false }]; }
  points() { return [[this.time.from, this.time.to], [null, null]]; }
  hover() { return []; }

  x(t) { return this.plot ? this.plot.valToPos(t, "x", true) : 0; }

  // What was not kept is hatched, whatever is drawn there.
  under(u) {
    this.hatchMissing(u);
    this.eachEvent(u, (a, b) => {
      u.ctx.globalAlpha = 0.13;
      u.ctx.fillRect(a, u.bbox.top, b - a, u.bbox.height);
    });
  }

  over(u) {
    this.eachEvent(u, (_a, b) => u.ctx.fillRect(b - devicePixelRatio, u.bbox.top, 2 * devicePixelRatio, u.bbox.height));
  }

  // What happened at a time, and why nothing was kept of it.
  events(t) {
    const near = NEAR * (this.time.to - this.time.from) / this.plot.over.clientWidth, { events = [], missing = [] } = this.page.document;
    return [...events.filter((e) => e.from_ns - near <= t && t <= e.to_ns + near).map((e) => e.name),
      ...missing.filter((m) => m.from_ns <= t && t <= m.to_ns).map((m) => `not kept: ${m.reason}`)];
  }

  hatchMissing(u) {
    if (!this.along) return;
    for (const m of this.page.document.missing ?? []) hatch(u, u.valToPos(m.from_ns, "x", true), u.valToPos(m.to_ns, "x", true));
  }

  eachEvent(u, draw) {
    if (!this.along) return;
    clipped(u, () => {
      u.ctx.fillStyle = ink("event");
      for (const e of this.page.document.events ?? []) draw(u.valToPos(e.from_ns, "x", true), u.valToPos(e.to_ns, "x", true));
    });
  }

  draw() {
    this.plot.setData(this.points());
    this.mark();
  }

  resize() {
    this.plot.axes[1].size = () => gutter();
    this.plot.setSize({ width: this.host.clientWidth, height: this.height() });
    this.draw();
  }

  mark() {
    const t = this.time, width = this.plot.over.clientWidth;
    const css = (at) => (at - t.from) / (t.to - t.from) * width;
    this.line.hidden = t.cursor === null || t.cursor < t.from || t.cursor > t.to;
    this.line.style.left = `${css(t.cursor ?? 0)}px`;
    this.chosen.hidden = !t.selection;
    if (!t.selection) return;
    this.chosen.style.left = `${css(t.selection[0])}px`;
    this.chosen.style.width = `${Math.max(1, css(t.selection[1]) - css(t.selection[0]))}px`;
  }

  // Entries of the legend: name, colour, note.
  explain(entries) {
    this.entries = entries;
    this.legend.replaceChildren(...entries.map(([name, n, note]) => {
      const key = element("i", {});
      key.style.background = colour(n);
      return element("span", {}, key, name, note ? element("small", {}, ` ${note}`) : "");
    }));
  }

  // The data of the document has changed, and the window follows.
  refresh() { this.load(); }
  load() {}

  rows() { return null; }
}

// The least and the most of an axis in powers of ten.
export function decades(least, most, limit) {
  const [a, b] = [Math.min(least, limit ?? least), Math.max(most, limit ?? most)];
  return [10 ** Math.floor(Math.log10(a)), 10 ** Math.ceil(Math.log10(b * 1.05))];
}

// Along a logarithmic axis only powers of ten have a line, or 1, 2, 5 where these would be fewer than two.
export function powers(from, to) {
  const tens = [], all = [];
  for (let k = Math.floor(Math.log10(from)); k <= Math.log10(to); k++) {
    tens.push(10 ** k);
    all.push(10 ** k, 2 * 10 ** k, 5 * 10 ** k);
  }
  const inside = (v) => v >= from && v <= to;
  return tens.filter(inside).length > 1 ? tens.filter(inside) : all.filter(inside);
}

export function valueAxis(unit, log) {
  const splits = (_u, _i, from, to) => powers(from, to);
  return { values: (_u, at) => apart(at, unit), ...(log ? { splits } : {}),
    ...(unit === "bytes" ? { incrs: Array.from({ length: 50 }, (_, k) => 2 ** k) } : {}) };
}

export function clipped(u, draw) {
  u.ctx.save();
  u.ctx.beginPath();
  u.ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
  u.ctx.clip();
  draw();
  u.ctx.restore();
}

export function hatch(u, a, b) {
  const { left, top, width, height } = u.bbox, gap = 8 * devicePixelRatio;
  a = Math.max(a, left);
  b = Math.min(b, left + width);
  if (b <= a) return;
  u.ctx.save();
  u.ctx.beginPath();
  u.ctx.rect(a, top, b - a, height);
  u.ctx.clip();
  u.ctx.fillStyle = ink("missing");
  u.ctx.fillRect(a, top, b - a, height);
  u.ctx.strokeStyle = ink("hatch");
  u.ctx.lineWidth = devicePixelRatio;
  u.ctx.beginPath();
  for (let x = Math.floor((a - height) / gap) * gap; x < b; x += gap) {
    u.ctx.moveTo(x, top + height);
    u.ctx.lineTo(x + height, top);
  }
  u.ctx.stroke();
  u.ctx.restore();
}

// Steps: a value holds until the next one, and nothing is drawn between two values of which one is unknown.
function stepped(u, k) {
  const stroke = new Path2D();
  eachStep(u, k, (a, b, y, continues) => {
    if (continues) stroke.lineTo(a, y);
    else stroke.moveTo(a, y);
    stroke.lineTo(b, y);
  });
  return { stroke, fill: null, clip: null, band: null, gaps: null, flags: 0 };
}

// Pixels of each known value of a series; continues: the one before is known as well.
function eachStep(u, k, draw) {
  const x = u.data[0], y = u.data[k], pixel = (v, scale) => Math.round(u.valToPos(v, scale, true));
  for (let i = 0; i + 1 < x.length; i++) {
    if (y[i] === null) continue;
    draw(pixel(x[i], "x"), pixel(x[i + 1], "x"), pixel(y[i], "y"), i > 0 && y[i - 1] !== null);
  }
}

export class Steps extends Panel {
  height() { return 150; }
  scale() {
    // The threshold is in sight.
    const limit = this.spec.limit?.value ?? null;
    if (this.spec.log) return { distr: 3, range: (_u, least, most) => decades(least ?? limit ?? 1, most ?? limit ?? 10, limit) };
    return { range: (_u, _least, most) => [0, this.spec.unit === "share" ? 1.05 : Math.max(most, limit) > 0 ? Math.max(most, limit) * 1.08 : 1] };
  }
  axis() { return valueAxis(this.unit === "/s" ? "" : this.unit, this.spec.log); }
  get unit() { return this.spec.unit; }
  line_of(s, k) {
    const n = s.colour ?? k;
    return { label: s.name, stroke: () => colour(n), width: 1.5, paths: stepped, points: { show: false }, spanGaps: false };
  }
  // The area below each of the series, of which columns of the data belong to one. A path of it would take half of a frame.
  fill(u, columns) {
    const bottom = u.bbox.top + u.bbox.height;
    clipped(u, () => this.spec.series.forEach((s, k) => {
      u.ctx.fillStyle = faint(s.colour ?? k, 0.18);
      eachStep(u, 1 + columns * k, (a, b, y) => u.ctx.fillRect(a, y, b - a, bottom - y));
    }));
  }
}

export class CountPanel extends Steps {
  constructor(spec, page) {
    super(spec, page);
    this.grid = spec.grid;
    spec.series = spec.series.map((s) => ({ ...s, values: withZeros(s.values) }));
    this.data = spec.series.map((s) => new Counts(s.values));
    this.explain(spec.series.map((s, k) => [s.name, s.colour ?? k, s.note]));
  }
  get unit() { return "/s"; }
  says() { return ` ${this.spec.unit}/s`; }
  series() {
    const hidden = { paths: () => null, points: { show: false } }; // for the range of the axis
    return this.spec.series.flatMap((s, k) => [this.line_of(s, k), hidden, hidden]);
  }
  // The least and the most of each step.
  under(u) {
    super.under(u);
    this.fill(u, 3);
    clipped(u, () => this.spec.series.forEach((s, k) => {
      const least = [];
      u.ctx.fillStyle = faint(s.colour ?? k, 0.22);
      eachStep(u, 3 * k + 2, (_a, _b, y) => least.push(y));
      eachStep(u, 3 * k + 3, (a, b, y) => u.ctx.fillRect(a, y, b - a, least.shift() - y));
    }));
  }
  points() {
    const { points, step } = countPoints(this.grid, this.data, this.time.from, this.time.to, this.host.clientWidth / COLUMN);
    this.step = step;
    // Nothing in time that was not kept is not zero.
    points[0].slice(0, -1).forEach((t, i) => {
      const values = points.slice(1);
      if (this.unknown(t, points[0][i + 1]) && values.every((v) => !v[i])) values.forEach((v) => { v[i] = null; });
    });
    return points;
  }
  // A step has time that was not kept.
  unknown(from, to) { return (this.page.document.missing ?? []).some((m) => m.from_ns < to && m.to_ns > from); }
  hover(t) {
    const i = Math.floor((t - this.grid.from_ns) / this.step), level = Math.round(Math.log2(this.step / this.grid.step_ns));
    return this.spec.series.map((s, k) => {
      const levels = this.data[k].levels[level];
      if (i < 0 || i >= levels.length) return `${s.name}: –`;
      const [sum, least, most] = this.data[k].at(level, i), parts = 2 ** Math.min(3, level), from = this.grid.from_ns + i * this.step;
      if (!sum && this.unknown(from, from + this.step)) return `${s.name}: –`;
      const length = Math.min(this.step, this.grid.to_ns - this.grid.from_ns - i * this.step);
      return `${s.name}: ${count(sum)} ${this.spec.unit} in ${duration(length)} (${value(sum / length * 1e9, this.unit)}` +
        (parts > 1 ? `; ${count(least / parts)}–${count(most / parts)} each ${duration(this.step / parts)})` : ")");
    });
  }
  rows() {
    return [["from_ns", ...this.spec.series.map((s) => s.name)],
      ...this.spec.series[0].values.map((_v, i) => [this.grid.from_ns + i * this.grid.step_ns, ...this.spec.series.map((s) => s.values[i])])];
  }
}

// A line across, with its name; nothing without a limit.
export function acrossAt(u, limit) {
  const scale = devicePixelRatio;
  if (!limit) return;
  clipped(u, () => {
    const y = u.valToPos(limit.value, "y", true);
    u.ctx.strokeStyle = u.ctx.fillStyle = ink("event");
    u.ctx.lineWidth = 1.5 * scale;
    u.ctx.setLineDash([6 * scale, 4 * scale]);
    u.ctx.beginPath();
    u.ctx.moveTo(u.bbox.left, y);
    u.ctx.lineTo(u.bbox.left + u.bbox.width, y);
    u.ctx.stroke();
    u.ctx.font = `${12 * scale}px system-ui, sans-serif`;
    u.ctx.textAlign = "right";
    const above = y - u.bbox.top > 16 * scale;
    u.ctx.textBaseline = above ? "bottom" : "top";
    u.ctx.fillText(limit.name.slice(0, 80), u.bbox.left + u.bbox.width - 4 * scale, y + (above ? -2 : 4) * scale);
  });
}

export class LevelPanel extends Steps {
  constructor(spec, page) {
    super(spec, page);
    this.load();
    this.explain(spec.series.map((s, k) => [s.name, s.colour ?? k, s.note]));
  }
  load() { this.data = this.spec.series.map((s) => new Levels(s.values)); }
  series() { return this.spec.series.map((s, k) => this.line_of(s, k)); }
  points() { return levelPoints(this.spec.edges_ns, this.data, this.time.from, this.time.to, this.host.clientWidth / COLUMN).points; }
  hover(t) {
    const edges = this.spec.edges_ns, i = lowerBound(edges, t + 1e-3) - 1;
    const inside = i >= 0 && i < edges.length - 1;
    return this.spec.series.map((s) => `${s.name}: ${inside ? value(s.values[i], this.unit) : "–"}` +
      (inside ? ` (of ${duration(edges[i + 1] - edges[i])})` : ""));
  }
  over(u) {
    acrossAt(u, this.spec.limit);
    super.over(u);
  }
  rows() {
    const e = this.spec.edges_ns;
    return [["from_ns", "to_ns", ...this.spec.series.map((s) => s.name)],
      ...this.spec.series[0].values.map((_v, i) => [e[i], e[i + 1], ...this.spec.series.map((s) => s.values[i])])];
  }
}
