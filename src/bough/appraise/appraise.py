"""Appraisers: the awaited stage between growth and reward."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol, TypeAlias, runtime_checkable

from bough.appraise.ask import AskModels
from bough.tree import Appraisal, Entry, StageError, Tree

Columns: TypeAlias = Mapping[str, Sequence[Mapping[int, Entry]]]
"""By the name of a column, for each tree, the entries by node."""


@runtime_checkable
class Appraiser(Protocol):
    """Asks models about the trees of one task: a frozen dataclass.

    It declares its columns in `gives`, as `frozenset({appraised("NAME")})`. Rewards read them (`Judged`).
    """

    async def appraise(self, trees: Sequence[Tree], ask: AskModels) -> Columns:
        """The columns, by name: for each tree the entries by node."""
        ...


async def appraise_trees(trees: Sequence[Tree], appraisers: Sequence[Appraiser], ask: AskModels) -> list[Tree]:
    """The trees of one task with the columns of all appraisers; answers are added to the info of their nodes.

    Raises:
        StageError: when a column has another number of trees or unknown nodes, or two appraisers give the same column.
    """
    found = list(trees)
    for appraiser in appraisers:
        for name, columns in (await appraiser.appraise(trees, ask)).items():
            place = f"appraisers={type(appraiser).__name__}: column {name!r}"
            if len(columns) != len(trees):
                raise StageError(
                    f"{place}: got entries of {len(columns)} trees for {len(trees)}; need one mapping each"
                )
            found = [_with(tree, name, entries, place) for tree, entries in zip(found, columns, strict=True)]
    return found


def _with(tree: Tree, name: str, entries: Mapping[int, Entry], place: str) -> Tree:
    """The tree with a column."""
    if name in tree.appraisals:
        raise StageError(f"{place}: got two appraisers with this column; need a name of its own for each")
    if wrong := [node for node in entries if not 0 <= node < tree.nodes]:
        raise StageError(f"{place}: got an entry of node {wrong[0]}; need nodes from 0 to {tree.nodes - 1}")
    info = list(tree.info)
    for node, entry in entries.items():
        if entry.texts:
            info[node] = {**info[node], f"appraisal {name}": list(entry.texts)}
    appraisals = {**tree.appraisals, name: Appraisal.of(entries, tree.nodes)}
    return replace(tree, info=tuple(info), appraisals=appraisals)
