// SPDX-License-Identifier: BSD-3-Clause
// Lanes with bars, heat maps, distributions and points.

import { colour, faint, ink } from "./colours.js";
import { Counts, Levels, levelPoints, lowerBound } from "./data.js";
import { element } from "./dom.js";
import { COLUMN, NEAR, INCREMENTS, CountPanel, LevelPanel, Panel, Steps, acrossAt, clipped, decades, hatch, powers, valueAxis } from "./panels.js";
import { clock, count, duration, value } from "./text.js";
import { Time } from "./time.js";

const LANE = 34, BAR = 20; // pixels
const PALEST = 0.3; // a bar that is shorter than a pixel can be seen

const row = element("canvas", { height: 1 }); // for shaded()

// A row of pixels, each as dark as its share: thousands of bars are drawn as one.
function shaded(shares, hex) {
  row.width = shares.length;
  const context = row.getContext("2d"), pixels = context.createImageData(shares.length, 1);
  const rgb = [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));
  shares.forEach((share, x) => {
    if (share) pixels.data.set([...rgb, 255 * (PALEST + (1 - PALEST) * Math.min(share, 1))], 4 * x);
  });
  context.putImageData(pixels, 0, 0);
  return row;
}

// Bars of a state by their beginning; reach: the latest end up to each of them.
function sortedBars(list) {
  if (list.some((v, i) => i && v[0] < list[i - 1][0])) list.sort((a, b) => a[0] - b[0]);
  const from = new Float64Array(list.length), to = new Float64Array(list.length), reach = new Float64Array(list.length);
  for (let i = 0; i < list.length; i++) {
    from[i] = list[i][0];
    to[i] = from[i] + list[i][1];
    reach[i] = i ? Math.max(to[i], reach[i - 1]) : to[i];
  }
  return { from, to, reach };
}

// Bars where they were. An interval is [from_ns, ns, state, text].
class LanePanel extends Panel {
  constructor(spec, page) {
    super(spec, page);
    this.load();
  }
  load() {
    const { spec } = this;
    this.lanes = spec.lanes.map((lane) => {
      const lists = spec.states.map(() => []);
      let longest;
      for (const v of lane.intervals) {
        lists[v[2]].push(v);
        if (!spec.states[v[2]].low && !(longest?.[1] > v[1])) longest = v;
      }
      return { ...lane, longest, bars: lists.map(sortedBars) };
    });
    // The states that there are.
    this.explain(spec.states.filter((_s, k) => this.lanes.some((l) => l.bars[k].from.length)).map((s) => [s.name, s.colour, s.meaning]));
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
      const { time } = this, { states } = this.spec, pixel = u.bbox.width / (time.to - time.from) / scale, left = Math.floor(u.bbox.left / scale);
      const places = states.map((s, state) => ({ ...this.box(u, k, [time.from, 0, state]), fill: colour(s.colour) }));
      const wide = [], covered = states.map(() => null);
      lane.bars.forEach(({ from, to, reach }, state) => {
        for (let i = lowerBound(reach, time.from); i < from.length && from[i] <= time.to; i++) {
          const width = (to[i] - from[i]) * pixel;
          if (width >= 1) {
            wide.push([from[i], width, state]);
          } else if (to[i] >= time.from) {
            covered[state] ??= new Float64Array(Math.ceil(u.bbox.width / scale) + 2);
            covered[state][Math.max(0, Math.floor(u.bbox.left / scale + (from[i] - time.from) * pixel) - left)] += Math.max(width, 1e-9);
          }
        }
      });
      const low = (state) => (states[state].low ? 0 : 1);
      for (const [from, width, state] of wide.sort((a, b) => low(a[2]) - low(b[2]) || a[1] - b[1])) {
        const { top, height, fill } = places[state];
        u.ctx.fillStyle = fill;
        u.ctx.fillRect(u.bbox.left + (from - time.from) * pixel * scale, top, width * scale, height);
      }
      // Bars shorter than a pixel: as dark as the part of it that they cover, or many would look like one long bar.
      covered.forEach((columns, state) => {
        if (!columns) return;
        const { top, height } = places[state];
        u.ctx.imageSmoothingEnabled = false;
        u.ctx.drawImage(shaded(columns, colour(states[state].colour)), left * scale, top, columns.length * scale, height);
      });
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

// Counts of cells: the stronger the colour, the more.
class HeatPanel extends Panel {
  constructor(spec, page) {
    super(spec, page);
    this.load();
    this.explain([[`${this.spec.name}: the stronger, the more`, spec.colour ?? 0],
      ...(spec.series ?? []).map((s, k) => [s.name, s.colour ?? k, s.note])]);
  }
  load() {
    const { spec } = this;
    spec.counts = spec.counts.map(withZeros);
    this.most = spec.counts.reduce((m, column) => column.reduce((a, b) => Math.max(a, b), m), 0);
    // Rows that have something, and all values of the lines.
    const used = spec.y_edges.slice(1).map((_y, j) => spec.counts.some((column) => column[j]));
    const first = Math.max(0, used.indexOf(true)), last = used.lastIndexOf(true);
    const values = (spec.series ?? []).flatMap((s) => s.values).filter((v) => v !== null && (v > 0 || !spec.log));
    this.edges = [values.reduce((a, b) => Math.min(a, b), spec.y_edges[first]),
      values.reduce((a, b) => Math.max(a, b), last < 0 ? spec.y_edges.at(-1) : spec.y_edges[last + 1])];
  }
  height() { return 190; }
  scale() {
    const limit = this.spec.limit?.value ?? null, points = this.spec.points ?? [];
    // A ring at the upper edge has room.
    const range = () => {
      const [low, high] = this.edges, room = points.some(([, v]) => v > high / 1.1) ? 1.4 : 1;
      return [Math.min(low, limit ?? low), Math.max(high * room, limit ?? 0)];
    };
    return { distr: this.spec.log ? 3 : 1, range };
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
      if (!column.length) hatch(u, a, b);
      column.forEach((n, j) => {
        if (!n) return;
        u.ctx.fillStyle = faint(this.spec.colour ?? 0, 0.15 + 0.85 * Math.log1p(n) / Math.log1p(this.most));
        u.ctx.fillRect(a, tops[j + 1], Math.max(b - a, 1), Math.max(tops[j] - tops[j + 1], 1));
      });
    }));
    this.overlay(u);
    acrossAt(u, this.spec.limit);
    super.over(u);
  }
  // Values of the columns as steps, and single things as rings.
  overlay(u) {
    const { edges_ns: x, series = [], points = [] } = this.spec, scale = devicePixelRatio;
    clipped(u, () => {
      u.ctx.lineWidth = 1.5 * scale;
      series.forEach((s, k) => {
        u.ctx.strokeStyle = colour(s.colour ?? k);
        u.ctx.beginPath();
        s.values.forEach((v, i) => {
          if (v === null) return;
          const y = u.valToPos(v, "y", true), a = u.valToPos(x[i], "x", true);
          if (i && s.values[i - 1] !== null) u.ctx.lineTo(a, y);
          else u.ctx.moveTo(a, y);
          u.ctx.lineTo(u.valToPos(x[i + 1], "x", true), y);
        });
        u.ctx.stroke();
      });
      u.ctx.strokeStyle = ink("ink");
      for (const [t, v] of points) {
        u.ctx.beginPath();
        u.ctx.arc(u.valToPos(t, "x", true), u.valToPos(v, "y", true), 3 * scale, 0, 2 * Math.PI);
        u.ctx.stroke();
      }
    });
  }
  hover(t, y) {
    const { edges_ns: x, y_edges, counts, unit, series = [] } = this.spec, v = this.plot.posToVal(y, "y");
    const i = lowerBound(x, t + 1e-3) - 1, j = lowerBound(y_edges, v) - 1;
    if (i < 0 || i >= counts.length || j < 0 || j >= counts[i].length) return [];
    return [...series.map((s) => `${s.name}: ${value(s.values[i], unit)}`), `${value(y_edges[j], unit)} to ${value(y_edges[j + 1], unit)}: ${count(counts[i][j])} (of ${duration(x[i + 1] - x[i])})`];
  }
  rows() {
    const { edges_ns: x, y_edges: y, counts } = this.spec;
    return [["from_ns", "to_ns", ...y.slice(0, -1).map(String)], ...counts.map((c, i) => [x[i], x[i + 1], ...c])];
  }
}

// How often there were which values, along a logarithmic axis: shares of each step, or of all that are larger.
class SpreadPanel extends Steps {
  constructor(spec, page) {
    super(spec, page);
    this.edges = spec.edges.map(Math.log10);
    this.sums = spec.series.map((s) => s.values.reduce((a, b) => a + b, 0));
    this.shares = spec.series.map((s, k) => {
      let left = this.sums[k];
      return s.values.map((n) => {
        const share = spec.kind === "tail" ? left / this.sums[k] : n / this.sums[k];
        left -= n;
        return share > 0 || spec.kind === "spread" ? share : null; // 0 has no place on the axis of a tail
      });
    });
    this.data = this.shares.map((s) => new Levels(s));
    this.explain(spec.series.map((s, k) => [s.name, s.colour ?? k, s.note ?? `${count(this.sums[k])} ${spec.of}`]));
  }
  window(spec) { return new Time({ from_ns: Math.log10(spec.edges[0]), to_ns: Math.log10(spec.edges.at(-1)) }, 0.01); }
  get unit() { return "share"; }
  scale() {
    return this.spec.kind === "tail" ? { distr: 3, range: (_u, least) => decades(least ?? 1e-3, 0.95, null) }
      : { range: (_u, _least, most) => [0, most > 0 ? most * 1.08 : 1] };
  }
  axis() { return valueAxis("share", this.spec.kind === "tail"); }
  xAxis() {
    return { splits: (_u, _i, from, to) => powers(10 ** from, 10 ** to).map(Math.log10), values: (_u, at) => at.map((v) => value(10 ** v, this.spec.unit)) };
  }
  where(x) { return [value(10 ** x, this.spec.unit)]; }
  series() { return this.spec.series.map((s, k) => this.line_of(s, k)); }
  under(u) {
    super.under(u);
    if (this.spec.kind === "spread") this.fill(u, 1);
  }
  points() { return levelPoints(this.edges, this.data, this.time.from, this.time.to, this.host.clientWidth / COLUMN).points; }
  over(u) {
    clipped(u, () => (this.spec.marks ?? []).forEach((m, k) => {
      const x = u.valToPos(Math.log10(m.value), "x", true), scale = devicePixelRatio;
      u.ctx.fillStyle = colour(m.colour);
      u.ctx.fillRect(x, u.bbox.top, scale, u.bbox.height);
      u.ctx.font = `${11 * scale}px system-ui, sans-serif`;
      const right = x > u.bbox.left + u.bbox.width - 50 * scale;
      u.ctx.textAlign = right ? "right" : "left";
      u.ctx.textBaseline = "top";
      u.ctx.fillText(m.name, x + (right ? -3 : 3) * scale, u.bbox.top + (k % 4) * 13 * scale);
    }));
  }
  hover(x) {
    const i = lowerBound(this.edges, x + 1e-12) - 1;
    if (i < 0 || i >= this.edges.length - 1) return [];
    return [`${value(this.spec.edges[i], this.spec.unit)} to ${value(this.spec.edges[i + 1], this.spec.unit)}`,
      ...this.spec.series.map((s, k) => `${s.name}: ${value(this.shares[k][i] ?? 0, "share")}${this.spec.kind === "tail" ? " take this or longer" : ` (${count(s.values[i])})`}`),
      ...(this.spec.marks ?? []).filter((m) => m.value >= this.spec.edges[i] && m.value < this.spec.edges[i + 1]).map((m) => `${m.name}: ${value(m.value, this.spec.unit)}`)];
  }
  rows() {
    const e = this.spec.edges;
    return [["from", "to", ...this.spec.series.map((s) => s.name)], ...this.spec.series[0].values.map((_v, i) => [e[i], e[i + 1], ...this.spec.series.map((s) => s.values[i])])];
  }
}

// Points with axes of their own; marks are pauses.
class PointPanel extends Panel {
  constructor(spec, page) {
    super(spec, page);
    this.explain(spec.series.map((s, k) => [s.name, s.colour ?? k, `${count(s.x.length)} ${spec.of}`]));
    const all = spec.series.flatMap((s) => (s.y.length ? [s.y.reduce((a, b) => Math.min(a, b)), s.y.reduce((a, b) => Math.max(a, b))] : []));
    this.low = Math.min(...all, 0 < all.length ? Infinity : 0);
    this.high = Math.max(...all, this.low + 1);
  }
  window(spec) { return new Time({ from_ns: 0, to_ns: spec.end }, 1); }
  height() { return 260; }
  scale() {
    const margin = (this.high - this.low) * 0.03 + 1;
    return { range: () => [Math.max(0, this.low - margin), this.high + margin] };
  }
  axis() { return valueAxis(this.spec.unit, false); }
  xAxis() { return { values: (_u, at) => at.map((v) => duration(v, 4)), incrs: INCREMENTS }; }
  where(x) { return [duration(x, 4)]; }
  under(u) {
    clipped(u, () => {
      u.ctx.fillStyle = ink("hatch");
      for (const x of this.spec.marks ?? []) u.ctx.fillRect(u.valToPos(x, "x", true), u.bbox.top, 0.5 * devicePixelRatio, u.bbox.height);
    });
  }
  over(u) {
    const size = 2 * devicePixelRatio;
    clipped(u, () => this.spec.series.forEach((s, k) => {
      u.ctx.fillStyle = faint(s.colour ?? k, s.x.length > 10000 ? 0.35 : 0.9);
      for (let i = lowerBound(s.x, this.time.from); i < s.x.length && s.x[i] <= this.time.to; i++) {
        u.ctx.fillRect(u.valToPos(s.x[i], "x", true) - size / 2, u.valToPos(s.y[i], "y", true) - size / 2, size, size);
      }
    }));
  }
  hover(x, y) {
    const near = NEAR * (this.time.to - this.time.from) / this.plot.over.clientWidth, at = this.plot.posToVal(y, "y");
    return this.spec.series.flatMap((s) => {
      let best = -1;
      for (let i = lowerBound(s.x, x - near); i < s.x.length && s.x[i] <= x + near; i++) {
        if (best < 0 || Math.abs(s.y[i] - at) < Math.abs(s.y[best] - at)) best = i;
      }
      return best < 0 ? [] : [`${s.name}: ${value(s.y[best], this.spec.unit)}`];
    });
  }
  rows() { return [["series", "x", "y"], ...this.spec.series.flatMap((s) => s.x.map((x, i) => [s.name, x, s.y[i]]))]; }
}

export const KINDS = { counts: CountPanel, levels: LevelPanel, lanes: LanePanel, heat: HeatPanel, spread: SpreadPanel, tail: SpreadPanel, points: PointPanel };
