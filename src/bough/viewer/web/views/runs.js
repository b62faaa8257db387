// The runs: a table, and the curves of those that are chosen.

import { chart } from "../chart.js";
import { el, redraw } from "../dom.js";
import { state } from "../state.js";
import { short } from "../tree/measures.js";

const MOST = 6;

export async function show(root, params, api) {
  const view = new RunsView(root, api);
  await view.load();
  const unwatch = api.watch(() => view.load());
  return () => {
    view.over = true;
    unwatch();
    view.clear();
  };
}

class RunsView {
  constructor(root, api) {
    this.root = root;
    this.api = api;
    this.chosen = null;
    this.charts = [];
    this.sort = { by: "name", down: false };
    this.words = "";
    this.table = el("div", { class: "scroll" });
    this.curves = el("div", { class: "charts" });
    this.differences = el("div", {});
    this.comparisons = el("div", {});
    const filter = el("input", { type: "search", placeholder: "filter by name, method, world", "aria-label": "filter runs" });
    filter.addEventListener("input", () => {
      this.words = filter.value.toLowerCase();
      this.draw();
    });
    root.append(el("div", { class: "row head" }, el("h1", {}, "Runs"), filter), this.comparisons, this.table, this.curves, this.differences);
  }

  async load() {
    const [{ runs }, { comparisons }] = await Promise.all([this.api.get("/api/runs"), this.api.get("/api/comparisons")]);
    this.runs = runs;
    this.comparisons.replaceChildren(...(comparisons.length ? [comparisonList(comparisons)] : []));
    const whole = runs.filter((run) => !run.damaged);
    this.chosen ??= new Set(whole.slice(-2).map((run) => run.name));
    this.draw();
    await this.drawCurves();
  }

  draw() {
    const columns = [
      ["name", "run", (run) => el("a", { href: `#/run/${encodeURIComponent(run.name)}`, dataset: { key: `run ${run.name}` } }, run.name)],
      ["world", "world", (run) => run.world],
      ["credit", "method", (run) => `${run.credit}, ${run.objective}`],
      ["policy", "policy", (run) => run.policy],
      ["state", "state", (run) => state(run)],
      ["step", "step", (run) => String(run.step)],
      ["first", "held-out before", (run) => rate(run.success[0])],
      ["last", "held-out now", (run) => rate(run.success.at(-1))],
      ["tokens", "tokens", (run) => run.tokens.toLocaleString("en")],
      ["seconds", "time", (run) => duration(run.seconds)],
    ];
    const key = (run) => ({ first: run.success?.[0]?.[0] ?? -1, last: run.success?.at(-1)?.[0] ?? -1 })[this.sort.by] ?? run[this.sort.by] ?? "";
    const found = this.runs
      .filter((run) => [run.name, run.world, run.credit, run.objective, run.policy].join(" ").toLowerCase().includes(this.words))
      .sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0) * (this.sort.down ? -1 : 1));
    const head = el("tr", {}, el("th", { scope: "col" }, el("span", { class: "visually-hidden" }, "curves")),
      ...columns.map(([by, words], at) => el("th", { scope: "col", class: at > 4 ? "number" : "", "aria-sort": this.sort.by === by ? (this.sort.down ? "descending" : "ascending") : null },
        el("button", { type: "button", class: "plain", dataset: { key: by }, onclick: () => this.sortBy(by) }, words))));
    const rows = found.map((run) => run.damaged
      ? el("tr", { class: "damaged" }, el("td", {}), el("td", {}, run.name), el("td", { class: "bad", colSpan: columns.length - 1 }, run.damaged))
      : el("tr", {}, el("td", {}, this.box(run.name)), ...columns.map(([, , cell], at) => el("td", { class: at > 4 ? "number" : "" }, cell(run)))));
    redraw(this.table, rows.length ? el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows))
      : el("p", { class: "quiet" }, "There are no runs here. `bough train grpo` makes one in runs/; this page shows it while it trains."));
  }

  sortBy(by) {
    this.sort = { by, down: this.sort.by === by && !this.sort.down };
    this.draw();
  }

  box(name) {
    const box = el("input", { type: "checkbox", checked: this.chosen.has(name), dataset: { key: `curves ${name}` }, "aria-label": `curves of ${name}` });
    box.addEventListener("change", () => {
      if (box.checked) this.chosen.add(name);
      else this.chosen.delete(name);
      this.drawCurves();
    });
    return box;
  }

  async drawCurves() {
    const names = this.runs.filter((run) => !run.damaged && this.chosen.has(run.name)).map((run) => run.name).slice(0, MOST);
    const loaded = await Promise.all(names.map(async (name) => {
      const base = `/api/run/${encodeURIComponent(name)}`;
      const [{ rows }, { settings }] = await Promise.all([this.api.get(`${base}/metrics`), this.api.get(base)]);
      return { name, rows, settings };
    }));
    if (this.over) return;
    this.clear();
    const column = (metric, bounds) => loaded.map(({ name, rows }, at) => {
      const kept = rows.filter((row) => typeof row[metric] === "number");
      const series = { name, at, steps: kept.map((row) => row.step), values: kept.map((row) => row[metric]) };
      return bounds ? { ...series, low: kept.map((row) => row[bounds[0]]), high: kept.map((row) => row[bounds[1]]) } : series;
    }).filter((series) => series.steps.length);
    for (const [title, metric, percent, bounds] of [
      ["Held-out success, with its 95 % interval", "heldout/success", true, ["heldout/low", "heldout/high"]],
      ["Success in training", "train/success", true],
      ["Mean reward", "reward/mean", false],
      ["Entropy, nats a token", "policy/entropy", false],
    ]) {
      const series = column(metric, bounds);
      if (series.length) this.charts.push(chart(title, series, { percent }));
    }
    this.curves.replaceChildren(...this.charts);
    this.differences.replaceChildren(...(loaded.length > 1 ? [differences(loaded)] : []));
  }

  clear() {
    for (const each of this.charts) each.destroy();
    this.charts = [];
  }
}

function comparisonList(comparisons) {
  return el("section", {}, el("h2", {}, "Comparisons"), el("ul", {}, ...comparisons.map((each) => each.damaged
    ? el("li", {}, `${each.name}: `, el("span", { class: "bad" }, each.damaged))
    : el("li", {}, el("a", { href: `#/comparison/${encodeURIComponent(each.name)}` }, each.name),
      `: ${each.method.join(", ")} on ${each.world.join(", ")}, ${each.runs} runs`))));
}

function differences(loaded) {
  const fields = [...new Set(loaded.flatMap(({ settings }) => Object.keys(settings)))];
  const other = fields.filter((field) => new Set(loaded.map(({ settings }) => settings[field])).size > 1);
  if (!other.length) return el("p", { class: "quiet" }, "These runs have the same settings.");
  return el("section", {}, el("h2", {}, "Different settings"), el("div", { class: "scroll" }, el("table", {},
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "field"), ...loaded.map(({ name }) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, ...other.map((field) => el("tr", {}, el("th", { scope: "row" }, field), ...loaded.map(({ settings }) => el("td", {}, settings[field] ?? "–"))))))));
}

function rate(found) {
  if (!found || found[0] === null) return "–";
  const [value, low, high] = found;
  const percent = (each) => (100 * each).toFixed(0);
  return el("span", { title: low === null ? null : `95 % interval ${percent(low)} to ${percent(high)} %` }, `${short(100 * value)} %`);
}

function duration(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  return seconds < 5400 ? `${(seconds / 60).toFixed(1)} min` : `${(seconds / 3600).toFixed(1)} h`;
}
