// SPDX-License-Identifier: BSD-3-Clause
// Data of series at any zoom: what is drawn is a few values for each pixel, and none is left out.

const BAND = 3; // the least and the most are those of eighths (2^3) of what is drawn

// The first index whose value is not less than x.
export function lowerBound(sorted, x) {
  let a = 0, b = sorted.length;
  while (a < b) {
    const m = (a + b) >> 1;
    if (sorted[m] < x) a = m + 1;
    else b = m;
  }
  return a;
}

// The values of a document, in which -n stands for n zeros.
export function withZeros(values) {
  const out = [];
  for (const v of values) {
    if (v >= 0) out.push(v);
    else for (let k = 0; k < -v; k++) out.push(0);
  }
  return out;
}

// Counts of steps of equal length. Level k has sums of 2^k steps.
export class Counts {
  constructor(values) {
    this.levels = [new Float64Array(values)];
    while (this.levels.at(-1).length > 1) {
      const last = this.levels.at(-1), next = new Float64Array((last.length + 1) >> 1);
      for (let i = 0; i < last.length; i++) next[i >> 1] += last[i];
      this.levels.push(next);
    }
  }

  // Sum, least and most of an eighth (in units of the whole) of step i of a level.
  at(level, i) {
    const below = Math.max(0, level - BAND), parts = 1 << (level - below);
    const fine = this.levels[below], sum = this.levels[level][i];
    let least = Infinity, most = 0;
    for (let k = i * parts; k < Math.min((i + 1) * parts, fine.length); k++) {
      least = Math.min(least, fine[k]);
      most = Math.max(most, fine[k]);
    }
    return [sum, least * parts, most * parts];
  }

  // The level whose steps are at least that long.
  level(step, wanted) {
    const k = Math.ceil(Math.log2(Math.max(1, wanted / step)) - 1e-9);
    return Math.min(k, this.levels.length - 1);
  }
}

// Values that hold from one edge to the next; null: unknown. Level k has the least and the most of 2^k values.
export class Levels {
  constructor(values) {
    this.least = [values];
    this.most = [values];
    while (this.least.at(-1).length > 1) {
      this.least.push(Levels.#halve(this.least.at(-1), false));
      this.most.push(Levels.#halve(this.most.at(-1), true));
    }
  }

  static #halve(values, most) {
    const out = [];
    for (let i = 0; i < values.length; i += 2) {
      const a = values[i], b = i + 1 < values.length ? values[i + 1] : null;
      out.push(a === null || (b !== null && b > a === most) ? b : a);
    }
    return out;
  }
}

// The points of a panel of counts in a window: [x, [sum, least, most] of each series …], as rates per second.
export function countPoints(grid, series, from, to, columns) {
  const level = series[0].level(grid.step_ns, (to - from) / columns);
  const step = grid.step_ns * 2 ** level, n = series[0].levels[level].length;
  const first = Math.max(0, Math.floor((from - grid.from_ns) / step));
  const last = Math.min(n, Math.ceil((to - grid.from_ns) / step) + 1);
  const out = [[], ...series.flatMap(() => [[], [], []])];
  for (let i = first; i < last; i++) {
    out[0].push(grid.from_ns + i * step);
    // The last step of the data may be shorter than the others.
    const length = Math.min(step, grid.to_ns - (grid.from_ns + i * step));
    series.forEach((s, k) => s.at(level, i).forEach((v, m) => out[1 + 3 * k + m].push(v / length * 1e9)));
  }
  if (last === n) close(out, grid.to_ns);
  return { points: out, step };
}

// The points of a panel of levels: [x, values of each series …].
export function levelPoints(edges, series, from, to, columns) {
  let first = Math.max(0, lowerBound(edges, from) - 1), last = Math.min(edges.length - 1, lowerBound(edges, to) + 1);
  const level = Math.max(0, Math.ceil(Math.log2(Math.max(1, (last - first) / columns))));
  const out = [[], ...series.map(() => [])];
  for (let i = first >> level; i < (last + 2 ** level - 1) >> level && i < series[0].least[level].length; i++) {
    const a = edges[i << level], b = edges[Math.min((i + 1) << level, edges.length - 1)];
    out[0].push(a);
    series.forEach((s, k) => out[1 + k].push(s.most[level][i]));
    if (!level) continue;
    out[0].push((a + b) / 2);
    series.forEach((s, k) => out[1 + k].push(s.least[level][i]));
  }
  if (last === edges.length - 1) close(out, edges[last]);
  return { points: out, step: 0 };
}

// A step ends where the next one begins.
function close(out, x) {
  out[0].push(x);
  out.slice(1).forEach((y) => y.push(y.at(-1) ?? null));
}
