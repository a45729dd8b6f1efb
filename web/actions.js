// SPDX-License-Identifier: BSD-3-Clause
// What the page may have its server do: collect more, record, have a recorder write an incident.

import { element, save } from "./dom.js";
import { fates } from "./fates.js";

export class Actions {
  constructor() {
    this.says = element("span", { className: "soft", role: "status" });
    this.content = element("div");
    this.answer = element("div"); // what the last request to follow packets found
    this.root = element("details", { className: "actions", hidden: true }, element("summary", {}, "Collect, record, follow packets"), this.content, this.says);
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
      ...(allowed && place.app ? [this.recording(place.app, bar), this.following(place.app, bar)] : []),
      ...(allowed ? (recorders ?? []).map((folder) => this.trigger(place.app, folder, bar)) : []));
  }

  recording(app, bar) {
    const seconds = element("input", { type: "number", min: 1, max: 60, value: 5, ariaLabel: "seconds" });
    const filter = element("input", { placeholder: "filter, such as udp port 53", ariaLabel: "filter" });
    return bar("Record ", seconds, " s of ", filter, element("button", { type: "button",
      onclick: () => this.post("record", { app, seconds: seconds.value, filter: filter.value }, "packets.pcapng") }, "Record"));
  }

  following(app, bar) {
    const seconds = element("input", { type: "number", min: 1, max: 60, value: 3, ariaLabel: "seconds to follow packets" });
    const button = (text, path) => element("button", { type: "button", onclick: () => this.follow(path, { app, seconds: seconds.value }) }, text);
    return bar("Follow packets for ", seconds, " s: ", button("Not sent", "drops"), button("Held", "held"),
      element("small", {}, "13 to 32 ns for each packet meanwhile, 400 bytes for each buffer"));
  }

  async follow(path, parts) {
    const answer = await this.ask(path, parts);
    if (!answer?.ok) return;
    this.answer.replaceChildren(fates(await answer.json()));
    this.says.textContent = "";
  }

  trigger(app, folder, bar) {
    const comment = element("input", { placeholder: "comment", ariaLabel: `comment of an incident in ${folder}` });
    return bar(element("button", { type: "button", onclick: () => this.post("trigger", { app, folder, comment: comment.value }) }, "Keep the last seconds"),
      comment, element("small", {}, folder));
  }

  // Says why there is none.
  async ask(path, parts) {
    this.says.textContent = `${path} …`;
    try {
      const answer = await fetch(`${path}?${new URLSearchParams(parts)}`, { method: "POST" });
      if (!answer.ok) this.says.textContent = await answer.text();
      return answer;
    } catch (e) {
      this.says.textContent = `the server does not answer: ${e.message}`;
      return null;
    }
  }

  // name: of a file that the answer is.
  async post(path, parts, name) {
    const answer = await this.ask(path, parts);
    if (!answer?.ok) return;
    if (name) save(name, "application/octet-stream", [await answer.blob()]);
    this.says.textContent = name ? answer.headers.get("Ringtap-Note") ?? "recorded" : await answer.text();
  }
}
