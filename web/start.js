// SPDX-License-Identifier: BSD-3-Clause
// The page of the document that is in it, or of those that its server sends.

import { element } from "./dom.js";
import { Live } from "./live.js";
import { Page } from "./page.js";

function start() {
  const main = document.getElementById("page");
  try {
    const text = document.getElementById("document").textContent, d = JSON.parse(text);
    const page = d.live ? new Live(d.live) : new Page(d, text);
    globalThis.view = page; // for tests, and for the console
    page.build(main);
  } catch (e) {
    main.append(element("p", { className: "note missing", role: "alert" }, `The document of this page cannot be drawn: ${e.message}`));
    throw e;
  }
}

start();
