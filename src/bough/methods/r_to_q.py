"""From r to Q* (arXiv 2404.12358)."""

from bough.curate import NonZeroAdvantage
from bough.objective import Dpo
from bough.roles import EarlierVersion
from bough.searches.implicit_beam import implicit_beam
from bough.train import Run, World

NEVER = 10**9
"""Steps after which the reference is renewed: more than any run has."""


def r_to_q(world: World, *, width: int = 4, samples: int = 4, beta: float = 0.1) -> Run:
    """From r to Q* (arXiv 2404.12358): DPO, with trees from a beam by the policy's own implicit value.

    Assumes an environment that can step a state twice. A beam keeps the turns with the highest beta * log (policy /
    reference), which is the advantage that DPO's preferences imply; DPO then compares the paths by their returns. The
    reference is the policy before the first step, in the search and in the loss. The paper trains on a fixed set of
    pairs and searches afterwards. `credit=ImplicitQ()` is the same value of each token, for other losses.
    """
    return world.run(
        explorer=implicit_beam(width=width, samples=samples, beta=beta),
        objective=Dpo(beta=beta),
        models={"reference": EarlierVersion(every=NEVER)},
        regularizers=(),
        filters=(NonZeroAdvantage(),),
    )
