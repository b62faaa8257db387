// What a run is paid for: each check beside the reward over steps, the best-paid episodes, and those about which two disagree.

import { chart } from "../chart.js";
import { el } from "../dom.js";
import { follow } from "../follow.js";
import { keepAddress } from "../place.js";
import { short } from "../tree/measures.js";

const CHECK = /^(?!heldout\/)(.*?)check\/(.+)$/;
const REWARD = /^(?!heldout\/)(.*?)reward\/(?!mean$)(.+)$/;

export async function show(root, params, api) {
  const base = `/api/run/${encodeURIComponent(params.run)}`;
  const here = `#/run/${encodeURIComponent(params.run)}`;
  let asked = Number(new URLSearchParams(params.query).get("step")) || null;
  const curves = el("section", {});
  const audit = el("section", { "aria-live": "polite" });
  const steps = el("select", { "aria-label": "step" });
  root.append(el("h1", {}, `Rewards of ${params.run}`), curves,
    el("div", { class: "row head" }, el("h2", {}, "Episodes of"), steps), audit);

  const fetched = () => Promise.all([api.get(`${base}/metrics`), api.get(`${base}/health`), api.get(`${base}/trees`)]);

  async function load(stored) {
    if (!stored.length) {
      audit.replaceChildren(el("p", { class: "quiet" }, "No step has stored trees yet; checkpointing.trees_every sets which have."));
      return;
    }
    const step = stored.includes(asked) ? asked : stored.at(-1);
    try {
      const found = await api.get(`${base}/step/${step}`);
      audit.replaceChildren(...sections(found, here));
    } catch (error) {
      audit.replaceChildren(el("p", { class: "bad", role: "alert" }, error.message));
    }
  }

  function draw([{ rows }, { alarms }, { steps: stored }], keep) {
    const concerning = alarms.filter((each) => /^(check|reward) /.test(each.kind));
    curves.replaceChildren(
      ...concerning.map((each) => el("p", { class: "alarm", role: "alert" }, [each.found, each.meaning, each.action].join(". "))),
      ...overTime(rows, keep));
    steps.replaceChildren(...stored.map((step) => el("option", { value: step, selected: step === (stored.includes(asked) ? asked : stored.at(-1)) }, `step ${step}`)));
    steps.onchange = () => {
      asked = Number(steps.value);
      keepAddress(`${here}/rewards?step=${asked}`);
      load(stored);
    };
    return load(stored);
  }

  return follow(api, (names) => names.includes(params.run), fetched, draw);
}

/** Each check with the reward beside it, then each channel. */
function overTime(rows, keep) {
  const series = (metric, name, at, ends) => {
    const kept = rows.filter((row) => typeof row[metric] === "number");
    const found = { name, at, steps: kept.map((row) => row.step), values: kept.map((row) => row[metric]) };
    return ends && kept.every((row) => ends.every((end) => typeof row[end] === "number")) ? { ...found, low: kept.map((row) => row[ends[0]]), high: kept.map((row) => row[ends[1]]) } : found;
  };
  const drawn = (title, ...found) => keep(chart(title, found.filter((each) => each.steps.length), { height: 170 }));
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const reward = (seat) => drawn(`Reward${seat && ` of ${seat.slice(0, -1)}`}, trained on`, series(`${seat}reward/mean`, "in training", 0), series("heldout/reward", "held-out", 1, ["heldout/reward_low", "heldout/reward_high"]));
  const checks = names.map((name) => name.match(CHECK)).filter(Boolean);
  const channels = names.map((name) => name.match(REWARD)).filter(Boolean);
  return [
    el("h2", {}, "Checks beside the reward"),
    ...(checks.length
      ? checks.map(([metric, seat, name]) =>
          el("div", { class: "charts two" }, reward(seat),
            drawn(`Check ${seat}${name}, never trained on`, series(metric, "in training", 0), series(`heldout/check/${name}`, "held-out", 1, [`heldout/check_low/${name}`, `heldout/check_high/${name}`]))))
      : [el("p", { class: "quiet" }, "This run has no checks. evaluation.checks=[...] takes rewards that are measured at every step and never trained on.")]),
    el("h2", {}, "Channels of the reward"),
    el("div", { class: "charts" }, ...channels.map(([metric, seat, name]) => drawn(`${seat}${name}`, series(metric, "in training", 0), series(`heldout/reward_channel/${name}`, "held-out", 1)))),
  ];
}

function sections({ trees, rewards: { columns, best, between } }, here) {
  const known = new Set(trees.map((each) => each.name));
  const label = (at) => (columns[at].kind === "check" ? `check ${columns[at].name}` : columns[at].name);
  const link = (each) => (known.has(each.tree) ? el("a", { href: `${here}/tree/${each.tree}?node=${each.node}` }, each.task) : each.task);
  // The last column is success, which has words of its own.
  const numbers = (each, marked) => each.totals.slice(0, -1).map((total, at) => el("td", { class: marked.includes(at) ? "number marked" : "number" }, short(total)));
  const line = (each, marked, first = []) =>
    el("tr", {}, ...first.map((text) => el("th", { scope: "row" }, text)), el("td", {}, link(each)), ...numbers(each, marked), el("td", {}, each.success === null ? each.outcome : each.success ? "solved" : "not solved"));
  const table = (lines, first = []) =>
    el("div", { class: "scroll" }, el("table", {},
      el("thead", {}, el("tr", {}, ...first.map((text) => el("th", { scope: "col" }, text)), el("th", { scope: "col" }, "episode"), ...columns.slice(0, -1).map((_, at) => el("th", { scope: "col", class: "number" }, label(at))), el("th", { scope: "col" }, "result"))),
      el("tbody", {}, ...lines)));
  const disagreeing = between.filter((each) => each.opposed.length || each.signs.length).sort((a, b) => a.alike / (a.pairs || 1) - b.alike / (b.pairs || 1));
  return [
    el("h2", {}, "Best paid"),
    ...best.map((each) => el("section", {}, el("h3", {}, `By ${label(each.column)}`),
      each.equal ? el("p", { class: "quiet" }, "All episodes of the step have the same.") : table(each.episodes.map((episode) => line(episode, [each.column]))))),
    el("h2", {}, "Where they disagree"),
    ...(disagreeing.length ? [] : [el("p", { class: "quiet" }, "All of them order the episodes of each task alike.")]),
    ...disagreeing.map((each) =>
      el("section", {}, el("h3", {}, `${label(each.one)} and ${label(each.other)}`),
        el("p", {}, each.pairs ? `They order ${each.alike} of ${each.pairs} pairs of episodes of one task alike.` : "They order no pair of episodes of one task."),
        ...(each.opposed.length
          ? [table(each.opposed.flatMap((pair) => [line(pair.by_one, [each.one, each.other], [`more by ${label(each.one)}`]), line(pair.by_other, [each.one, each.other], [`more by ${label(each.other)}`])]), ["order"])]
          : []),
        ...(each.signs.length ? [el("p", {}, "One is positive and the other negative:"), table(each.signs.map((episode) => line(episode, [each.one, each.other])))] : []))),
  ];
}
