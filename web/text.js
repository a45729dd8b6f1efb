// SPDX-License-Identifier: BSD-3-Clause
// Numbers and times as text.

const TIMES = [["ns", 1], ["us", 1e3], ["ms", 1e6], ["s", 1e9]];
const NS = 1000000000n;

function digits(n, significant) {
  return Number(n.toPrecision(significant)).toLocaleString("en-US", { maximumFractionDigits: 9 });
}

// "36.2 ms"; n: significant digits.
export function duration(ns, n = 3) {
  if (ns === 0) return "0 s";
  const [unit, size] = TIMES.findLast(([, s]) => Math.abs(ns) >= s) ?? TIMES[0];
  return `${Number((ns / size).toPrecision(n))} ${unit}`;
}

export function count(n) {
  return Math.round(n).toLocaleString("en-US");
}

function scaled(n, base, prefixes, significant) {
  let k = 0;
  while (Math.abs(n) >= base && k < prefixes.length - 1) {
    n /= base;
    k++;
  }
  return `${digits(n, significant)} ${prefixes[k]}`;
}

// A value of a series or of a column; n: significant digits.
export function value(v, unit, n = 3) {
  if (v === null || v === undefined) return "–";
  if (typeof v === "string") return v;
  switch (unit) {
    case "ns": return duration(v, n);
    case "share": return `${digits(100 * v, n)} %`;
    case "bytes": return scaled(v, 1024, ["B", "KiB", "MiB", "GiB", "TiB"], n);
    case "count": return count(v);
    case "/s": return `${scaled(v, 1000, ["", "k", "M", "G", "T"], n)}/s`;
    default: return scaled(v, 1000, ["", "k", "M", "G", "T"], n).trim();
  }
}

// Values beside an axis, with as many digits as tell them apart.
export function apart(values, unit) {
  for (let n = 3; ; n++) {
    const texts = values.map((v) => (v === null ? "" : value(v, unit, n))), shown = texts.filter((text) => text);
    if (n === 15 || new Set(shown).size === shown.length) return texts;
  }
}

// Nanoseconds since 1970 of "2026-11-27T14:30:00.123456789Z".
export function parseTime(text) {
  const [, seconds, fraction] = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z$/.exec(text);
  return BigInt(Date.parse(`${seconds}Z`)) * 1000000n + BigInt((fraction ?? "").padEnd(9, "0"));
}

// ns: after origin, of parseTime().
export function clock(origin, ns, day = true) {
  const at = origin + BigInt(Math.round(ns));
  const seconds = new Date(Number(at / NS) * 1000).toISOString().slice(0, 19);
  return `${(day ? seconds : seconds.slice(11)).replace("T", " ")}.${String(at % NS).padStart(9, "0")}${day ? " UTC" : ""}`;
}

// Text beside an axis: all ticks in one unit, with as many digits as their distance needs.
export function ticks(values, step) {
  const most = Math.max(...values.map(Math.abs), step);
  const [unit, size] = TIMES.findLast(([, s]) => most >= s) ?? TIMES[0];
  const places = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / size) - 1e-9)));
  return values.map((v) => `${v > 0 ? "+" : ""}${(v / size).toFixed(places)} ${unit}`);
}
