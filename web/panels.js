// SPDX-License-Identifier: BSD-3-Clause
// Panels along the time: curves of steps, lanes with bars, heat maps. uPlot draws axes and steps.

import { colour, faint, ink } from "./colours.js";
import { Counts, Levels, countPoints, levelPoints, lowerBound, withZeros } from "./data.js";
import { element } from "./dom.js";
import { clock, count, duration, ticks, value } from "./text.js";
import { usePointer } from "./time.js";

const COLUMN = 3;  // pixels of a step, at least
const LANE = 34, BAR = 20;
const NEAR = 3;    // pixels from the pointer to a bar
const INCREMENTS = Array.from({ length: 45 }, (_, k) => [1, 2, 5][k % 3] * 10 ** Math.floor(k / 3));

const gutter = () => (innerWidth < 600 ? 52 : 72);

class Panel {
  constructor(spec, page) {
    Object.assign(this, { spec, page, time: page.time });
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
      (t, y) => [`${clock(this.page.origin, t)}  (${ticks([t - this.page.zero], (this.time.to - this.time.from) / 1000)[0]})`,
        ...this.events(t), ...this.hover(t, y)]);
    this.time.addEventListener("window", () => this.draw());
    this.time.addEventListener("selection", () => this.mark());
    this.time.addEventListener("cursor", () => this.mark());
    this.mark();
  }

  options() {
    const grid = { stroke: () => ink("grid"), width: 1 }, axis = { stroke: () => ink("soft"), grid, ticks: grid, font: "12px system-ui, sans-serif" };
    return {
      width: this.host.clientWidth, height: this.height(), padding: [10, 30, 0, 0],
      cursor: { show: false }, legend: { show: false },
      scales: { x: { time: false, range: () => [this.time.from, this.time.to] }, y: this.scale() },
      axes: [
        { ...axis, size: 28, space: innerWidth < 600 ? 76 : 100, incrs: INCREMENTS,
          splits: (u, _i, from, to, step) => this.splits(from, to, step),
          values: (_u, at) => ticks(at.map((v) => v - this.page.zero), at.length > 1 ? at[1] - at[0] : this.time.to - this.time.from) },
        { ...axis, size: gutter(), space: 26, gap: 3, ticks: { ...grid, size: 4 }, ...this.axis() },
      ],
      series: [{}, ...this.series()],
      bands: this.bands(),
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
  bands() { return []; }
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
    for (const m of this.page.document.missing ?? []) hatch(u, u.valToPos(m.from_ns, "x", true), u.valToPos(m.to_ns, "x", true));
  }

  eachEvent(u, draw) {
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

  rows() { return null; }
}

// The least and the most of an axis in powers of ten.
function decades(least, most, limit) {
  const [a, b] = [Math.min(least, limit ?? least), Math.max(most, limit ?? most)];
  return [10 ** Math.floor(Math.log10(a)), 10 ** Math.ceil(Math.log10(b * 1.05))];
}

// Along a logarithmic axis only powers of ten have a line, or 1, 2, 5 where these would be fewer than two.
function valueAxis(unit, log) {
  const splits = (_u, _i, from, to) => {
    const all = [];
    for (let k = Math.floor(Math.log10(from)); k <= Math.log10(to); k++) all.push(10 ** k, 2 * 10 ** k, 5 * 10 ** k);
    const inside = all.filter((v) => v >= from && v <= to), tens = inside.filter((v) => Number.isInteger(Math.round(Math.log10(v) * 1e6) / 1e6));
    return tens.length > 1 ? tens : inside;
  };
  return { values: (_u, at) => at.map((v) => (v === null ? "" : value(v, unit))), ...(log ? { splits } : {}) };
}

function clipped(u, draw) {
  u.ctx.save();
  u.ctx.beginPath();
  u.ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
  u.ctx.clip();
  draw();
  u.ctx.restore();
}

function hatch(u, a, b) {
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

// Steps: a value holds for its time, and nothing is drawn between values.
const stepped = (u, ...args) => uPlot.paths.stepped({ align: 1 })(u, ...args);

class Steps extends Panel {
  height() { return 150; }
  scale() {
    // The threshold is in sight.
    const limit = this.spec.limit?.value ?? null;
    if (this.spec.log) return { distr: 3, range: (_u, least, most) => decades(least ?? limit ?? 1, most ?? limit ?? 10, limit) };
    return { range: (_u, _least, most) => [0, this.spec.unit === "share" ? 1.05 : Math.max(most, limit) > 0 ? Math.max(most, limit) * 1.08 : 1] };
  }
  axis() { return valueAxis(this.unit.endsWith("/s") ? "" : this.unit, this.spec.log); }
  get unit() { return this.spec.unit; }
  line_of(s, k, more) {
    const n = s.colour ?? k;
    return { label: s.name, stroke: () => colour(n), width: 1.5, paths: stepped, points: { show: false }, spanGaps: false, ...more };
  }
}

class CountPanel extends Steps {
  constructor(spec, page) {
    super(spec, page);
    this.grid = spec.grid;
    spec.series = spec.series.map((s) => ({ ...s, values: withZeros(s.values) }));
    this.data = spec.series.map((s) => new Counts(s.values));
    this.explain(spec.series.map((s, k) => [s.name, s.colour ?? k, s.note]));
  }
  get unit() { return `${this.spec.unit}/s`; }
  says() { return ` ${this.unit}`; }
  series() {
    const hidden = { paths: stepped, points: { show: false }, stroke: null, width: 0 };
    return this.spec.series.flatMap((s, k) => [this.line_of(s, k, { fill: () => faint(s.colour ?? k, 0.18) }), hidden, hidden]);
  }
  bands() {
    return this.spec.series.map((s, k) => ({ series: [3 * k + 3, 3 * k + 2], fill: () => faint(s.colour ?? k, 0.22) }));
  }
  points() {
    const { points, step } = countPoints(this.grid, this.data, this.time.from, this.time.to, this.host.clientWidth / COLUMN);
    this.step = step;
    return points;
  }
  hover(t) {
    const i = Math.floor((t - this.grid.from_ns) / this.step), level = Math.round(Math.log2(this.step / this.grid.step_ns));
    return this.spec.series.map((s, k) => {
      const levels = this.data[k].levels[level];
      if (i < 0 || i >= levels.length) return `${s.name}: –`;
      const [sum, least, most] = this.data[k].at(level, i), parts = 2 ** Math.min(3, level);
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

class LevelPanel extends Steps {
  constructor(spec, page) {
    super(spec, page);
    this.data = spec.series.map((s) => new Levels(s.values));
    this.explain(spec.series.map((s, k) => [s.name, s.colour ?? k, s.note]));
  }
  series() { return this.spec.series.map((s, k) => this.line_of(s, k, {})); }
  points() { return levelPoints(this.spec.edges_ns, this.data, this.time.from, this.time.to, this.host.clientWidth / COLUMN).points; }
  hover(t) {
    const edges = this.spec.edges_ns, i = lowerBound(edges, t + 1e-3) - 1;
    const inside = i >= 0 && i < edges.length - 1;
    return this.spec.series.map((s) => `${s.name}: ${inside ? value(s.values[i], this.unit) : "–"}` +
      (inside ? ` (of ${duration(edges[i + 1] - edges[i])})` : ""));
  }
  over(u) {
    const { limit } = this.spec, scale = devicePixelRatio;
    if (limit) {
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
        u.ctx.textBaseline = y - u.bbox.top > 16 * scale ? "bottom" : "top";
        u.ctx.fillText(limit.name.slice(0, 80), u.bbox.left + u.bbox.width - 4 * scale, y - 2 * scale);
      });
    }
    super.over(u);
  }
  rows() {
    const e = this.spec.edges_ns;
    return [["from_ns", "to_ns", ...this.spec.series.map((s) => s.name)],
      ...this.spec.series[0].values.map((_v, i) => [e[i], e[i + 1], ...this.spec.series.map((s) => s.values[i])])];
  }
}

// Bars where they were. An interval is [from_ns, ns, state, text].
export class LanePanel extends Panel {
  constructor(spec, page) {
    super(spec, page);
    this.lanes = spec.lanes.map((lane) => {
      const intervals = [...lane.intervals].sort((a, b) => spec.states[b[2]].low === true ? 1 : spec.states[a[2]].low === true ? -1 : a[1] - b[1]);
      const marked = intervals.filter((v) => !spec.states[v[2]].low);
      return { ...lane, intervals, longest: marked.at(-1) };
    });
    this.explain(spec.states.map((s) => [s.name, s.colour, s.meaning]));
  }
  height() { return 10 + 28 + LANE * Math.max(1, this.lanes.length); }
  // Pixels of an interval in the canvas; those of a low state have half of the height.
  box(u, k, v) {
    const scale = devicePixelRatio, a = u.valToPos(v[0], "x", true), b = u.valToPos(v[0] + v[1], "x", true);
    const low = this.spec.states[v[2]].low, height = (low ? BAR / 2 : BAR) * scale;
    return { left: a, width: Math.max(b - a, scale), top: u.bbox.top + (k * LANE + LANE - 2) * scale - height, height };
  }
  over(u) {
    const scale = devicePixelRatio;
    clipped(u, () => this.lanes.forEach((lane, k) => {
      u.ctx.fillStyle = ink("lane");
      u.ctx.fillRect(u.bbox.left, u.bbox.top + (k * LANE + LANE - 2 - BAR) * scale, u.bbox.width, BAR * scale);
      for (const m of lane.unknown ?? []) {
        hatch({ ctx: u.ctx, bbox: { ...u.bbox, top: u.bbox.top + (k * LANE + LANE - 2 - BAR) * scale, height: BAR * scale } },
          u.valToPos(m[0], "x", true), u.valToPos(m[1], "x", true));
      }
    }));
    this.hatchMissing(u);
    clipped(u, () => this.lanes.forEach((lane, k) => {
      for (const v of lane.intervals) {
        const b = this.box(u, k, v);
        if (b.left + b.width < u.bbox.left || b.left > u.bbox.left + u.bbox.width) continue;
        u.ctx.fillStyle = colour(this.spec.states[v[2]].colour);
        u.ctx.fillRect(b.left, b.top, b.width, b.height);
      }
      u.ctx.font = `${12 * scale}px system-ui, sans-serif`;
      u.ctx.textAlign = "left";
      u.ctx.textBaseline = "alphabetic";
      const write = (text, x) => {
        u.ctx.strokeStyle = ink("page");
        u.ctx.lineWidth = 3 * scale;
        u.ctx.strokeText(text, x, y);
        u.ctx.fillStyle = ink("ink");
        u.ctx.fillText(text, x, y);
      };
      const y = u.bbox.top + (k * LANE + LANE - 4 - BAR) * scale, name = lane.name.slice(0, 80);
      write(name, u.bbox.left + 2 * scale);
      if (!lane.longest) return;
      const b = this.box(u, k, lane.longest), text = duration(lane.longest[1]), from = u.bbox.left + u.ctx.measureText(name).width + 12 * scale;
      if (b.left + b.width < u.bbox.left || b.left > u.bbox.left + u.bbox.width) return;
      u.ctx.font = `bold ${u.ctx.font}`;
      write(text, Math.min(Math.max(b.left, from), u.bbox.left + u.bbox.width - u.ctx.measureText(text).width));
    }));
    super.over(u);
  }
  hover(t, y) {
    const k = Math.floor(y / LANE), lane = this.lanes[k];
    if (!lane) return [];
    const near = NEAR * (this.time.to - this.time.from) / this.plot.over.clientWidth;
    const found = lane.intervals.filter((v) => v[0] - near <= t && t <= v[0] + v[1] + near).sort((a, b) => a[1] - b[1]);
    return [lane.name, ...found.slice(0, 4).flatMap((v) => [
      `${this.spec.states[v[2]].name}: ${duration(v[1], 4)}, from ${clock(this.page.origin, v[0], false)} to ${clock(this.page.origin, v[0] + v[1], false)}`,
      ...(v[3] ? [v[3]] : [])])];
  }
  rows() {
    return [["lane", "from_ns", "ns", "state", "text"],
      ...this.spec.lanes.flatMap((lane) => lane.intervals.map((v) => [lane.name, v[0], v[1], this.spec.states[v[2]].name, v[3] ?? ""]))];
  }
}

// Counts of cells: the darker, the more.
class HeatPanel extends Panel {
  constructor(spec, page) {
    super(spec, page);
    this.most = spec.counts.reduce((m, column) => column.reduce((a, b) => Math.max(a, b), m), 0);
    this.explain([[`${this.spec.name}: the darker, the more`, spec.colour ?? 0]]);
  }
  height() { return 190; }
  scale() {
    const y = this.spec.y_edges;
    return { distr: this.spec.log ? 3 : 1, range: () => [y[0], y.at(-1)] };
  }
  axis() { return valueAxis(this.spec.unit, this.spec.log); }
  series() { return [{ stroke: "#0000", points: { show: false } }]; }
  points() { return [[this.time.from, this.time.to], [this.spec.y_edges[0], this.spec.y_edges.at(-1)]]; }
  over(u) {
    const { edges_ns: x, y_edges: y, counts } = this.spec;
    const tops = y.map((v) => u.valToPos(v, "y", true));
    clipped(u, () => counts.forEach((column, i) => {
      const a = u.valToPos(x[i], "x", true), b = u.valToPos(x[i + 1], "x", true);
      if (b < u.bbox.left || a > u.bbox.left + u.bbox.width) return;
      column.forEach((n, j) => {
        if (!n) return;
        u.ctx.fillStyle = faint(this.spec.colour ?? 0, 0.15 + 0.85 * Math.log1p(n) / Math.log1p(this.most));
        u.ctx.fillRect(a, tops[j + 1], Math.max(b - a, 1), Math.max(tops[j] - tops[j + 1], 1));
      });
    }));
    super.over(u);
  }
  hover(t, y) {
    const { edges_ns: x, y_edges, counts, unit } = this.spec, v = this.plot.posToVal(y, "y");
    const i = lowerBound(x, t + 1e-3) - 1, j = lowerBound(y_edges, v) - 1;
    if (i < 0 || i >= counts.length || j < 0 || j >= counts[i].length) return [];
    return [`${value(y_edges[j], unit)} to ${value(y_edges[j + 1], unit)}: ${count(counts[i][j])} (of ${duration(x[i + 1] - x[i])})`];
  }
  rows() {
    const { edges_ns: x, y_edges: y, counts } = this.spec;
    return [["from_ns", "to_ns", ...y.slice(0, -1).map(String)], ...counts.map((c, i) => [x[i], x[i + 1], ...c])];
  }
}

export const KINDS = { counts: CountPanel, levels: LevelPanel, lanes: LanePanel, heat: HeatPanel };
