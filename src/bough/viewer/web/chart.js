// Curves over steps, drawn by uPlot.

import uPlot from "./vendor/uPlot.esm.js";
import { el } from "./dom.js";

export const COLOURS = ["--line-1", "--line-2", "--line-3", "--line-4", "--line-5", "--line-6"];
const DASHES = [[], [6, 3], [2, 3], [8, 3, 2, 3], [1, 2], [12, 4]];

/**
 * @param title Over the curves. @param series Each `{ name, steps, values, low?, high?, at? }`; `at` chooses its colour.
 * @returns An element, with `destroy`.
 */
export function chart(title, series, { percent = false, height = 190, unit = "step" } = {}) {
  const steps = [...new Set(series.flatMap((each) => each.steps))].sort((a, b) => a - b);
  const place = new Map(steps.map((step, at) => [step, at]));
  const data = [steps];
  const lines = [{ label: unit }];
  const hidden = [];
  const bands = [];
  const style = getComputedStyle(document.documentElement);
  const spread = (each, values) => {
    const column = Array(steps.length).fill(null);
    each.steps.forEach((step, at) => {
      column[place.get(step)] = values[at];
    });
    return column;
  };
  series.forEach((each, number) => {
    const at = (each.at ?? number) % COLOURS.length;
    const stroke = style.getPropertyValue(COLOURS[at]).trim();
    data.push(spread(each, each.values));
    lines.push({ label: each.name, stroke, width: 1.5, dash: DASHES[at], spanGaps: true, points: { show: each.steps.length < 3 },
      value: (_, value) => (value === null || value === undefined ? "" : percent ? `${(100 * value).toFixed(1)} %` : Number(value.toPrecision(4)).toString()) });
    if (each.low) {
      for (const bound of [each.high, each.low]) {
        data.push(spread(each, bound));
        hidden.push(lines.length);
        lines.push({ label: "", stroke: "transparent", width: 0, spanGaps: true, points: { show: false }, value: () => "" });
      }
      bands.push({ series: [data.length - 2, data.length - 1], fill: `${stroke}22` });
    }
  });
  const box = el("div", { class: "chart" }, el("h3", {}, title));
  const quiet = style.getPropertyValue("--quiet").trim();
  const grid = { stroke: style.getPropertyValue("--line").trim(), width: 1 };
  const plot = new uPlot(
    {
      width: 400, height, series: lines, bands, legend: { live: true }, cursor: { points: { size: 5 } },
      scales: { x: { time: false }, y: { range: (_, low, high) => bounds(low, high, percent) } },
      axes: [{ stroke: quiet, grid, ticks: grid, size: 28 },
        { stroke: quiet, grid, ticks: grid, size: 52, values: (_, ticks) => ticks.map((tick) => (percent ? `${Math.round(100 * tick)} %` : Number(tick.toPrecision(4)).toString())) }],
    },
    data, box);
  const rows = plot.root.querySelectorAll(".u-legend .u-series");
  for (const at of hidden) rows[at].hidden = true;
  const observer = new ResizeObserver(() => box.clientWidth && plot.setSize({ width: box.clientWidth, height }));
  observer.observe(box);
  box.destroy = () => {
    observer.disconnect();
    plot.destroy();
  };
  return box;
}

/** The range of an axis: shares that stay the same have the whole one, other numbers some room. */
function bounds(low, high, percent) {
  if (low === null || high === null) return [0, 1];
  const room = (high - low) * 0.06;
  if (room > 0) return [percent ? Math.max(0, low - room) : low - room, high + room];
  return percent ? [0, 1] : [low - (Math.abs(low) || 1) / 2, high + (Math.abs(high) || 1) / 2];
}
