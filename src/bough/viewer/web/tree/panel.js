// The turn that is chosen: tabs over its conversation, tokens, prompt, details, and what else could have been done.

import { el } from "../dom.js";
import { besideView } from "./beside.js";
import { conversation } from "./conversation.js";
import { detailView } from "./details.js";
import { endOf } from "./measures.js";
import { themeOf } from "./theme.js";
import { promptView, tokenView } from "./tokens.js";
import { whatIf } from "./what_if.js";

const TABS = { talk: "Conversation", tokens: "Tokens", prompt: "Prompt", details: "Details", branch: "What if" };

export class NodePanel {
  /** @param root The element. @param view The view of the tree. */
  constructor(root, view) {
    this.root = root;
    this.view = view;
    this.tab = "talk";
    this.asked = 0;
    this.kept = new Map();
  }

  focus() {
    this.root.querySelector('[role="tab"][aria-selected="true"]')?.focus();
  }

  async show(turn, beside) {
    this.asked += 1;
    const asked = this.asked;
    if (turn < 0) {
      this.root.replaceChildren(this.help());
      return;
    }
    try {
      const [node, other] = await Promise.all([this.fetch(turn), beside >= 0 ? this.fetch(beside) : null]);
      if (asked === this.asked) this.fill(node, other, turn, beside);
    } catch (error) {
      if (asked === this.asked) this.root.replaceChildren(el("p", { class: "bad", role: "alert" }, error.message));
    }
  }

  fetch(turn) {
    const { base, name, rule } = this.view;
    const query = rule ? `?credit=${encodeURIComponent(rule)}` : "";
    return this.view.api.get(`${base}/tree/${name}/node/${this.view.placeOf(turn)}${query}`);
  }

  fill(node, other, turn, beside) {
    const { columns } = this.view;
    const tabs = el("div", { class: "tabs", role: "tablist", "aria-label": "about the turn" });
    const body = el("div", { class: "tab-body", role: "tabpanel", tabIndex: 0 });
    const open = (name) => {
      this.tab = name;
      for (const each of tabs.children) {
        each.setAttribute("aria-selected", String(each.dataset.tab === name));
        each.tabIndex = each.dataset.tab === name ? 0 : -1;
      }
      body.setAttribute("aria-label", TABS[name]);
      body.replaceChildren(this.content(name, node, other, turn, beside));
    };
    for (const [name, label] of Object.entries(TABS)) {
      const words = name === "talk" && other ? "Side by side" : label;
      tabs.append(el("button", { type: "button", role: "tab", dataset: { tab: name }, onclick: () => open(name) }, words));
    }
    tabs.addEventListener("keydown", (event) => {
      const names = Object.keys(TABS);
      const next = names[names.indexOf(this.tab) + ({ ArrowRight: 1, ArrowLeft: -1 }[event.key] ?? 0)];
      if (!next || next === this.tab) {
        if (event.key === "Escape") this.view.canvas.focus();
        return;
      }
      open(next);
      this.focus();
    });
    const scrolled = this.root.querySelector(".tab-body")?.scrollTop ?? 0;
    const branch = this.view.branches.branches.find((each) => each.number === columns.branch[turn]);
    const note = branch?.note ? el("p", { class: "bad" }, branch.note) : "";
    this.root.replaceChildren(el("div", { class: "panel-head" }, el("h2", {}, this.title(turn)), this.end(turn, columns)), note, tabs, body);
    open(this.tab);
    if (this.tab !== "talk" || other) body.scrollTop = scrolled;
    else body.querySelector(".turn-line.here")?.scrollIntoView({ block: "start" });
  }

  title(turn) {
    const { columns } = this.view;
    if (turn === 0) return "Task";
    const branch = columns.branch[turn] === null ? "" : `, new branch ${columns.branch[turn]}`;
    return `Turn ${columns.turn[turn]}${columns.kind[turn] === "part" ? " (part)" : ""}${branch}`;
  }

  end(turn, columns) {
    const end = endOf(columns, turn);
    return el("span", { class: `chip end-${end || "inner"}` }, end ? `${end}${columns.why[turn] ? ` (${columns.why[turn].replaceAll("_", " ")})` : ""}` : `${columns.solved[turn]} of ${columns.paths[turn]} below solved`);
  }

  content(name, node, other, turn, beside) {
    const pick = (first) => this.view.choose(this.view.turnOf(this.inBranch(turn, first)), -1);
    const theme = themeOf(this.root);
    if (name === "talk" && other) {
      return el("div", {}, this.pictures(turn, beside), besideView(node, other, [this.name(turn), this.name(beside)], pick));
    }
    if (name === "talk") return el("div", {}, this.pictures(turn), conversation(node.conversation, { chosen: node.node, pick }));
    const undecoded = node.undecoded ? el("p", { class: "bad" }, `The tokenizer can't be loaded, tokens are numbers: ${node.undecoded}`) : "";
    if (name === "tokens") {
      const score = this.view.branches.playable ? () => this.view.score(node.place, null) : null;
      return el("div", {}, undecoded, tokenView(node.tokens, theme, score));
    }
    if (name === "prompt") return el("div", {}, undecoded, promptView(node.prompt));
    if (name === "details") return detailView(node);
    return this.whatIf(node, turn, beside);
  }

  whatIf(node, turn, beside) {
    const { view } = this;
    const parent = view.columns.parent[turn];
    const end = endOf(view.columns, turn);
    const about = {
      branchable: view.branches.playable,
      checkpoints: view.branches.checkpoints,
      // The limit of turns is not the environment's: a person may go on.
      ended: Boolean(end) && end !== "open" && view.columns.why[turn] !== "turns",
      parent: parent < 0 ? null : view.placeOf(parent),
      beside: beside >= 0 ? view.placeOf(beside) : null,
      calls: node.tools.length > 0,
    };
    return whatIf(node, about, { play: (request) => view.play(request), save: (kind, request) => view.save(kind, request) });
  }

  /** The conversation of a new branch has nodes of its own tree; those before it are the tree's. */
  inBranch(turn, first) {
    const branch = this.view.columns.branch[turn];
    if (branch === null) return String(first);
    const own = `b${branch}:${first}`;
    return this.view.turnOf(own) >= 0 ? own : this.view.placeOf(turn);
  }

  name(turn) {
    return `${this.title(turn)}, node ${this.view.placeOf(turn)}`;
  }

  /** The environment's pictures of states, below which the words stand. */
  pictures(...turns) {
    const box = el("div", { class: "pictures", hidden: true });
    for (const turn of turns) {
      const place = this.view.placeOf(turn);
      const image = el("img", { class: "picture", alt: `the state after ${this.title(turn).toLowerCase()}` });
      box.append(image);
      this.state(place).then(
        ({ svg }) => {
          if (!svg) return;
          // As an image a document runs no script and loads nothing.
          image.src = `data:image/svg+xml;base64,${base64(svg)}`;
          box.hidden = false;
        },
        () => image.remove(),
      );
    }
    return box;
  }

  state(place) {
    const path = `${this.view.base}/tree/${this.view.name}/state/${place}`;
    if (!this.kept.has(path)) this.kept.set(path, this.view.api.get(path));
    return this.kept.get(path);
  }

  help() {
    const keys = [["← →", "to the turn before, to the first after"], ["↑ ↓", "over turns of one depth"], ["n p", "next and previous end of an episode"], ["Enter", "into this panel; Esc leaves it"], ["+ − 0", "zoom, fit"], ["Shift", "with a click or a key: a second turn, side by side"]];
    return el("div", { class: "help" },
      el("h2", {}, "Choose a turn"),
      el("p", {}, "Time runs to the right; each row ends with an episode's result and return."),
      el("dl", {}, ...keys.flatMap(([key, words]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, words)])));
  }
}

function base64(text) {
  const bytes = new TextEncoder().encode(text);
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary);
}
