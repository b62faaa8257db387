// The drawing of a tree on a canvas: pans, zooms, and draws what is in view.

import { layOut, PILL, ROW } from "./layout.js";
import { blend, colourOf, css, endOf, inkOn, scaleOf, short } from "./measures.js";

const LEAST = 0.02;
const MOST = 3;
/** Scales from which pills have shapes, texts and numbers. */
const SHAPES = 0.22;
const TEXTS = 0.55;
const NUMBERS = 1.5;
const MARGIN = 24;
const TAIL = 92;

export class TreeCanvas {
  /** @param canvas The element. @param on Called as `on.pick(turn)`, `on.hover(turn, event)`, `on.theme()`. */
  constructor(canvas, on) {
    this.canvas = canvas;
    this.on = on;
    this.scale = 1;
    this.left = MARGIN;
    this.top = MARGIN;
    this.selected = -1;
    this.beside = -1;
    this.asked = false;
    this.theme = on.theme();
    this.listen();
  }

  /** Shows other columns; the view stays unless `fit`. */
  show(columns, measure, fit) {
    this.columns = columns;
    this.layout = layOut(columns);
    this.rowOf = new Map(this.layout.rows.map((leaf, row) => [leaf, row]));
    this.setMeasure(measure);
    if (fit) this.fit();
  }

  setMeasure(measure) {
    this.measure = measure;
    this.scaleOf = scaleOf(this.columns, measure);
    this.draw();
  }

  setTheme(theme) {
    this.theme = theme;
    this.draw();
  }

  select(turn, beside = this.beside) {
    this.selected = turn;
    this.beside = beside;
    this.onPath = this.pathSet(turn);
    this.besidePath = this.pathSet(beside);
    this.draw();
  }

  pathSet(turn) {
    const found = new Set();
    for (let at = turn; at >= 0; at = this.columns.parent[at]) found.add(at);
    return found;
  }

  /** Scales the tree into view; a large one is not made smaller than its texts can be found by. */
  fit(whole = false) {
    const [wide, high] = this.layout.size;
    const { width, height } = this.box();
    const across = (width - 2 * MARGIN) / (wide + TAIL);
    const down = (height - 2 * MARGIN) / high;
    const least = whole ? LEAST : 0.7;
    this.scale = Math.max(least, Math.min(1.8, across, down));
    this.left = MARGIN;
    this.top = high * this.scale < height ? Math.max(MARGIN, (height - high * this.scale) / 2) : MARGIN;
    this.draw();
  }

  /** Moves the view so that a turn is in it. */
  reveal(turn) {
    const { width, height } = this.box();
    const x = this.layout.x[turn] * this.scale + this.left;
    const y = this.layout.y[turn] * this.scale + this.top;
    const w = (this.layout.width[turn] + TAIL) * this.scale;
    if (x < MARGIN || x + w > width) this.left += width * 0.35 - x;
    if (y < MARGIN || y > height - MARGIN) this.top += height / 2 - y;
    this.draw();
  }

  zoom(factor, x, y) {
    const next = Math.max(LEAST, Math.min(MOST, this.scale * factor));
    this.left = x - ((x - this.left) * next) / this.scale;
    this.top = y - ((y - this.top) * next) / this.scale;
    this.scale = next;
    this.draw();
  }

  zoomAtCentre(factor) {
    const { width, height } = this.box();
    this.zoom(factor, width / 2, height / 2);
  }

  box() {
    return { width: this.canvas.clientWidth, height: this.canvas.clientHeight };
  }

  draw() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      this.paint();
    });
  }

  /** The turn at a point of the canvas; -1 for none. */
  at(x, y) {
    if (!this.columns) return -1;
    const { x: lefts, y: tops, width } = this.layout;
    const px = (x - this.left) / this.scale;
    const py = (y - this.top) / this.scale;
    const reach = Math.max(PILL / 2, 5 / this.scale);
    let best = -1;
    let nearest = Infinity;
    for (let at = 0; at < lefts.length; at += 1) {
      if (px < lefts[at] - 4 || px > lefts[at] + width[at] + 12) continue;
      const far = Math.abs(tops[at] - py);
      if (far <= reach && far < nearest) {
        nearest = far;
        best = at;
      }
    }
    return best;
  }

  paint() {
    const { width, height } = this.box();
    const dense = window.devicePixelRatio || 1;
    if (!this.columns || !width || !height) return;
    if (this.canvas.width !== Math.round(width * dense) || this.canvas.height !== Math.round(height * dense)) {
      this.canvas.width = Math.round(width * dense);
      this.canvas.height = Math.round(height * dense);
    }
    const pen = this.canvas.getContext("2d");
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
    pen.setTransform(dense * this.scale, 0, 0, dense * this.scale, dense * this.left, dense * this.top);
    const view = {
      left: -this.left / this.scale,
      right: (width - this.left) / this.scale,
      top: -this.top / this.scale - ROW,
      bottom: (height - this.top) / this.scale + ROW,
    };
    const count = this.columns.parent.length;
    for (let at = 1; at < count; at += 1) this.link(pen, at, view);
    for (let at = 0; at < count; at += 1) {
      const x = this.layout.x[at];
      const y = this.layout.y[at];
      if (y < view.top || y > view.bottom || x > view.right || x + this.layout.width[at] + TAIL < view.left) continue;
      this.pill(pen, at, x, y);
    }
  }

  link(pen, at, view) {
    const { x, y, width } = this.layout;
    const parent = this.columns.parent[at];
    const [ya, yb] = [y[parent], y[at]];
    if ((ya < view.top && yb < view.top) || (ya > view.bottom && yb > view.bottom)) return;
    const [xa, xb] = [x[parent] + width[parent], x[at]];
    if (xb < view.left || xa > view.right) return;
    const share = this.scaleOf.at(this.columns[this.measure][at]);
    const strong = this.onPath?.has(at) || this.besidePath?.has(at);
    const base = colourOf(this.theme, this.scaleOf.signed, share);
    pen.strokeStyle = css(strong ? this.theme.accent : blend(this.theme.line, base, share === null ? 0 : 0.75));
    pen.lineWidth = Math.max((strong ? 2 : 1) + 3 * Math.abs(share ?? 0), (strong ? 1.6 : 0.7) / this.scale);
    pen.setLineDash(this.dash(at));
    pen.beginPath();
    pen.moveTo(xa, ya);
    const middle = (xa + xb) / 2;
    // A link that is almost straight is a line, which is drawn faster.
    if (Math.abs(ya - yb) < 0.5) pen.lineTo(xb, yb);
    else pen.bezierCurveTo(Math.max(middle, xb - 18), ya, Math.max(middle, xb - 18), yb, xb, yb);
    pen.stroke();
    pen.setLineDash([]);
  }

  /** Forks inside a turn, new branches, and ends that are not counted have links of their own. */
  dash(at) {
    const end = endOf(this.columns, at);
    if (this.columns.branch?.[at] !== undefined && this.columns.branch[at] !== null) return [7, 3];
    if (this.columns.kind[at] === "part") return [2, 2];
    if (end === "pruned") return [5, 4];
    if (end === "failed" || end === "refused") return [1.5, 3];
    return [];
  }

  pill(pen, at, x, y) {
    const { columns, theme } = this;
    const wide = this.layout.width[at];
    const share = this.scaleOf.at(columns[this.measure][at]);
    const fill = colourOf(theme, this.scaleOf.signed, share);
    const end = endOf(columns, at);
    if (this.scale < SHAPES) {
      pen.fillStyle = css(at === this.selected ? theme.accent : fill);
      pen.fillRect(x, y - PILL / 2, wide, PILL);
      if (end) this.mark(pen, end, x + wide + 14, y);
      return;
    }
    pen.beginPath();
    this.shape(pen, at, x, y, wide);
    pen.fillStyle = css(fill);
    pen.fill();
    const chosen = at === this.selected || at === this.beside;
    pen.lineWidth = chosen ? 2.5 : 1;
    pen.strokeStyle = css(chosen ? theme.accent : blend(theme.line, theme.ink, 0.25));
    pen.setLineDash(this.scaleOf.signed && share !== null && share < 0 ? [3, 2] : []);
    if (at === this.beside) pen.setLineDash([6, 3]);
    pen.stroke();
    pen.setLineDash([]);
    if (this.scale >= TEXTS) this.text(pen, at, x, y, wide, inkOn(fill, theme));
    if (end) this.mark(pen, end, x + wide + 14, y);
    if (end && this.scale >= TEXTS) {
      pen.fillStyle = css(theme.ink);
      pen.textAlign = "left";
      pen.fillText(short(columns.total[at]), x + wide + 25, y + 0.5);
    }
    if (this.scale >= NUMBERS && columns[this.measure][at] !== null) {
      pen.font = `8px ${theme.font}`;
      pen.fillStyle = css(theme.quiet);
      pen.textAlign = "left";
      pen.fillText(short(columns[this.measure][at], this.scaleOf.signed), x + 3, y + PILL / 2 + 6);
    }
  }

  /** A rounded bar for a turn; cut corners where a turn forks inside, and for its parts. */
  shape(pen, at, x, y, wide) {
    const kind = this.columns.kind[at];
    const h = PILL / 2;
    if (kind === "turn" || kind === "prompt") {
      pen.roundRect(x, y - h, wide, PILL, kind === "prompt" ? 3 : h);
      return;
    }
    const cut = 6;
    const [left, right] = kind === "part" ? [cut, 0] : [0, cut];
    pen.moveTo(x + left, y - h);
    pen.lineTo(x + wide - right, y - h);
    pen.lineTo(x + wide, y);
    pen.lineTo(x + wide - right, y + h);
    pen.lineTo(x + left, y + h);
    pen.lineTo(x, y);
    pen.closePath();
  }

  text(pen, at, x, y, wide, ink) {
    const { columns, theme } = this;
    const label = at === 0 ? "task" : columns.label[at] || (columns.tokens[at] ? `${columns.tokens[at]} tok` : "·");
    pen.font = `11px ${theme.font}`;
    pen.textBaseline = "middle";
    pen.textAlign = "center";
    pen.fillStyle = css(ink);
    pen.fillText(this.clipped(pen, label, wide - 12), x + wide / 2, y + 0.5);
    const flag = this.flagOf(at);
    if (flag) {
      pen.font = `bold 10px ${theme.font}`;
      pen.fillStyle = css(theme.bad);
      pen.fillText(flag, x + wide - 1, y - PILL / 2);
      pen.font = `11px ${theme.font}`;
    }
  }

  /** A letter at the corner of a turn whose action was wrong. */
  flagOf(at) {
    const { columns } = this;
    if (columns.cut_off[at] === true) return "✂";
    if (columns.well_formed[at] === false || columns.bad_calls[at]) return "?";
    return columns.valid[at] === false ? "!" : "";
  }

  clipped(pen, label, most) {
    if (pen.measureText(label).width <= most) return label;
    let keep = Math.max(1, Math.floor((label.length * most) / pen.measureText(label).width) - 1);
    while (keep > 1 && pen.measureText(`${label.slice(0, keep)}…`).width > most) keep -= 1;
    return `${label.slice(0, keep)}…`;
  }

  /** The mark of an end: a shape of its own for each, so that colour is not needed. */
  mark(pen, end, x, y) {
    const { theme } = this;
    const size = this.scale < SHAPES ? Math.min(10, 4 / this.scale) : 5;
    const colour = end === "solved" ? theme.good : end === "failed" || end === "refused" ? theme.bad : theme.quiet;
    pen.strokeStyle = css(colour);
    pen.fillStyle = css(colour);
    pen.lineWidth = size / 2.6;
    pen.beginPath();
    if (end === "solved") {
      pen.moveTo(x - size, y);
      pen.lineTo(x - size / 4, y + size * 0.75);
      pen.lineTo(x + size, y - size * 0.8);
    } else if (end === "unsolved") {
      pen.moveTo(x - size * 0.7, y - size * 0.7);
      pen.lineTo(x + size * 0.7, y + size * 0.7);
      pen.moveTo(x + size * 0.7, y - size * 0.7);
      pen.lineTo(x - size * 0.7, y + size * 0.7);
    } else if (end === "truncated") {
      pen.moveTo(x - size, y);
      pen.lineTo(x + size * 0.4, y);
      pen.moveTo(x + size * 0.4, y - size);
      pen.lineTo(x + size * 0.4, y + size);
    } else if (end === "pruned") {
      pen.moveTo(x - size, y - size * 0.5);
      pen.lineTo(x, y - size * 0.5);
      pen.moveTo(x - size, y + size * 0.5);
      pen.lineTo(x, y + size * 0.5);
    } else if (end === "refused") {
      pen.arc(x, y, size * 0.85, 0, 2 * Math.PI);
      pen.moveTo(x - size * 0.6, y + size * 0.6);
      pen.lineTo(x + size * 0.6, y - size * 0.6);
    } else if (end === "failed") {
      pen.moveTo(x, y - size);
      pen.lineTo(x, y + size * 0.2);
      pen.moveTo(x, y + size * 0.75);
      pen.lineTo(x, y + size);
    } else {
      pen.arc(x, y, size * 0.6, 0, 2 * Math.PI);
    }
    pen.stroke();
  }

  listen() {
    const { canvas } = this;
    const pointers = new Map();
    let moved = false;
    canvas.addEventListener("pointerdown", (event) => {
      pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
      moved = false;
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const last = pointers.get(event.pointerId);
      if (!last) {
        this.on.hover(this.at(event.offsetX, event.offsetY), event);
        return;
      }
      const [dx, dy] = [event.offsetX - last[0], event.offsetY - last[1]];
      if (!moved && Math.hypot(dx, dy) < 4) return;
      moved = true;
      const others = [...pointers].filter(([id]) => id !== event.pointerId);
      if (others.length) {
        const [ox, oy] = others[0][1];
        const before = Math.hypot(last[0] - ox, last[1] - oy) || 1;
        this.zoom(Math.hypot(event.offsetX - ox, event.offsetY - oy) / before, ox, oy);
      } else {
        this.left += dx;
        this.top += dy;
        this.draw();
      }
      pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
    });
    const up = (event) => {
      const known = pointers.delete(event.pointerId);
      if (known && !moved && event.type === "pointerup") {
        this.on.pick(this.at(event.offsetX, event.offsetY), event.shiftKey);
      }
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
    canvas.addEventListener("pointerleave", (event) => this.on.hover(-1, event));
    canvas.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        if (event.ctrlKey || event.metaKey || !event.shiftKey) {
          this.zoom(Math.exp(-event.deltaY * 0.0016), event.offsetX, event.offsetY);
          return;
        }
        this.left -= event.deltaX + event.deltaY;
        this.draw();
      },
      { passive: false },
    );
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(canvas);
  }

  end() {
    this.observer.disconnect();
  }
}
