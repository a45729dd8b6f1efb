// SPDX-License-Identifier: BSD-3-Clause
// The window of time that all panels show, the time under the pointer, and the selected time.


export class Time extends EventTarget {
  // shortest: ns that may fill the page.
  constructor(range, shortest = 200) {
    super();
    this.shortest = shortest;
    this.full = [range.from_ns, range.to_ns];
    [this.from, this.to] = this.full;
    this.selection = null; // [from, to]
    this.cursor = null;
  }

  #tell(what) { this.dispatchEvent(new Event(what)); }

  show(from, to) {
    const [a, b] = this.full, length = Math.min(Math.max(to - from, this.shortest), b - a);
    this.from = Math.min(Math.max(from, a), b - length);
    this.to = this.from + length;
    this.#tell("window");
  }

  // The data has another range: a window at its end follows.
  slide(range) {
    const all = this.from === this.full[0] && this.to === this.full[1], by = this.to === this.full[1] ? range.to_ns - this.to : 0;
    this.full = [range.from_ns, range.to_ns];
    if (all) this.reset();
    else this.show(this.from + by, this.to + by);
  }

  reset() { this.show(...this.full); }

  zoom(at, factor) { this.show(at - (at - this.from) * factor, at + (this.to - at) * factor); }

  // By a share of the window.
  pan(share) {
    const by = share * (this.to - this.from);
    this.show(this.from + by, this.to + by);
  }

  select(selection) {
    this.selection = selection && selection[0] > selection[1] ? [selection[1], selection[0]] : selection;
    this.#tell("selection");
  }

  showSelection() {
    if (this.selection) this.show(...this.selection);
  }

  point(cursor) {
    this.cursor = cursor;
    this.#tell("cursor");
  }
}

const DRAGGED = 4; // pixels

// Lets the pointer zoom, pan, select and hover. place(): left edge and width of the plotted area in the element, in
// pixels. hover(t, y): lines of text; y: pixels from the top.
export function usePointer(element, time, place, hover) {
  let start = null;
  const at = (e) => {
    const { left, width } = place();
    const x = Math.min(Math.max(e.clientX - element.getBoundingClientRect().left - left, 0), width);
    return time.from + x / width * (time.to - time.from);
  };
  element.addEventListener("wheel", (e) => {
    e.preventDefault();
    const sideways = Math.abs(e.deltaX) > Math.abs(e.deltaY) || e.shiftKey;
    if (sideways) time.pan((e.deltaX || e.deltaY) / place().width);
    else time.zoom(at(e), Math.exp(Math.min(Math.max(e.deltaY, -200), 200) * 0.003));
  }, { passive: false });
  element.addEventListener("pointerdown", (e) => {
    if (e.button) return;
    start = { x: e.clientX, at: at(e), from: time.from, to: time.to, pans: e.shiftKey || e.pointerType === "touch" };
    element.setPointerCapture(e.pointerId);
  });
  element.addEventListener("pointermove", (e) => {
    if (!start) {
      time.point(at(e));
      tip(e, hover(at(e), e.clientY - element.getBoundingClientRect().top));
    } else if (start.pans) {
      const by = (start.x - e.clientX) / place().width * (start.to - start.from);
      time.show(start.from + by, start.to + by);
    } else if (start.moved || Math.abs(e.clientX - start.x) >= DRAGGED) {
      start.moved = true;
      tip(e, null);
      time.select([start.at, at(e)]);
    }
  });
  element.addEventListener("pointerup", () => {
    if (start && !start.moved && !start.pans) time.select(null);
    start = null;
  });
  element.addEventListener("pointercancel", () => { start = null; });
  element.addEventListener("pointerleave", (e) => {
    time.point(null);
    tip(e, null);
  });
  element.addEventListener("dblclick", () => time.reset());
}

// Shows lines of text beside the pointer; null: none.
function tip(e, lines) {
  const box = document.getElementById("tip");
  box.hidden = !lines;
  if (!lines) return;
  box.replaceChildren(...lines.map((line) => {
    const p = document.createElement("p");
    p.textContent = line;
    return p;
  }));
  const { width, height } = box.getBoundingClientRect();
  box.style.left = `${Math.max(4, Math.min(e.clientX + 14, innerWidth - width - 8))}px`;
  box.style.top = `${e.clientY + 18 + height < innerHeight ? e.clientY + 18 : Math.max(4, e.clientY - height - 12)}px`;
}
