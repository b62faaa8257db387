"""A tree as its drawing has it: a node for each turn, or for each part of a turn that forks inside."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from bough.tree import (
    BadCall,
    Bools,
    Credited,
    Floats,
    Ints,
    Kind,
    Outcome,
    Source,
    Ternary,
    Tree,
    TruncatedBy,
    action_in,
    action_text,
    begins_turn,
    calls_in,
    counted,
    leaves,
    sum_of_subtree,
    sum_to_root,
    text_in,
    token_node,
    trained,
    turns,
)

Column: TypeAlias = list[object]
"""A column of JSON data; None where a number is unknown."""

LABEL_LETTERS = 80
"""Letters of a turn's text in the drawing."""

FAITHFUL_DIGITS = 5
"""Significant digits of numbers in the drawing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """The turns of a tree, G of them: the prompt, each turn, and each part of a turn that forks inside.

    A turn has its action's pieces and what follows until the next action or fork.

    Attributes:
        first: [G] the first node of each, ascending.
        last: [G] the last node.
        parent: [G] index of the turn before; -1 for the prompt.
        of_node: [N] index of the turn of each node of the tree.
    """

    first: Ints
    last: Ints
    parent: Ints
    of_node: Ints

    @classmethod
    def of(cls, tree: Tree) -> "Turns":
        """The turns of a tree."""
        children = np.bincount(tree.parent[1:], minlength=tree.nodes)
        starts = begins_turn(tree) | (children[tree.parent] > 1)
        starts[0] = True
        first = np.flatnonzero(starts)
        # Nodes stand in depth-first order, and a turn has no fork inside: its nodes lie together.
        of_node = np.cumsum(starts) - 1
        last = np.append(first[1:], tree.nodes) - 1
        parent = np.where(first > 0, of_node[tree.parent[first]], -1)
        return cls(first=first, last=last, parent=parent, of_node=of_node)

    def __len__(self) -> int:
        return len(self.first)

    def sum(self, value: Floats) -> Floats:
        """[G] the sum of a column [N] over the nodes of each turn."""
        return np.add.reduceat(value, self.first)


def drawn(credited: Credited) -> dict[str, Column]:
    """The columns of a tree's drawing, [G] each.

    node, last     first and last node
    parent         index of the turn before; -1 for the prompt
    kind           "prompt", "turn", "part" (after a fork inside a turn), "split" (the turn forks inside below)
    turn           number of turns up to here
    label          the action on one line
    advantage      mean over the trained tokens; positive and negative are its two sides
    reward         sum over channels; total from the root
    value, rating, visits   of a search
    below          mean return of the counted paths below
    paths, solved  number of leaves below, and of solved ones
    logprob, entropy        mean over the sampled tokens, nats
    tokens         number of sampled tokens
    outcome        of a leaf; "" inside. success, valid, well_formed, cut_off: true, false, or unknown
    why            what truncated a path
    source, version   where the action comes from; weight updates of the policy that sampled it
    calls, bad_calls  number of calls of tools, and of malformed ones
    excluded       whether a filter or rule left the path out of the loss
    """
    tree, found = credited.tree, Turns.of(credited.tree)
    return _places(tree, found) | _credits(credited, found) | _actions(tree, found) | _ends(tree, found)


def _places(tree: Tree, found: Turns) -> dict[str, Column]:
    """Where each turn is in the tree."""
    forks = np.bincount(tree.parent[1:], minlength=tree.nodes)[found.last] > 1
    return {
        "node": found.first.tolist(),
        "last": found.last.tolist(),
        "parent": found.parent.tolist(),
        "kind": _kinds(tree, found, forks),
        "turn": turns(tree)[found.last].tolist(),
    }


def _credits(credited: Credited, found: Turns) -> dict[str, Column]:
    """Rewards and advantages, and the returns below each turn."""
    tree = credited.tree
    total = sum_to_root(tree, credited.rewarded.reward)
    counts = np.zeros(tree.nodes)
    counts[counted(tree)] = 1
    with np.errstate(invalid="ignore", divide="ignore"):
        below = sum_of_subtree(tree, counts * total) / sum_of_subtree(tree, counts)
    of_token = found.of_node[token_node(tree)]
    plus, minus = (_mean(found, of_token, side, trained(tree)) for side in (credited.positive, credited.negative))
    return {
        "advantage": _numbers(plus + minus),
        "positive": _numbers(plus),
        "negative": _numbers(minus),
        "reward": _numbers(found.sum(credited.rewarded.reward)),
        "total": _numbers(total[found.last]),
        "below": _numbers(below[found.first]),
        "excluded": np.isin(found.last, credited.excluded_leaves).tolist(),
    }


def _actions(tree: Tree, found: Turns) -> dict[str, Column]:
    """The action of each turn, and its tokens."""
    acts, of_token, sampled = _last_actions(tree, found), found.of_node[token_node(tree)], tree.sampled
    actions: list[int] = acts.tolist()
    called = [calls_in(tree.info[node]) for node in actions]
    return {
        "label": [_label(tree, node) for node in actions],
        "value": _numbers(tree.value[acts]),
        "rating": _numbers(tree.rating[acts]),
        "visits": tree.visits[acts].tolist(),
        "logprob": _numbers(_mean(found, of_token, tree.logprob, sampled)),
        "entropy": _numbers(_mean(found, of_token, tree.entropy, ~np.isnan(tree.entropy))),
        "tokens": np.bincount(of_token[sampled], minlength=len(found)).tolist(),
        "valid": _ternaries(tree.valid[acts]),
        "well_formed": _ternaries(tree.well_formed[acts]),
        "cut_off": _ternaries(tree.cut_off[acts]),
        "source": [Source(code).name.lower() for code in tree.source[acts].tolist()],
        "version": tree.policy_version[acts].tolist(),
        "calls": [len(calls) for calls in called],
        "bad_calls": [sum(isinstance(call, BadCall) for call in calls) for calls in called],
    }


def _ends(tree: Tree, found: Turns) -> dict[str, Column]:
    """How the paths below each turn ended."""
    ends = np.zeros(tree.nodes)
    ends[leaves(tree)] = 1
    solved = ends * (tree.success == Ternary.YES)
    outcomes = tree.outcome[found.last].tolist()
    return {
        "paths": sum_of_subtree(tree, ends)[found.first].astype(int).tolist(),
        "solved": sum_of_subtree(tree, solved)[found.first].astype(int).tolist(),
        "outcome": [
            Outcome(code).name.lower() if end else ""
            for end, code in zip((ends[found.last] > 0).tolist(), outcomes, strict=True)
        ],
        "success": _ternaries(tree.success[found.last]),
        "why": [TruncatedBy(code).name.lower() if code else "" for code in tree.truncated_by[found.last].tolist()],
    }


def _kinds(tree: Tree, found: Turns, forks: Bools) -> Column:
    """The kind of each turn; a fork is inside of a turn where a child of its last node continues the action."""
    begins = begins_turn(tree)[found.first]
    inner = np.zeros(tree.nodes, dtype=np.bool_)
    continues = (tree.kind == Kind.ACTION) & ~begins_turn(tree)
    inner[tree.parent[continues]] = True
    names: Column = []
    for at, (own, split) in enumerate(zip(begins.tolist(), (forks & inner[found.last]).tolist(), strict=True)):
        names.append("prompt" if at == 0 else "split" if split else "turn" if own else "part")
    return names


def _last_actions(tree: Tree, found: Turns) -> Ints:
    """[G] the last `ACTION` node of each turn, which has its columns; its first node where it has none."""
    acts = np.where(tree.kind == Kind.ACTION, np.arange(tree.nodes), -1)
    return np.maximum(np.maximum.reduceat(acts, found.first), found.first)


def _label(tree: Tree, node: int) -> str:
    info = tree.info[node]
    if tree.kind[node] != Kind.ACTION:
        return ""
    text = action_text(action_in(info)) if calls_in(info) else text_in(info)
    return " ".join((text or "").split())[:LABEL_LETTERS]


def _mean(found: Turns, of_token: Ints, value: Floats, among: Bools) -> Floats:
    """[G] the mean of a column [T] among some tokens of each turn; nan without any."""
    number = np.bincount(of_token[among], minlength=len(found))
    total = np.bincount(of_token[among], value[among], minlength=len(found))
    with np.errstate(invalid="ignore", divide="ignore"):
        return total / number


def _numbers(values: Floats) -> Column:
    return [number(value) for value in values.tolist()]


def number(value: float) -> float | None:
    """A number of JSON data; None for one that is not finite."""
    return float(f"{value:.{FAITHFUL_DIGITS}g}") if np.isfinite(value) else None


def _ternaries(values: Ints) -> Column:
    return [Ternary(value).known for value in values.tolist()]
