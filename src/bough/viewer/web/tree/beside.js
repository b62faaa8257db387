// Two episodes side by side: what they share, where they part, and what each did from there.

import { el } from "../dom.js";
import { conversation, fold } from "./conversation.js";

const sameEntry = (one, other) =>
  one.role === other.role && one.content === other.content && JSON.stringify(one.calls ?? []) === JSON.stringify(other.calls ?? []);

/** @param one Of `node_view`; @param other The same of another leaf; @param pick Called with a node of the first. */
export function besideView(one, other, names, pick) {
  const [left, right] = [one.conversation, other.conversation];
  let same = 0;
  while (same < left.length && same < right.length && sameEntry(left[same], right[same])) same += 1;
  const from = new Map();
  if (left[same] && right[same] && left[same].role === right[same].role) {
    const letter = firstLetter(left[same].content, right[same].content);
    from.set(left[same], letter).set(right[same], letter);
  }
  const shared = left.slice(0, same);
  const turns = shared.filter((entry) => entry.role === "assistant").length;
  const where = left[same] ?? right[same];
  const what = where === undefined ? "The two are the same." : `First difference: turn ${where.turn}, ${where.role === "assistant" ? "the action" : "the observation"}.`;
  return el("div", { class: "beside" },
    el("p", { class: "parting", role: "status" }, what),
    fold(`${turns} ${turns === 1 ? "turn" : "turns"} that both share`, conversation(shared, { pick })),
    el("div", { class: "columns" },
      column(names[0], one, left.slice(same), from, pick),
      column(names[1], other, right.slice(same), from)));
}

function column(name, node, entries, from, pick) {
  return el("section", { "aria-label": name },
    el("h3", {}, name),
    el("p", { class: "quiet" }, endText(node)),
    conversation(entries, { chosen: node.node, pick, from }));
}

function endText({ facts, rewards }) {
  const total = rewards.reduce((sum, each) => sum + (each.total ?? 0), 0);
  const end = facts.success === true ? "solved" : facts.outcome === "open" ? "open" : `not solved (${facts.truncated_by ?? facts.outcome})`;
  return `${end}, return ${Number(total.toPrecision(4))}`;
}

function firstLetter(one, other) {
  let at = 0;
  while (at < one.length && at < other.length && one[at] === other[at]) at += 1;
  return at;
}
