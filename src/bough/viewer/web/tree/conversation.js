// Messages and actions as a conversation. What a model or an environment wrote is only ever text.

import { el } from "../dom.js";
import { short } from "./measures.js";

const FOLD = 3000;
/** An image in a text: only pixels, never a document. */
const IMAGE = /data:image\/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+/g;

const NAMES = { assistant: "agent", tool: "result", user: "user", system: "system", fault: "fault" };

/**
 * @param entries Of `node_view.conversation`.
 * @param options `chosen`: the node of the turn that is open. `pick(node)`: called for another turn.
 *   `from`: by entry, the letter from which its text differs from the other side.
 */
export function conversation(entries, { chosen = -1, pick, from = new Map() } = {}) {
  const list = el("ol", { class: "conversation" });
  let turn = -1;
  entries.forEach((entry) => {
    if (entry.turn !== turn && entry.role === "assistant") {
      turn = entry.turn;
      list.append(turnLine(entry, chosen, pick));
    }
    list.append(message(entry, chosen, from.get(entry)));
  });
  return list;
}

function turnLine(entry, chosen, pick) {
  const here = entry.node === chosen;
  const name = `turn ${entry.turn}`;
  const label = here || !pick ? el("span", {}, name) : el("button", { type: "button", class: "link", onclick: () => pick(entry.node) }, name);
  const numbers = entry.advantage === null || entry.advantage === undefined ? "" : `advantage ${short(entry.advantage, true)}`;
  return el("li", { class: here ? "turn-line here" : "turn-line" }, label, el("span", { class: "quiet" }, numbers));
}

function message(entry, chosen, from) {
  const row = el("li", { class: `message role-${entry.role}${entry.node === chosen ? " here" : ""}` });
  const role = NAMES[entry.role] ?? entry.role;
  const source = entry.source && entry.source !== "sampled" ? ` (${entry.source})` : "";
  const notes = [entry.rebuilt ? "context rebuilt" : "", entry.invalid ? "not recognised by the environment" : ""].filter(Boolean);
  row.append(
    el("div", { class: "role" }, role + source, entry.call_id ? el("span", { class: "quiet" }, ` ${entry.call_id}`) : "",
      ...notes.map((note) => el("span", { class: "note" }, note))),
  );
  if (entry.content) row.append(text(entry.content, from));
  else if (entry.tokens) row.append(el("p", { class: "quiet" }, `${entry.tokens} tokens of an action that goes on below`));
  for (const call of entry.calls ?? entry.tool_calls ?? []) row.append(callBox(call));
  if (entry.raw) row.append(fold("written by the model, before the parser", text(entry.raw)));
  if (entry.fault) row.append(el("p", { class: "bad" }, entry.fault));
  return row;
}

function callBox(call) {
  if (call.problem !== undefined) {
    return el("div", { class: "call bad-call" }, el("div", { class: "bad" }, `malformed call: ${call.problem}`), text(call.text));
  }
  const values = Object.entries(call.arguments ?? {});
  return el("div", { class: "call" },
    el("span", { class: "call-name" }, call.name),
    call.call_id ? el("span", { class: "quiet" }, ` ${call.call_id}`) : "",
    el("dl", {}, ...values.flatMap(([name, value]) => [
      el("dt", {}, name),
      el("dd", {}, text(typeof value === "string" ? value : JSON.stringify(value, null, 1))),
    ])));
}

/** A text as it is; a long one is folded, and images in it are shown. */
export function text(content, from) {
  const box = el("div", { class: "text" });
  if (content.length > FOLD && from === undefined) {
    const more = el("button", { type: "button", class: "link" }, `show all ${content.length.toLocaleString("en")} letters`);
    const part = el("div", { class: "text" }, content.slice(0, FOLD), "…");
    more.addEventListener("click", () => box.replaceChildren(...withImages(content)));
    box.append(part, more);
    return box;
  }
  if (from === undefined) box.append(...withImages(content));
  else box.append(content.slice(0, from), el("mark", {}, content.slice(from) || "∎"));
  return box;
}

function withImages(content) {
  const parts = [];
  let end = 0;
  for (const match of content.matchAll(IMAGE)) {
    parts.push(content.slice(end, match.index), el("img", { src: match[0], alt: "image of the message", class: "picture" }));
    end = match.index + match[0].length;
  }
  return [...parts, content.slice(end)];
}

export function fold(label, ...inside) {
  return el("details", {}, el("summary", {}, label), ...inside);
}
