// What the metrics say about a run: its alarms, its signs with a sentence each, and where its time goes.

import { chart } from "../chart.js";
import { el } from "../dom.js";
import { follow } from "../follow.js";
import { state } from "../state.js";
import { table } from "../tree/details.js";
import { short } from "../tree/measures.js";

const STAGES = {
  grow: "Sampling of episodes. Shorter: fewer or shorter turns, more sequences at once (engine.slots), workers for a slow environment.",
  appraise: "Questions to judges. Shorter: fewer questions or votes, a faster model.",
  credit: "Rewards, estimates and advantages. Shorter: a cheaper critic or credit rule.",
  learn: "Forward and backward passes. Shorter: fewer epochs, shorter prompts, more memory for a chunk (optimizer.micro_tokens).",
  sync: "Loading of new weights into the engine, and the canary check.",
  evaluate: "Held-out tasks. Shorter: evaluate less often (evaluation.every), or fewer tasks.",
};

export async function show(root, params, api) {
  const base = `/api/run/${encodeURIComponent(params.run)}`;
  return follow(api, (names) => names.includes(params.run), () => api.get(`${base}/health`), (found, keep) => {
    const value = (sign, number) => (sign.unit === "%" ? `${short(100 * number)} %` : short(number));
    const signs = found.signs.map((sign) =>
      el("section", { class: sign.action ? "sign attention" : "sign" },
        el("div", {}, el("h2", {}, sign.title), el("p", { class: "big" }, value(sign, sign.now), el("span", { class: "quiet" }, ` at first ${value(sign, sign.first)}`)),
          el("p", {}, sign.about), sign.action ? el("p", { class: "do" }, sign.action) : ""),
        keep(chart("", [{ name: sign.metrics.join(", "), steps: sign.steps, values: sign.values, at: sign.action ? 1 : 0 }], { percent: sign.unit === "%", height: 120 }))));
    const { steps, seconds, total } = found.stages;
    const time = Object.entries(seconds).filter(([, column]) => column.some((each) => each)).map(([name, column]) => ({ name, steps, values: column }));
    root.replaceChildren(
      el("div", { class: "row head" }, el("h1", {}, `Health of ${params.run}`), state(found, true)),
      ...found.alarms.map(alarm),
      el("p", { class: "quiet" }, found.alarms.length || found.signs.some((sign) => sign.action) ? "What needs attention comes first." : found.signs.length ? "Nothing needs attention." : "There are no steps of reinforcement yet."),
      ...signs,
      ...faults(found.faults),
      ...(time.length ? [el("h2", {}, "Time by stage"), stageTable(total), keep(chart("Seconds of each stage", time, { height: 200 }))] : []));
  });
}

/** An alarm as the terminal gave it. */
function alarm({ found, meaning, action, first, step, times }) {
  const when = times > 1 ? `steps ${first} to ${step}, ${times} times` : `step ${step}`;
  return el("section", { class: "alarm", role: "alert" }, el("h3", {}, `${found[0].toUpperCase()}${found.slice(1)}.`),
    meaning ? el("p", {}, `${meaning}.`) : "", action ? el("p", { class: "do" }, `${action}.`) : "", el("p", { class: "quiet" }, when));
}

function faults(found) {
  if (!found.length) return [];
  return [el("h2", {}, "Failed episodes by cause"),
    el("p", { class: "quiet" }, "Failed episodes count nowhere: not in a group, a mean or a loss. Mend what ends many of them; the first lines of a cause name the place."),
    el("div", { class: "scroll" }, table(["cause", "episodes", "last in step"], found.map(({ cause, episodes, last }) => [cause, String(episodes), String(last)])))];
}

/** The seconds of each stage over the whole run, with what the stage does. */
function stageTable(total) {
  const whole = Object.values(total).reduce((sum, each) => sum + each, 0);
  const spent = Object.entries(total).filter(([, each]) => each).sort((a, b) => b[1] - a[1]);
  return el("div", { class: "scroll" }, table(["stage", "what it is, and what makes it shorter", "seconds", "share"],
    spent.map(([name, each]) => [name, STAGES[name] ?? "", short(each), `${short((100 * each) / whole)} %`]), 2));
}
