"""CPL on Sokoban in text: actions of positive value over those of negative value, by a margin that is their gap.

Paper: CPL with Step-APO (arXiv 2409.08642), whose steps are those of a plan and whose search is guided by a value head;
beta .3, alpha 1 and 200 simulations, those of its first round, are the paper's. Assumes an environment that can be
stepped from the same state twice. Success is worth 1 and anything else -1; the head learns the values of the search.
The reference is the policy at the start of a round.
"""

from dataclasses import replace

from bough.credit import Searched
from bough.explore import Limits
from bough.explore.search import puct
from bough.objective import StepApo, Sum, ValueClip
from bough.policy import ValueHead
from bough.recipes import grpo_sokoban
from bough.train import Run


def run() -> Run:
    """Train in minutes on two CPU cores."""
    base = grpo_sokoban.run()
    return replace(
        base,
        name="cpl_sokoban",
        explorer=puct(width=3, simulations=200, revisit=False),
        limits=Limits(turns=5),
        critic=ValueHead(),
        credit=Searched(relative=False, head="value"),
        objective=Sum(terms=(StepApo(), ValueClip(clip=None))),
        optimizer=replace(base.optimizer, epochs=4, warmup_steps=0),
        reference="step",
        steps=3,
        batch_tasks=64,
        heldout=replace(base.heldout, every=1),
    )
