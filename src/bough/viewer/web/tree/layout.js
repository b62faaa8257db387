// Places the turns of a tree: time runs to the right, a row for each leaf. Linear in the number of turns.

export const ROW = 26;
export const PILL = 18;
const GAP = 26;
const LETTER = 7;
const NARROW = 22;
const WIDE = 168;
/** Extra rows between leaves whose parents differ, so that the branches of one fork stand together. */
const APART = 0.45;

/**
 * @param columns The columns of the drawing; `parent` is -1 at the root, and every parent comes before its children.
 * @returns Positions in pixels at scale 1: `x` of the left side and `width` of each pill, `y` of its centre; `depth`,
 *   `children`, `rows` (the leaves from top to bottom), `size`.
 */
export function layOut(columns) {
  const count = columns.parent.length;
  const children = Array.from({ length: count }, () => []);
  const depth = new Int32Array(count);
  for (let at = 1; at < count; at += 1) {
    children[columns.parent[at]].push(at);
    depth[at] = depth[columns.parent[at]] + 1;
  }
  const wanted = columns.label.map((label, at) => pillWidth(label, at));
  const x = new Float64Array(count);
  const width = new Float64Array(count);
  const left = columnStarts(depth, wanted);
  for (let at = 0; at < count; at += 1) {
    x[at] = left[depth[at]];
    width[at] = Math.min(wanted[at], left[depth[at] + 1] - left[depth[at]] - GAP);
  }
  const { y, rows, height } = placeRows(children, count);
  return { x, y, width, depth, children, rows, size: [left.at(-1), height] };
}

function pillWidth(label, at) {
  if (at === 0) return 42;
  return Math.max(NARROW, Math.min(WIDE, label.length * LETTER + 16));
}

/** The left side of the column of each depth, and the end: a column is as wide as all but its longest tenth. */
function columnStarts(depth, wanted) {
  const of = [];
  for (let at = 0; at < depth.length; at += 1) (of[depth[at]] ??= []).push(wanted[at]);
  const starts = [0];
  for (const widths of of) {
    widths.sort((a, b) => a - b);
    starts.push(starts.at(-1) + widths[Math.floor((widths.length - 1) * 0.9)] + GAP);
  }
  return starts;
}

/** Leaves in depth-first order, one a row; other turns in the middle of their children. */
function placeRows(children, count) {
  const y = new Float64Array(count);
  const rows = [];
  let next = 0.5;
  let before = -1;
  const stack = count ? [[0, -1]] : [];
  while (stack.length) {
    const [at, parent] = stack.pop();
    if (children[at].length) {
      for (let each = children[at].length - 1; each >= 0; each -= 1) stack.push([children[at][each], at]);
      continue;
    }
    if (before !== -1 && parent !== before) next += APART;
    before = parent;
    y[at] = next * ROW;
    next += 1;
    rows.push(at);
  }
  // Parents come before their children, so this pass sees children first.
  for (let at = count - 1; at >= 0; at -= 1) {
    const below = children[at];
    if (below.length) y[at] = (y[below[0]] + y[below.at(-1)]) / 2;
  }
  return { y, rows, height: (next + 0.5) * ROW };
}
