"""The tree of one seat: what a seat read and wrote, with the other seats as a part of its environment."""

from dataclasses import replace
from typing import Any

import numpy as np

from bough.tree.columns import of_tokens
from bough.tree.marks import Kind, Outcome, Source
from bough.tree.texts import instructions_in
from bough.tree.tree import COLUMNS, DTYPES, UNKNOWN_VALUES, Bools, Floats, Info, Ints, Tree
from bough.tree.walk import last_where, leaves, sum_to_root

SEAT_SEPARATOR = " as "
"""Separates the id of a task from the seat, in views."""

OF_ENDS = ("fault", "needed_tokens")
"""What the info of the end of a path keeps where another seat's node is the end."""


def view_task_id(task: str, seat: str) -> str:
    """The id of a task in the views of a seat: paths of different seats are not compared."""
    return f"{task}{SEAT_SEPARATOR}{seat}"


def seat_of_task_id(task: str) -> str:
    """The seat in the id of a task; "" without one."""
    return task.rpartition(SEAT_SEPARATOR)[2] if SEAT_SEPARATOR in task else ""


def seat_view(tree: Tree, seat: str, *, name: str = "") -> Tree | None:
    """The tree of one seat of an episode with several; a tree without seats is returned as it is.

    The nodes of other seats are left out, so the seat's contexts, turns and discounts are its own, and rules for one
    agent apply unchanged. `a` and `b` act in turn; the path of `a` has one turn, then the end:

        joint   0 PROMPT a   1 ACTION a   2 EDIT b   3 ACTION b   4 OBSERVATION a (the end)
        of a    0 PROMPT a   1 ACTION a                           4 OBSERVATION a (the end)
        of b    0 PROMPT     2 EDIT b     3 ACTION b              4 OBSERVATION (the end, without tokens)

    A payoff for another seat's action stands at the next node of this seat: it belongs to the turn before. A path on
    which the seat does not act is left out. The root of a seat that does not act first has no tokens.

    Args:
        tree: A tree of all seats.
        seat: The seat.
        name: The id of the task in the view; "" keeps it. Paths are compared by this id.

    Returns:
        The view; None where the seat acts on no path.

    Raises:
        ValueError: when the tree has no such seat.
    """
    if not tree.seats:
        return tree
    names = [each.name for each in tree.seats]
    if seat not in names:
        raise ValueError(f"seat_view: got the seat {seat!r}; need one of {names} (task {tree.task.id})")
    index = names.index(seat)
    mine = tree.seat == index
    kept = _kept(tree, mine)
    if not np.any(kept & mine & (tree.kind == Kind.ACTION)):
        return None
    above = _kept_above(tree, kept)
    columns = _columns(tree, mine, kept)
    columns["env_reward"] = _payoffs(tree, tree.seats[index].payoff, kept)
    columns["success"] = np.where(_ends(tree), tree.seats[index].success, columns["success"])
    columns["chain"] = _chains(tree, kept & mine & (tree.kind == Kind.ACTION))
    nodes = np.flatnonzero(kept)
    place = np.cumsum(kept) - 1
    lengths = np.where(mine, np.diff(tree.span), 0)
    tokens = np.repeat(kept & mine, np.diff(tree.span))
    cut: dict[str, Any] = {
        column: (values[tokens] if of_tokens(column) else values[nodes]).astype(DTYPES[column])
        for column, values in columns.items()
    }
    cut["parent"] = np.where(above[nodes] >= 0, place[above[nodes]], -1).astype(DTYPES["parent"])
    cut["span"] = np.concatenate([[0], np.cumsum(lengths[nodes])]).astype(DTYPES["span"])
    return replace(
        tree,
        task=replace(tree.task, id=name) if name else tree.task,
        info=tuple(_info(tree, int(node), mine) for node in nodes),
        appraisals={column: each.take(nodes) for column, each in tree.appraisals.items()},
        seats=(),
        **cut,
    )


def seat_nodes(tree: Tree, seat: str) -> Ints:
    """[V] int64: the node of the tree for each node of its `seat_view`, ascending."""
    index = [each.name for each in tree.seats].index(seat)
    return np.flatnonzero(_kept(tree, tree.seat == index))


def _ends(tree: Tree) -> Bools:
    """[N] bool: the leaves at which a path ended."""
    ends = np.zeros(tree.nodes, dtype=np.bool_)
    ends[leaves(tree)] = True
    return ends & (tree.outcome != Outcome.OPEN)


def _kept(tree: Tree, mine: Bools) -> Bools:
    """[N] bool: the root, the seat's nodes, and the ends of the paths on which it acts."""
    acts = sum_to_root(tree, mine & (tree.kind == Kind.ACTION)) > 0
    ends = _ends(tree)
    kept = (mine & ~ends) | (ends & acts)
    kept[0] = True
    return kept


def _kept_above(tree: Tree, kept: Bools) -> Ints:
    """[N] int64: the nearest kept node above each node; -1 at the root."""
    above = last_where(tree, kept)[tree.parent]
    above[0] = -1
    return above


def _columns(tree: Tree, mine: Bools, kept: Bools) -> dict[str, Any]:
    """The columns [N] or [T] of the view, before other nodes are cut out."""
    columns: dict[str, Any] = tree.columns()
    del columns["span"], columns["parent"]
    other = kept & ~mine
    columns["kind"] = np.where(other, Kind.OBSERVATION, tree.kind)
    columns["kind"][0] = Kind.PROMPT
    columns["source"] = np.where(other, Source.FORCED, tree.source)
    columns["policy_version"] = np.where(other, -1, tree.policy_version)
    of_actions = [name for name, each in COLUMNS.items() if each.of_action]
    columns |= {name: np.where(other, UNKNOWN_VALUES[name], columns[name]) for name in of_actions}
    columns["state_key"] = tree.state_key.copy()
    if not mine[0]:
        columns["state_key"][0] = 0
    columns["seat"] = np.zeros_like(tree.seat)
    return columns


def _payoffs(tree: Tree, payoff: Floats, kept: Bools) -> Floats:
    """[N] float64: the payoff of each kept node, with those of the nodes left out above it."""
    owed, parent, stays = payoff.tolist(), tree.parent.tolist(), kept.tolist()
    for node in range(1, tree.nodes):
        if not stays[parent[node]]:
            owed[node] += owed[parent[node]]
    return np.asarray(owed, dtype=np.float64)


def _chains(tree: Tree, acts: Bools) -> Ints:
    """[N] int64: the chain of each path's first action of the seat; -1 elsewhere."""
    chain = tree.chain[last_where(tree, tree.chain >= 0)]
    first = acts & (sum_to_root(tree, acts) == 1)
    return np.where(first, chain, -1)


def _info(tree: Tree, node: int, mine: Bools) -> Info:
    """The info of a node; another seat's texts are left out."""
    info = dict(tree.info[node])
    if mine[node]:
        return info
    if node == 0:
        first = int(np.argmax(mine))
        return {"instructions": instructions_in(tree.info[first])}
    return {name: value for name, value in info.items() if name in OF_ENDS}
