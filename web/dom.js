// SPDX-License-Identifier: BSD-3-Clause

// An element with its properties and children; texts are never markup.
export function element(tag, properties = {}, ...children) {
  const e = Object.assign(document.createElement(tag), properties);
  e.append(...children);
  return e;
}

// Other children; a link that had the focus has it still.
export function replace(parent, children) {
  const focus = parent.contains(document.activeElement) ? document.activeElement.href : null;
  parent.replaceChildren(...children);
  if (focus) [...parent.querySelectorAll("a")].find((a) => a.href === focus)?.focus();
}

// A file for the user. parts: of a Blob.
export function save(name, type, parts) {
  const a = element("a", { href: URL.createObjectURL(new Blob(parts, { type })), download: name });
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 1000);
}

export function csv(rows) {
  const cell = (v) => {
    const text = v === null || v === undefined ? "" : String(v);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}
