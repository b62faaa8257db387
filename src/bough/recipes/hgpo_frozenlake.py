"""HGPO on FrozenLake in text: moves from the same cell are compared, more so after the same moves.

Paper: HGPO (arXiv 2602.22817). Assumes states with keys, and a policy that reads the last turns: here the present map
and the two before it, as many as are compared. Discount 0.95, weights that grow linearly, a history of 2 and 0.1 off
for an action that is none are the authors'. The learning rate is that of grpo_frozenlake: a model this small learns
from scratch, where papers tune large ones with 1e-6. The released code leaves out advantages that happen to be exactly
0 (`Hgpo(as_released=True)`).
"""

from dataclasses import replace

from bough.context import Window
from bough.credit import Hgpo
from bough.recipes import grpo_frozenlake
from bough.reward import EnvReward, InvalidAction
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="hgpo_frozenlake",
        context=Window(turns=3),
        rewards=(EnvReward(), InvalidAction(penalty=0.1)),
        credit=Hgpo(history=2),
    )
