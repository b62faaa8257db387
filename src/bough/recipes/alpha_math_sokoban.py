"""AlphaMath on Sokoban in text: a search guided by a critic gives the training data of policy and critic.

Paper: AlphaMath (arXiv 2405.03553). A round is a search of 256 rooms by 40 simulations, as in the paper. Then the
policy imitates successful paths, at most two a room, and the value head learns the search's value of each
place: 1 for success and -1 for anything else. Assumes an environment that can be stepped from the same state twice. In
the first round the critic is untrained, and the policy's priors guide the search.
"""

from dataclasses import replace

from bough.credit import Filtered, Searched
from bough.explore import Limits
from bough.explore.search import puct
from bough.objective import Imitation, Sum, ValueClip
from bough.policy import ValueHead
from bough.recipes import grpo_sokoban
from bough.train import Optimizer, Run, Saving


def run() -> Run:
    """Train in minutes on two CPU cores."""
    base = grpo_sokoban.run()
    return replace(
        base,
        name="alpha_math_sokoban",
        explorer=puct(width=4, simulations=40, revisit=False),
        limits=Limits(turns=5),
        critic=ValueHead(),
        credit=Filtered(most=2, value_targets=Searched(head="value")),
        objective=Sum(terms=(Imitation(), ValueClip(clip=None))),
        optimizer=Optimizer(learning_rate=1e-3, schedule="linear", warmup_steps=10, epochs=6, minibatches=24),
        steps=3,
        batch_tasks=256,
        heldout=replace(base.heldout, every=1),
        saving=Saving(every=1, as_grown=True),
    )
