"""HBPO (arXiv 2507.15844)."""

from bough.credit import Hbpo
from bough.explore import BudgetedChains
from bough.reward import BudgetReward
from bough.train import Run, World

SHARES = (0.125, 0.25, 0.5, 0.625)
"""The budgets of the paper, 512, 1024, 2048 and 2560 tokens, as shares of its longest answer, 4096."""


def hbpo(
    world: World, *, budgets: tuple[int, ...] = (), longest_tokens: int = 0, n: int = 16, as_released: bool = False
) -> Run:
    """HBPO (arXiv 2507.15844): groups over several announced budgets, a reward for keeping them, and their credit.

    Assumes paths that may be short or long, and success that the environment marks. Credit uses the budget reward
    alone; the world's rewards are in the metrics. The default budgets are the paper's shares of the longest path,
    `limits.turns` times `sampling.max_tokens`, here of all turns of a path. The authors begin the answer with a
    sentence about the budget; here a message announces it. The divergence of the world is dropped, as in the paper.

    Args:
        world: The world.
        budgets: Tokens of a path, ascending; () for the shares of the paper.
        longest_tokens: From this length on a success is worth nothing; 0 for the longest path.
        n: Paths of a task, a multiple of the number of budgets.
        as_released: The bracket of `Hbpo` counts twice.
    """
    longest = longest_tokens or world.max_path_tokens
    chosen = budgets or tuple(sorted({max(1, round(share * longest)) for share in SHARES}))
    return world.run(
        explorer=BudgetedChains(budgets=chosen, n=max(n, len(chosen)) // len(chosen) * len(chosen)),
        rewards=(*world.rewards, BudgetReward(longest_tokens=longest)),
        credit=Hbpo(longest_tokens=longest, as_released=as_released),
        regularizers=(),
    )
