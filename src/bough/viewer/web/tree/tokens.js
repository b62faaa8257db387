// The tokens of an action, shaded by a number of each, and the prompt before it.

import { el } from "../dom.js";
import { blend, css, inkOn, short } from "./measures.js";

const SHADES = {
  logprob: { label: "log-probability", about: "darker: less probable when it was sampled" },
  entropy: { label: "entropy", about: "darker: the policy was less decided" },
  advantage: { label: "advantage", about: "blue above 0, orange and underlined below" },
  ratio: { label: "ratio", about: "probability under a checkpoint over that when sampled; blue above 1, orange and underlined below" },
};

/**
 * @param tokens Of `node_view`; @param theme The colours; @param score Fetches log-probabilities under a checkpoint,
 *   or null where there is no agent.
 */
export function tokenView(tokens, theme, score) {
  const count = tokens.id.length;
  if (!count) return el("p", { class: "quiet" }, "This turn has no tokens of an action.");
  const numbers = {
    logprob: tokens.logprob,
    entropy: tokens.entropy,
    advantage: tokens.positive.map((value, at) => (value === null ? null : value + tokens.negative[at])),
    ratio: null,
  };
  const line = el("p", { class: "token-line", "aria-live": "polite" }, "Point at a token, or walk with the arrow keys.");
  const box = el("div", { class: "tokens", role: "listbox", "aria-label": "tokens of the action" });
  const spans = tokens.text.map((piece, at) => token(piece, at));
  box.append(...spans);
  if (spans.length) spans[0].tabIndex = 0;
  const about = el("p", { class: "quiet" });
  const choose = el("select", { "aria-label": "shade tokens by" });
  const offered = Object.keys(SHADES).filter((name) => (name === "ratio" ? score : numbers[name].some((value) => value !== null)));
  choose.append(...offered.map((name) => el("option", { value: name }, SHADES[name].label)));
  choose.addEventListener("change", () => paint(choose.value));

  function token(piece, at) {
    const span = el("span", { class: "token", role: "option", tabIndex: -1 }, visible(piece));
    const tell = () => line.replaceChildren(...describe(at));
    span.addEventListener("pointerenter", tell);
    span.addEventListener("focus", tell);
    span.addEventListener("keydown", (event) => {
      const next = { ArrowRight: at + 1, ArrowLeft: at - 1 }[event.key];
      if (next === undefined || !spans[next]) return;
      event.preventDefault();
      event.stopPropagation();
      span.tabIndex = -1;
      spans[next].tabIndex = 0;
      spans[next].focus();
    });
    return span;
  }

  function describe(at) {
    const parts = [`${JSON.stringify(tokens.text[at])} (${tokens.id[at]})`];
    if (tokens.logprob[at] === null) parts.push("not sampled");
    else parts.push(`p ${short(Math.exp(tokens.logprob[at]))}`, `log p ${short(tokens.logprob[at])}`);
    if (tokens.entropy[at] !== null) parts.push(`entropy ${short(tokens.entropy[at])}`);
    if (numbers.advantage[at] !== null) {
      const sides = tokens.positive[at] && tokens.negative[at] ? ` (${short(tokens.positive[at], true)} and ${short(tokens.negative[at])})` : "";
      parts.push(`advantage ${short(numbers.advantage[at], true)}${sides}`);
    }
    if (numbers.ratio) parts.push(`ratio ${short(numbers.ratio[at])}`);
    if (tokens.choices[at] !== null) parts.push(`one of ${tokens.choices[at]} tokens that the grammar allowed`);
    return [parts.join("  ·  ")];
  }

  async function paint(name) {
    about.textContent = SHADES[name].about;
    if (name === "ratio" && !numbers.ratio) {
      about.textContent = "The checkpoint is read …";
      try {
        const found = await score();
        numbers.ratio = found.logprobs.map((value, at) => (tokens.logprob[at] === null ? null : Math.exp(value - tokens.logprob[at])));
        about.textContent = `${SHADES.ratio.about}: checkpoint ${found.step ?? "as built"}, at temperature 1`;
      } catch (error) {
        about.textContent = error.message;
        return;
      }
    }
    const values = numbers[name];
    const most = Math.max(...values.map((value) => (value === null ? 0 : Math.abs(name === "ratio" ? Math.log(value) : value)))) || 1;
    spans.forEach((span, at) => shade(span, values[at], name, most));
  }

  function shade(span, value, name, most) {
    const [from, to, share] = shadeOf(value, name, most);
    const fill = blend(from, to, share);
    span.style.backgroundColor = value === null ? "transparent" : css(fill);
    span.style.color = value === null ? "" : css(inkOn(fill, theme));
    span.classList.toggle("below", value !== null && (name === "advantage" ? value < 0 : name === "ratio" && value < 1));
    span.classList.toggle("unsampled", value === null);
  }

  function shadeOf(value, name, most) {
    if (value === null) return [theme.neutral, theme.neutral, 0];
    if (name === "entropy" || name === "logprob") return [theme.paper, theme.high, Math.abs(value) / most];
    const signed = name === "ratio" ? Math.log(value) : value;
    return [theme.paper, signed < 0 ? theme.negative : theme.positive, Math.abs(signed) / most];
  }

  if (offered.length) paint(offered[0]);
  return el("div", {}, el("div", { class: "row" }, el("label", {}, "shade by ", choose), about), box, line);
}

/** The prompt as the engine read it, token by token; what the policy had written in it is marked. */
export function promptView(prompt) {
  const box = el("div", { class: "tokens prompt", tabIndex: 0, role: "region", "aria-label": "the prompt as the engine read it" });
  let run = "";
  let sampled = false;
  const flush = () => {
    if (run) box.append(sampled ? el("ins", {}, run) : run);
    run = "";
  };
  for (const [piece, own] of prompt) {
    if (own !== sampled) flush();
    sampled = own;
    run += piece;
  }
  flush();
  return el("div", {},
    el("p", { class: "quiet" }, `${prompt.length.toLocaleString("en")} tokens before the action; underlined: sampled by the policy. Marks such as <|user|> are tokens of their own.`),
    box);
}

/** Blanks and line ends that can be seen. */
function visible(piece) {
  if (piece === "") return "·";
  return piece.replace(/\n/g, "⏎\n").replace(/\t/g, "⇥\t");
}
