"""LATR on FrozenLake in text: paths branch where two tokens are nearly tied, instead of by chance.

Paper: LATR (arXiv 2510.24302). Assumes an environment that can step a state twice, and an engine that says what else it
might have written; FrozenLake's states are values, so branching is free. Credit and loss are GRPO's, as in the paper.
Answers follow `PlanAct`: a subgoal of up to three moves, then the move. Their 20 or so tokens suffice to branch inside
and to compare branches. The tie threshold and the 8 paths are the paper's for countdown; it compares after 20 to 50
tokens of long answers, here after 4 to 12. The released code takes the likeliest token wherever it does not branch, as
if it had been sampled; here such tokens are sampled, and forced ones are not learned from. Learning rate and divergence
are those of grpo_frozenlake.
"""

from dataclasses import replace

from bough.context import PlanAct, Planned, Window
from bough.engine import Sampling
from bough.explore import Lookahead
from bough.recipes import grpo_frozenlake
from bough.train import Run


def run() -> Run:
    """Train in under an hour on two CPU cores."""
    return replace(
        grpo_frozenlake.run(),
        name="latr_frozenlake",
        parser=PlanAct(every=3),
        context=Planned(context=Window(turns=1)),
        sampling=Sampling(max_tokens=32),
        explorer=Lookahead(paths=8, windows=(4, 8, 12)),
    )
