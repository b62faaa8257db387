// A comparison: what each method reached on each world, the pairs, and the curves over what was spent.

import { chart } from "../chart.js";
import { el } from "../dom.js";
import { short } from "../tree/measures.js";

const UNITS = { tokens: "sampled tokens", actions: "actions", seconds: "seconds" };

export async function show(root, { comparison }, api) {
  const found = await api.get(`/api/comparison/${encodeURIComponent(comparison)}`);
  const charts = [];
  root.append(el("h1", {}, `Comparison ${comparison}`));
  if (found.notes.length) root.append(el("ul", { class: "notes" }, ...found.notes.map((note) => el("li", {}, note))));
  for (const world of [...new Set(found.cells.map((cell) => cell.world))]) {
    const cells = found.cells.filter((cell) => cell.world === world);
    const { measure, tasks } = cells[0];
    const amount = found.amounts[world];
    const at = amount === null ? "at the end" : `at ${Math.round(amount).toLocaleString("en")} ${UNITS[found.budget]}`;
    const curve = curves(found, world, measure);
    charts.push(curve);
    root.append(el("section", {}, el("h2", {}, world), el("p", {}, `Held-out ${measure} ${at}, ${tasks} tasks`),
      el("div", { class: "charts" }, curve), cellTable(cells), pairTable(found.pairs.filter((pair) => pair.world === world), measure)));
  }
  const together = found.pairs.filter((pair) => pair.world === "all worlds");
  if (together.length) {
    const measure = found.cells.every((cell) => cell.measure === "success") ? "success" : "reward";
    root.append(el("section", {}, el("h2", {}, "All worlds"), el("p", {}, "Mean of the differences"), pairTable(together, measure)));
  }
  const runs = found.curves.filter((each) => each.run !== null);
  if (runs.length) {
    root.append(el("section", {}, el("h2", {}, "Runs"), el("ul", {}, ...runs.map((each) =>
      el("li", {}, el("a", { href: `#/run/${encodeURIComponent(each.run)}` }, `${each.method} on ${each.world}, seed ${each.seed}`))))));
  }
  return () => charts.forEach((each) => each.destroy());
}

/** The mean over seeds of each method, with the range of its runs, over what they had spent. */
function curves(found, world, measure) {
  const methods = [...new Set(found.cells.map((cell) => cell.method))];
  const series = methods.map((method, at) => {
    const runs = found.curves.filter((each) => each.method === method && each.world === world);
    const steps = [...new Set(runs.flatMap((each) => each.spent[found.budget].map(Math.round)))].sort((a, b) => a - b)
      .filter((spent) => runs.every((each) => spent <= each.spent[found.budget].at(-1)));
    const values = steps.map((spent) => runs.map((each) => between(each.spent[found.budget], each.mean, spent)));
    return { name: method, at, steps, values: values.map((each) => each.reduce((a, b) => a + b, 0) / each.length),
      low: values.map((each) => Math.min(...each)), high: values.map((each) => Math.max(...each)) };
  }).filter((each) => each.steps.length);
  return chart(`Held-out ${measure} over ${UNITS[found.budget]}: mean and range of the seeds`, series, { percent: measure === "success", height: 260, unit: UNITS[found.budget] });
}

function between(spent, values, amount) {
  const later = spent.findIndex((each) => each >= amount);
  if (later <= 0) return values[later === 0 ? 0 : values.length - 1];
  const share = (amount - spent[later - 1]) / (spent[later] - spent[later - 1]);
  return (1 - share) * values[later - 1] + share * values[later];
}

function cellTable(cells) {
  return table(["method", cells[0].measure, "95 % interval", "at the start", "seeds", "sampled tokens", "actions", "minutes"], cells.map((cell) => {
    const number = (value) => shown(value, cell.measure);
    const failed = Object.keys(cell.failures).length;
    return [cell.method, number(cell.mean), `${number(cell.low)} to ${number(cell.high)}`, number(cell.start),
      `${cell.seeds.length}${failed ? ` (${failed} failed)` : ""}`, whole(cell.spent.tokens), whole(cell.spent.actions),
      cell.spent.seconds === null ? "–" : (cell.spent.seconds / 60).toFixed(1)];
  }));
}

function pairTable(pairs, measure) {
  if (!pairs.length) return null;
  return table(["method", "against", "difference", "95 % interval", "p, corrected", "verdict", "chance to be better", "tasks better, worse", "detectable"],
    pairs.map((pair) => [pair.method, pair.against, signed(pair.mean, measure), `${signed(pair.low, measure)} to ${signed(pair.high, measure)}`,
      pair.corrected === null ? "–" : pair.corrected < 0.001 ? "< .001" : pair.corrected.toFixed(3),
      el("span", { class: `chip verdict-${pair.verdict}` }, pair.verdict), `${Math.round(100 * pair.improvement)} %`, `${pair.better}, ${pair.worse}`,
      shown(pair.detectable, measure)]));
}

function table(names, rows) {
  return el("div", { class: "scroll" }, el("table", {},
    el("thead", {}, el("tr", {}, ...names.map((name, at) => el("th", { scope: "col", class: at ? "number" : "" }, name)))),
    el("tbody", {}, ...rows.map(([first, ...others]) => el("tr", {}, el("th", { scope: "row" }, first), ...others.map((each) => el("td", { class: "number" }, each)))))));
}

function shown(value, measure) {
  if (value === null) return "–";
  return measure === "success" ? `${(100 * value).toFixed(1)} %` : short(value);
}

function signed(value, measure) {
  if (value === null) return "–";
  return `${value > 0 ? "+" : ""}${measure === "success" ? (100 * value).toFixed(1) : short(value)}`;
}

function whole(value) {
  return value === null ? "–" : Math.round(value).toLocaleString("en");
}
