// What the metrics say about a run: its alarms, its signs with a sentence each, and where its time goes.

import { chart } from "../chart.js";
import { el } from "../dom.js";
import { follow } from "../follow.js";
import { short } from "../tree/measures.js";

export async function show(root, params, api) {
  const base = `/api/run/${encodeURIComponent(params.run)}`;
  return follow(api, (names) => names.includes(params.run), () => api.get(`${base}/health`), (found, keep) => {
    const value = (sign, number) => (sign.unit === "%" ? `${short(100 * number)} %` : short(number));
    const signs = found.signs.map((sign) =>
      el("section", { class: sign.action ? "sign attention" : "sign" },
        el("div", {}, el("h2", {}, sign.title), el("p", { class: "big" }, value(sign, sign.now), el("span", { class: "quiet" }, ` at first ${value(sign, sign.first)}`)),
          el("p", {}, sign.about), sign.action ? el("p", { class: "do" }, sign.action) : ""),
        keep(chart("", [{ name: sign.metrics.join(", "), steps: sign.steps, values: sign.values, at: sign.action ? 1 : 0 }], { percent: sign.unit === "%", height: 120 }))));
    const { steps, ...stages } = found.stages;
    const time = Object.entries(stages).filter(([, column]) => column.some((each) => each)).map(([name, column]) => ({ name, steps, values: column }));
    root.replaceChildren(
      el("h1", {}, `Health of ${params.run}`),
      ...found.alarms.map((alarm) => el("p", { class: "alarm", role: "alert" }, alarm)),
      el("p", { class: "quiet" }, found.signs.some((sign) => sign.action) ? "What needs attention comes first." : found.signs.length ? "Nothing needs attention." : "There are no steps of reinforcement yet."),
      ...signs,
      ...(time.length ? [keep(chart("Seconds of each stage", time, { height: 200 }))] : []));
  });
}
