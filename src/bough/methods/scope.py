"""SCOPE (arXiv 2602.24110)."""

from bough.explore import Correct, FirstOracleMistake
from bough.objective import PpoClip, SftMix, add
from bough.train import Demonstrations, Run, World


def scope(world: World, *, n: int = 8, most: int = 2, invalid: bool = False) -> Run:
    """SCOPE (arXiv 2602.24110): keeps a failed path up to its first wrong step, and the oracle completes it.

    Assumes an oracle, and an environment that can step a state twice. Experimental: written from the abstract. A step
    is wrong after which the oracle has no plan; with `invalid` also an invalid action. The paper has a process reward
    model and a stronger model. GRPO compares failures with their corrections. The oracle's actions are imitated with a
    weight of 0.1, as in Trinity-RFT's mixture. The world's regularizers apply to sampled tokens only.
    """
    return world.run(
        explorer=Correct(n=n, most=most, blame=FirstOracleMistake(invalid=invalid)),
        objective=SftMix(objective=add(PpoClip(), world.regularizers), mu=0.1),
        regularizers=(),
        demonstrations=Demonstrations(from_trees=True),
    )
