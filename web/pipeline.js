// SPDX-License-Identifier: BSD-3-Clause
// The way of packets: boxes in stages, and lines between them.

import { colour, ink } from "./colours.js";
import { element, replace } from "./dom.js";
import { value } from "./text.js";

const SHARES = { thread: "busy", mempool: "in use" };
const NARROW = 600; // pixels of a window that shows the stages one below the other

export class Pipeline {
  constructor(spec) {
    this.spec = spec;
    this.canvas = element("canvas", { ariaHidden: "true" });
    this.stages = element("div", { className: "stages" });
    this.notes = element("div");
    this.root = element("section", { className: "pipeline", id: spec.id ?? "" }, element("h2", {}, spec.title), this.notes,
      element("div", { className: "way" }, this.canvas, this.stages));
    this.fill();
  }

  refresh() {
    this.fill();
    this.draw();
  }

  resize() { this.draw(); }

  fill() {
    const { stages, boxes, notes } = this.spec;
    this.notes.replaceChildren(...(notes ?? []).map((n) => element("p", { className: "note" }, n)));
    this.boxes = new Map();
    replace(this.stages, stages.map((name, n) => element("div", { role: "group", ariaLabel: name }, element("h3", {}, name),
      ...boxes.filter((b) => b.stage === n).map((b) => this.box(b)))));
  }

  box(b) {
    const bar = element("i");
    bar.style.width = `${100 * Math.min(b.share ?? 0, 1)}%`;
    const box = element("div", { className: "box" }, b.view ? element("a", { href: `#${new URLSearchParams(b.view)}` }, b.name) : b.name,
      ...(b.rate === undefined ? [] : [element("span", {}, value(b.rate, "/s"))]),
      ...(b.share === undefined ? [] : [element("span", {}, `${value(b.share, "share")} ${SHARES[this.spec.stages[b.stage]] ?? ""}`), element("span", { className: "share" }, bar)]),
      ...(b.lost ?? []).map((l) => element("b", {}, `${l.name}: ${value(l.rate, "/s")}`)));
    this.boxes.set(b.id, box);
    return box;
  }

  // Lines from the right edge of a box to the left edge of another one.
  draw() {
    const { canvas } = this, all = this.stages.getBoundingClientRect(), scale = devicePixelRatio;
    canvas.width = innerWidth < NARROW ? 0 : all.width * scale;
    canvas.height = innerWidth < NARROW ? 0 : all.height * scale;
    canvas.style.width = `${all.width}px`;
    canvas.style.height = `${canvas.height / scale}px`;
    if (!canvas.width) return;
    const context = canvas.getContext("2d"), most = Math.max(...this.spec.lines.map((l) => l.rate ?? 0), 1);
    context.scale(scale, scale);
    for (const l of this.spec.lines) {
      const a = this.boxes.get(l.from).getBoundingClientRect(), b = this.boxes.get(l.to).getBoundingClientRect();
      const [x1, y1, x2, y2] = [a.right - all.left, (a.top + a.bottom) / 2 - all.top, b.left - all.left, (b.top + b.bottom) / 2 - all.top];
      context.strokeStyle = l.rate ? colour(0) : ink("edge");
      context.lineWidth = l.rate ? 1.5 + 5 * l.rate / most : 1;
      context.beginPath();
      context.moveTo(x1, y1);
      context.bezierCurveTo((x1 + x2) / 2, y1, (x1 + x2) / 2, y2, x2, y2);
      context.stroke();
    }
  }
}
