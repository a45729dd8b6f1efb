// SPDX-License-Identifier: BSD-3-Clause
// Colours of Okabe and Ito, which differ for all kinds of sight, and those of the style sheet.

const LIGHT = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#777777"];
const DARK = ["#56b4e9", "#ff8533", "#2ecc9a", "#e39ac4", "#f0b83c", "#8fd0f5", "#999999"];

// Making it takes longer than drawing a bar.
const preferred = matchMedia("(prefers-color-scheme: dark)");

export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : preferred.matches;
}

export function colour(n) {
  const all = isDark() ? DARK : LIGHT;
  return all[n % all.length];
}

export function faint(n, share) {
  return colour(n) + Math.round(255 * share).toString(16).padStart(2, "0");
}

export function ink(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`);
}
