// The turns of an exported tree, each stored as what differs from the turn before.

/**
 * @param nodes `{ last, parent, turns, pictures }`: the last node, the turn before, and what differs, of each turn.
 *   `own` has values that replace, `on` lists that go on: `[number of equal items, those after them]`.
 * @param part "node" or "state". @param place The last node of the turn.
 */
export function restored(nodes, part, place) {
  const at = nodes.last.indexOf(place);
  if (at < 0) return undefined;
  return part === "state" ? { svg: nodes.pictures[at] ?? null } : turn(nodes, at);
}

function turn(nodes, at) {
  const walk = [];
  for (let each = at; each >= 0; each = nodes.parent[each]) walk.push(each);
  const found = {};
  for (const each of walk.reverse()) {
    const { own, on } = nodes.turns[each];
    Object.assign(found, own);
    for (const [name, [same, rest]] of Object.entries(on)) found[name] = [...found[name].slice(0, same), ...rest];
  }
  return found;
}
