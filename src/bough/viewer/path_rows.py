"""The episodes of a step as rows that can be filtered and sorted."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from enum import IntFlag
from typing import TypeAlias

import numpy as np

from bough.tree import (
    Bools,
    Credited,
    Ints,
    Kind,
    Outcome,
    Ternary,
    Tree,
    TruncatedBy,
    calls_in,
    counted,
    leaves,
    seat_of_task_id,
    sum_at,
    sum_to_root,
    token_node,
    tools_at,
    turns,
)
from bough.viewer.stored_trees import TreeName
from bough.viewer.turn_nodes import number

Columns: TypeAlias = dict[str, list[object]]


class Flag(IntFlag):
    """What a search for episodes can ask; each value is a bit of the column `flags`."""

    DIVIDED_GROUP = 1
    """Some episodes of the task succeed, others do not."""
    NO_SIGNAL = 2
    """No token of the group has an advantage."""
    CUT_OFF = 4
    """An action ended at the token limit."""
    NO_TOOL_CALL = 8
    """There are tools, and the episode calls none."""
    UNPARSED = 16
    """An action does not have the parser's format."""
    INVALID = 32
    """The environment did not recognise an action."""
    FORKED = 64
    """The tree forks after its start."""
    EXCLUDED = 128
    """A filter or the credit rule left the episode out of the loss."""
    REPLAYED = 256
    """The tree was sampled in an earlier step."""


FLAGS: Mapping[str, int] = {flag.name.lower().replace("_", " "): int(flag) for flag in Flag if flag.name}
"""The names of the bits of `flags`."""


def path_rows(step: int, trees: Sequence[Credited]) -> Columns:
    """The episodes of the trees of a step, as columns [P].

    `tree` and `node` name the leaf; `entropy` is the mean over the sampled tokens, nats; `return` the undiscounted
    return; `tokens` the number of sampled tokens.
    """
    marks = _group_flags(trees)
    columns: Columns = defaultdict(list)
    for index, (credited, group) in enumerate(zip(trees, marks, strict=True)):
        for name, column in _rows(credited, str(TreeName(step=step, index=index)), group).items():
            columns[name] += column
    return dict(columns)


def _group_flags(trees: Sequence[Credited]) -> list[int]:
    """The flags that the trees of one task share, for each tree."""
    groups: dict[str, list[Credited]] = defaultdict(list)
    for each in trees:
        groups[each.tree.task.id].append(each)
    flags: dict[str, int] = {}
    for task, group in groups.items():
        won = [won for each in group for won in (each.tree.success[counted(each.tree)] == Ternary.YES).tolist()]
        flags[task] = Flag.DIVIDED_GROUP * (any(won) and not all(won))
        flags[task] |= Flag.NO_SIGNAL * all(each.is_zero for each in group)
    return [flags[each.tree.task.id] for each in trees]


def _rows(credited: Credited, name: str, group: int) -> Columns:
    tree, total = credited.tree, sum_to_root(credited.tree, credited.rewarded.reward)
    ends = leaves(tree)
    forked = bool(np.any(np.bincount(tree.parent[1:], minlength=tree.nodes)[1:] > 1))
    flags = np.full(len(ends), group | Flag.FORKED * forked | Flag.REPLAYED * tree.replayed)
    flags |= Flag.EXCLUDED * np.isin(ends, credited.excluded_leaves)
    flags |= Flag.CUT_OFF * _some(tree, tree.cut_off == Ternary.YES, ends)
    flags |= Flag.UNPARSED * _some(tree, tree.well_formed == Ternary.NO, ends)
    flags |= Flag.INVALID * _some(tree, tree.valid == Ternary.NO, ends)
    called = _some(tree, _calls(tree), ends)
    flags |= Flag.NO_TOOL_CALL * np.array(
        [not some and bool(tools_at(tree, end)) for some, end in zip(called.tolist(), ends.tolist(), strict=True)],
        dtype=np.bool_,
    )
    known = ~np.isnan(tree.entropy)
    count = sum_to_root(tree, np.bincount(token_node(tree)[known], minlength=tree.nodes))[ends]
    nats = sum_to_root(tree, sum_at(token_node(tree)[known], tree.entropy[known], tree.nodes))[ends]
    sampled = sum_to_root(tree, np.bincount(token_node(tree), tree.sampled, minlength=tree.nodes))[ends]
    with np.errstate(invalid="ignore", divide="ignore"):
        entropy = nats / count
    return {
        "tree": [name] * len(ends),
        "node": [*ends.tolist()],
        "task": [tree.task.id] * len(ends),
        "seat": [seat_of_task_id(tree.task.id)] * len(ends),
        "outcome": [Outcome(code).name.lower() for code in tree.outcome[ends].tolist()],
        "why": [TruncatedBy(code).name.lower() if code else "" for code in tree.truncated_by[ends].tolist()],
        "success": [Ternary(code).known for code in tree.success[ends].tolist()],
        "turns": [*turns(tree)[ends].tolist()],
        "tokens": [*sampled.astype(np.int64).tolist()],
        "entropy": [number(each) for each in entropy.tolist()],
        "return": [number(each) for each in total[ends].tolist()],
        "flags": [*flags.tolist()],
    }


def _some(tree: Tree, wanted: Bools, ends: Ints) -> Bools:
    """Whether some node on the path to each end is wanted."""
    return sum_to_root(tree, wanted)[ends] > 0


def _calls(tree: Tree) -> Bools:
    """[N] whether a node is an action with calls, well-formed or not."""
    found = [kind == Kind.ACTION and bool(calls_in(info)) for kind, info in zip(tree.kind, tree.info, strict=True)]
    return np.asarray(found, dtype=np.bool_)
