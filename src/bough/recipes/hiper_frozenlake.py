"""HiPER on FrozenLake in text: each answer keeps its subgoal or takes up another, and both levels are credited.

Paper: HiPER (arXiv 2602.16165). Assumes that a task falls into parts, and answers in the form of `PlanAct`; a subgoal
here is the next few moves that the agent means to make, which the oracle shows for three turns at a time, and the agent
reads the map and its subgoal. Discount and lambdas of 0.95 are the released code's, as are three heads of a critic;
its fine for keeping a subgoal is left out, because success pays 1 here and 10 there. One path of each task, as in
gae_frozenlake; answers are some 20 tokens long instead of 2.
"""

from dataclasses import replace

from bough.context import PlanAct, Planned, Window
from bough.credit import Hae
from bough.engine import Sampling
from bough.policy import ValueHead
from bough.recipes import gae_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in under an hour on two CPU cores."""
    return replace(
        gae_frozenlake.run(),
        name="hiper_frozenlake",
        parser=PlanAct(every=3),
        context=Planned(context=Window(turns=1)),
        sampling=Sampling(max_tokens=32),
        credit=Hae(),
        critic=ValueHead(heads=("low", "high", "switch")),
    )
