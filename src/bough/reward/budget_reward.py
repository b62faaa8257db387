"""HBPO's reward of lengths: keep the budget that was announced."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np

from bough.piece import Above, AtLeast, AtMost, piece
from bough.tree import Floats, InfoNumber, RewardRange, Ternary, Tree, counted, sampled_tokens, sum_to_root
from bough.tree.endings import last_action, path_reward_nodes, solved

BUDGET = InfoNumber("budget")
"""The budget of `BudgetedChains`, tokens."""


@piece
class BudgetReward:
    """Channel "budget": HBPO's reward (arXiv 2507.15844) of a path by its tokens n and its announced budget b.

    With L `longest_tokens` and c `scale`, a path with success and n <= L is paid at its last action

        min(c cos(pi n / 2L) - |b - n| / L,  c cos(pi b / 2L))         c cos(pi n / 2L) without a budget

    so below the budget its use is not punished, and above it the reward falls. A longer path and a failure are paid 0,
    a failure whose last action is not well formed `malformed`. Where other paths go through that action, a path
    is paid at its leaf. L 4096, c 4:

        b            512     512     512    2560      none
        n            300     512    1000     300      1000
        reward     3.922   3.923   3.590   2.222     3.710

    Budgets are those of `BudgetedChains`.

    Attributes:
        longest_tokens: Tokens from which on a success is worth nothing, >= 1.
        scale: The largest reward, > 0.
        malformed: Reward of a failure in the wrong form, at most 0.
    """

    longest_tokens: Annotated[int, AtLeast(1)] = 4096
    scale: Annotated[float, Above(0)] = 4.0
    malformed: Annotated[float, AtMost(0, "0 or less")] = -1.0

    @property
    def reward_ranges(self) -> Mapping[str, RewardRange]:
        """Up to `scale`; budgets, and so what far from them is paid, have no bound here."""
        return {"budget": RewardRange(high=self.scale, per="path")}

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        """Pays at the last action of each counted path, or at its leaf where other paths go through that action."""
        return [{"budget": self._pay(tree)} for tree in group]

    def of_lengths(self, tokens: Floats, budget: Floats) -> Floats:
        """[n]: the rewards of n successes with these lengths and budgets; nan is no budget."""
        longest = self.longest_tokens
        free, most = (self.scale * np.cos(np.pi / 2 * each / longest) for each in (tokens, budget))
        kept = np.minimum(free - np.abs(budget - tokens) / longest, most)
        return np.where(tokens <= longest, np.where(np.isnan(budget), free, kept), 0.0)

    def _pay(self, tree: Tree) -> Floats:
        ends, paid = counted(tree), np.zeros(tree.nodes)
        last = last_action(tree)[ends]
        won = solved(tree)[ends]
        malformed = tree.well_formed[last] == Ternary.NO
        earned = self.of_lengths(sum_to_root(tree, sampled_tokens(tree))[ends], BUDGET.newest(tree)[ends])
        paid[path_reward_nodes(tree, ends)] = np.where(won, earned, np.where(malformed, self.malformed, 0.0))
        return paid
