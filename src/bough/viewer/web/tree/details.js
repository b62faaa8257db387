// Rewards, answers of judges, and what else is known of a turn.

import { el } from "../dom.js";
import { fold, text } from "./conversation.js";
import { short } from "./measures.js";

const FACTS = {
  outcome: "outcome",
  truncated_by: "stopped by",
  success: "solved",
  valid: "recognised by the environment",
  well_formed: "has the parser's format",
  cut_off: "cut off at the token limit",
  source: "written by",
  policy_version: "policy version (weight updates)",
  temperature: "temperature",
  hint: "hint in the prompt",
  value: "value of the search",
  rating: "rating before its execution",
  visits: "visits",
  fault: "fault",
  excluded: "left out of the loss",
  replayed: "sampled in an earlier step",
  reward_parts: "parts of the environment's reward",
};

export function detailView(node) {
  const facts = Object.entries(FACTS).filter(([name]) => node.facts[name] !== null && node.facts[name] !== undefined);
  return el("div", {},
    el("h3", {}, "Rewards"),
    table(["channel", "here", "so far"], node.rewards.map((each) => [each.trained ? each.channel : `check ${each.channel}`, short(each.here), short(each.total)])),
    ...judges(node.questions),
    el("h3", {}, "Facts"),
    el("dl", { class: "facts" }, ...facts.flatMap(([name, label]) => [el("dt", {}, label), el("dd", {}, shown(node.facts[name]))])),
    ...(node.tools.length ? [el("h3", {}, "Tools"), ...node.tools.map(tool)] : []),
    ...(Object.keys(node.notes).length ? [el("h3", {}, "Notes of the run"), text(JSON.stringify(node.notes, null, 1))] : []),
    fold("Task", text(JSON.stringify(node.task, null, 1))),
  );
}

function judges(questions) {
  if (!questions.length) return [];
  return [
    el("h3", {}, "Questions to judges"),
    ...questions.map((each) =>
      el("section", { class: "question" },
        el("div", { class: "row" }, el("b", {}, each.judge), el("span", { class: each.verdict === "ok" ? "" : "bad" }, each.verdict),
          el("span", {}, `value ${short(each.value)}`), el("span", { class: "quiet" }, `${each.votes} of ${each.questions} votes, node ${each.node}`)),
        ...each.answers.map((answer) => text(answer)))),
  ];
}

function tool({ function: each }) {
  return fold(each.name, text(each.description), text(JSON.stringify(each.parameters, null, 1)));
}

function shown(value) {
  if (value === true) return "yes";
  if (value === false) return "no";
  if (typeof value === "number") return short(value);
  return typeof value === "object" ? JSON.stringify(value) : String(value).replaceAll("_", " ");
}

/** @param texts The number of columns, from the first, that are texts; the others are numbers. */
export function table(head, rows, texts = 1) {
  return el("table", {},
    el("thead", {}, el("tr", {}, ...head.map((each, at) => el("th", { scope: "col", class: at < texts ? "" : "number" }, each)))),
    el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((each, at) => el("td", { class: at < texts ? "" : "number" }, each))))));
}
