// One run: all its curves, the steps with trees, held-out tasks that flipped, its settings.

import { chart } from "../chart.js";
import { el } from "../dom.js";
import { follow } from "../follow.js";
import { remarks } from "../remarks.js";
import { state } from "../state.js";
import { table } from "../tree/details.js";

const FIRST = ["heldout/success", "heldout/reward", "train/success", "reward/mean", "policy/entropy", "loss/total"];

export async function show(root, params, api) {
  const base = `/api/run/${encodeURIComponent(params.run)}`;
  const curves = el("div", { class: "charts" });
  const more = el("details", {}, el("summary", {}, "all metrics"));
  const head = el("div", { class: "row head" });
  const result = el("section", {});
  const steps = el("section", {});
  const made = el("details", {});
  const flips = el("section", {});
  const settings = el("details", {});
  root.append(head, result, curves, more, steps, flips, settings, made);

  const between = { from: null, to: null };
  const fetched = () => Promise.all([api.get(base), api.get(`${base}/metrics`), api.get(`${base}/trees`), api.get(`${base}/evaluations`)]);

  function draw([run, { rows, note }, { steps: stored, notes }, held], keep) {
    head.replaceChildren(el("h1", {}, run.name),
      el("span", { class: "quiet" }, `${run.credit} and ${run.objective} on ${run.world}, ${run.policy}, step ${run.step}, seed ${run.seed}`), state(run, true));
    const health = run.alarms.map((found) => el("p", { class: "alarm" }, `${found}. `, el("a", { href: `#/run/${encodeURIComponent(params.run)}/health` }, "Health")));
    result.replaceChildren(el("p", { class: "headline" }, run.headline), ...health, ...remarks(run.notes), ...run.results.map(resultTable));
    const names = [...new Set(rows.flatMap((row) => Object.keys(row).filter((name) => name !== "step" && typeof row[name] === "number")))];
    const series = (name) => {
      const kept = rows.filter((row) => typeof row[name] === "number");
      const found = { name, steps: kept.map((row) => row.step), values: kept.map((row) => row[name]) };
      return name === "heldout/success" ? { ...found, low: kept.map((row) => row["heldout/low"]), high: kept.map((row) => row["heldout/high"]) } : found;
    };
    const percent = (name) => /success|cut_actions|valid_actions|truncated/.test(name);
    const curve = (name) => keep(chart(name, [series(name)], { percent: percent(name), height: 150 }));
    curves.replaceChildren(...FIRST.filter((name) => names.includes(name)).map(curve), ...remarks(note ? [note] : []));
    const others = el("div", { class: "charts" });
    const fill = () => {
      if (!more.open || others.childElementCount) return;
      others.append(...names.filter((name) => !FIRST.includes(name)).sort().map(curve));
    };
    more.ontoggle = fill;
    more.replaceChildren(el("summary", {}, `all ${names.length} metrics`), others);
    fill();
    steps.replaceChildren(el("h2", {}, "Trees"), stored.length
      ? el("p", { class: "steps" }, ...stored.flatMap((step) => [el("a", { href: `#/run/${encodeURIComponent(params.run)}/find?step=${step}` }, `step ${step}`), " "]))
      : el("p", { class: "quiet" }, "No step has stored trees yet; checkpointing.trees_every sets which have."));
    steps.append(...remarks(notes));
    flips.replaceChildren(...flipped(held, between));
    settings.replaceChildren(el("summary", {}, "settings"), pairs(run.settings));
    made.replaceChildren(el("summary", {}, "made with"), pairs(run.made_with));
  }

  return follow(api, (names) => names.includes(params.run), fetched, draw);
}

/** The last held-out results as a table. */
function resultTable({ title, head, rows, note }) {
  return el("section", {}, el("h2", {}, title), el("div", { class: "scroll" }, table(head, rows)), el("p", { class: "quiet" }, note));
}

function pairs(rows) {
  return el("table", { class: "pairs" }, el("tbody", {}, ...Object.entries(rows).map(([field, value]) => el("tr", {}, el("th", { scope: "row" }, field), el("td", {}, value)))));
}

/** @param between The steps that are compared; what is chosen is kept in it. */
function flipped({ steps, tasks, damaged }, between) {
  const bad = Object.entries(damaged).map(([file, reason]) => el("p", { class: "bad" }, `${file}: ${reason}`));
  if (steps.length < 2) return bad;
  const choice = (label, own, chosen) => el("select", { "aria-label": label }, ...own.map((step) => el("option", { value: step, selected: step === chosen }, `step ${step}`)));
  const from = choice("from", steps.slice(0, -1), between.from ?? steps[0]);
  const to = choice("to", steps.slice(1), between.to ?? steps.at(-1));
  const lists = el("div", { class: "columns" });
  const draw = () => {
    const [first, second] = [from, to].map((each) => steps.indexOf(Number(each.value)));
    const flips = (before, after) => Object.entries(tasks).filter(([, row]) => row[first] === before && row[second] === after).map(([name]) => name);
    lists.replaceChildren(...[["gained", flips(false, true)], ["lost", flips(true, false)]].map(([name, found]) =>
      el("section", {}, el("h3", {}, `${name}: ${found.length}`), el("ul", { class: "names" }, ...found.slice(0, 60).map((task) => el("li", {}, task)), found.length > 60 ? el("li", { class: "quiet" }, `and ${found.length - 60} more`) : ""))));
  };
  for (const [name, select] of Object.entries({ from, to })) {
    select.addEventListener("change", () => {
      between[name] = Number(select.value);
      draw();
    });
  }
  draw();
  return [...bad, el("h2", {}, "Held-out tasks that flipped"), el("div", { class: "row" }, el("label", {}, "from ", from), el("label", {}, "to ", to)), lists];
}
