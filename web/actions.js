// SPDX-License-Identifier: BSD-3-Clause
// What the page may have its server do: collect more, record, have a recorder write an incident.

import { element, save } from "./dom.js";

export class Actions {
  constructor() {
    this.says = element("span", { className: "soft", role: "status" });
    this.content = element("div");
    this.root = element("details", { className: "actions", hidden: true }, element("summary", {}, "Collect, record"), this.content, this.says);
  }

  // actions: of a document; place: that of the page.
  show(actions, place) {
    const text = JSON.stringify([actions, place]);
    if (text === this.shown || !actions) return;
    this.shown = text;
    this.root.hidden = false;
    const { allowed, collectors, recorders } = actions;
    const bar = (...children) => element("p", { className: "bar" }, ...children);
    this.content.replaceChildren(
      ...(allowed ? [] : [element("p", { className: "note" }, "The server runs without --allow-actions: the page only shows what is on.")]),
      ...collectors.map((c) => bar(element("label", {}, element("input", { type: "checkbox", checked: c.on, disabled: !allowed,
        onchange: (e) => this.post("collectors", { name: c.name, on: e.target.checked ? "1" : "0" }) }), ` ${c.name}`), element("small", {}, c.price))),
      ...(allowed && place.app ? [this.recording(place.app, bar)] : []),
      ...(allowed ? (recorders ?? []).map((folder) => this.trigger(place.app, folder, bar)) : []));
  }

  recording(app, bar) {
    const seconds = element("input", { type: "number", min: 1, max: 60, value: 5, ariaLabel: "seconds" });
    const filter = element("input", { placeholder: "filter, such as udp port 53", ariaLabel: "filter" });
    return bar("Record ", seconds, " s of ", filter, element("button", { type: "button",
      onclick: () => this.post("record", { app, seconds: seconds.value, filter: filter.value }, "packets.pcapng") }, "Record"));
  }

  trigger(app, folder, bar) {
    const comment = element("input", { placeholder: "comment", ariaLabel: `comment of an incident in ${folder}` });
    return bar(element("button", { type: "button", onclick: () => this.post("trigger", { app, folder, comment: comment.value }) }, "Keep the last seconds"),
      comment, element("small", {}, folder));
  }

  // name: of a file that the answer is.
  async post(path, parts, name) {
    this.says.textContent = `${path} …`;
    try {
      const answer = await fetch(`${path}?${new URLSearchParams(parts)}`, { method: "POST" });
      if (name && answer.ok) save(name, "application/octet-stream", [await answer.blob()]);
      this.says.textContent = name && answer.ok ? answer.headers.get("Ringtap-Note") ?? "recorded" : await answer.text();
    } catch (e) {
      this.says.textContent = `the server does not answer: ${e.message}`;
    }
  }
}
