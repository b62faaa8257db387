// A tree of a run: the drawing, the turn that is chosen, two episodes side by side, other credit rules, new branches.

import { el } from "../dom.js";
import { keepAddress } from "../place.js";
import { TreeCanvas } from "../tree/canvas.js";
import { joined } from "../tree/joined.js";
import { NodePanel } from "../tree/panel.js";
import { ENDS, MEASURES, css, colourOf, endOf, measuresOf, short } from "../tree/measures.js";
import { themeOf } from "../tree/theme.js";

export async function show(root, params, api) {
  const view = new TreeView(root, params, api);
  await view.open();
  return () => view.end();
}

class TreeView {
  constructor(root, params, api) {
    this.root = root;
    this.api = api;
    this.run = params.run;
    this.name = params.tree;
    this.query = new URLSearchParams(params.query);
    this.base = `/api/run/${encodeURIComponent(this.run)}`;
    this.rule = this.query.get("credit") ?? "";
  }

  async open() {
    const [about, tree, branches] = await Promise.all([this.api.get(`${this.base}/trees`), this.fetchTree(), this.fetchBranches()]);
    this.about = about;
    this.canvas = el("canvas", { class: "tree-canvas", tabIndex: 0, role: "application", "aria-label": "tree of turns; arrow keys walk, Enter opens" });
    this.tip = el("div", { class: "tip", hidden: true });
    this.told = el("p", { class: "visually-hidden", "aria-live": "polite" });
    this.legend = el("div", { class: "legend" });
    this.panelRoot = el("aside", { class: "panel", "aria-label": "turn" });
    this.head = el("header", { class: "tree-head" });
    const stage = el("div", { class: "stage" }, this.canvas, this.tip, this.legend, this.told);
    this.frame = el("div", { class: "tree-view" }, this.head, stage, this.panelRoot);
    this.root.replaceChildren(this.frame);
    this.painter = new TreeCanvas(this.canvas, {
      theme: () => themeOf(this.root),
      pick: (turn, shift) => this.pick(turn, shift),
      hover: (turn, event) => this.hover(turn, event),
    });
    this.panel = new NodePanel(this.panelRoot, this);
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.dark = window.matchMedia("(prefers-color-scheme: dark)");
    this.onTheme = () => this.painter.setTheme(themeOf(this.root));
    this.dark.addEventListener("change", this.onTheme);
    this.themeObserver = new MutationObserver(this.onTheme);
    this.themeObserver.observe(document.documentElement, { attributes: true });
    this.take(tree, branches, true);
    this.choose(this.turnOf(this.query.get("node")), this.turnOf(this.query.get("beside")));
  }

  end() {
    this.painter.end();
    this.themeObserver.disconnect();
    this.dark.removeEventListener("change", this.onTheme);
  }

  fetchTree() {
    const rule = this.rule ? `?credit=${encodeURIComponent(this.rule)}` : "";
    return this.api.get(`${this.base}/tree/${this.name}${rule}`);
  }

  fetchBranches() {
    return this.api.get(`${this.base}/tree/${this.name}/branches`);
  }

  /** Shows a tree and its new branches. */
  take(tree, branches, fit) {
    this.tree = tree;
    this.branches = branches;
    this.columns = joined(tree.columns, branches.branches);
    const measures = measuresOf(this.columns);
    this.measure = measures.includes(this.measure) ? this.measure : measures[0] ?? "reward";
    this.drawHead(measures);
    this.painter.show(this.columns, this.measure, fit);
    this.drawLegend();
  }

  drawHead(measures) {
    const { tree } = this;
    const colour = el("select", { id: "measure" }, ...measures.map((name) => el("option", { value: name, selected: name === this.measure }, MEASURES[name].label)));
    colour.addEventListener("change", () => {
      this.measure = colour.value;
      this.painter.setMeasure(this.measure);
      this.drawLegend();
    });
    const rules = this.about.rules;
    const credit = el("select", { id: "credit" },
      el("option", { value: "" }, "as in the run"),
      ...rules.map((rule) => el("option", { value: rule.name, disabled: Boolean(rule.missing), title: rule.missing ? `needs ${rule.missing}` : rule.about, selected: rule.name === this.rule }, rule.name)));
    credit.addEventListener("change", () => this.changeRule(credit));
    this.problem = el("p", { class: "bad", role: "alert" });
    const others = tree.group.filter((name) => name !== this.name);
    const [step, index] = this.name.split(".").map(Number);
    this.head.replaceChildren(
      el("div", { class: "row" },
        el("h1", {}, tree.task),
        el("span", { class: "chip" }, `${tree.solved} of ${tree.counted} solved`),
        el("span", { class: "chip" }, `mean return ${short(tree.mean_return)}`),
        el("span", { class: "chip" }, `${this.columns.parent.length.toLocaleString("en")} turns`),
        tree.signal ? "" : el("span", { class: "chip warn", title: "no token has an advantage: nothing is learned from this tree" }, "no signal"),
        tree.seat ? el("span", { class: "chip" }, `agent ${tree.seat}`) : ""),
      el("div", { class: "row controls" },
        el("nav", { "aria-label": "trees of the step" },
          el("a", { href: `#/run/${encodeURIComponent(this.run)}/find?step=${step}` }, `step ${step}`),
          this.stepLink(tree.previous, "previous", "‹ previous"), el("span", { class: "quiet" }, `tree ${index + 1} of ${tree.of_step}`), this.stepLink(tree.next, "next", "next ›"),
          ...others.map((name) => el("a", { href: this.link(name) }, `same task: ${name}`))),
        el("label", {}, "colour ", colour),
        rules.length ? el("label", {}, "credit rule ", credit) : "",
        el("button", { type: "button", onclick: () => this.painter.fit(true) }, "fit"),
        el("button", { type: "button", "aria-label": "zoom in", onclick: () => this.painter.zoomAtCentre(1.4) }, "+"),
        el("button", { type: "button", "aria-label": "zoom out", onclick: () => this.painter.zoomAtCentre(1 / 1.4) }, "−")),
      this.problem);
  }

  link(name) {
    return `#/run/${encodeURIComponent(this.run)}/tree/${name}`;
  }

  stepLink(name, rel, words) {
    return name ? el("a", { rel, href: this.link(name) }, words) : el("span", { class: "quiet" }, words);
  }

  async changeRule(select) {
    const before = this.rule;
    this.rule = select.value;
    this.problem.textContent = "";
    try {
      this.take(await this.fetchTree(), this.branches, false);
      this.choose(this.selected, this.beside);
    } catch (error) {
      this.rule = before;
      select.value = before;
      this.problem.textContent = error.message;
    }
  }

  drawLegend() {
    const scale = this.painter.scaleOf;
    const theme = this.painter.theme;
    const bar = el("span", { class: "scale", "aria-hidden": "true" });
    for (let at = 0; at <= 16; at += 1) {
      const share = scale.signed ? at / 8 - 1 : at / 16;
      const cell = el("i");
      cell.style.backgroundColor = css(colourOf(theme, scale.signed, share));
      bar.append(cell);
    }
    const ends = [...new Set(this.painter.layout.rows.map((leaf) => endOf(this.columns, leaf)).filter(Boolean))];
    this.legend.replaceChildren(
      el("span", {}, MEASURES[this.measure].label), el("span", {}, short(scale.low)), bar, el("span", {}, short(scale.high, scale.signed)),
      scale.signed ? el("span", { class: "quiet" }, "dashed edge: below 0") : "",
      ...ends.map((end) => el("span", { class: "end" }, this.endMark(end, theme), ENDS[end])));
  }

  endMark(end, theme) {
    const mark = el("canvas", { class: "mark", "aria-hidden": "true" });
    const dense = window.devicePixelRatio || 1;
    mark.width = 16 * dense;
    mark.height = 16 * dense;
    const pen = mark.getContext("2d");
    pen.scale(dense, dense);
    this.painter.mark.call({ theme, scale: 1 }, pen, end, 8, 8);
    return mark;
  }

  /** The turn of a node's place: `12`, or `b3:12` in a new branch; -1 without one. */
  turnOf(place) {
    if (!place) return -1;
    const [branch, node] = place.includes(":") ? [Number(place.slice(1, place.indexOf(":"))), Number(place.slice(place.indexOf(":") + 1))] : [null, Number(place)];
    const { columns } = this;
    return columns.node.findIndex((first, at) => columns.branch[at] === branch && first <= node && node <= columns.last[at]);
  }

  /** The place of a turn's last node, by which the server knows it. */
  placeOf(turn) {
    const branch = this.columns.branch[turn];
    return branch === null ? String(this.columns.last[turn]) : `b${branch}:${this.columns.last[turn]}`;
  }

  pick(turn, shift) {
    if (turn < 0) return;
    if (shift && this.selected > 0 && turn !== this.selected) this.choose(this.selected, turn);
    else this.choose(turn, -1);
    this.canvas.focus({ preventScroll: true });
  }

  choose(turn, beside = -1) {
    this.selected = turn;
    this.beside = beside;
    this.painter.select(turn, beside);
    const query = new URLSearchParams();
    if (turn >= 0) query.set("node", this.placeOf(turn));
    if (beside >= 0) query.set("beside", this.placeOf(beside));
    if (this.rule) query.set("credit", this.rule);
    const text = query.toString();
    keepAddress(`${this.link(this.name)}${text ? `?${text}` : ""}`);
    if (turn >= 0) this.told.textContent = this.describe(turn);
    this.frame.classList.toggle("two", beside >= 0);
    this.panel.show(turn, beside);
  }

  describe(turn) {
    const { columns } = this;
    const end = endOf(columns, turn);
    return [`turn ${columns.turn[turn]}`, columns.label[turn], `${MEASURES[this.measure].label} ${short(columns[this.measure][turn])}`, end ? ENDS[end] : `${columns.paths[turn]} episodes below, ${columns.solved[turn]} solved`].filter(Boolean).join(", ");
  }

  hover(turn, event) {
    if (turn < 0) {
      this.tip.hidden = true;
      return;
    }
    const { columns } = this;
    const lines = [
      turn === 0 ? "task" : columns.label[turn] || "(no text)",
      `turn ${columns.turn[turn]}${columns.kind[turn] === "part" ? ", a part after a fork inside the turn" : ""}`,
      `advantage ${short(columns.advantage[turn], true)}   reward ${short(columns.reward[turn])}   return so far ${short(columns.total[turn])}`,
      `entropy ${short(columns.entropy[turn])}   log p ${short(columns.logprob[turn])}   ${columns.tokens[turn]} tokens`,
      `${columns.solved[turn]} of ${columns.paths[turn]} episodes below solved`,
    ];
    this.tip.replaceChildren(...lines.map((line) => el("div", {}, line)));
    this.tip.hidden = false;
    const { width, height } = this.painter.box();
    this.tip.style.left = `${Math.min(event.offsetX + 14, width - this.tip.offsetWidth - 8)}px`;
    this.tip.style.top = `${event.offsetY + 18 + this.tip.offsetHeight > height ? event.offsetY - this.tip.offsetHeight - 10 : event.offsetY + 18}px`;
  }

  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const target = this.target(event.key);
    const act = {
      Enter: () => this.panel.focus(),
      Escape: () => this.choose(this.selected, -1),
      "+": () => this.painter.zoomAtCentre(1.25),
      "=": () => this.painter.zoomAtCentre(1.25),
      "-": () => this.painter.zoomAtCentre(0.8),
      0: () => this.painter.fit(true),
    }[event.key];
    if (target === undefined && !act) return;
    event.preventDefault();
    if (act) {
      act();
      return;
    }
    if (target < 0) return;
    if (event.shiftKey && this.selected >= 0) this.choose(this.selected, target);
    else this.choose(target, -1);
    this.painter.reveal(target);
  }

  /** The turn to which a key leads: over the tree by the arrows, over the ends by n and p. */
  target(key) {
    const { layout, rowOf } = this.painter;
    const at = this.beside >= 0 ? this.beside : Math.max(this.selected, 0);
    const rows = layout.rows;
    const near = (by) => {
      const level = [];
      for (let each = 0; each < layout.depth.length; each += 1) if (layout.depth[each] === layout.depth[at]) level.push(each);
      level.sort((a, b) => layout.y[a] - layout.y[b]);
      return level[level.indexOf(at) + by] ?? at;
    };
    const leaf = (by) => {
      let here = at;
      while (layout.children[here].length) here = layout.children[here][0];
      const row = rowOf.get(here) + (here === at ? by : Math.min(by, 0));
      return rows[Math.max(0, Math.min(rows.length - 1, row))];
    };
    switch (key) {
      case "ArrowLeft": return this.columns.parent[at];
      case "ArrowRight": return layout.children[at][0] ?? at;
      case "ArrowUp": return near(-1);
      case "ArrowDown": return near(1);
      case "n": case "N": return leaf(1);
      case "p": case "P": return leaf(-1);
      case "Home": return 0;
      default: return undefined;
    }
  }

  /** Tries moves from a place, and opens what they lead to. */
  async play(request) {
    const made = await this.api.post(`${this.base}/tree/${this.name}/branch`, request);
    this.take(this.tree, await this.fetchBranches(), false);
    const first = this.columns.branch.indexOf(made.number);
    if (first < 0) return;
    this.choose(first, -1);
    this.painter.reveal(first);
  }

  save(kind, request) {
    return this.api.post(`${this.base}/tree/${this.name}/save`, { kind, ...request });
  }

  score(place, step) {
    return this.api.post(`${this.base}/tree/${this.name}/score`, { at: place, step });
  }
}
