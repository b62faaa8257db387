// "What if": another action from a turn, or continuations of the policy; kept apart from the run's data, and saved.

import { el } from "../dom.js";
import { text } from "./conversation.js";

/**
 * @param node Of `node_view`. @param about `{ states, ended, branchable, checkpoints, run, end }`.
 * @param act `play(request)`, `save(kind, request)`: promises. `beside`: the place of the other leaf, or null.
 */
export function whatIf(node, about, act) {
  if (!about.branchable) {
    return el("p", { class: "quiet" }, "Exported pages have no agent: open the run with `bough view` to try other actions.");
  }
  const status = el("p", { class: "status", role: "status", "aria-live": "polite" });
  const here = about.ended ? about.parent : node.place;
  const form = el("form", { class: "what-if" });
  const places = el("select", { name: "at", "aria-label": "where" });
  if (!about.ended) places.append(el("option", { value: node.place }, "after this turn"));
  if (about.parent !== null) places.append(el("option", { value: about.parent }, "in place of this turn"));
  const action = el("textarea", { name: "action", rows: 2, placeholder: about.calls ? 'get(name="ann"), or a text' : "an action", "aria-label": "action" });
  const samples = el("input", { name: "samples", type: "number", min: 1, max: 64, value: 4, "aria-label": "number of continuations" });
  const step = el("select", { name: "step", "aria-label": "policy" }, el("option", { value: "" }, "newest checkpoint"),
    ...about.checkpoints.map((each) => el("option", { value: each }, `checkpoint ${each}`)));
  const take = el("button", { type: "submit", class: "main" }, "Take this action");
  const sample = el("button", { type: "button" }, "Sample");
  form.append(
    el("label", {}, "Where ", places),
    el("label", { class: "wide" }, "Your action ", action),
    el("div", { class: "row" }, take),
    el("div", { class: "row" }, el("label", {}, "or ", samples, " continuations of the "), step, sample),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    run({ at: places.value, action: action.value });
  });
  action.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  sample.addEventListener("click", () => run({ at: places.value, samples: Number(samples.value), seed: Date.now() % 1_000_000 }));

  async function run(request) {
    await busy("The agent and its environment are opened; the first time takes some seconds …", async () => {
      await act.play({ ...request, step: step.value === "" ? null : Number(step.value) });
      return "";
    });
  }

  async function busy(words, work) {
    status.className = "status";
    status.textContent = words;
    form.inert = true;
    try {
      status.replaceChildren(...[await work()].flat());
    } catch (error) {
      status.className = "status bad";
      status.textContent = error.message;
    } finally {
      form.inert = false;
    }
  }

  const learn = el("select", { "aria-label": "what is imitated" },
    el("option", { value: "new" }, "the new turns alone"), el("option", { value: "all" }, "the whole episode"));
  const demonstrate = el("button", { type: "button" }, "Save as a demonstration");
  demonstrate.addEventListener("click", () => busy("", async () => saved(await act.save("demonstrations", { leaf: node.place, learn: learn.value }))));
  const prefer = el("button", { type: "button", disabled: !about.beside }, "Save as preferred to the other");
  prefer.addEventListener("click", () => busy("", async () => saved(await act.save("preferences", { chosen: node.place, rejected: about.beside }))));
  return el("div", {},
    el("p", { class: "quiet" }, "New branches are drawn dashed, and kept in a folder of their own: nothing of the run changes."),
    here === null ? "" : form,
    el("h3", {}, "Keep"),
    el("div", { class: "row" }, demonstrate, el("label", {}, "imitate ", learn)),
    el("div", { class: "row" }, prefer, about.beside ? el("span", { class: "quiet" }, `over ${about.beside}`) : el("span", { class: "quiet" }, "Shift-click another leaf first.")),
    status,
  );
}

function saved({ file, rows, command }) {
  return [`Saved: ${rows} ${rows === 1 ? "row" : "rows"} in ${file}. A warm-up imitates it:`, text(command)];
}
