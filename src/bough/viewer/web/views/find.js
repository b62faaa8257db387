// The episodes of a step: filters, order, full-text search over all steps; every row leads to its turn.

import { el, redraw } from "../dom.js";
import { keepAddress } from "../place.js";
import { remarks } from "../remarks.js";
import { short } from "../tree/measures.js";

const SHOWN = 300;
const COLUMNS = ["task", "outcome", "success", "return", "turns", "tokens", "entropy"];

export async function show(root, params, api) {
  const base = `/api/run/${encodeURIComponent(params.run)}`;
  const here = `#/run/${encodeURIComponent(params.run)}`;
  const about = await api.get(`${base}/trees`);
  if (!about.steps.length) {
    root.append(el("h1", {}, "Episodes"), el("p", { class: "quiet" }, "No step has stored trees yet; checkpointing.trees_every sets which have."));
    return undefined;
  }
  const query = new URLSearchParams(params.query);
  const asked = Number(query.get("step"));
  const state = { step: about.steps.includes(asked) ? asked : about.steps.at(-1), sort: query.get("sort") ?? "task", down: query.get("down") === "1", flags: Number(query.get("flags") ?? 0), words: query.get("words") ?? "", outcome: query.get("outcome") ?? "" };
  const steps = el("select", { "aria-label": "step" }, ...about.steps.map((step) => el("option", { value: step, selected: step === state.step }, `step ${step}`)));
  const outcome = el("select", { "aria-label": "outcome" }, ...["", "solved", "not solved", "truncated", "failed", "refused"].map((name) => el("option", { value: name, selected: name === state.outcome }, name || "any outcome")));
  const words = el("input", { type: "search", placeholder: "task contains", value: state.words, "aria-label": "task contains" });
  const flags = Object.entries(about.flags).map(([name, bit]) => {
    const box = el("input", { type: "checkbox", checked: Boolean(state.flags & bit) });
    box.addEventListener("change", () => {
      state.flags ^= bit;
      draw();
    });
    return el("label", { class: "flag" }, box, ` ${name}`);
  });
  const text = el("input", { type: "search", placeholder: "search all texts of the run", "aria-label": "search all texts" });
  const hits = el("section", { "aria-live": "polite" });
  const table = el("div", { class: "scroll" });
  const count = el("p", { class: "quiet", role: "status" });
  root.append(
    el("div", { class: "row head" }, el("h1", {}, "Episodes"), steps, outcome, words, api.live ? text : ""),
    ...remarks(about.notes),
    el("div", { class: "row" }, ...flags), hits, count, table);
  let rows = [];

  async function load() {
    try {
      const { paths } = await api.get(`${base}/step/${state.step}`);
      rows = (paths.tree ?? []).map((_, at) => Object.fromEntries(Object.entries(paths).map(([name, column]) => [name, column[at]])));
      draw();
    } catch (error) {
      // Another step can still be chosen.
      rows = [];
      count.textContent = "";
      table.replaceChildren(el("p", { class: "bad", role: "alert" }, error.message));
    }
  }

  const matches = (row) =>
    (row.flags & state.flags) === state.flags &&
    row.task.toLowerCase().includes(state.words.toLowerCase()) &&
    (!state.outcome || (state.outcome === "solved" ? row.success === true : state.outcome === "not solved" ? row.success === false : row.outcome === state.outcome));

  function draw() {
    const found = rows.filter(matches).sort((a, b) => order(a[state.sort], b[state.sort]) * (state.down ? -1 : 1));
    const kept = new URLSearchParams({ step: state.step, sort: state.sort, down: state.down ? 1 : 0, flags: state.flags, words: state.words, outcome: state.outcome });
    keepAddress(`${here}/find?${kept}`);
    count.textContent = `${found.length} of ${rows.length} episodes${found.length > SHOWN ? `, the first ${SHOWN} are shown` : ""}`;
    const head = COLUMNS.map((name, at) => el("th", { scope: "col", class: at > 2 ? "number" : "", "aria-sort": name === state.sort ? (state.down ? "descending" : "ascending") : null },
      el("button", { type: "button", class: "plain", dataset: { key: name }, onclick: () => sortBy(name) }, name)));
    redraw(table, el("table", {}, el("thead", {}, el("tr", {}, ...head, el("th", { scope: "col" }, "notes"))), el("tbody", {}, ...found.slice(0, SHOWN).map(line))));
  }

  function line(row) {
    const notes = Object.entries(about.flags).filter(([, bit]) => row.flags & bit).map(([name]) => el("span", { class: "chip" }, name));
    const cells = [row.why ? `${row.outcome} (${row.why.replaceAll("_", " ")})` : row.outcome, row.success === null ? "–" : row.success ? "yes" : "no", short(row.return), String(row.turns), String(row.tokens), short(row.entropy)];
    return el("tr", {},
      el("td", {}, el("a", { href: `${here}/tree/${row.tree}?node=${row.node}` }, row.task), row.seat ? el("span", { class: "quiet" }, ` ${row.seat}`) : ""),
      ...cells.map((cell, at) => el("td", { class: at > 1 ? "number" : "" }, cell)), el("td", {}, ...notes));
  }

  function sortBy(name) {
    state.down = state.sort === name && !state.down;
    state.sort = name;
    draw();
  }

  async function search() {
    if (!text.value.trim()) {
      hits.replaceChildren();
      return;
    }
    try {
      const found = await api.get(`${base}/search?words=${encodeURIComponent(text.value)}`);
      hits.replaceChildren(el("h2", {}, `${found.hits.length}${found.more ? " or more" : ""} turns with this text`),
        el("ul", { class: "hits" }, ...found.hits.map((hit) => el("li", {}, el("a", { href: `${here}/tree/${hit.tree}?node=${hit.node}` }, hit.task, el("span", { class: "quiet" }, ` tree ${hit.tree}`)), el("div", { class: "text" }, hit.before, el("mark", {}, hit.match), hit.after)))));
    } catch (error) {
      hits.replaceChildren(el("p", { class: "bad" }, error.message));
    }
  }

  steps.addEventListener("change", () => {
    state.step = Number(steps.value);
    load();
  });
  outcome.addEventListener("change", () => {
    state.outcome = outcome.value;
    draw();
  });
  words.addEventListener("input", () => {
    state.words = words.value;
    draw();
  });
  text.addEventListener("change", search);
  await load();
  return undefined;
}

function order(one, other) {
  if (one === other) return 0;
  if (one === null) return -1;
  if (other === null) return 1;
  return one < other ? -1 : 1;
}
