"""Paths without a value of an appraiser."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from bough.tree.appraisal import Verdict
from bough.tree.marks import Outcome, TruncatedBy
from bough.tree.texts import replies_in
from bough.tree.tree import Ints, Tree
from bough.tree.walk import counted, path, sum_to_root

REASONS = {
    Verdict.UNPARSED: "no answer could be read",
    Verdict.LATE: "no answer came before the deadline",
    Verdict.REFUSED: "the model returned no answer",
}
"""Why an appraised node has no value."""

UNJUDGED = "the path has no value of the appraiser's column"
"""How the fault of a path without a judgement begins."""


def unknown_paths(tree: Tree, column: str) -> Ints:
    """[U] int64: the leaves of counted paths without a value: no node has one, or one of the nodes lacks its own."""
    ends, appraisal = counted(tree), tree.appraisals.get(column)
    if appraisal is None:
        return ends
    known = appraisal.verdict == Verdict.OK
    lacking = (appraisal.verdict != Verdict.NONE) & ~known
    some = sum_to_root(tree, known.astype(np.float64))[ends] > 0
    wrong = sum_to_root(tree, lacking.astype(np.float64))[ends] > 0
    return ends[~some | wrong]


def fail_unknown(tree: Tree, columns: Iterable[str]) -> Tree:
    """The tree in which paths without a value of a column are `FAILED`, so that they enter no group and no loss."""
    lacking = {int(leaf): name for name in sorted(columns) for leaf in unknown_paths(tree, name)}
    if not lacking:
        return tree
    outcome, truncated_by, info = tree.outcome.copy(), tree.truncated_by.copy(), list(tree.info)
    for leaf, name in lacking.items():
        outcome[leaf], truncated_by[leaf] = Outcome.FAILED, TruncatedBy.NOTHING
        info[leaf] = {**info[leaf], "fault": f"{UNJUDGED} {name!r}{_reason(tree, name, leaf)}"}
    return replace(tree, outcome=outcome, truncated_by=truncated_by, info=tuple(info))


def _reason(tree: Tree, column: str, leaf: int) -> str:
    """Why the last node of a path that was appraised lacks a value; "" when nothing was appraised."""
    if column not in tree.appraisals:
        return ""
    nodes = path(tree, leaf)
    verdict = tree.appraisals[column].verdict[nodes]
    lacking = np.flatnonzero((verdict != Verdict.NONE) & (verdict != Verdict.OK))
    if not len(lacking):
        return ""
    last = Verdict(int(verdict[lacking[-1]]))
    texts = replies_in(tree.info[nodes[lacking[-1]]], column)
    given = f" ({texts[-1]})" if last is Verdict.REFUSED and texts and texts[-1] else ""
    return f": {REASONS[last]}{given}; answers.jsonl of the run has the answers"
