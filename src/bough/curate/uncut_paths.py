"""The filter of paths whose actions are complete."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bough.curate.filter import FilterResult
from bough.tree import (
    Bools,
    Credited,
    Kind,
    Ternary,
    Tree,
    TruncatedBy,
    exclude_leaves,
    groups,
    included_leaves,
    sum_to_root,
)

LIMITS = (TruncatedBy.TURNS, TruncatedBy.TOKENS, TruncatedBy.CONTEXT)
"""The limits of a path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UncutPaths:
    """Masks the paths with an action that ended at a token limit (overlong filtering, DAPO, arXiv 2503.14476).

    A masked path has no loss, with no term: it is not trained on because its reward judges an action that could not
    end. It stays in the statistics of its group, as advantages are computed before, and it counts in the mean of the
    loss, as with `mask_truncated_completions` of TRL. Two paths of 3 tokens, the second cut off: each token of the
    first has the weight 1/6. Groups without remaining paths are dropped under "cut_off".

    With `filters=(UncutPaths(), NonZeroAdvantage())` groups whose other paths are equal are tied.

    Attributes:
        limits: Whether paths that end at a limit of turns, tokens or context are masked too.
        in_mean: Whether masked paths count in the mean of the loss. If false, the loss is the mean over the others.
    """

    limits: bool = False
    in_mean: bool = True

    def __call__(self, credited: Sequence[Credited]) -> FilterResult:
        """Mask paths, and drop the groups that are then empty."""
        kept: list[Credited] = []
        masked: list[Credited] = []
        for each in credited:
            leaves = included_leaves(each)
            cut = self._is_cut(each.tree)[leaves]
            if not cut.all():
                kept.append(exclude_leaves(each, leaves[cut]))
            if cut.any():
                masked.append(exclude_leaves(each, leaves[~cut]))
        dropped = len(groups(credited)) - len(groups(kept))
        return FilterResult(
            trees=tuple(kept), dropped={"cut_off": dropped}, masked=tuple(masked) if self.in_mean else ()
        )

    def _is_cut(self, tree: Tree) -> Bools:
        """[N] bool: whether an action on the path to a node was cut off, or a limit ended the path there."""
        cut = (tree.kind == Kind.ACTION) & (tree.cut_off == Ternary.YES)
        found = sum_to_root(tree, cut.astype(np.float64)) > 0
        return found | np.isin(tree.truncated_by, LIMITS) if self.limits else found
