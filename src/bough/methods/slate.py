"""SLATE (arXiv 2602.23440)."""

from bough import credit
from bough.explore import OracleMatch, Slate
from bough.objective import Normalizer
from bough.train import Run, World


def slate(world: World) -> Run:
    """SLATE (arXiv 2602.23440): five candidates of each action, judged before one is executed.

    Assumes a judge of actions. The paper asks a large model whether a step is good, bad or neither; here it is the
    environment's oracle, which compares an action with its own. Five candidates, a temperature of 0.7, the clip of 0.2
    and a mean in which every candidate counts once are the paper's.
    """
    return world.run(
        explorer=Slate(quality=OracleMatch()), credit=credit.SlateCredit(), normalizer=Normalizer(by="unique_tokens")
    )
