"""Turn-PPO (arXiv 2512.17008)."""

from bough.credit import TurnPpo
from bough.methods.ppo import ppo
from bough.train import Run, World


def turn_ppo(world: World) -> Run:
    """Turn-PPO (arXiv 2512.17008): a critic's value before each turn, and one advantage for each turn.

    Assumes that the prompt before a turn is its state. Experimental: the code was not found. Discount 0.99 and lambda
    0.9 are the paper's, and so is a critic that learns faster than the policy. The paper clips the ratio of a whole
    turn; here each token has its own. One path of each task, as in `ppo`.
    """
    return ppo(world).replace(credit=TurnPpo())
