// What the colour and the width of a turn can show.

export const MEASURES = {
  advantage: { label: "advantage", signed: true, about: "mean over the trained tokens of the turn" },
  below: { label: "mean return below", signed: false, about: "mean return of the episodes through the turn" },
  value: { label: "value of a search", signed: false, about: "final value of the state after the turn" },
  reward: { label: "reward", signed: true, about: "sum over the channels at the turn" },
  entropy: { label: "entropy", signed: false, about: "mean over the sampled tokens, nats" },
  logprob: { label: "log-probability", signed: false, about: "mean over the sampled tokens, nats" },
  visits: { label: "visits of a search", signed: false, about: "visits of the state after the turn" },
};

/** The measures for which a tree has numbers. */
export function measuresOf(columns) {
  return Object.keys(MEASURES).filter((name) => columns[name].some((value) => value !== null && value !== 0));
}

/** Maps the values of a measure to [-1, 1] if it is signed, else to [0, 1]; null where unknown. */
export function scaleOf(columns, name) {
  const known = columns[name].filter((value) => value !== null);
  const { signed } = MEASURES[name];
  if (signed) {
    const most = Math.max(...bounds(known).map(Math.abs)) || 1;
    return { low: -most, high: most, signed, at: (value) => (value === null ? null : value / most) };
  }
  const [low, high] = bounds(known);
  const span = high - low || 1;
  return { low, high, signed, at: (value) => (value === null ? null : (value - low) / span) };
}

function bounds(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return values.length ? [low, high] : [0, 1];
}

/** A number for people: three significant digits, with a sign if asked. */
export function short(value, sign = false) {
  if (value === null || value === undefined) return "–";
  const text = Math.abs(value) >= 1000 ? value.toFixed(0) : String(Number(value.toPrecision(3)));
  return (sign && value > 0 ? `+${text}` : text).replace("-", "−");
}

/** How an episode ended, in a word: also the class of its mark. */
export function endOf(columns, at) {
  const outcome = columns.outcome[at];
  if (!outcome) return "";
  if (outcome === "open") return "open";
  if (outcome === "failed" || outcome === "refused") return outcome;
  if (columns.success[at] === true) return "solved";
  if (columns.why[at] === "explorer" || columns.why[at] === "not_executed") return "pruned";
  if (outcome === "truncated") return "truncated";
  return "unsolved";
}

export const ENDS = {
  solved: "solved",
  unsolved: "not solved",
  truncated: "stopped by a limit",
  pruned: "pruned by the explorer",
  refused: "refused by a safety policy",
  failed: "failed: a fault of environment or engine, not counted",
  open: "open",
};

/** Colours between two of a theme, by a share in [0, 1]. */
export function blend(from, to, share) {
  const t = Math.max(0, Math.min(1, share));
  return from.map((channel, at) => Math.round(channel + (to[at] - channel) * t));
}

export const css = (rgb) => `rgb(${rgb[0]} ${rgb[1]} ${rgb[2]})`;

/** Black or white, whichever is read better on a colour. */
export function inkOn(rgb, theme) {
  const light = 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2];
  return light > 140 ? theme.darkInk : theme.lightInk;
}

/** The colour of a share of a scale. */
export function colourOf(theme, signed, share) {
  if (share === null) return theme.neutral;
  if (!signed) return blend(theme.neutral, theme.high, 0.08 + 0.92 * share);
  // The root lets small advantages differ from none.
  return blend(theme.neutral, share < 0 ? theme.negative : theme.positive, Math.sqrt(Math.abs(share)));
}
