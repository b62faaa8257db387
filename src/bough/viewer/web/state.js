// What a run does, or how it ended and why.

import { el } from "./dom.js";

const SHOWN = 90;

/** @param run With `state` and `why`. @param whole Whether a long reason is shown to its end. */
export function state({ state: name, why }, whole = false) {
  const words = why === "" || why === undefined ? "" : whole || why.length <= SHOWN ? why : `${why.slice(0, SHOWN)}…`;
  return el("span", { class: "state" }, el("span", { class: `chip state-${name}` }, name), words ? el("span", { class: "why", title: whole ? null : why }, ` ${words}`) : "");
}
