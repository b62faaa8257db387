"""A soft penalty on sampled tokens near a limit."""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np

from bough.piece import AtLeast, piece
from bough.tree import Floats, RewardRange, Tree, counted, sampled_tokens, sum_to_root
from bough.tree.endings import path_reward_nodes


@piece
class Overlong:
    """Channel "overlong": DAPO's soft penalty (arXiv 2503.14476) on paths near the limit of sampled tokens.

    With n the tokens that the policy sampled on a path, paid at its last action, or at its leaf where other paths go
    through that action:

        0 up to limit - buffer;        factor * (limit - buffer - n) / buffer above, down to -factor at the limit

    The paper (equation 13) counts the tokens of one response of at most 20,480, of which the last 4,096 are the buffer;
    here all turns of a path count. In released code (verl, `DAPORewardManager`) the penalty keeps growing above
    the limit, which no response there can exceed: 30,000 tokens cost 1, and 3.3242 with capped=False.

    Attributes:
        limit_tokens: Number of tokens with the full penalty.
        buffer_tokens: Number of tokens over which the penalty grows, from 1 to the limit.
        factor: The penalty at the limit, >= 0.
        capped: Whether the penalty is constant above the limit, as in the paper.
    """

    limit_tokens: int = 20480
    buffer_tokens: Annotated[int, AtLeast(1)] = 4096
    factor: Annotated[float, AtLeast(0, "0 or more, it is subtracted")] = 1.0
    capped: bool = True

    def __post_init__(self) -> None:
        if self.buffer_tokens > self.limit_tokens:
            raise ValueError(
                f"Overlong.buffer_tokens: got {self.buffer_tokens}; need at most {self.limit_tokens}, the limit"
            )

    @property
    def reward_ranges(self) -> Mapping[str, RewardRange]:
        """Down to minus `factor`; without a bound where it is not capped."""
        return {"overlong": RewardRange(low=-self.factor if self.capped else -math.inf, high=0, per="path")}

    def __call__(self, group: Sequence[Tree]) -> list[Mapping[str, Floats]]:
        """Pays at the last action of each counted path, or at its leaf where other paths go through that action."""
        return [{"overlong": self._pay(tree)} for tree in group]

    def _pay(self, tree: Tree) -> Floats:
        ends = counted(tree)
        over = sum_to_root(tree, sampled_tokens(tree))[ends] - (self.limit_tokens - self.buffer_tokens)
        paid = np.zeros(tree.nodes, dtype=np.float64)
        paid[path_reward_nodes(tree, ends)] = 0.0 - self.factor * np.clip(
            over / self.buffer_tokens, 0.0, 1.0 if self.capped else None
        )
        return paid
