// One set of columns of a tree and its new branches, in depth-first order as the drawing needs it.

/**
 * @param columns Of the tree. @param branches Each with `number`, `at` (the place where it begins) and `columns`, whose
 *   first turns have the parent -1.
 * @returns The columns, with `branch`: the number of the new branch, null for the tree's own turns.
 */
export function joined(columns, branches) {
  const all = Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, [...column]]));
  all.branch = columns.parent.map(() => null);
  for (const each of branches) {
    const parent = turnAt(all, each.at);
    if (parent < 0) continue;
    const begin = all.parent.length;
    for (const [name, column] of Object.entries(each.columns)) {
      if (name === "parent") all.parent.push(...column.map((above) => (above < 0 ? parent : above + begin)));
      else all[name].push(...column);
    }
    all.branch.push(...each.columns.parent.map(() => each.number));
  }
  return all;
}

function turnAt(all, place) {
  const colon = place.indexOf(":");
  const branch = colon < 0 ? null : Number(place.slice(1, colon));
  const node = Number(place.slice(colon + 1));
  return all.parent.findIndex((_, at) => all.branch[at] === branch && all.node[at] <= node && node <= all.last[at]);
}
